//! Locks for tests: one that spins, and one that lets a test step in before it is taken.
#![allow(unsafe_code, reason = "a lock says that it is one")]

extern crate std;

use crate::{RawLock, SequentialLock};
use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, Ordering};
use std::cell::RefCell;
use std::thread;

/// Spins, and lets others go on: there may be one processor.
#[derive(Debug, Default)]
pub(in crate::base) struct SpinLock(AtomicBool);

// SAFETY: `swap` returns false for one caller until the next `unlock`; Acquire and Release order their
// sections.
unsafe impl RawLock for SpinLock {
    fn lock_owner(&self) {
        while !self.try_lock_remote() {
            thread::yield_now();
        }
    }

    fn lock_remote(&self) {
        self.lock_owner();
    }

    fn try_lock_remote(&self) -> bool {
        !self.0.swap(true, Ordering::Acquire)
    }

    fn unlock(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The lock of one thread. Before it is taken the next time, on this thread, it does what [`before_lock`] was
/// told.
#[derive(Debug, Default)]
pub(super) struct InterruptedLock(SequentialLock);

std::thread_local! {
    static NEXT: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Does `act` before the next lock is taken, as if another thread had come first. `act` may lock.
pub(super) fn before_lock(act: impl FnOnce() + 'static) {
    NEXT.set(Some(Box::new(act)));
}

/// Whether what `before_lock` was told was done.
pub(super) fn was_interrupted() -> bool {
    NEXT.with_borrow(Option::is_none)
}

// SAFETY: it is a `SequentialLock`, taken after the interruption.
unsafe impl RawLock for InterruptedLock {
    fn lock_owner(&self) {
        let act = NEXT.take();
        if let Some(act) = act {
            act();
        }
        self.0.lock_owner();
    }

    fn lock_remote(&self) {
        self.lock_owner();
    }

    fn try_lock_remote(&self) -> bool {
        self.0.try_lock_remote()
    }

    fn unlock(&self) {
        self.0.unlock();
    }
}
