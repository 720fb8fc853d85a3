//! The sentinel of a machine with lanes: it notices that nobody turns any more, because one is stuck and all
//! others sleep.
//!
//! A lane that is awake moves the moment at which the sentinel looks, in every tick. When it is not moved
//! the machine is told, which marks who is silent and names somebody to kick. Its own time is not
//! simulated: it is a thread that hardly ever runs. A kernel has none, and needs none: its interrupts come
//! whatever a CPU does. Source: PROTOCOL section 4; `live`'s `lane/sentinel.rs`. Absent: its doubts, which
//! are about the process being stopped as a whole.

use super::layer::CpuLayer;
use crate::scenario::names::PolicyName;
use crate::world::context::InRun;
use crate::world::event::Event;
use quietcore_core::Nanos;

impl CpuLayer<'_> {
    /// A lane is awake now.
    pub(crate) fn hold_switch(&mut self) {
        if self.is_kernel() || self.plan().policy != PolicyName::Pull {
            return;
        }
        self.sentinel.held = self.now();
        if !std::mem::replace(&mut self.sentinel.is_set, true) {
            self.push(self.sentinel_deadline(), Event::Sentinel);
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
            self.push(due, Event::Sentinel);
        } else if self.tasks().has_awake_cpu() {
            self.timers().handle_silence();
            self.push_in(self.plan().tick.0, Event::Sentinel);
        } else {
            // Nobody has to be awake; whoever wakes up sets it again.
            self.sentinel.is_set = false;
        }
    }
}
