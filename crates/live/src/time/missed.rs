//! What a period does about ticks that were not taken in time: pure arithmetic.

use super::{Duration, Instant};

/// What an [`Interval`](super::Interval) does when it is polled so late that ticks were missed.
///
/// With a period of 10 ms, when the tick of 20 is taken at 47:
///
/// | | next ticks |
/// | --- | --- |
/// | `Burst` | 30, 40 (both at once), 50, 60 |
/// | `Delay` | 57, 67 |
/// | `Skip` | 50, 60; 30 and 40 are counted as overruns |
///
/// **The default is `Skip`, and not `Burst` as in tokio**: a task that was stuck finds one tick, and the
/// phase is kept; nothing is caught up that is of no use any more. Code that counts ticks to
/// measure time needs `Burst`, or adds [`Interval::overruns`](super::Interval::overruns).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissedTickBehavior {
    /// Missed ticks come one after the other, at once.
    Burst,
    /// The next tick is a period after the late one was taken. The phase is lost.
    Delay,
    /// Missed ticks are left out. The phase is kept.
    #[default]
    Skip,
}

/// With `Delay` a tick that is late by less is on time; else the phase would move with every wake-up.
const TOLERANCE: Duration = Duration::from_millis(5);

impl MissedTickBehavior {
    /// The tick after the one for `due` that was taken at `now`, and how many are left out before it.
    pub(super) fn next(self, due: Instant, now: Instant, period: Duration) -> (Instant, u64) {
        let late = now - due;
        let missed = (late.as_nanos() / period.as_nanos()) as u64;
        match self {
            Self::Skip => {
                // Less than a period, so it fits.
                let into = Duration::from_nanos((late.as_nanos() % period.as_nanos()) as u64);
                (now + (period - into), missed)
            }
            Self::Delay if late > TOLERANCE => (now + period, missed),
            Self::Burst | Self::Delay => (due + period, 0),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::MissedTickBehavior::{Burst, Delay, Skip};
    use crate::time::{Duration, Instant};
    use quietcore_core::Nanos;

    /// Goal: each behaviour at every lateness that makes a difference. Method: a table; period 10 ms, due at
    /// 20.
    #[test]
    fn the_next_tick() {
        let at = |micros: u64| Instant::from(Nanos(micros * 1_000));
        let period = Duration::from_millis(10);
        for (behavior, now, next, missed) in [
            (Burst, 20_000, 30_000, 0),
            (Burst, 47_000, 30_000, 0),
            (Delay, 20_000, 30_000, 0),
            (Delay, 25_000, 30_000, 0),
            (Delay, 25_001, 35_001, 0),
            (Delay, 47_000, 57_000, 2),
            (Skip, 20_000, 30_000, 0),
            (Skip, 29_999, 30_000, 0),
            (Skip, 30_000, 40_000, 1),
            (Skip, 47_000, 50_000, 2),
        ] {
            let found = behavior.next(at(20_000), at(now), period);
            assert_eq!(found, (at(next), missed), "{behavior:?} at {now} us");
        }
    }

    /// Goal: periods of any length keep within the range. Method: the shortest and the longest, very late.
    #[test]
    fn periods_of_any_length() {
        let (first, last) = (Instant::from(Nanos(0)), Instant::from(Nanos(u64::MAX)));
        let nano = Duration::from_nanos(1);
        for behavior in [Burst, Delay, Skip] {
            assert_eq!(behavior.next(first, first, Duration::MAX), (last, 0), "{behavior:?}");
            assert_eq!(behavior.next(last, last, nano).0, last, "{behavior:?}");
        }
        assert_eq!(Skip.next(first, last, nano), (last, u64::MAX));
        assert_eq!(Burst.next(first, last, nano), (first + nano, 0));
    }
}
