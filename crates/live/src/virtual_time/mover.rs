//! Moving a paused clock, and running what is due then.
//!
//! Invariants: one thread at a time runs timers, be it the helper, a thread that moves time or has just
//! become idle; the clock is changed by that one only, or from inside a callback that it runs. What is asked
//! of the helper while time stands still is not remembered: the thread that moves time looks at all timers.
//! Not here: who may move it (`state.rs`).

use super::error::TimeError;
use super::state::TimeState;
use crate::machine::Machine;
use quietcore_core::Nanos;
use std::sync::{MutexGuard, PoisonError};
use std::thread;

/// This thread is the one that runs timers.
pub(super) struct TimerRunner(&'static Machine);

impl TimerRunner {
    /// At once, if no thread does: the lock is held since that was seen.
    pub(super) fn begin(machine: &'static Machine, mut state: MutexGuard<'_, TimeState>) -> Self {
        state.runner = Some(thread::current().id());
        Self(machine)
    }

    /// When no other thread does any more; `None` when this thread does already.
    fn wait(machine: &'static Machine) -> Option<Self> {
        let mut state = machine.virtual_time.lock();
        loop {
            match state.runner {
                None => return Some(Self::begin(machine, state)),
                Some(runner) if runner == thread::current().id() => return None,
                Some(_) => {
                    state = machine.virtual_time.done.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl Drop for TimerRunner {
    fn drop(&mut self) {
        if self.0.is_forked() {
            // A child that something due has forked: the lock may be taken there for ever.
            return;
        }
        let mut state = self.0.virtual_time.lock();
        state.runner = None;
        self.0.virtual_time.done.notify_all();
        self.0.settle(state);
    }
}

impl Machine {
    /// Changes the clock, and then runs what is due if it stands still.
    pub(super) fn while_nobody_runs(
        &'static self,
        change: impl FnOnce() -> Result<(), TimeError>,
    ) -> Result<(), TimeError> {
        if self.is_forked() {
            // Who runs timers there is no thread of this process.
            return Err(TimeError::Refused);
        }
        let Some(_running) = TimerRunner::wait(self) else { return change() };
        change()?;
        if self.clock.is_paused() {
            self.drive_all();
        }
        Ok(())
    }

    /// For the helper: what is due, unless time is paused; no thread pauses it meanwhile.
    pub(crate) fn drive_unless_paused(&'static self) {
        let _running = self.virtual_time.is_allowed.then(|| TimerRunner::wait(self));
        if !self.clock.is_paused() {
            self.drive_spare(self.clock.now());
        }
    }

    /// When something is due; `None` also after the end of the machine, when nothing ever is.
    fn next_expiry(&self) -> Option<Nanos> {
        let cpus = if self.is_running() { self.core.online_cpus() } else { return None };
        cpus.iter().filter_map(|cpu| self.core.renewed_next_event(cpu)).min()
    }

    /// Moves the clock to the next expiry, and runs what is due. Says whether there was anything to move to.
    pub(super) fn move_to_next(&self) -> bool {
        let next = self.next_expiry();
        if let Some(next) = next {
            self.clock.freeze(next.max(self.clock.now()));
        }
        // Also without a timer: then the hierarchy learn that none is left, and the next arm asks for an
        // alarm.
        self.drive_all();
        next.is_some()
    }

    /// Runs what is due; again while that makes more due: a timer that was only moved to a finer bucket, or a
    /// callback that moved the clock.
    fn drive_all(&self) {
        while self.is_running() {
            let next = self.drive_spare(self.clock.now());
            if !self.clock.is_paused() || next.is_none_or(|next| next > self.clock.now()) {
                break;
            }
        }
    }

    /// A thread that does not take part armed a timer while time stood still.
    pub(crate) fn settle_paused(&self) {
        self.settle(self.virtual_time.lock());
    }

    /// Something changed: if time may move now, all are asked to look: one that no thread polls would not.
    pub(super) fn settle(&self, state: MutexGuard<'_, TimeState>) {
        let may_move = self.clock.is_paused() && self.next_expiry().is_some();
        let idle = if may_move { state.who_could_move() } else { Vec::new() };
        drop(state);
        for idle in idle {
            idle.look_again();
        }
    }
}
