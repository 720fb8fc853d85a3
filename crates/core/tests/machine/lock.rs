//! The lock of one thread, which a test can stop at: a call comes in before it is taken, its bound is
//! exceeded for a while, or its holder never goes on.
//!
//! Locks are numbered in the order in which they are made; [`BaseLock`] names those of a machine's bases. Who
//! would wait for ever panics instead, and so does who gives back a lock that is not held.
#![allow(unsafe_code, reason = "a lock says that it is one")]

use quietcore_core::{BaseId, RawLock};
use std::cell::{Cell, RefCell};

type Call = Box<dyn FnOnce()>;

thread_local! {
    static MADE: Cell<usize> = const { Cell::new(0) };
    static BUSY: Cell<Option<usize>> = const { Cell::new(None) };
    static FROZEN: Cell<Option<usize>> = const { Cell::new(None) };
    static NEXT: RefCell<Option<(usize, Call)>> = const { RefCell::new(None) };
}

/// Numbers begin at 0 again: a machine is about to be made.
pub(crate) fn restart_numbers() {
    MADE.set(0);
}

/// The lock of a base, of a CPU's record or of a group's events, of the machine that this thread made last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BaseLock(usize);

impl BaseLock {
    /// On a machine of `cpu_count` CPUs: its locks end with those of the bases and one more.
    pub(crate) fn new(cpu_count: usize, id: BaseId) -> Self {
        let first = MADE.get() - 1 - 4 * cpu_count;
        Self(first + 4 * id.cpu.index() + id.kind as usize)
    }

    /// Of a CPU's record, which is made before the lock of the tree and those of the bases.
    pub(crate) fn of_books(cpu_count: usize, cpu_index: usize) -> Self {
        let first_base = MADE.get() - 1 - 4 * cpu_count;
        Self(first_base - 1 - cpu_count + cpu_index)
    }

    /// Of a group's events: the locks that are made first, a group's number is in the order of joining.
    pub(crate) fn of_group(group: usize) -> Self {
        Self(group)
    }

    /// Does `call`, once, just before this lock is taken the next time, as if another thread had come first.
    pub(crate) fn before(self, call: impl FnOnce() + 'static) {
        NEXT.set(Some((self.0, Box::new(call))));
    }

    /// While `act` is done the lock is held by another thread for longer than the bound, but not for ever.
    pub(crate) fn while_busy<R>(self, act: impl FnOnce() -> R) -> R {
        BUSY.set(Some(self.0));
        let result = act();
        BUSY.set(None);
        result
    }

    /// While `act` is done the lock is held by a thread that does not go on: waiting for it is a failure.
    pub(crate) fn while_frozen<R>(self, act: impl FnOnce() -> R) -> R {
        FROZEN.set(Some(self.0));
        let result = act();
        FROZEN.set(None);
        result
    }
}

/// Whether what [`BaseLock::before`] was told was done.
pub(crate) fn was_interrupted() -> bool {
    NEXT.with_borrow(Option::is_none)
}

#[derive(Debug)]
pub(crate) struct SteppedLock {
    number: usize,
    is_held: Cell<bool>,
}

impl Default for SteppedLock {
    fn default() -> Self {
        let number = MADE.get();
        MADE.set(number + 1);
        Self { number, is_held: Cell::new(false) }
    }
}

impl SteppedLock {
    fn interrupt(&self) {
        let is_mine =
            NEXT.with_borrow(|next| next.as_ref().is_some_and(|(number, _)| *number == self.number));
        if let Some((_, call)) = is_mine.then(|| NEXT.take()).flatten() {
            call();
        }
    }
}

// SAFETY: the type is not `Sync`, so all calls come from one thread; `lock_owner` and `lock_remote` panic
// instead of returning while it is held, and `try_lock_remote` says false.
unsafe impl RawLock for SteppedLock {
    fn lock_owner(&self) {
        self.interrupt();
        assert_ne!(FROZEN.get(), Some(self.number), "waits for a thread that does not go on");
        assert!(!self.is_held.replace(true), "a lock was taken by its holder");
    }

    fn lock_remote(&self) {
        self.lock_owner();
    }

    fn try_lock_remote(&self) -> bool {
        self.interrupt();
        let is_to_be_had = ![BUSY.get(), FROZEN.get()].contains(&Some(self.number));
        is_to_be_had && !self.is_held.replace(true)
    }

    fn unlock(&self) {
        assert!(self.is_held.replace(false), "a lock was given back that nobody held");
    }
}
