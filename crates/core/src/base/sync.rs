//! The two words of a base that are read without its lock: where a timer is, and when a base is next due.
//!
//! Both are written under the lock of the base concerned (a timer's word that names no base: by
//! compare-and-swap). What a word guards is guarded by that lock, not by the word, with one exception that
//! is named below.

use super::word::{BaseId, TimerWord};
use crate::Nanos;
use crate::sync::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::time::{NEVER, from_word};
use core::fmt;

/// The word of a timer, beside its links.
pub(crate) struct SharedTimerWord(AtomicU32);

impl SharedTimerWord {
    pub(super) fn new(word: TimerWord) -> Self {
        Self(AtomicU32::new(word.0))
    }

    /// Says which lock to take, and under that lock whether it was the right one.
    #[inline]
    pub(super) fn load(&self) -> TimerWord {
        // Relaxed: its writer held the lock that the reader takes next, or holds.
        TimerWord(self.0.load(Ordering::Relaxed))
    }

    /// For a caller that takes no lock when the timer is idle: it cancels nothing, or frees the timer.
    #[inline]
    pub(super) fn load_idle(&self) -> TimerWord {
        // Acquire: pairs with Release in `store`, the last that the holder of the lock did with the timer.
        TimerWord(self.0.load(Ordering::Acquire))
    }

    /// For the holder of the lock of the base that the word names, as its last access to the timer.
    #[inline]
    pub(super) fn store(&self, word: TimerWord) {
        // Release: pairs with Acquire in `load_idle`.
        self.0.store(word.0, Ordering::Release);
    }

    /// Changes a word that names no base; says whether it still was as it was `seen`.
    #[inline]
    pub(super) fn claim(&self, seen: TimerWord, next: TimerWord) -> bool {
        // AcqRel, Acquire: what an earlier claim did is seen by the next one. Links were never touched
        // before.
        self.0.compare_exchange(seen.0, next.0, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// As a claim of a timer's first base.
    #[inline]
    pub(super) fn claim_for(&self, seen: TimerWord, base: BaseId) -> bool {
        self.claim(seen, seen.at(base))
    }
}

impl fmt::Debug for SharedTimerWord {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.load(), out)
    }
}

/// Why a CPU takes no tokens: a bit each for absent and for unavailable.
///
/// Written by the CPU that marks or isolates it, which locks every base afterwards to take back its tokens.
/// So a CPU that takes a token under a base's lock either is seen there or sees the bit.
#[derive(Debug, Default)]
pub(super) struct CpuHints(AtomicU8);

impl CpuHints {
    /// It takes no token of a base that others can run.
    pub(super) const ABSENT: u8 = 1;
    /// It takes no token of another CPU's base.
    pub(super) const UNAVAILABLE: u8 = 2;

    pub(super) fn change(&self, bit: u8, is_set: bool) {
        // Relaxed: read under a base's lock, which the writer takes and gives back after this.
        if is_set {
            self.0.fetch_or(bit, Ordering::Relaxed);
        } else {
            self.0.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn has(&self, bit: u8) -> bool {
        // Relaxed: see `change`.
        self.0.load(Ordering::Relaxed) & bit != 0
    }
}

/// When a base is next due, in ns; `u64::MAX` when it is not. Never later than the truth.
#[derive(Debug)]
pub(super) struct NextExpiry(AtomicU64);

impl Default for NextExpiry {
    fn default() -> Self {
        Self(AtomicU64::new(NEVER))
    }
}

impl NextExpiry {
    #[inline]
    pub(super) fn load(&self) -> Option<Nanos> {
        from_word(self.word())
    }

    /// The same as a word, [`NEVER`] if it is not due.
    #[inline]
    pub(super) fn word(&self) -> u64 {
        // Relaxed: a hint. A reader that acts on it locks the base; for an idle CPU that missed it the arm
        // publishes (`is_idle`).
        self.0.load(Ordering::Relaxed)
    }

    /// Whether that is `now` or before; of what never comes not even at the last moment that there is.
    #[inline]
    pub(super) fn is_by(&self, now: Nanos) -> bool {
        // Relaxed: as above.
        self.0.load(Ordering::Relaxed) <= now.0.min(NEVER - 1)
    }

    /// For the holder of the base's lock.
    #[inline]
    pub(super) fn store(&self, nanos: u64) {
        // Relaxed, both: only the holder writes; readers as in `load`.
        if self.0.load(Ordering::Relaxed) != nanos {
            self.0.store(nanos, Ordering::Relaxed);
        }
    }
}
