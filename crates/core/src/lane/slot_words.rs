//! The words of one lane that other threads read without a lock, and the alarm that threads request while no
//! lane is awake.
//!
//! - [`DozeUntil`]: until when a lane that is active in the hierarchy waits, for threads that arm something
//!   more precise than a tick.
//! - [`StandaloneFlag`]: whether the lane looks after its own CPU only; a hint.
//! - [`RequestedAlarm`]: when the tree wants a lane awake.
//!
//! Models: `models.rs`, and `stall_deadline/models.rs`.

use crate::Nanos;
use crate::sync::{AtomicU8, AtomicU64, Ordering, fence, store_then_fence};
use crate::time::{NEVER, from_word, to_word};

/// Until when a lane dozes: waits, and is active in the hierarchy, so that no thread tells it of timers.
#[derive(Debug)]
pub(super) struct DozeUntil(AtomicU64);

impl DozeUntil {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The owner is about to doze until `until`. What it looks at after this is at least as new as what those
    /// who do not see this have left.
    pub(super) fn begin(&self, until: Nanos) {
        // Pairs with the fence in `is_later_than`: the thread that is second sees the other.
        store_then_fence(&self.0, until.0);
    }

    /// By the owner, awake.
    pub(super) fn end(&self) {
        // Relaxed: who reads the old moment wakes a lane that is awake.
        self.0.store(0, Ordering::Relaxed);
    }

    /// Whether the owner dozes beyond `at`; for a thread that has put a timer for `at` on its base.
    #[inline]
    pub(super) fn is_later_than(&self, at: Nanos) -> bool {
        fence(Ordering::SeqCst);
        // Relaxed: ordered by the fence, see `begin`.
        self.0.load(Ordering::Relaxed) > at.0
    }

    /// The same for the owner itself, which needs no fence to see what it wrote.
    #[inline]
    pub(super) fn is_own_later_than(&self, at: Nanos) -> bool {
        // Relaxed: written by this thread.
        self.0.load(Ordering::Relaxed) > at.0
    }
}

/// When the tree wants a lane awake, requested while none was.
#[derive(Debug)]
pub(super) struct RequestedAlarm(AtomicU64);

impl RequestedAlarm {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(NEVER))
    }

    /// From any thread, before the deadline word is pulled to the same moment.
    #[inline]
    pub(super) fn ask(&self, at: Nanos) {
        // Relaxed: the pull releases it; pairs with `before`.
        self.0.fetch_min(at.0, Ordering::Relaxed);
    }

    /// A lane is awake, and looks after everything: what was asked is void, and returned.
    #[inline]
    pub(super) fn forget(&self) -> Option<Nanos> {
        // Relaxed, both: a moment that is asked for after a thread went idle again is asked for after the
        // locks that it took then; see `stall_deadline.rs`. The look keeps the line shared.
        match self.0.load(Ordering::Relaxed) {
            NEVER => None,
            _ => from_word(self.0.swap(NEVER, Ordering::Relaxed)),
        }
    }

    /// What was asked for, if it is before `until`; for the last one that goes idle, after it moved the
    /// deadline word.
    pub(super) fn before(&self, until: Option<Nanos>) -> Option<Nanos> {
        // Relaxed: the caller has changed the deadline word, which acquires what its pullers did before.
        let asked = self.0.load(Ordering::Relaxed);
        (asked < to_word(until)).then_some(Nanos(asked))
    }

    /// For the sentinel: forgets what was asked for by `now`, and says whether there was something.
    pub(super) fn take_due(&self, now: Nanos) -> bool {
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

/// A hint that the holder of the machine's control lock writes and all threads read.
#[derive(Debug)]
pub(super) struct StandaloneFlag(AtomicU8);

impl StandaloneFlag {
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    #[inline]
    pub(super) fn is_set(&self) -> bool {
        // Relaxed: a hint; what follows from it is decided under locks.
        self.0.load(Ordering::Relaxed) != 0
    }

    pub(super) fn set(&self, is_standalone: bool) {
        // Relaxed: see `is_set`.
        self.0.store(u8::from(is_standalone), Ordering::Relaxed);
    }
}

#[cfg(all(test, loom))]
mod models;
