//! `est INTERVAL TIME_CONSTANT`: how fast bytes and packets pass, averaged over a while.
//!
//! Every interval what has passed in it is mixed into the average with a weight of one 2^n-th, so that what
//! is older than the time constant hardly counts. The average begins at 0 and takes that long to get up.
//! Source: Linux net/core/gen_estimator.c, by behaviour; the choice of n is `tc`'s, by its manual.

use core::fmt;
use quietcore_core::Nanos;

/// Parts of a byte that are kept.
const FRACTION: u32 = 16;

/// Why an estimator cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EstimatorError {
    /// The interval is 0, or longer than 8 s.
    Interval(Nanos),
    /// The time constant is shorter than one interval and a half, or longer than the interval 2^30 times.
    TimeConstant {
        /// It.
        time_constant: Nanos,
        /// The interval.
        interval: Nanos,
    },
}

impl fmt::Display for EstimatorError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interval(interval) => write!(out, "an interval of {interval} is not up to 8 s"),
            Self::TimeConstant { time_constant, interval } => {
                write!(out, "a time constant of {time_constant} does not go with an interval of {interval}")
            }
        }
    }
}

impl core::error::Error for EstimatorError {}

/// A moving average of two rates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimator {
    interval: Nanos,
    /// New values count one 2^this-th.
    weight: u32,
    next: Nanos,
    bytes: Average,
    packets: Average,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Average {
    /// At the end of the last interval.
    count: u64,
    /// Per second, with [`FRACTION`] bits.
    rate: u128,
}

impl Average {
    fn mix(&mut self, passed: u64, interval: Nanos, weight: u32) {
        let rate = (u128::from(passed) << FRACTION) * 1_000_000_000 / u128::from(interval.0);
        self.rate = self.rate - (self.rate >> weight) + (rate >> weight);
    }

    fn per_second(self) -> u64 {
        u64::try_from(self.rate >> FRACTION).unwrap_or(u64::MAX)
    }
}

impl Estimator {
    /// One that begins at `now`. The interval is rounded up to 250 ms, 500 ms, 1 s, 2 s, 4 s or 8 s.
    ///
    /// # Errors
    /// See [`EstimatorError`].
    pub fn new(interval: Nanos, time_constant: Nanos, now: Nanos) -> Result<Self, EstimatorError> {
        const SHORTEST: u64 = 250_000_000;
        let asked = interval;
        let fits = |shift: &u32| asked.0 > 0 && asked.0 <= SHORTEST << shift;
        let shift = (0..=5).find(fits).ok_or(EstimatorError::Interval(interval))?;
        // The largest weight whose average forgets within the time constant.
        let forgets = |weight: &u32| {
            let kept = 1.0 - 1.0 / (1_u64 << weight) as f64;
            asked.0 as f64 / -libm::log(kept) > time_constant.0 as f64
        };
        let error = EstimatorError::TimeConstant { time_constant, interval };
        let weight = (1..31).find(forgets).ok_or(error)? - 1;
        if weight == 0 {
            return Err(error);
        }
        let interval = Nanos(SHORTEST << shift);
        let next = Nanos(now.0.saturating_add(interval.0));
        Ok(Self { interval, weight, next, bytes: Average::default(), packets: Average::default() })
    }

    /// When it is to be told next.
    #[must_use]
    pub const fn next(&self) -> Nanos {
        self.next
    }

    /// Tells it how much has passed in all. Told late it takes what passed for evenly spread.
    pub fn take(&mut self, now: Nanos, bytes: u64, packets: u64) {
        if now < self.next {
            return;
        }
        let intervals = 1 + (now.0 - self.next.0) / self.interval.0;
        for (average, count) in [(&mut self.bytes, bytes), (&mut self.packets, packets)] {
            let each = count.saturating_sub(average.count) / intervals;
            // After so many the average is what it will be.
            for _ in 0..intervals.min(64 << self.weight.min(10)) {
                average.mix(each, self.interval, self.weight);
            }
            average.count = count;
        }
        self.next = Nanos(self.next.0.saturating_add(intervals.saturating_mul(self.interval.0)));
    }

    /// Bits per second, as `tc` prints them.
    #[must_use]
    pub fn bits_per_second(&self) -> u64 {
        u64::try_from((self.bytes.rate * 8) >> FRACTION).unwrap_or(u64::MAX)
    }

    /// Packets per second.
    #[must_use]
    pub fn packets_per_second(&self) -> u64 {
        self.packets.per_second()
    }
}

#[cfg(test)]
mod tests {
    use super::{Estimator, EstimatorError};
    use alloc::string::ToString as _;
    use quietcore_core::Nanos;

    /// Goal: bits are counted, not whole bytes eight times. Method: averages over 1 s of weight 1/8, since
    /// 1 / -ln(7/8) = 7.5 s is within 8 s and 1 / -ln(15/16) = 15.5 s is not. A byte is 1/8 per second, which
    /// is one bit; 8 more come to 7/64 + 8/8 = 71/64, 8.9 bits, and none to 7/8 of that, 7.8 bits. Of packets
    /// 1, 2 and 8 come: 1/8, 7/64 + 2/8 = 23/64, and 161/512 + 8/8 = 1.3.
    #[test]
    fn fractions_of_bytes_are_bits() {
        let second = |count: u64| Nanos(count * 1_000_000_000);
        let mut estimator = Estimator::new(second(1), second(8), second(0)).expect("they go together");
        for (at, bytes, packets, rates) in [(1, 1, 1, (1, 0)), (2, 9, 3, (8, 0)), (3, 9, 11, (7, 1))] {
            estimator.take(second(at), bytes, packets);
            assert_eq!((estimator.bits_per_second(), estimator.packets_per_second()), rates, "at {at} s");
        }
    }

    /// Goal: told late it takes what passed for evenly spread, and told early it waits. Method: weight 1/8 as
    /// above. 24 bytes in 3 s are 8 each: 1, 7/8 + 1 = 15/8, 105/64 + 1 = 169/64 bytes, which is 21.1 bits;
    /// of 30 packets 10 each, which is 10/8 of that, 3.3. A second with nothing leaves 7/8: 18.5 and 2.9.
    #[test]
    fn told_late_it_spreads() {
        let tenths = |count: u64| Nanos(count * 100_000_000);
        let mut estimator = Estimator::new(tenths(10), tenths(80), tenths(70)).expect("they go together");
        for (at, bytes, packets, rates, next) in [
            (79, 24, 30, (0, 0), 80),
            (105, 24, 30, (21, 3), 110),
            (109, 99, 99, (21, 3), 110),
            (110, 24, 30, (18, 2), 120),
        ] {
            estimator.take(tenths(at), bytes, packets);
            assert_eq!((estimator.bits_per_second(), estimator.packets_per_second()), rates, "at {at}");
            assert_eq!(estimator.next(), tenths(next), "at {at}");
        }
    }

    /// Goal: intervals are rounded up to those there are, and what does not go is refused. Method: both sides
    /// of each bound, in us; an average of weight 1/2 forgets in 1 / ln 2 = 1.4427 intervals.
    #[test]
    fn intervals_are_rounded_up() {
        let next = |interval: u64, time_constant: u64| {
            let estimator = Estimator::new(Nanos(interval * 1000), Nanos(time_constant * 1000), Nanos(7000));
            estimator.map(|estimator| estimator.next().0 / 1000 - 7).ok()
        };
        assert_eq!(
            (next(0, 80_000_000), next(1, 80_000), next(8_000_001, 80_000_000)),
            (None, Some(250_000), None)
        );
        for ms in [250, 500, 1000, 2000, 4000] {
            let us = ms * 1000;
            assert_eq!((next(us, 8 * us), next(us + 1, 8 * us)), (Some(us), Some(2 * us)));
        }
        assert_eq!(next(8_000_000, 80_000_000), Some(8_000_000));
        assert_eq!((next(1_000_000, 1_442_000), next(1_000_000, 1_443_000)), (None, Some(1_000_000)));
    }

    /// Goal: what does not go together is named. Method: an interval of 0 and one of 9 s; the longest time
    /// constant, 2^30 intervals less half of one, in intervals of 2 ns, and one that is longer.
    #[test]
    fn what_does_not_go_is_named() {
        let refused = |interval, time_constant| Estimator::new(interval, time_constant, Nanos(0)).err();
        for interval in [Nanos(0), Nanos(9_000_000_000)] {
            assert_eq!(refused(interval, Nanos(10_000_000_000)), Some(EstimatorError::Interval(interval)));
        }
        assert_eq!(refused(Nanos(1), Nanos(7)), None);
        let (interval, longest) = (Nanos(2), (1 << 31) - 1);
        assert_eq!(refused(interval, Nanos(longest - 1)), None);
        let time_constant = Nanos(longest + 1);
        let error = EstimatorError::TimeConstant { time_constant, interval };
        assert_eq!(refused(interval, time_constant), Some(error));
        let error = EstimatorError::TimeConstant { time_constant: Nanos(1_000_000), interval: Nanos(2) };
        assert_eq!(error.to_string(), "a time constant of 1 ms does not go with an interval of 2 ns");
    }

    /// Goal: large counts are exact, and many intervals at once are taken one by one. Method: weight 1/2, as
    /// 1.5 s is between 1.44 s and 3.48 s: half of 2 * 10^10 bytes; then weight 1/8 over 20 s with 1000 bytes
    /// in each: 1000 * (1 - (7/8)^20) = 930.79 bytes, which is 7446.3 bits.
    #[test]
    fn many_at_once() {
        let tenths = |count: u64| Nanos(count * 100_000_000);
        let mut estimator = Estimator::new(tenths(10), tenths(15), tenths(0)).expect("they go together");
        estimator.take(tenths(10), 20_000_000_000, 6);
        assert_eq!((estimator.bits_per_second(), estimator.packets_per_second()), (80_000_000_000, 3));
        let mut estimator = Estimator::new(tenths(10), tenths(80), tenths(0)).expect("they go together");
        estimator.take(tenths(200), 20_000, 0);
        assert_eq!(estimator.bits_per_second(), 7_446);
    }
}
