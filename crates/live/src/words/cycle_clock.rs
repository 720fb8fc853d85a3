//! What the processor's cycle counter says of the time: a moment that the kernel's clock has not passed yet.
//!
//! Any thread that has asked the kernel notes what it was told and which cycle that was; for a short while
//! after that a reading of the counter will do. The rate is an eighth more than what was measured against a
//! clock that is never slewed (CLOCK_MONOTONIC_RAW), and the kernel slews CLOCK_MONOTONIC by a tenth and 500
//! ppm at most (Linux 6.12, kernel/time/ntp.c). So the answer is never behind the kernel's clock, and ahead
//! of it by less than a third of the time since the last note; that is too old after [`VALID`].
//!
//! A sequence lock: `version` is odd while a thread writes. A reader that meets a writer is told nothing and
//! asks the kernel. Invariant: what a reader takes together was noted together (`models.rs`). Not here: the
//! counter, and whether the kernel trusts it (`clock/cycles.rs`).

use crate::words::sync::{AtomicU32, AtomicU64, Ordering, fence};
use core::ops::RangeInclusive;
use quietcore_core::Nanos;

/// How long a note is good for, in cycles: 52 us at 5 GHz, 262 us at 1 GHz.
const VALID: u64 = 1 << 18;

/// Rates that a counter may have, in ns per cycle behind the point: 16 GHz to 250 MHz. Another one was
/// measured while the counter started anew.
const RATES: RangeInclusive<u128> = 1 << (FRACTION - 4)..=1 << (FRACTION + 2);

/// Bits behind the point of a rate, in ns per cycle.
const FRACTION: u32 = 32;

/// The last note. On a cache line of its own: who reads it does so at every arm.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct CycleClock {
    version: AtomicU32,
    cycles: AtomicU64,
    nanos: AtomicU64,
    /// 0: not measured yet, or not to be trusted.
    rate: AtomicU64,
}

impl CycleClock {
    pub(crate) fn new() -> Self {
        let [cycles, nanos, rate] = [const { 0 }; 3].map(AtomicU64::new);
        Self { version: AtomicU32::new(0), cycles, nanos, rate }
    }

    /// A moment that has not passed when the counter shows `cycles`; `None` if the last note is too old.
    /// Cost: a few loads and a multiplication.
    #[inline]
    pub(crate) fn latest(&self, cycles: u64) -> Option<Nanos> {
        // Acquire: pairs with Release in `note`: the note of this version, or a part of a later one.
        let version = self.version.load(Ordering::Acquire);
        // Relaxed, all: ordered by the version before and the fence behind them.
        let since = cycles.wrapping_sub(self.cycles.load(Ordering::Relaxed));
        let (nanos, rate) = (self.nanos.load(Ordering::Relaxed), self.rate.load(Ordering::Relaxed));
        // Acquire: pairs with the Release fence in `note`: a reader of a later note's words sees its version.
        fence(Ordering::Acquire);
        let is_whole = version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version;
        let is_valid = is_whole && since < VALID && rate != 0;
        is_valid.then(|| Nanos(nanos + ((since * rate) >> FRACTION)))
    }

    /// The kernel's clock showed `now` at `cycles` or later. Gives up if another thread is at it.
    pub(crate) fn note(&self, cycles: u64, now: Nanos) {
        // Relaxed: a look, or its own store.
        let version = self.version.load(Ordering::Relaxed);
        // Acquire: after the stores of the last writer. Relaxed: nothing was taken.
        let take =
            |odd| self.version.compare_exchange(version, odd, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if version % 2 == 1 || !take(version.wrapping_add(1)) {
            return;
        }
        // Release: pairs with the Acquire fence in `latest`.
        fence(Ordering::Release);
        self.cycles.store(cycles, Ordering::Relaxed);
        self.nanos.store(now.0, Ordering::Relaxed);
        // Release: pairs with Acquire in `latest`.
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// So many cycles passed in `span` ns of a clock that is not slewed. Then it may be asked, if that can
    /// be.
    pub(crate) fn set_rate(&self, cycles: u64, span: Nanos) {
        let per_cycle = (u128::from(span.0) << FRACTION) / u128::from(cycles.max(1));
        if RATES.contains(&per_cycle) {
            // Relaxed: read with any note; every rate holds for every note.
            self.rate.store((per_cycle + per_cycle / 8 + 1) as u64, Ordering::Relaxed);
        }
    }

    /// Whether the counter is to be asked. Cost: a load.
    #[inline]
    pub(crate) fn has_rate(&self) -> bool {
        // Relaxed: a hint.
        self.rate.load(Ordering::Relaxed) != 0
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{CycleClock, VALID};
    use crate::words::sync::Ordering;
    use quietcore_core::Nanos;

    /// 2.5 GHz, measured over 10 ms.
    fn clock() -> CycleClock {
        let clock = CycleClock::new();
        clock.set_rate(25_000_000, Nanos(10_000_000));
        clock
    }

    /// Goal: never behind a clock that runs at any rate that a kernel gives it, and ahead by less than a
    /// third of the time since the note. Method: rates between 90 % and 110 % and 500 ppm, all ages of a
    /// note.
    #[test]
    fn never_behind_and_little_ahead() {
        let clock = clock();
        for start in [0, 1_000, u64::MAX - 100_000] {
            clock.note(start, Nanos(7_000_000));
            for age in (0..VALID).step_by(if cfg!(miri) { 29_999 } else { 999 }) {
                let latest = clock.latest(start.wrapping_add(age)).expect("it is young").0;
                for per_million in [900_000 - 500, 1_000_000, 1_100_000 + 500] {
                    let true_age = age * 4 * per_million / 10_000_000;
                    let now = 7_000_000 + true_age;
                    assert!(latest >= now, "{latest} is behind {now} after {age} cycles");
                    assert!(
                        latest - now <= true_age / 3 + 1,
                        "{latest} is far ahead of {now} after {age} cycles"
                    );
                }
            }
        }
    }

    /// Goal: no answer without a rate that can be, from an old note, or from before the note: a counter may
    /// start anew. Method: one of each.
    #[test]
    fn no_answer_without_a_good_note() {
        let unmeasured = CycleClock::new();
        unmeasured.note(10, Nanos(10));
        assert_eq!(unmeasured.latest(11), None);
        for cycles in [0, 2_000_000, 170_000_000] {
            unmeasured.set_rate(cycles, Nanos(10_000_000));
            assert!(!unmeasured.has_rate(), "{cycles} cycles in 10 ms");
        }
        let clock = clock();
        clock.note(1_000_000, Nanos(5));
        assert!(clock.latest(1_000_000 + VALID - 1).is_some());
        assert_eq!(clock.latest(1_000_000 + VALID), None);
        assert_eq!(clock.latest(999_999), None);
    }

    /// Goal: while one thread notes, no other does, and none reads what is half written. Method: a version as
    /// in the middle of a note.
    #[test]
    fn half_a_note_is_none() {
        let clock = clock();
        clock.note(1_000, Nanos(5));
        clock.version.fetch_add(1, Ordering::Relaxed);
        assert_eq!(clock.latest(1_000), None, "it is being written");
        clock.note(2_000, Nanos(7));
        clock.version.fetch_add(1, Ordering::Relaxed);
        assert_eq!(clock.latest(1_000), Some(Nanos(5)), "the other one has given up");
    }
}
