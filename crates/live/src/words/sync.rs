//! Atomics, cells and the processor's hint: `core`'s, or, with `--cfg loom`, loom's.
//!
//! One code for both builds: the words of this crate are explored by loom as they are. What waits in the
//! kernel is in [`futex`](crate::words::futex), with a likeness for loom beside it. Absent:
//! decisions. A word that decides has a file of its own.

#[cfg(not(loom))]
pub(crate) use core::{
    hint::spin_loop,
    sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, fence},
};
#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    hint::spin_loop,
    sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, fence},
};

/// Memory that a word gives to one thread at a time. The shape is loom's, which watches every access.
#[cfg(not(loom))]
#[derive(Debug, Default)]
pub(crate) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// The pointer is valid for reads and writes; who may follow it is the caller's business.
    #[inline]
    pub(crate) fn with_mut<R>(&self, act: impl FnOnce(*mut T) -> R) -> R {
        act(self.0.get())
    }
}

/// A count of what rarely happens, read by people. It orders nothing, so loom does not watch it.
#[derive(Debug, Default)]
pub(crate) struct Counter(core::sync::atomic::AtomicU64);

impl Counter {
    pub(crate) const fn new() -> Self {
        Self(core::sync::atomic::AtomicU64::new(0))
    }

    #[inline]
    pub(crate) fn count(&self) {
        // Relaxed: pairs with nothing; only the sum matters.
        self.0.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        // Relaxed: as in `count`.
        self.0.load(core::sync::atomic::Ordering::Relaxed)
    }
}

#[cfg(all(test, loom))]
pub(crate) mod models;
