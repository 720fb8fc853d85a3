//! The lab's words that threads share: a lock, a count that one reads while others add to it, and
//! a sign to stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The data, whatever became of earlier holders.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Read while it grows; says nothing of what else the writers did.
#[derive(Debug, Default)]
pub(crate) struct SharedCount(AtomicU64);

impl SharedCount {
    pub(crate) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed); // pairs with `get`: no other data hangs on it
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed) // pairs with `add_one`: no other data hangs on it
    }
}

/// Says that a trial, or everything, is to end: Ctrl-C of a program, or the end of a load. Copies share it.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// From now on it is set.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed); // pairs with `is_set`: no other data hangs on it
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) // pairs with `set`: no other data hangs on it
    }
}

/// For flags that a handler of signals sets.
impl From<Arc<AtomicBool>> for StopFlag {
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }
}
