//! Forks: user code forks, and the run goes on with the child, which has one thread and all of the memory.
//!
//! Locks are as they were at that moment, so the child takes none of them; what else belongs to the parent
//! (where lanes wait, the kernel's timer) it leaves alone, and no timer runs in it. Its thread comes out of
//! the turn that it was in. Absent: another machine in the child, which has nothing in common with this one.

use super::holders::holds_lock;
use super::world::RuntimeWorld;

impl RuntimeWorld {
    /// Whether the process is a child: nothing of the machine may be touched.
    pub(super) fn is_child(&self) -> bool {
        self.host.is_child()
    }

    /// Whether the machine runs, for its threads.
    pub(super) fn is_running(&self) -> bool {
        !self.is_over.get() && !self.is_child()
    }

    /// The calling thread runs user code, which forks in so many of a hundred cases once the time has come.
    pub(super) fn may_fork(&self, percent: u32) {
        let after = self.plan.faults.fork_after;
        if self.host.current().is_some_and(holds_lock) {
            self.violate("user code runs in a thread that has a lock".to_owned());
        }
        let is_time = after > 0 && self.host.moment() >= after && self.host.moment() < self.plan.duration;
        if is_time && !self.is_child() && self.chance(percent) {
            self.note(|| "forks".to_owned());
            self.counts.borrow_mut().forks += 1;
            self.host.fork();
        }
    }

    /// Whether a child has kept off what is its parent's.
    pub(super) fn keeps_off(&self) -> bool {
        if let Some(what) = self.host.touched() {
            self.violate(format!("a child touches {what} of its parent"));
        }
        self.violation.borrow().is_none()
    }
}
