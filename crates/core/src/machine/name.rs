//! What a caller may name a timer by: its number in the machine, or a reference whose maker promised to keep
//! the timer.

use super::Machine;
use crate::RawLock;
use crate::base::{ExactId, RemoveError, Stored, TimerId, TimerKind, TimerOptions, TimerRef, TimerStore};

mod sealed {
    use crate::base::{TimerKind, TimerRef, TimerStore};

    /// Only the types of this crate name timers.
    pub trait Find<T, K: TimerKind> {
        /// The timer; `None` when the machine whose store this is has no such one.
        fn find(self, store: &TimerStore<T>) -> Option<TimerRef<T, K>>;
    }
}

/// Names a timer of the kind `K`: a [`TimerId`] or a [`TimerRef`]. Sealed.
pub trait AnyTimer<T, K: TimerKind>: sealed::Find<T, K> {}

impl<T, K: Stored> AnyTimer<T, K> for TimerId<K> {}

impl<T, K: TimerKind> AnyTimer<T, K> for TimerRef<T, K> {}

impl<T, K: Stored> sealed::Find<T, K> for TimerId<K> {
    #[inline]
    fn find(self, store: &TimerStore<T>) -> Option<TimerRef<T, K>> {
        store.timer(self)
    }
}

impl<T, K: TimerKind> sealed::Find<T, K> for TimerRef<T, K> {
    #[inline]
    fn find(self, _store: &TimerStore<T>) -> Option<Self> {
        Some(self)
    }
}

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// Makes an idle timer of ticks that the machine keeps. Allocates now and then.
    pub fn add_timer(&mut self, options: TimerOptions, payload: T) -> TimerId {
        self.bases.add_timer(options, payload)
    }

    /// Makes an idle exact timer that the machine keeps. Allocates now and then.
    pub fn add_exact(&mut self, options: TimerOptions, payload: T) -> ExactId {
        self.bases.add_exact(options, payload)
    }

    /// Takes an idle timer away; its number is not used for another one.
    ///
    /// # Errors
    /// When there is no such timer, or it is pending or running.
    pub fn remove_timer<K: Stored>(&mut self, timer: TimerId<K>) -> Result<(), RemoveError> {
        self.bases.remove_timer(timer)
    }
}
