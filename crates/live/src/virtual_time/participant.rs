//! Who takes part in a machine's time, and guards that keep it.
//!
//! A participant is busy or idle, and says so itself; a wake makes it busy at once, on whichever thread it
//! happens. The last that becomes idle moves time. Not here: what that is (`mover.rs`), and who is what
//! (`state.rs`). In a forked child none of them does anything: the lock may be taken there for ever.

use super::mover::TimerRunner;
use super::state::IdleOutcome;
use crate::machine::Machine;

/// A thread that takes part in a machine's time: while it is busy, paused time stands still. It starts idle;
/// dropping it ends its part. Any thread may call it.
#[derive(Debug)]
pub struct Participant {
    pub(super) machine: &'static Machine,
    pub(super) number: usize,
}

impl Participant {
    /// It has been given work, which it will take up: from now on it is busy.
    pub fn wake(&self) {
        if self.machine.is_forked() {
            return;
        }
        self.machine.virtual_time.lock().wake(self.number);
    }

    /// It takes work up. Says whether it was woken since the last time; in a forked child, where that is not
    /// known, that it was.
    pub fn begin(&self) -> bool {
        self.machine.is_forked() || self.machine.virtual_time.lock().begin(self.number)
    }

    /// It has nothing to do. If time is paused and it was the last who was busy, time moves to the next
    /// expiry and what is due runs on this thread, before this returns.
    pub fn idle(&self) -> IdleOutcome {
        let (machine, time) = (self.machine, &self.machine.virtual_time);
        if machine.is_forked() {
            return IdleOutcome::Wait;
        }
        let mut state = time.lock();
        if !state.rest(self.number) {
            return IdleOutcome::Woken;
        }
        if !machine.clock.is_paused() || !state.may_move() {
            return IdleOutcome::Wait;
        }
        let _running = TimerRunner::begin(machine, state);
        // What ran may have forked this child.
        if !machine.move_to_next() || machine.is_forked() {
            return IdleOutcome::Wait;
        }
        // Before others may move it again: what was woken may be this one's, and is looked for first.
        if time.lock().stay(self.number) { IdleOutcome::Woken } else { IdleOutcome::Moved }
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        if self.machine.is_forked() {
            return;
        }
        let mut state = self.machine.virtual_time.lock();
        let how = state.leave(self.number);
        self.machine.settle(state);
        drop(how);
    }
}

/// While it lives, paused time does not move by itself. [`advance`](super::advance) still moves it.
#[derive(Debug)]
#[must_use = "time is held only while the guard lives"]
pub struct Hold {
    pub(super) machine: &'static Machine,
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.machine.is_forked() {
            return;
        }
        let mut state = self.machine.virtual_time.lock();
        state.holds -= 1;
        self.machine.settle(state);
    }
}
