//! Doze or sleep: how a lane with nothing to run waits.
//!
//! A sleep is two walks of the hierarchy, one down and one up, and every arm in between has to be published.
//! A doze is neither, but it ends with the tick. So a lane that was kicked, or found other work, within a
//! tick lately dozes first, and sleeps only when a doze ended by time with nothing to do; any other sleeps at
//! once. What "lately" is: an average in which each wait counts one eighth. A wait that ended by time counts
//! as a long one: what was due can be left to another lane that is awake.

use crate::Nanos;

/// The last rest counts 1 / 2^3.
const WEIGHT: u32 = 3;

/// How a rest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdleEnd {
    /// A doze, by time: perhaps it goes on.
    Dozed,
    /// A sleep, by time.
    Slept,
    /// By a kick, or for other work.
    Early,
}

/// What a lane remembers of its rests. Made expecting a long one.
#[derive(Debug)]
pub(super) struct IdlePredictor {
    tick: Nanos,
    /// Length that is expected, in ns.
    expected: u64,
    since: Nanos,
    /// It has dozed for a tick and had nothing to do since.
    goes_on: bool,
}

impl IdlePredictor {
    pub(super) const fn new(tick: Nanos) -> Self {
        Self { tick, expected: tick.0, since: Nanos(0), goes_on: false }
    }

    pub(super) const fn tick(&self) -> Nanos {
        self.tick
    }

    /// The lane has nothing to run from now on; says whether it should doze.
    pub(super) fn begin(&mut self, now: Nanos) -> bool {
        if self.goes_on {
            return false;
        }
        self.since = now;
        self.expected < self.tick.0
    }

    /// The lane is up.
    pub(super) fn end(&mut self, now: Nanos, end: IdleEnd) {
        let length = now.since(self.since).0;
        match end {
            IdleEnd::Dozed => self.goes_on = true,
            IdleEnd::Slept => self.was(self.as_by_time(length)),
            IdleEnd::Early => self.was(length),
        }
    }

    /// The lane had something to do, after a doze or not.
    pub(super) fn work(&mut self, now: Nanos) {
        if self.goes_on {
            self.was(self.as_by_time(now.since(self.since).0));
        }
    }

    fn as_by_time(&self, length: u64) -> u64 {
        length.max(self.tick.0.saturating_mul(2))
    }

    fn was(&mut self, length: u64) {
        self.goes_on = false;
        self.expected = self.expected - (self.expected >> WEIGHT) + (length >> WEIGHT);
    }
}

#[cfg(test)]
mod tests {
    use super::{IdleEnd, IdlePredictor};
    use crate::Nanos;

    const TICK: Nanos = Nanos(1_000_000);

    /// Goal: rests that are cut short make a lane doze, and a long one makes it sleep again. Method: rests of
    /// a known length, one after the other.
    #[test]
    fn short_rests_are_dozed_through() {
        let mut rest = IdlePredictor::new(TICK);
        let mut now = Nanos(0);
        let mut takes = |length: u64, end| {
            let dozes = rest.begin(now);
            now = Nanos(now.0 + length);
            rest.end(now, end);
            dozes
        };
        assert!(!takes(100_000, IdleEnd::Early), "nothing is known yet");
        assert!(takes(100_000, IdleEnd::Early));
        assert!(takes(50_000_000, IdleEnd::Early));
        assert!(!takes(100_000, IdleEnd::Early), "the last one was long");
    }

    /// Goal: a rest that ends by time is no reason to doze, however short. Method: many.
    #[test]
    fn what_is_due_is_no_reason_to_doze() {
        let mut rest = IdlePredictor { expected: 0, ..IdlePredictor::new(TICK) };
        for tick in 0..20 {
            let now = Nanos(tick * TICK.0);
            let _ = rest.begin(now);
            rest.end(Nanos(now.0 + 1000), IdleEnd::Slept);
        }
        assert!(!rest.begin(Nanos(0)), "{rest:?}");
    }

    /// Goal: a doze that ends by time with nothing to do is followed by a sleep, and counts as one rest with
    /// it; with something to do it is over. Method: as the module says.
    #[test]
    fn a_second_rest_in_a_row_is_a_sleep() {
        let mut rest = IdlePredictor { expected: 0, ..IdlePredictor::new(TICK) };
        assert!(rest.begin(Nanos(0)));
        rest.end(TICK, IdleEnd::Dozed);
        assert!(!rest.begin(TICK));
        rest.end(Nanos(16_000_000), IdleEnd::Slept);
        assert_eq!(rest.expected, 2_000_000, "16 ms count one eighth");

        let mut rest = IdlePredictor { expected: 0, ..IdlePredictor::new(TICK) };
        assert!(rest.begin(Nanos(0)));
        rest.end(TICK, IdleEnd::Dozed);
        rest.work(TICK);
        assert_eq!(rest.expected, 250_000, "two ticks count one eighth");
        assert!(rest.begin(TICK), "it had work");
    }
}
