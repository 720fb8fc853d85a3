//! What follows a run: nothing, the next period, or the rest of a way that is longer than the wheel reaches.
//!
//! A timer that runs once has no course, and pays a load for that. A course has a lock, under which a runner
//! decides whether to arm the timer again, and under which other arms and cancels end it: so a period that
//! was cancelled while its callback ran does not begin again. Lock order: course, then bases.
//!
//! Periods never drift: each is a multiple of the first, whenever its run came. Multiples that went by while
//! the timer waited or ran are skipped and counted. Absent: arming.

use super::sync::{Due, Follows};
use quietcore_core::{Nanos, TickLength};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub(super) struct Course {
    pub(super) due: Due,
    follows: Follows,
    cycle: Mutex<Cycle>,
}

/// What follows, while something does.
#[derive(Clone, Copy, Debug)]
struct Cycle {
    /// 0 for a single run, further ahead than the wheel reaches.
    period: Nanos,
    /// The multiple that the timer is armed for.
    at: Nanos,
    /// Multiples that were skipped before that.
    overruns: u64,
}

/// What to do with a timer that was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planned {
    Run {
        /// What it was armed for; when another arm is under way, to the tick.
        scheduled: Nanos,
        overruns: u64,
    },
    /// It is early, because the wheel does not reach as far: arm it again for this.
    Hop(Nanos),
    /// Nothing: its callback let go of it, and it may be gone.
    Released,
}

/// Whether a course goes on.
pub(super) struct Locked<'a> {
    course: &'a Course,
    cycle: MutexGuard<'a, Cycle>,
}

impl Course {
    pub(super) fn new() -> Self {
        let cycle = Cycle { period: Nanos(0), at: Nanos(0), overruns: 0 };
        Self { due: Due::new(), follows: Follows::new(), cycle: Mutex::new(cycle) }
    }

    /// Whether a run may lead to another one.
    #[inline]
    pub(super) fn follows(&self) -> bool {
        self.follows.load()
    }

    /// Whether it may, or a run may be under way that was handed out while it did.
    #[inline]
    pub(super) fn ever_followed(&self) -> bool {
        self.follows.ever()
    }

    pub(super) fn lock(&self) -> Locked<'_> {
        Locked { course: self, cycle: self.cycle.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// No run leads to another one. Cost: a load, if none did.
    #[inline]
    pub(super) fn end(&self) {
        if self.follows() {
            self.lock().end();
        }
    }

    /// For its runner: what a timer that the base knows to be due at `expires` has to do at `now`.
    pub(super) fn plan(&self, expires: Nanos, now: Nanos, length: Option<TickLength>) -> Planned {
        let due = self.due.load();
        let (is_known, rounded) = match length {
            // The base keeps the start of the tick before the moment.
            Some(length) => {
                let is_known = length.start(length.floor(before(due))) == expires;
                (is_known, Nanos(expires.0.saturating_add(length.nanos().0)))
            }
            None => (due == expires, expires),
        };
        let scheduled = if is_known { due } else { rounded };
        let mut overruns = 0;
        if self.ever_followed() {
            let locked = self.lock();
            if locked.follows() && is_known && now < due {
                return Planned::Hop(due);
            }
            // Also of a run that was handed out before its course was ended: it is one of its multiples.
            let is_multiple = locked.follows() || is_known && locked.cycle.at == due;
            if is_multiple && locked.cycle.period != Nanos(0) {
                overruns = locked.cycle.overruns;
            }
        }
        Planned::Run { scheduled, overruns }
    }
}

impl Locked<'_> {
    pub(super) fn follows(&self) -> bool {
        self.course.follows()
    }

    pub(super) fn end(&mut self) {
        self.course.follows.store(false);
    }

    /// A run at `at` leads to others, one for each `period`; for a period of 0 it is only far ahead.
    pub(super) fn begin(&mut self, at: Nanos, period: Nanos) {
        *self.cycle = Cycle { period, at, overruns: 0 };
        self.course.follows.store(true);
    }

    /// For its runner, with the timer not pending: when to arm it again after what was `planned`.
    pub(super) fn next(&mut self, planned: Planned, now: Nanos) -> Option<Nanos> {
        if !self.follows() {
            return None;
        }
        if let Planned::Hop(at) = planned {
            return Some(at);
        }
        let Cycle { period, at, .. } = *self.cycle;
        if period == Nanos(0) {
            self.end();
            return None;
        }
        // The first multiple that is ahead of both: a run may have been moved to before its multiple.
        let passed = now.since(at).0 / period.0;
        let next = at.0.saturating_add(period.0.saturating_mul(passed + 1));
        *self.cycle = Cycle { period, at: Nanos(next), overruns: passed };
        Some(Nanos(next))
    }
}

/// What a timer of ticks is armed for, so that it runs at the first tick that is not before `at`: the wheel
/// hands it out at the first one after.
#[inline]
pub(super) const fn before(at: Nanos) -> Nanos {
    Nanos(at.0.saturating_sub(1))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Course, Planned, before};
    use quietcore_core::{Nanos, TickLength};

    const RUN: Planned = Planned::Run { scheduled: Nanos(0), overruns: 0 };

    /// Goal: periods stay multiples of the first, whatever the runs do, and what is skipped is counted.
    /// Method: a period of 10 from 100, runs that end at moments around the multiples.
    #[test]
    fn periods_do_not_drift() {
        for (now, next, skipped) in [
            (90, 110, 0), // moved to before its multiple: that one is over
            (100, 110, 0),
            (101, 110, 0),
            (109, 110, 0),
            (110, 120, 1),
            (119, 120, 1),
            (155, 160, 5),
        ] {
            let course = Course::new();
            let mut locked = course.lock();
            locked.begin(Nanos(100), Nanos(10));
            assert_eq!(locked.next(RUN, Nanos(now)), Some(Nanos(next)), "at {now}");
            assert_eq!(locked.cycle.overruns, skipped, "at {now}");
            drop(locked);
            course.end();
            assert_eq!(course.lock().next(RUN, Nanos(now)), None);
        }
    }

    /// Goal: a run that was handed out before its timer was cancelled still tells what was skipped before it.
    /// Method: a period that skipped five, cancelled between the hand-out and the plan; then an arm for
    /// another moment.
    #[test]
    fn a_cancel_takes_no_overruns_back() {
        let course = Course::new();
        course.lock().begin(Nanos(100), Nanos(10));
        assert_eq!(course.lock().next(RUN, Nanos(155)), Some(Nanos(160)));
        course.due.store(Nanos(160));
        course.end();
        let run = |scheduled, overruns| Planned::Run { scheduled: Nanos(scheduled), overruns };
        assert_eq!(course.plan(Nanos(160), Nanos(161), None), run(160, 5));
        course.due.store(Nanos(170));
        assert_eq!(course.plan(Nanos(170), Nanos(171), None), run(170, 0));
    }

    /// Goal: a moment that the base does not confirm is not believed. Method: what is due against ticks of
    /// the base, of a timer that runs once and of one that is far ahead.
    #[test]
    fn a_plan_believes_the_base() {
        let length = TickLength::default();
        let millis = |count: u64| Nanos(count * 1_000_000);
        let course = Course::new();
        course.due.store(Nanos(5_000_001));
        let expires = length.start(length.floor(before(Nanos(5_000_001))));
        let run = |scheduled| Planned::Run { scheduled, overruns: 0 };
        assert_eq!(course.plan(expires, millis(6), Some(length)), run(Nanos(5_000_001)));
        assert_eq!(course.plan(millis(2), millis(6), Some(length)), run(millis(3)));
        assert_eq!(course.plan(Nanos(7), millis(6), None), run(Nanos(7)));
        course.lock().begin(Nanos(5_000_001), Nanos(0));
        assert_eq!(course.plan(expires, millis(1), Some(length)), Planned::Hop(Nanos(5_000_001)));
        assert_eq!(
            course.plan(millis(2), millis(3), Some(length)),
            run(millis(3)),
            "another arm is under way"
        );
        assert_eq!(course.lock().next(Planned::Hop(millis(5)), millis(1)), Some(millis(5)));
        assert_eq!(course.lock().next(RUN, millis(6)), None);
        assert!(!course.follows(), "it has come to its end");
    }
}
