//! What threads count together, a waker that only counts, and a bell for a thread that waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::Wake;

/// A number that several threads add to.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds `more`.
    pub fn add(&self, more: u64) {
        // Relaxed: the number itself is all that is read; pairs with the load in `get`.
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// What all have added so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed) // pairs with `add`
    }
}

/// As the waker of many timers it counts how many expired.
impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.add(1);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.add(1);
    }
}

/// Whether a thread that runs tasks is to look for some, and whether it must be woken for that.
#[derive(Debug, Default)]
pub struct Bell(AtomicU8);

const AWAKE: u8 = 0;
const RUNG: u8 = 1;
const ASLEEP: u8 = 2;

impl Bell {
    /// There are tasks. Says whether the thread must be woken.
    #[must_use]
    pub fn ring(&self) -> bool {
        // AcqRel: what was done before is seen after `answer`, or after `fall_asleep` has failed.
        self.0.swap(RUNG, Ordering::AcqRel) == ASLEEP
    }

    /// Of the thread: it is about to look for tasks. Says whether it was rung for.
    pub fn answer(&self) -> bool {
        self.0.swap(AWAKE, Ordering::AcqRel) == RUNG // pairs with `ring`
    }

    /// Of the thread: it is about to wait. `false` if it was rung for in the meantime.
    #[must_use]
    pub fn fall_asleep(&self) -> bool {
        // AcqRel: pairs with the swap in `ring`, which is before this or sees ASLEEP.
        self.0.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no thread sleeps through a ring, none is woken for nothing. Method: every order of two steps.
    #[test]
    fn a_ring_is_heard_once() {
        let bell = Bell::default();
        assert!(!bell.ring(), "awake: it will look by itself");
        assert!(!bell.fall_asleep());
        assert!(bell.answer());
        assert!(!bell.answer());
        assert!(bell.fall_asleep());
        assert!(bell.ring(), "asleep: it must be woken");
        assert!(!bell.ring(), "once");
        assert!(bell.answer());
    }
}
