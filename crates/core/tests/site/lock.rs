//! The lock of virtual CPUs: who finds it held hands the baton on.
//!
//! Locks are numbered in the order in which they are made, so that a world can name them. On a thread that is
//! no virtual CPU (a test that sets a world up, or looks at the end) a held lock is a mistake.

use crate::stage;
use quietcore_core::RawLock;
use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

thread_local! {
    static MADE: Cell<usize> = const { Cell::new(0) };
}

/// Numbers begin at 0 again.
pub(crate) fn restart_numbers() {
    MADE.set(0);
}

/// How many locks this thread made since.
pub(crate) fn count() -> usize {
    MADE.get()
}

/// See the file.
#[derive(Debug)]
pub(crate) struct SiteLock {
    number: usize,
    is_held: Mutex<bool>,
}

impl Default for SiteLock {
    fn default() -> Self {
        let number = MADE.get();
        MADE.set(number + 1);
        Self { number, is_held: Mutex::new(false) }
    }
}

impl SiteLock {
    fn take(&self) -> bool {
        let mut is_held = self.is_held.lock().unwrap_or_else(PoisonError::into_inner);
        !std::mem::replace(&mut *is_held, true)
    }
}

// SAFETY: one thread at a time moves, and `take` says true once until `unlock`. While an exploration is given
// up, its threads only unwind; they do not take locks any more.
unsafe impl RawLock for SiteLock {
    fn lock_owner(&self) {
        self.lock_remote();
    }

    fn lock_remote(&self) {
        stage::before_lock(self.number);
        while !self.take() {
            stage::blocked_by(self.number);
        }
        stage::took(self.number);
    }

    fn try_lock_remote(&self) -> bool {
        stage::before_lock(self.number);
        let is_mine = self.take();
        if is_mine {
            stage::took(self.number);
        }
        is_mine
    }

    fn unlock(&self) {
        *self.is_held.lock().unwrap_or_else(PoisonError::into_inner) = false;
        stage::gave_back(self.number);
    }
}
