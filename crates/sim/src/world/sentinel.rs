//! The sentinel of a machine with lanes: it notices that nobody turns any more, because one is stuck and all
//! others sleep.
//!
//! A lane that is awake moves the moment at which the sentinel looks, in every tick. When it is not moved
//! the machine is told, which marks who is silent and names somebody to kick. Its own time is not
//! simulated: it is a thread that hardly ever runs. A kernel has none, and needs none: its interrupts come
//! whatever a CPU does. Source: PROTOCOL section 4; `live`'s `lane/sentinel.rs`. Absent: its doubts, which
//! are about the process being stopped as a whole.

use super::{Event, World};
use crate::scenario::names::PolicyName;
use quietcore_core::Nanos;

#[derive(Debug, Default)]
pub(super) struct Sentinel {
    /// When a lane that is awake last said so.
    held: u64,
    /// It will look.
    is_set: bool,
}

impl World<'_> {
    /// A lane is awake now.
    pub(super) fn hold_switch(&mut self) {
        if self.is_kernel() || self.plan.policy != PolicyName::Pull {
            return;
        }
        self.sentinel.held = self.now;
        if !std::mem::replace(&mut self.sentinel.is_set, true) {
            self.queue.push(Nanos(self.now + self.patience()), Event::Sentinel);
        }
    }

    /// For how long nobody may turn.
    fn patience(&self) -> u64 {
        self.machine.settings().stall_after.0 + self.plan.tick.0
    }

    pub(super) fn sentinel_looks(&mut self) {
        let due = self.sentinel.held + self.patience();
        if due > self.now {
            self.queue.push(Nanos(due), Event::Sentinel);
        } else if self.cpus.iter().any(|cpu| cpu.is_online && !cpu.is_parked) {
            let _ = self.machine.handle_silence(Nanos(self.now), &mut self.actions);
            // The world's own thread carries these out; nobody pays.
            self.carry_out(u16::MAX);
            self.queue.push(Nanos(self.now + self.plan.tick.0), Event::Sentinel);
        } else {
            // Nobody has to be awake; whoever wakes up sets it again.
            self.sentinel.is_set = false;
        }
    }
}
