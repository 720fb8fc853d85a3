//! The lock of virtual threads: a step before it is taken and one after it is given back, so that a thread
//! can be stopped while it holds it. A thread that waits for it looks again and again, as if it were
//! spinning.
#![allow(unsafe_code, reason = "a lock says that it is one")]

use super::holders::{self, Holder};
use super::schedule::host;
use super::switch::{ThreadId, is_inside};
use quietcore_core::RawLock;
use std::cell::Cell;

/// How long an attempt may take, in ns, and how long it is between two looks.
const BOUND: u64 = 1_000;
const LOOK: u64 = 250;

/// Longest step around a lock, in ns.
const STEP: u64 = 150;

#[derive(Debug)]
pub(super) struct VirtualLock {
    /// In the order in which they were made.
    number: usize,
    /// The thread that has it, or none; the setup of a run has no number.
    holder: Cell<Option<Holder>>,
}

impl Default for VirtualLock {
    fn default() -> Self {
        let number = MADE.get();
        MADE.set(number + 1);
        Self { number, holder: Cell::new(None) }
    }
}

thread_local! {
    /// Locks that were made for this run.
    static MADE: Cell<usize> = const { Cell::new(0) };
    /// A thread that must never wait for a lock of one that is stopped, from which number on, and whether it
    /// has.
    static HURRIED: Cell<Option<(ThreadId, usize)>> = const { Cell::new(None) };
    static HAS_WAITED: Cell<bool> = const { Cell::new(false) };
}

/// A run begins: no lock was made.
pub(super) fn forget_locks() {
    MADE.set(0);
    holders::forget();
    HURRIED.set(None);
    HAS_WAITED.set(false);
}

/// How many were made so far.
pub(super) fn made() -> usize {
    MADE.get()
}

/// `thread` must not wait for a lock that a stopped thread holds, of those from number `first` on.
pub(super) fn hurry(thread: ThreadId, first: usize) {
    HURRIED.set(Some((thread, first)));
}

/// Whether it has waited all the same.
pub(super) fn has_waited() -> bool {
    HAS_WAITED.get()
}

impl VirtualLock {
    fn try_take(&self) -> bool {
        if self.holder.get().is_some() {
            return false;
        }
        let thread = host().and_then(|host| host.current());
        let holder = thread.map_or(Holder::Setup, Holder::Thread);
        self.holder.set(Some(holder));
        holders::add(holder);
        true
    }

    /// Takes it if it is free now.
    pub(super) fn try_once(&self) -> bool {
        if let Some(host) = host().filter(|_| is_inside()) {
            host.touch("a lock");
            host.step(STEP);
        }
        self.try_take()
    }

    /// Whether no thread has it.
    pub(super) fn is_free(&self) -> bool {
        self.holder.get().is_none()
    }

    fn note_wait(&self) {
        let Some(host) = host() else { return };
        let is_hurried = |(thread, first)| host.current() == Some(thread) && self.number >= first;
        if let Some(Holder::Thread(holder)) = self.holder.get()
            && HURRIED.get().is_some_and(is_hurried)
            && host.is_held(holder)
        {
            HAS_WAITED.set(true);
        }
    }
}

// SAFETY: all virtual threads are on one real thread, and the type is not `Sync`; between the look at the
// holder and the store no other virtual thread runs.
unsafe impl RawLock for VirtualLock {
    fn lock_owner(&self) {
        self.lock_remote();
    }

    fn lock_remote(&self) {
        let Some(host) = host().filter(|_| is_inside()) else {
            assert!(self.try_take(), "a look from outside takes no lock that is held");
            return;
        };
        host.touch("a lock");
        host.step(STEP);
        while !self.try_take() {
            self.note_wait();
            host.step(LOOK);
        }
    }

    fn try_lock_remote(&self) -> bool {
        let Some(host) = host().filter(|_| is_inside()) else { return self.try_take() };
        host.touch("a lock");
        host.step(STEP);
        let end = host.moment() + BOUND;
        loop {
            if self.try_take() {
                return true;
            }
            if host.moment() >= end {
                return false;
            }
            host.step(LOOK);
        }
    }

    fn unlock(&self) {
        if let Some(holder) = self.holder.take() {
            holders::remove(holder);
        }
        if let Some(host) = host().filter(|_| is_inside()) {
            host.touch("a lock");
            host.step(STEP);
        }
    }
}
