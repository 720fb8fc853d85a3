//! What a `timer_start` says of its place: the bucket, and when it is due.
//!
//! Decides when a place agrees with our wheel's, and whether it could follow from any clock at all, which
//! is what can be asked where the base's state is not known.

use crate::wheel::WheelLevels;
use quietcore_trace::TimerStart;
use quietcore_wheel::{Placement, Tick};
use std::fmt;

/// Where a `timer_start` says that its timer was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordedPlace {
    bucket: u64,
    /// 6.1 does not say.
    expiry: Option<u64>,
}

impl fmt::Display for RecordedPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "bucket {}", self.bucket)?;
        self.expiry.map_or(Ok(()), |expiry| write!(out, " due {expiry}"))
    }
}

impl RecordedPlace {
    /// `None` when it does not say.
    pub(crate) fn of(start: &TimerStart<'_>) -> Option<Self> {
        Some(Self { bucket: start.bucket?, expiry: start.bucket_expiry })
    }

    pub(crate) fn is(self, place: Placement) -> bool {
        self.bucket == u64::from(place.bucket) && self.expiry.is_none_or(|expiry| expiry == place.expiry.0)
    }

    /// Whether a base can have a clock that gives this place: any up to jiffies + 1.
    pub(crate) fn is_possible(self, start: &TimerStart<'_>, jiffies: Tick, levels: WheelLevels) -> bool {
        let (expires, last) = (Tick(start.expires), jiffies.plus(1));
        let level = (self.bucket / 64) as usize;
        if level >= levels.count() {
            return false;
        }
        if level + 1 == levels.count() && self.is_edge(level) {
            return true; // clipped, from a clock that the bucket does not tell
        }
        // The latest clock from which the delay goes to this level; an earlier one changes nothing.
        let delay = levels.level_start(level);
        let clock = Tick(expires.0.wrapping_sub(delay));
        let clock = if last.is_before(clock) { last } else { clock };
        let was_past = level == 0
            && self.is_edge(level)
            && self.expiry.is_none_or(|at| expires.is_before(Tick(at)) && !last.is_before(Tick(at)));
        self.is(levels.place(clock, expires)) || (was_past && expires.is_before(last))
    }

    /// Whether the bucket's number and its expiry agree.
    fn is_edge(self, level: usize) -> bool {
        let granule = |expiry: u64| expiry >> (3 * level);
        self.expiry.is_none_or(|expiry| {
            granule(expiry) << (3 * level) == expiry && granule(expiry) % 64 == self.bucket % 64
        })
    }
}

#[cfg(test)]
mod tests {
    use super::RecordedPlace;
    use crate::wheel::WheelLevels;
    use quietcore_core::CpuId;
    use quietcore_trace::TimerStart;
    use quietcore_wheel::{Placement, Tick};

    fn possible(
        expires: u64,
        jiffies: u64,
        place: Placement,
        has_expiry: impl Fn(u64) -> Option<u64>,
    ) -> bool {
        let start = TimerStart {
            timer: 1,
            function: b"f",
            expires,
            timeout: 0,
            bucket_expiry: has_expiry(place.expiry.0),
            base: CpuId::default(),
            bucket: Some(u64::from(place.bucket)),
            deferrable: false,
            pinned: false,
            irq_safe: false,
        };
        let recorded = RecordedPlace::of(&start).expect("it has a bucket");
        recorded.is_possible(&start, Tick(jiffies), WheelLevels::Nine)
    }

    /// Goal: what a clock up to jiffies + 1 gives is possible; what none gives is not.
    /// Method: every clock of a range, delays around the edges of the levels; then one number changed.
    #[test]
    fn only_what_a_clock_gives_is_possible() {
        let jiffies = 10_000;
        for expires in [9_990, 10_000, 10_001, 10_062, 10_063, 10_064, 10_503, 10_504, 14_100, 1 << 40] {
            for clock in 9_000..=jiffies + 1 {
                let place = WheelLevels::Nine.place(Tick(clock), Tick(expires));
                let case = format!("expires {expires}, clock {clock}: {place:?}");
                assert!(possible(expires, jiffies, place, Some), "{case}");
                assert!(possible(expires, jiffies, place, |_| None), "{case}");
                let other = Placement { bucket: place.bucket ^ 1, ..place };
                assert!(!possible(expires, jiffies, other, Some), "{case}, next bucket");
                assert!(!possible(expires, jiffies, place, |expiry| Some(expiry + 1)), "{case}, one late");
            }
        }
    }
}
