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

/// Writes `value` behind a full fence: what this thread reads after this is at least as new as what another
/// one has left that does not see `value` behind a fence of its own. Returns what was there.
///
/// Where a read-modify-write is a fence by itself (x86-64) it is not paid for twice. Rust's rules do not
/// say so of loads that follow it and are not sequentially consistent: the compiler is kept from moving
/// them.
#[inline]
pub(crate) fn swap_then_fence(word: &AtomicU32, value: u32) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    {
        use core::sync::atomic::compiler_fence;
        // Relaxed, between fences of the compiler: the instruction is the fence, for the partner that the
        // caller names.
        compiler_fence(Ordering::SeqCst);
        let before = word.swap(value, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        before
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    {
        // Relaxed, fence: for the partner that the caller names.
        let before = word.swap(value, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        before
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
