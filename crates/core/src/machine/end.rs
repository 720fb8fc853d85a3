//! The end of a machine: nothing is armed or handed out any more, nothing that was runs, nothing is pending.
//!
//! Closing goes through the bases one lock after the other, and takes every token. A pop that came before it
//! on its base has left a record there; one that comes after it finds nothing. So a thread that sees no
//! record on any base after it has closed all of them knows that no callback runs, and that none will.
//! Detached timers leave no record.
//!
//! When all bases are closed no timer comes to any of them: none is armed, and none changes its base. So a
//! thread that has closed all and then takes out what is pending leaves nothing. Not here: waiting.

use super::Machine;
use crate::{RawLock, TimerName};

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// Hands out nothing from now on, on no CPU, and takes no arms; what is pending stays so, and may be
    /// cancelled. From any thread, any number of times. Cost: all locks, one after the other.
    pub fn close(&self) {
        self.base_ids().for_each(|id| self.bases.lock(id, None).close());
    }

    /// After [`close`](Self::close): ends what is pending without a run. Of each timer `take` is called under
    /// the lock of its base, as for one that is due, and then `then` with what it gave, without a lock; that
    /// says whether to go on. From any thread, any number of times. Cost: a lock per timer and per base.
    ///
    /// # Panics
    /// Before [`close`](Self::close).
    pub fn end_pending<R>(&self, take: impl Fn(T, TimerName<T>) -> R, then: impl Fn(R) -> bool) {
        for id in self.base_ids() {
            while let Some(taken) = self.bases.end_pending(id, &take) {
                if !then(taken) {
                    return;
                }
            }
        }
    }

    /// Whether a timer was handed out whose run has not ended; of [detached](crate::TimerOptions::detached)
    /// ones there is no record. From any thread. Cost: all locks, one after the other.
    #[must_use]
    pub fn has_runs(&self) -> bool {
        let mut ids = self.base_ids();
        ids.any(|id| self.bases.lock(id, None).running() != 0)
    }
}
