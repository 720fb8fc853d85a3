//! What threads count together, and a waker that only counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
