//! One waker, left by a future for the thread that hands its timer out, and whether that has happened.
//!
//! Two sides. The future registers, one poll at a time (`&mut` orders polls, also when the future moves to
//! another thread). The runner takes, under the lock of the timer's base, at any step of a registration; it
//! waits for nothing. The word says whose the cell is:
//!
//! - `REST`: free; it holds a waker or none;
//! - `REGISTERING`: the future's, which writes to it;
//! - `TAKING`: the runner's, which moves the waker out;
//! - `REGISTERING | TAKING`: a take came during a registration. It left with nothing; the registration, when
//!   it ends, finds it;
//! - `TAKEN`: free; the timer was handed out. So it stays until the timer's owner calls
//!   [`WakerCell::reset`].
//!
//! Why a take is remembered. The runner's last access to a timer is the store that lets its owner see it
//! idle, and free it; so the take comes before that store:
//!   1. R takes: nothing is registered;
//!   2. F registers, looks at its timer: still pending, and goes to sleep;
//!   3. R stores "idle", wakes no thread. F sleeps for ever.
//!
//! So the future does not look at its timer. The word alone says whether the take was first
//! (`Register::Taken`: the timer was handed out, do not sleep) or the registration (the take finds the waker,
//! and it is woken). Model: `a_poll_against_the_runner`.
//!
//! The runner moves the waker out and does not clone, drop or wake it there: all three run its owner's code,
//! and a lock is held. A waker that a registration replaces is dropped by the caller of `register`, with the
//! cell at rest. Source: docs/design/PROTOCOL.md, section 8; futures' `AtomicWaker`.
//! Deviation: one side registers, takes are
//! remembered.
#![allow(unsafe_code, reason = "the word says whose the cell is")]

use crate::words::sync::{AtomicU8, Ordering, UnsafeCell};
use core::fmt;
use core::task::Waker;

const REST: u8 = 0;
const REGISTERING: u8 = 1;
const TAKING: u8 = 2;
/// Another take changes nothing.
const TAKEN: u8 = TAKING | 4;

/// What a registration came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[must_use]
pub(crate) enum Register {
    /// The next take finds the waker.
    Registered,
    /// The timer was handed out, before the registration or during it. The waker was not kept.
    Taken,
}

/// Whose the cell is.
struct CellOwner(AtomicU8);

impl CellOwner {
    /// `Registered`: the cell is the future's.
    #[inline]
    fn begin_register(&self) -> Register {
        // Acquire: pairs with Release in `end_register` (of a poll on another thread) and in `end_take`,
        // before a `reset`; on failure with Release in `begin_take` and `end_take`: whose timer was handed
        // out sees what its runner did.
        match self.0.compare_exchange(REST, REGISTERING, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => Register::Registered,
            Err(TAKING | TAKEN) => Register::Taken,
            Err(_) => panic!("a future was polled by two threads at a time"),
        }
    }

    /// `Taken`: the cell is still the future's, until `end_take`.
    #[inline]
    fn end_register(&self) -> Register {
        // Release: pairs with Acquire in `begin_take`, which then reads the waker. Acquire: pairs with
        // Release there: the future that does not sleep sees what the runner did before.
        match self.0.compare_exchange(REGISTERING, REST, Ordering::Release, Ordering::Acquire) {
            Ok(_) => Register::Registered,
            Err(_) => Register::Taken,
        }
    }

    /// Says whether the cell is the runner's.
    #[inline]
    fn begin_take(&self) -> bool {
        // Acquire: pairs with Release in `end_register`. Release: pairs with Acquire there.
        self.0.fetch_or(TAKING, Ordering::AcqRel) == REST
    }

    /// By the thread that has the cell, the runner or a registration.
    #[inline]
    fn end_take(&self) {
        // Release: pairs with Acquire in `begin_register` and `is_taken`. A store: no other thread changes
        // the word now; a registration cannot begin, and another take sets a bit that is set.
        self.0.store(TAKEN, Ordering::Release);
    }

    fn is_taken(&self) -> bool {
        // Acquire: pairs with Release in `end_take` and `begin_take`.
        self.0.load(Ordering::Acquire) & TAKING != 0
    }

    fn reset(&self) -> bool {
        // Relaxed: a link in the chain from Release in `end_take` to Acquire in `begin_register`.
        let result = self.0.compare_exchange(TAKEN, REST, Ordering::Relaxed, Ordering::Relaxed);
        matches!(result, Ok(_) | Err(REST))
    }
}

/// The cell. 24 bytes.
pub(crate) struct WakerCell {
    owner: CellOwner,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: a `Waker` is `Send` and `Sync`; the cell is touched only by whom the word names, one thread at a
// time.
unsafe impl Sync for WakerCell {}

impl WakerCell {
    /// An empty cell.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self { owner: CellOwner(AtomicU8::new(REST)), waker: UnsafeCell::new(None) }
    }

    /// An empty cell.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self { owner: CellOwner(AtomicU8::new(REST)), waker: UnsafeCell::new(None) }
    }

    /// Leaves `waker` for the next take, unless there was one. For the future: one call at a time.
    /// Cost: two compare-and-swaps, and a clone if the cell holds another waker.
    ///
    /// # Panics
    /// If two threads call it at the same time; or if the waker's own code does, and then the cell is as
    /// before.
    pub(crate) fn register(&self, waker: &Waker) -> Register {
        if self.owner.begin_register() == Register::Taken {
            return Register::Taken;
        }
        let registration = Registration(self);
        let replaced = self.waker.with_mut(|cell| {
            // SAFETY: `begin_register` said that the cell is this call's, until the registration ends.
            let cell = unsafe { &mut *cell };
            match cell {
                Some(same) if same.will_wake(waker) => None,
                _ => cell.replace(waker.clone()),
            }
        });
        let (registered, taken) = registration.end();
        // Only now: dropping a waker runs its owner's code, which may panic.
        drop((replaced, taken));
        registered
    }

    /// [`register`](Self::register) before the timer is armed: nothing takes from the cell, and the lock
    /// under which the timer is armed orders this before the take. Cost: a clone if the cell holds another
    /// waker.
    ///
    /// # Safety
    /// The cell is at rest, and its timer idle until this call has returned; no other thread registers.
    #[inline]
    pub(crate) unsafe fn register_alone(&self, waker: &Waker) {
        let replaced = self.waker.with_mut(|cell| {
            // SAFETY: the caller promises that no other thread has the cell, or begins to.
            let cell = unsafe { &mut *cell };
            match cell {
                Some(same) if same.will_wake(waker) => None,
                _ => cell.replace(waker.clone()),
            }
        });
        // Only now: dropping a waker runs its owner's code, which may panic.
        drop(replaced);
    }

    /// The timer is handed out: moves the waker out, if there is one and no registration is under way (which
    /// then finds out). For the holder of the lock of the timer's base; the waker is to be woken after the
    /// lock was given back. Never waits, runs no user code. Cost: one atomic operation and a store.
    #[inline]
    #[must_use]
    pub(crate) fn take(&self) -> Option<Waker> {
        if !self.owner.begin_take() {
            return None;
        }
        let waker = self.take_out();
        self.owner.end_take();
        waker
    }

    /// Whether the timer was handed out since the last `reset`. For any thread.
    #[inline]
    pub(crate) fn is_taken(&self) -> bool {
        self.owner.is_taken()
    }

    /// Forgets a take, so that the timer can be armed again. For its owner, who saw that it is not pending. A
    /// registered waker stays.
    ///
    /// # Panics
    /// If the timer is just being handed out.
    pub(crate) fn reset(&self) {
        assert!(self.owner.reset(), "a timer that is being handed out was taken for idle");
    }

    /// For the thread that has the cell.
    fn take_out(&self) -> Option<Waker> {
        // SAFETY: `begin_take` or `end_register` said that the cell is the caller's, until it calls
        // `end_take`.
        self.waker.with_mut(|cell| unsafe { (*cell).take() })
    }
}

impl Default for WakerCell {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for WakerCell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("WakerCell").field("is_taken", &self.is_taken()).finish_non_exhaustive()
    }
}

/// Has the cell until it ends. A waker's `clone` that panics ends it, too.
struct Registration<'a>(&'a WakerCell);

impl Registration<'_> {
    fn end(self) -> (Register, Option<Waker>) {
        let cell = self.0;
        core::mem::forget(self);
        match cell.owner.end_register() {
            Register::Registered => (Register::Registered, None),
            Register::Taken => {
                let waker = cell.take_out();
                cell.owner.end_take();
                (Register::Taken, waker)
            }
        }
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        // The next poll finds out.
        let _ = Registration(self.0).end();
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests;
