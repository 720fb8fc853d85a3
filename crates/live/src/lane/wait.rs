//! A lane goes idle, waits and wakes up; it blocks and returns. What that means is decided in the core.

use super::turn::LaneDriver;
use crate::probe;
use quietcore_core::Nanos;
use quietcore_core::lane::IdleUntil;

/// A wait until then is over at once, by any clock.
const OVER: Nanos = Nanos(0);

impl LaneDriver {
    /// Nothing to run: from now on kicks arrive, and the lane may wait.
    pub(super) fn enter_idle(&mut self) -> IdleUntil {
        let now = self.moment_for_idle();
        if self.machine.is_forked() {
            return IdleUntil::Stay { until: OVER };
        }
        probe::lane_park(self.cpu());
        let (here, queue) = (self.here(), self.queue());
        let has_more = || queue.doorbell.is_rung() || !self.machine.is_running();
        let idle = self.machine.act(|actions| self.state.handle_idle(here, now, has_more, actions));
        match idle {
            // By the kernel's clock that moment may be ahead; it is not waited for.
            IdleUntil::Stay { until } if until <= now => IdleUntil::Stay { until: OVER },
            _ => idle,
        }
    }

    /// The cycle counter will do for a wait, except at the end of a tick: it may be a little ahead, and the
    /// lane must not wait beyond the tick that it is in.
    fn moment_for_idle(&self) -> Nanos {
        let now = self.machine.clock.latest();
        if self.state.is_tick_over(now) { self.machine.clock.now() } else { now }
    }

    /// Goes idle and waits, unless `has_work` finds some; the lane is awake again afterwards. For a lane that
    /// waits by a futex.
    pub(super) fn park(&mut self, has_work: impl FnOnce() -> bool) {
        let until = self.enter_idle().until();
        if !has_work() {
            self.parker().sleep(until);
        }
        self.end_idle();
    }

    /// There is something to run, or the wait is over. Does nothing if the lane did not wait. The end of a
    /// doze is a matter of statistics, for which the cycle counter will do.
    #[inline]
    pub(super) fn end_idle(&mut self) {
        if self.state.is_awake() {
            return;
        }
        let clock = &self.machine.clock;
        self.wake_up(if self.state.dozes_untold() { clock.latest() } else { clock.now() });
    }

    /// The same by a lane that has looked at the clock.
    #[inline]
    pub(super) fn exit_idle(&mut self, now: Nanos) {
        if !self.state.is_awake() {
            self.wake_up(now);
        }
    }

    #[inline(never)]
    fn wake_up(&mut self, now: Nanos) {
        if self.machine.is_forked() {
            return self.state.abandon();
        }
        probe::lane_unpark(self.cpu());
        self.decide(now, |state, here, actions| state.handle_wake(here, now, actions));
    }

    /// Kicks are not wanted any more. In a forked child nothing: a descriptor is the parent's, too.
    pub(super) fn refuse_kicks(&self) {
        if !self.machine.is_forked() {
            self.state.refuse_kicks(self.slot);
        }
    }

    /// The thread is about to block in user code: others take over what they can.
    pub(super) fn go_absent(&mut self) {
        let now = self.machine.clock.now();
        self.decide(now, |state, here, actions| state.handle_block(here, now, actions));
        self.machine.queues().handle_absence(self.cpu());
    }

    /// The thread does not block any more. If the locks are not to be had now, the next turn tries again.
    pub(super) fn return_from_block(&mut self) {
        let (now, here) = (self.machine.clock.now(), self.here());
        self.machine.act(|actions| self.state.handle_return(here, now, actions));
    }
}
