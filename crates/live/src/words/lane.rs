//! The words by which lanes, the threads that kick them and the sentinel know of each other without a lock.
//!
//! - [`SlotOwner`]: which kind of thread has a slot, and how it waits. Claimed by a compare-and-swap.
//! - [`DozeUntil`]: until when a lane that is active in the hierarchy waits, for threads that arm something
//!   more precise than a tick.
//! - [`RequestedAlarm`]: the alarm that was requested while no lane was awake.
//! - [`StandaloneFlag`]: whether the lane looks after its own CPU only; a hint.
//!
//! Models: `models.rs`.

use crate::words::sync::{AtomicU8, AtomicU64, Ordering, fence};
use quietcore_core::Nanos;

/// No moment.
const NEVER: u64 = u64::MAX;

/// How the owner of a slot waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    Futex,
    Event,
}

const FREE: u8 = 0;
const FUTEX: u8 = 1;
const EVENT: u8 = 2;

/// Who has a slot.
#[derive(Debug)]
pub(crate) struct SlotOwner(AtomicU8);

impl SlotOwner {
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(FREE))
    }

    /// Takes a free slot; says whether it was free.
    #[must_use]
    pub(crate) fn claim(&self, waits: Waits) -> bool {
        let word = match waits {
            Waits::Futex => FUTEX,
            Waits::Event => EVENT,
        };
        // AcqRel: pairs with Release in `release`: the last owner has left; and with Acquire in `waits`: the
        // descriptor is there. Relaxed: nothing was taken.
        self.0.compare_exchange(FREE, word, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// By the owner, when nothing of it is left in the slot.
    pub(crate) fn release(&self) {
        // Release: pairs with Acquire in `claim`.
        self.0.store(FREE, Ordering::Release);
    }

    /// Whom to wake. A look: an owner that comes later takes its CPU's locks before it sleeps, and so sees
    /// whatever was left there before this look.
    #[inline]
    pub(crate) fn waits(&self) -> Option<Waits> {
        // Acquire: pairs with AcqRel in `claim`.
        match self.0.load(Ordering::Acquire) {
            FUTEX => Some(Waits::Futex),
            EVENT => Some(Waits::Event),
            _ => None,
        }
    }
}

/// Until when a lane dozes: waits, and is active in the hierarchy, so that no thread tells it of timers.
#[derive(Debug)]
pub(crate) struct DozeUntil(AtomicU64);

impl DozeUntil {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The owner is about to doze until `until`. What it looks at after this is at least as new as what those
    /// who do not see this have left.
    pub(crate) fn begin(&self, until: Nanos) {
        // Relaxed, fence: pairs with the fence in `is_later_than`: the thread that is second sees the other.
        self.0.store(until.0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// By the owner, awake.
    pub(crate) fn end(&self) {
        // Relaxed: who reads the old moment wakes a lane that is awake.
        self.0.store(0, Ordering::Relaxed);
    }

    /// Whether the owner dozes beyond `at`; for a thread that has put a timer for `at` on its base.
    #[inline]
    pub(crate) fn is_later_than(&self, at: Nanos) -> bool {
        fence(Ordering::SeqCst);
        // Relaxed: ordered by the fence, see `begin`.
        self.0.load(Ordering::Relaxed) > at.0
    }
}

/// When the tree wants a lane awake, requested while none was.
#[derive(Debug)]
pub(crate) struct RequestedAlarm(AtomicU64);

impl RequestedAlarm {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(NEVER))
    }

    /// From any thread, before the deadline word is pulled to the same moment.
    #[inline]
    pub(crate) fn ask(&self, at: Nanos) {
        // Relaxed: the pull releases it; pairs with `before`.
        self.0.fetch_min(at.0, Ordering::Relaxed);
    }

    /// A lane is awake, and looks after everything: what was asked is void.
    #[inline]
    pub(crate) fn forget(&self) {
        // Relaxed, both: a moment that is asked for after a thread went idle again is asked for after the
        // locks that it took then; see `stall_deadline.rs`. The look keeps the line shared.
        if self.0.load(Ordering::Relaxed) != NEVER {
            self.0.store(NEVER, Ordering::Relaxed);
        }
    }

    /// What was asked for, if it is before `until`; for the last one that goes idle, after it moved the
    /// deadline word.
    pub(crate) fn before(&self, until: Option<Nanos>) -> Option<Nanos> {
        // Relaxed: the caller has changed the deadline word, which acquires what its pullers did before.
        let asked = self.0.load(Ordering::Relaxed);
        (asked < until.map_or(NEVER, |until| until.0)).then_some(Nanos(asked))
    }

    /// For the sentinel: forgets what was asked for by `now`, and says whether there was something.
    pub(crate) fn take_due(&self, now: Nanos) -> bool {
        // Relaxed: the sentinel reads after it took the deadline word, which acquires what its pullers did.
        let mut seen = self.0.load(Ordering::Relaxed);
        while seen <= now.0 {
            // Relaxed, both: as above.
            match self.0.compare_exchange_weak(seen, NEVER, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(word) => seen = word,
            }
        }
        false
    }
}

/// A hint that one thread writes and others read.
#[derive(Debug)]
pub(crate) struct StandaloneFlag(AtomicU8);

impl StandaloneFlag {
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        // Relaxed: a hint; what follows from it is decided under locks.
        self.0.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn set(&self, word: Standalone) {
        // Relaxed: see `is_set`.
        self.0.store(u8::from(word == Standalone::Yes), Ordering::Relaxed);
    }
}

/// What a [`StandaloneFlag`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standalone {
    Yes,
    No,
}

#[cfg(all(test, loom))]
mod models;
