//! The end of a machine: nothing is handed out any more, and nothing that was runs.
//!
//! Closing goes through the bases one lock after the other, and takes every token. A pop that came before it
//! on its base has left a record there; one that comes after it finds nothing. So a thread that sees no
//! record on any base after it has closed all of them knows that no callback runs, and that none will.
//! Detached timers leave no record. Not here: waiting.

use super::Machine;
use crate::RawLock;

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// Hands out nothing from now on, on no CPU; what is pending stays so, and may be cancelled. From any
    /// thread, any number of times. Cost: all locks, one after the other.
    pub fn close(&self) {
        self.base_ids().for_each(|id| self.bases.lock(id, None).close());
    }

    /// Whether a timer was handed out whose run has not ended; of [detached](crate::TimerOptions::detached)
    /// ones there is no record. From any thread. Cost: all locks, one after the other.
    #[must_use]
    pub fn has_runs(&self) -> bool {
        let mut ids = self.base_ids();
        ids.any(|id| self.bases.lock(id, None).running() != 0)
    }
}
