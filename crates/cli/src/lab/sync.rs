//! The lab's only word that threads share: a count that one reads while others add to it.

use std::sync::atomic::{AtomicU64, Ordering};

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
