//! Doze or sleep: how a lane with nothing to run waits.
//!
//! A sleep is two walks of the hierarchy, one down and one up, and whoever else arms a timer then has to
//! publish it. A doze is neither, but it ends with the tick. So a lane that was woken early lately dozes first,
//! and sleeps only when a doze ended by time with nothing to do; one that could sleep longer than a tick
//! lately sleeps at once. What "lately" is: an average in which each rest counts one eighth.
//!
//! Absent: until when (`lane.rs`). Source: PROTOCOL section 6.

use quietcore_core::Nanos;

/// The last rest counts 1 / 2^3.
const WEIGHT: u32 = 3;

/// How a rest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By time, and a doze only: perhaps it goes on.
    Dozed,
    /// By time after a sleep, by a kick, or for other work.
    Over,
}

/// What a lane remembers of its rests. Made expecting a long one.
#[derive(Debug)]
pub(super) struct Rest {
    /// Length that is expected, in ns.
    expected: u64,
    since: Nanos,
    /// It has dozed for a tick and had nothing to do since.
    goes_on: bool,
}

impl Rest {
    pub(super) const fn new(tick: Nanos) -> Self {
        Self { expected: tick.0, since: Nanos(0), goes_on: false }
    }

    /// The lane has nothing to run from now on; says whether it should doze.
    pub(super) fn begin(&mut self, now: Nanos, tick: Nanos) -> bool {
        if self.goes_on {
            return false;
        }
        self.since = now;
        self.expected < tick.0
    }

    /// The lane is up.
    pub(super) fn end(&mut self, now: Nanos, end: End) {
        match end {
            End::Dozed => self.goes_on = true,
            End::Over => self.is_over(now),
        }
    }

    /// The lane had something to do, after a doze or not.
    pub(super) fn work(&mut self, now: Nanos) {
        if self.goes_on {
            self.is_over(now);
        }
    }

    fn is_over(&mut self, now: Nanos) {
        self.goes_on = false;
        let length = now.since(self.since).0;
        self.expected = self.expected - (self.expected >> WEIGHT) + (length >> WEIGHT);
    }
}

#[cfg(test)]
mod tests {
    use super::{End, Rest};
    use quietcore_core::Nanos;

    const TICK: Nanos = Nanos(1_000_000);

    /// Goal: short rests make a lane doze, and a long one makes it sleep again. Method: rests of a known
    /// length, one after the other.
    #[test]
    fn short_rests_are_dozed_through() {
        let mut rest = Rest::new(TICK);
        let mut now = Nanos(0);
        let mut takes = |length: u64| {
            let dozes = rest.begin(now, TICK);
            now = Nanos(now.0 + length);
            rest.end(now, End::Over);
            dozes
        };
        assert!(!takes(100_000), "nothing is known yet");
        assert!(takes(100_000));
        assert!(takes(50_000_000));
        assert!(!takes(100_000), "the last one was long");
    }

    /// Goal: a doze that ends by time with nothing to do is followed by a sleep, and counts as one rest with
    /// it; with something to do it is over. Method: as the module says.
    #[test]
    fn a_second_rest_in_a_row_is_a_sleep() {
        let mut rest = Rest { expected: 0, ..Rest::new(TICK) };
        assert!(rest.begin(Nanos(0), TICK));
        rest.end(TICK, End::Dozed);
        assert!(!rest.begin(TICK, TICK));
        rest.end(Nanos(16_000_000), End::Over);
        assert_eq!(rest.expected, 2_000_000, "16 ms count one eighth");

        let mut rest = Rest { expected: 0, ..Rest::new(TICK) };
        assert!(rest.begin(Nanos(0), TICK));
        rest.end(TICK, End::Dozed);
        rest.work(TICK);
        assert!(rest.begin(TICK, TICK), "it dozed for less than a tick, and had work");
    }
}
