//! Locks: what the core asks of a world's lock, and data that only its holder reaches.
//!
//! The core decides *what* is exclusive; a world decides how one waits ([`RawLock`]). A section is shorter
//! than a microsecond, holds no lock across user code or an action, and takes locks in one order: base (by
//! CPU, then LOCAL, GLOBAL, GUEST, DEF) -> record of a CPU -> events of a child group -> of its parent.
//!
//! Callers say whether they own what they lock ([`Locked::lock_owner`]) or not, so that a lock biased towards
//! its owner can be told apart later. This and `base/timer.rs` are the files of this crate with `unsafe`.
#![allow(unsafe_code, reason = "data behind a lock is reached through the lock's holder alone")]

#[cfg(loom)]
mod modelled;

use core::cell::Cell;
#[cfg(not(loom))]
use core::cell::UnsafeCell;
use core::fmt;
#[cfg(not(loom))]
use core::ops::{Deref, DerefMut};

/// A lock of a world: a spin lock, a futex, or, where everything runs on one thread, [`SequentialLock`].
///
/// # Safety
/// From the return of `lock_owner`, `lock_remote` or a `try_lock_remote` that says true, until `unlock`, no
/// other of these returns; and `unlock` happens before the next of them (release, acquire).
pub unsafe trait RawLock: Default {
    /// Waits and takes the lock, for the CPU that owns the data.
    fn lock_owner(&self);
    /// Waits and takes the lock, for any other thread.
    fn lock_remote(&self);
    /// Takes the lock if it is to be had within the world's bound (1 us); says whether.
    fn try_lock_remote(&self) -> bool;
    /// Gives the lock back. For the holder only.
    fn unlock(&self);
}

/// The lock of a world with one thread: it only checks that it is not taken twice.
#[derive(Debug, Default)]
pub struct SequentialLock {
    is_held: Cell<bool>,
}

// SAFETY: the type is not `Sync`, so all calls come from one thread; a second `lock` panics instead of
// returning, and a `try_lock_remote` says false.
unsafe impl RawLock for SequentialLock {
    #[inline]
    fn lock_owner(&self) {
        assert!(!self.is_held.replace(true), "a lock was taken by its holder");
    }

    #[inline]
    fn lock_remote(&self) {
        self.lock_owner();
    }

    #[inline]
    fn try_lock_remote(&self) -> bool {
        !self.is_held.replace(true)
    }

    #[inline]
    fn unlock(&self) {
        self.is_held.set(false);
    }
}

/// A value that only the holder of its lock reaches.
#[cfg(not(loom))]
pub(crate) struct Locked<L, T> {
    raw: L,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a `LockedGuard` only, and a `LockedGuard` exists only between `lock`
// and `unlock` of a `RawLock`, whose implementation promises one holder at a time.
#[cfg(not(loom))]
unsafe impl<L: RawLock + Sync, T: Send> Sync for Locked<L, T> {}

#[cfg(not(loom))]
impl<L: RawLock, T> Locked<L, T> {
    pub(crate) fn new(value: T) -> Self {
        Self { raw: L::default(), value: UnsafeCell::new(value) }
    }

    #[inline]
    pub(crate) fn lock_owner(&self) -> LockedGuard<'_, L, T> {
        self.raw.lock_owner();
        LockedGuard { locked: self }
    }

    #[inline]
    pub(crate) fn lock_remote(&self) -> LockedGuard<'_, L, T> {
        self.raw.lock_remote();
        LockedGuard { locked: self }
    }

    #[inline]
    pub(crate) fn try_lock_remote(&self) -> Option<LockedGuard<'_, L, T>> {
        self.raw.try_lock_remote().then(|| LockedGuard { locked: self })
    }
}

/// A lock was not to be had within its bound: its holder may be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

/// Holds a lock until it is dropped.
#[cfg(not(loom))]
pub(crate) struct LockedGuard<'a, L: RawLock, T> {
    locked: &'a Locked<L, T>,
}

#[cfg(not(loom))]
impl<L: RawLock, T> Deref for LockedGuard<'_, L, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the holder, so no other thread reaches the value until it is dropped.
        unsafe { &*self.locked.value.get() }
    }
}

#[cfg(not(loom))]
impl<L: RawLock, T> DerefMut for LockedGuard<'_, L, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the holder, and it is borrowed exclusively.
        unsafe { &mut *self.locked.value.get() }
    }
}

#[cfg(not(loom))]
impl<L: RawLock, T> Drop for LockedGuard<'_, L, T> {
    #[inline]
    fn drop(&mut self) {
        self.locked.raw.unlock();
    }
}

#[cfg(loom)]
pub(crate) use modelled::{ModelGuard as LockedGuard, ModelLocked as Locked};

impl<L: RawLock, T: fmt::Debug> fmt::Debug for Locked<L, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock_remote() {
            Some(guard) => fmt::Debug::fmt(&*guard, out),
            None => out.write_str("(locked)"),
        }
    }
}
