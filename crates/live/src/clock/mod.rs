//! The one clock of a machine: CLOCK_MONOTONIC in nanoseconds, or a virtual one that stands still.
//!
//! CLOCK_MONOTONIC does not count the time a machine is suspended: a timer of one hour that was armed before
//! an hour of suspend is due an hour after the resume. Invariant: [`Clock::coarse`] is never ahead of
//! [`Clock::now`]. Not here: waiting, and who moves a virtual clock.

mod cycles;
mod sync;

use crate::words::cycle_clock::CycleClock;
use quietcore_core::Nanos;
use rustix::time::{ClockId, Timespec, clock_gettime};
use sync::Warp;

/// Reads real or virtual time. Any thread.
#[derive(Debug)]
pub(crate) struct Clock {
    warp: Warp,
    cycle_clock: CycleClock,
    /// When this was made; `None` where the counter is not to be trusted.
    made_at: Option<Sample>,
}

/// The cycle counter beside a clock that is never slewed.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// The counter before and after that reading of the clock.
    cycles: [u64; 2],
    raw: Nanos,
}

/// For how long the counter is measured before it is asked.
const MEASURED_FOR: Nanos = Nanos::from_micros(10_000);

/// A sample that takes longer is no good: the thread lost its CPU in it. Some microseconds, in cycles; of
/// [`MEASURED_FOR`] less than a thousandth.
const SAMPLE_MAX: u64 = 1 << 14;

impl Default for Clock {
    fn default() -> Self {
        let made_at = if cycles::are_trusted() { (0..100).find_map(|_| Sample::take()) } else { None };
        Self { warp: Warp::default(), cycle_clock: CycleClock::new(), made_at }
    }
}

impl Sample {
    /// `None` if the thread lost its CPU meanwhile.
    fn take() -> Option<Self> {
        let before = cycles::read();
        let raw = read(ClockId::MonotonicRaw);
        let cycles = [before, cycles::read()];
        (cycles[1].wrapping_sub(before) < SAMPLE_MAX).then_some(Self { cycles, raw })
    }
}

/// CLOCK_MONOTONIC, for callers without a machine.
#[inline]
pub(crate) fn monotonic() -> Nanos {
    read(ClockId::Monotonic)
}

impl Clock {
    /// A moment that has not passed yet, some tens of us ahead at most: for a delay in ticks that is counted
    /// from now, and to find that nothing is due. Cost: about 10 ns if the kernel was asked a moment ago
    /// ([`CycleClock`]), else that of [`now`](Self::now).
    #[inline]
    pub(crate) fn latest(&self) -> Nanos {
        self.warp.apply(|| {
            // Where the counter is not trusted it is not read, either.
            let Some(made_at) = &self.made_at else { return read(ClockId::Monotonic) };
            let cycles = cycles::read();
            self.cycle_clock.latest(cycles).unwrap_or_else(|| self.ask(made_at, cycles))
        })
    }

    /// The kernel's clock, and notes it. `cycles` was read before.
    #[cold]
    fn ask(&self, made_at: &Sample, cycles: u64) -> Nanos {
        let now = read(ClockId::Monotonic);
        if !self.cycle_clock.has_rate()
            && let Some(sample) = Sample::take()
            && sample.raw.since(made_at.raw) >= MEASURED_FOR
        {
            // From the end of the one to the beginning of the other: a rate that is a little too high.
            let passed = sample.cycles[0].saturating_sub(made_at.cycles[1]);
            self.cycle_clock.set_rate(passed, sample.raw.since(made_at.raw));
        }
        self.cycle_clock.note(cycles, now);
        now
    }

    /// The moment. Cost: a vDSO call (about 22 ns), or two loads when time stands still.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.warp.apply(|| read(ClockId::Monotonic))
    }

    /// The moment, up to a tick of the kernel ago: enough for a base to forward its wheel. Cost: about 6 ns.
    #[inline]
    pub(crate) fn coarse(&self) -> Nanos {
        self.warp.apply(|| read(ClockId::MonotonicCoarse))
    }

    /// Whether it is a virtual clock now.
    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        self.warp.is_frozen()
    }

    /// Stops the clock at `at`, or moves a stopped one there. For who holds the role that moves time.
    pub(crate) fn freeze(&self, at: Nanos) {
        self.warp.freeze(at);
    }

    /// Lets time go on from where it stood.
    pub(crate) fn thaw(&self) {
        self.warp.thaw(read(ClockId::Monotonic));
    }

    /// The moment of CLOCK_MONOTONIC at which this clock will show `moment`; for timers of the kernel.
    pub(crate) fn to_kernel(&self, moment: Nanos) -> Nanos {
        self.warp.undo(moment)
    }
}

#[inline]
fn read(clock: ClockId) -> Nanos {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    Nanos(tv_sec as u64 * 1_000_000_000 + tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::{Clock, MEASURED_FOR, read};
    use quietcore_core::Nanos;
    use rustix::time::ClockId;
    use std::thread;
    use std::time::Duration;

    /// Goal: what counts as the latest moment is never behind the kernel's clock, whichever thread asked it
    /// last, also before the counter was measured. Method: two threads compare for some time, with pauses in
    /// which notes become too old.
    #[test]
    fn the_latest_moment_is_never_behind() {
        let clock = Clock::default();
        let end = Nanos(read(ClockId::Monotonic).0 + 5 * MEASURED_FOR.0);
        let compare = || {
            for round in 0_u32.. {
                let before = read(ClockId::Monotonic);
                let latest = clock.latest();
                assert!(latest >= before, "{latest:?} is behind {before:?}");
                if before >= end {
                    return;
                }
                if round.is_multiple_of(4096) {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        };
        thread::scope(|scope| {
            let other = scope.spawn(compare);
            compare();
            other.join().expect("no panic");
        });
        let is_measured = clock.cycle_clock.has_rate();
        assert_eq!(is_measured, clock.made_at.is_some(), "where the kernel uses the counter it is used here");
    }

    /// Goal: a clock that stands still says so here, too. Method: freeze it.
    #[test]
    fn the_latest_moment_stands_still_with_the_clock() {
        let clock = Clock::default();
        let frozen = Nanos(clock.now().0 + 1_000);
        clock.freeze(frozen);
        assert_eq!((clock.latest(), clock.now()), (frozen, frozen));
    }

    /// Goal: time goes on from where it stood, and the coarse clock is never ahead. Method: freeze ahead of
    /// the present, thaw, compare.
    #[test]
    fn time_goes_on_from_where_it_stood() {
        let clock = Clock::default();
        let started = clock.now();
        assert!(clock.coarse() <= clock.now());
        let frozen = Nanos(started.0 + 3_600_000_000_000);
        clock.freeze(frozen);
        assert!(clock.is_paused());
        assert_eq!((clock.now(), clock.coarse()), (frozen, frozen));
        clock.thaw();
        let now = clock.now();
        assert!(now >= frozen && now.since(frozen).0 < 60_000_000_000, "{now:?} after {frozen:?}");
        assert!(clock.to_kernel(now) <= Clock::default().now());
    }

    /// Goal: a clock that does not stand still goes on as it did when it is told to go on. Method: thaw one
    /// that was never frozen, and one that was, once more.
    #[test]
    fn a_clock_that_goes_is_not_moved() {
        let clock = Clock::default();
        for ahead in [0, 3_600_000_000_000] {
            let before = clock.now();
            clock.freeze(Nanos(before.0 + ahead));
            clock.thaw();
            clock.thaw();
            let passed = clock.now().since(before).0;
            assert!((ahead..ahead + 60_000_000_000).contains(&passed), "{passed} ns for {ahead}");
        }
    }
}
