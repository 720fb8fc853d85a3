//! The sentinel of a machine with lanes: it notices that no lane turns any more, because one is stuck and all
//! others sleep.
//!
//! A lane that is awake moves the stall deadline in every tick. When the deadline passes, the machine is
//! told: it marks the silent CPUs and names a lane to kick. The sentinel's own time is not simulated: it is a
//! thread that hardly ever runs. A kernel has none, and needs none: its interrupts come whatever a CPU does.
//! Source: docs/design/PROTOCOL.md, section 4; the sentinel of `live`. Absent: its doubts whether the whole
//! process was stopped.

use super::layer::CpuLayer;
use crate::scenario::names::ScenarioPolicy;
use crate::world::context::RunAccess;
use crate::world::event::SimEvent;
use quietcore_core::Nanos;

impl CpuLayer<'_> {
    /// A lane is awake now.
    pub(crate) fn move_stall_deadline(&mut self) {
        if self.is_kernel() || self.plan().policy != ScenarioPolicy::Pull {
            return;
        }
        self.sentinel.held = self.now();
        if !std::mem::replace(&mut self.sentinel.is_set, true) {
            self.push(self.sentinel_deadline(), SimEvent::Sentinel);
        }
    }

    fn sentinel_deadline(&self) -> Nanos {
        let policy = self.softirqs.tasks.timers.machine.settings().stall_in_force();
        let deadline = policy.sentinel_deadline(Nanos(self.sentinel.held), self.plan().tick);
        deadline.expect("a simulated machine with a sentinel looks for stalls")
    }

    pub(crate) fn sentinel_looks(&mut self) {
        let due = self.sentinel_deadline();
        if due.0 > self.now() {
            self.push(due, SimEvent::Sentinel);
        } else if self.tasks().has_awake_cpu() {
            self.timers().handle_silence();
            self.push_in(self.plan().tick.0, SimEvent::Sentinel);
        } else {
            // No lane has to be awake; the next one that wakes up sets it again.
            self.sentinel.is_set = false;
        }
    }
}
