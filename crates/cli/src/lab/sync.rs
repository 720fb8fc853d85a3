//! The lab's words that threads share: a count that one reads while others add to it, and a sign to stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Read while it grows; says nothing of what else the writers did.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed); // pairs with `get`: no other data hangs on it
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed) // pairs with `add_one`: no other data hangs on it
    }
}

/// Says that something is over; whoever must have seen it is asked by other means.
#[derive(Debug, Default)]
pub(super) struct Stop(AtomicBool);

impl Stop {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed); // pairs with `is_set`: no other data hangs on it
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) // pairs with `set`: no other data hangs on it
    }
}
