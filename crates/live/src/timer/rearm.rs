//! What follows a run of a timer: nothing, the next period, or the rest of a wait that is longer than the
//! wheel reaches.
//!
//! A timer that runs once pays a load for this. For the others there is a lock, under which the runner
//! decides whether to arm the timer again, and under which other arms and cancels end its periods: so a
//! period that was cancelled while its callback ran does not begin again. Lock order: this one, then those
//! of bases.
//!
//! Periods never drift: each is a multiple of the first, whenever its run came. Multiples that went by while
//! the timer waited or ran are skipped and counted.

use super::sync::{ArmedFor, Follows};
use quietcore_core::{Nanos, TickKind, TickLength, TimerKind};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

#[derive(Debug)]
pub(super) struct Rearm {
    pub(super) due: ArmedFor,
    follows: Follows,
    period: Mutex<Period>,
}

/// What follows, while something does.
#[derive(Clone, Copy, Debug)]
struct Period {
    /// Of the periods that the timer has, or had last; 0 if it never had any.
    length: Nanos,
    /// The multiple, or the moment of a single run that is far ahead, that the timer is armed for.
    at: Nanos,
    /// Multiples that were skipped before that; none of a single run.
    overruns: u64,
}

/// What a runner does with a timer that was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunPlan {
    Run {
        /// What it was armed for; when another arm is under way, to the tick.
        scheduled: Nanos,
        overruns: u64,
    },
    /// Too early, because the wheel does not reach as far: arm it again for this moment.
    Hop(Nanos),
    /// Nothing: it is as early, but another thread has cancelled it or moved it meanwhile.
    Nothing,
    /// Nothing: its callback has released it, and its memory may be freed.
    Released,
}

/// What follows a run, with its lock held.
pub(super) struct RearmGuard<'a> {
    rearm: &'a Rearm,
    period: MutexGuard<'a, Period>,
}

impl Rearm {
    pub(super) fn new() -> Self {
        let period = Period { length: Nanos(0), at: Nanos(0), overruns: 0 };
        Self { due: ArmedFor::new(), follows: Follows::new(), period: Mutex::new(period) }
    }

    /// Whether a run may be followed by another one.
    #[inline]
    pub(super) fn follows(&self) -> bool {
        self.follows.load()
    }

    /// The same, or a run is under way that was handed out while that was true.
    #[inline]
    pub(super) fn ever_followed(&self) -> bool {
        self.follows.ever()
    }

    pub(super) fn lock(&self) -> RearmGuard<'_> {
        RearmGuard { rearm: self, period: self.period.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Ends the periods. Cost: a load, if there are none.
    #[inline]
    pub(super) fn end(&self) {
        if self.follows() {
            self.lock().end();
        }
    }

    /// What a timer is armed for that is due at `expires` by its base, and whether that is known to the
    /// nanosecond; when another arm is under way it is to the tick.
    pub(super) fn moment(&self, expires: Nanos, length: Option<TickLength>) -> (Nanos, bool) {
        let due = self.due.load();
        let (is_known, rounded) = match length {
            // The base keeps the start of the tick before the moment.
            Some(length) => {
                let is_known = length.start(length.floor(TickKind::not_before(due, Nanos(0)))) == expires;
                (is_known, Nanos(expires.0.saturating_add(length.nanos().0)))
            }
            None => (due == expires, expires),
        };
        (if is_known { due } else { rounded }, is_known)
    }

    /// The length of the periods; `None` if no other run follows.
    pub(super) fn period(&self) -> Option<Nanos> {
        let locked = self.follows().then(|| self.lock())?;
        self.follows.repeats().then_some(locked.period.length)
    }

    /// The length of the periods that it has, or had last; `None` if it never had any. Cost: a lock.
    pub(super) fn last_period(&self) -> Option<Nanos> {
        let length = self.lock().period.length;
        (length != Nanos(0)).then_some(length)
    }

    /// Ends the periods where a base's lock is held, and so no other one can be waited for: false, and they
    /// go on, when another thread has it.
    pub(super) fn try_end(&self) -> bool {
        if !self.follows() {
            return true;
        }
        match self.period.try_lock() {
            Ok(period) => RearmGuard { rearm: self, period }.end(),
            Err(TryLockError::Poisoned(period)) => {
                RearmGuard { rearm: self, period: period.into_inner() }.end()
            }
            Err(TryLockError::WouldBlock) => return false,
        }
        true
    }

    /// Called by the runner: what to do with a timer that was due at `expires` by its base. `now` reads the
    /// clock: an older reading could call a timer early that is due.
    pub(super) fn plan(
        &self,
        expires: Nanos,
        now: impl FnOnce() -> Nanos,
        length: Option<TickLength>,
    ) -> RunPlan {
        let (scheduled, is_known) = self.moment(expires, length);
        let mut overruns = 0;
        if self.ever_followed() {
            let mut locked = self.lock();
            if now() < scheduled {
                return if locked.follows() { RunPlan::Hop(scheduled) } else { RunPlan::Nothing };
            }
            // A run that was handed out before its periods were ended is one of them, too.
            let is_multiple = locked.follows() || is_known && locked.period.at == scheduled;
            if is_multiple {
                // This run tells them, and no other one.
                overruns = core::mem::take(&mut locked.period.overruns);
            }
        }
        RunPlan::Run { scheduled, overruns }
    }
}

impl RearmGuard<'_> {
    pub(super) fn follows(&self) -> bool {
        self.rearm.follows()
    }

    pub(super) fn end(&mut self) {
        self.rearm.follows.end();
    }

    /// Lets the run at `at` be followed by one for each period of `length`; 0 stands for a single run that
    /// is far ahead.
    pub(super) fn begin(&mut self, at: Nanos, length: Nanos) {
        self.period.at = at;
        self.period.overruns = 0;
        if length == Nanos(0) {
            self.rearm.follows.wait();
        } else {
            self.period.length = length;
            self.rearm.follows.repeat();
        }
    }

    /// Called by the runner while the timer is not pending: when to arm it again after what was `planned`.
    pub(super) fn next(&mut self, planned: RunPlan, now: Nanos) -> Option<Nanos> {
        match planned {
            _ if !self.follows() => return None,
            RunPlan::Hop(at) => return Some(at),
            RunPlan::Nothing => return None,
            RunPlan::Run { .. } | RunPlan::Released => {}
        }
        let Period { length, at, .. } = *self.period;
        if !self.rearm.follows.repeats() {
            self.end();
            return None;
        }
        // The first multiple that is ahead of both: a run may have been moved to before its multiple.
        let passed = now.since(at).0 / length.0;
        let next = at.0.saturating_add(length.0.saturating_mul(passed + 1));
        *self.period = Period { length, at: Nanos(next), overruns: passed };
        Some(Nanos(next))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Rearm, RunPlan};
    use quietcore_core::{Nanos, TickKind, TickLength, TimerKind};

    const RUN: RunPlan = RunPlan::Run { scheduled: Nanos(0), overruns: 0 };

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
            let rearm = Rearm::new();
            let mut locked = rearm.lock();
            locked.begin(Nanos(100), Nanos(10));
            assert_eq!(locked.next(RUN, Nanos(now)), Some(Nanos(next)), "at {now}");
            assert_eq!(locked.period.overruns, skipped, "at {now}");
            drop(locked);
            rearm.end();
            assert_eq!(rearm.lock().next(RUN, Nanos(now)), None);
        }
    }

    /// Goal: the length of the last periods stays known when they end, and other waits do not change it.
    /// Method: one that never had any; periods, their end, and a wait beyond the wheel's reach.
    #[test]
    fn the_last_periods_are_remembered() {
        let rearm = Rearm::new();
        let lengths = || (rearm.period(), rearm.last_period());
        rearm.lock().begin(Nanos(100), Nanos(0));
        assert_eq!(lengths(), (None, None));
        rearm.lock().begin(Nanos(100), Nanos(10));
        assert_eq!(lengths(), (Some(Nanos(10)), Some(Nanos(10))));
        rearm.lock().begin(Nanos(100), Nanos(0));
        assert_eq!(lengths(), (None, Some(Nanos(10))));
        assert_eq!(rearm.lock().next(RUN, Nanos(100)), None, "a single run has no period");
        rearm.lock().begin(Nanos(100), Nanos(20));
        rearm.end();
        assert_eq!(lengths(), (None, Some(Nanos(20))));
    }

    /// Goal: periods end without waiting for a lock, or it is said that they did not. Method: with the lock
    /// free, and held.
    #[test]
    fn periods_end_without_waiting_or_not() {
        let rearm = Rearm::new();
        assert!(rearm.try_end(), "there are none");
        let mut locked = rearm.lock();
        locked.begin(Nanos(100), Nanos(10));
        assert!(!rearm.try_end() && rearm.follows());
        drop(locked);
        assert!(rearm.try_end() && !rearm.follows());
    }

    /// Goal: what was skipped is told once. Method: the run that tells it is followed by one that was armed
    /// meanwhile, and so by no period; then the periods go on.
    #[test]
    fn what_was_skipped_is_told_once() {
        let rearm = Rearm::new();
        rearm.lock().begin(Nanos(100), Nanos(10));
        assert_eq!(rearm.lock().next(RUN, Nanos(155)), Some(Nanos(160)));
        rearm.due.store(Nanos(160));
        let plan = || rearm.plan(Nanos(160), || Nanos(161), None);
        let run = |overruns| RunPlan::Run { scheduled: Nanos(160), overruns };
        assert_eq!([plan(), plan()], [run(5), run(0)]);
        assert_eq!(rearm.lock().next(RUN, Nanos(161)), Some(Nanos(170)));
    }

    /// Goal: nothing was skipped before the first of new periods. Method: they begin after some that were.
    #[test]
    fn new_periods_skip_nothing() {
        let rearm = Rearm::new();
        rearm.lock().begin(Nanos(100), Nanos(10));
        assert_eq!(rearm.lock().next(RUN, Nanos(155)), Some(Nanos(160)));
        rearm.lock().begin(Nanos(200), Nanos(10));
        rearm.due.store(Nanos(200));
        let run = RunPlan::Run { scheduled: Nanos(200), overruns: 0 };
        assert_eq!(rearm.plan(Nanos(200), || Nanos(200), None), run);
    }

    /// Goal: a run that was handed out before its timer was cancelled still tells what was skipped before it.
    /// Method: a period that skipped five, cancelled between the hand-out and the plan; then an arm for
    /// another moment.
    #[test]
    fn a_cancel_takes_no_overruns_back() {
        let rearm = Rearm::new();
        rearm.lock().begin(Nanos(100), Nanos(10));
        assert_eq!(rearm.lock().next(RUN, Nanos(155)), Some(Nanos(160)));
        rearm.due.store(Nanos(160));
        rearm.end();
        let run = |scheduled, overruns| RunPlan::Run { scheduled: Nanos(scheduled), overruns };
        assert_eq!(rearm.plan(Nanos(160), || Nanos(161), None), run(160, 5));
        rearm.due.store(Nanos(170));
        assert_eq!(rearm.plan(Nanos(170), || Nanos(171), None), run(170, 0));
    }

    /// Goal: a run that was moved to before its multiple tells what was skipped before it. Method: a period
    /// that skipped five, and another moment.
    #[test]
    fn a_moved_run_tells_what_was_skipped() {
        let rearm = Rearm::new();
        rearm.lock().begin(Nanos(100), Nanos(10));
        assert_eq!(rearm.lock().next(RUN, Nanos(155)), Some(Nanos(160)));
        rearm.due.store(Nanos(157));
        let run = RunPlan::Run { scheduled: Nanos(157), overruns: 5 };
        assert_eq!(rearm.plan(Nanos(157), || Nanos(157), None), run);
    }

    /// Goal: a timer that is handed out early waits on, and does not run when its wait was ended by another
    /// thread meanwhile. Method: one that is far ahead; then its wait is ended.
    #[test]
    fn what_is_handed_out_early_does_not_run() {
        let length = TickLength::default();
        let rearm = Rearm::new();
        let due = Nanos(5_000_000);
        rearm.lock().begin(due, Nanos(0));
        rearm.due.store(due);
        let expires = length.start(length.floor(TickKind::not_before(due, Nanos(0))));
        let plan = |now| rearm.plan(expires, || Nanos(now), Some(length));
        let run = RunPlan::Run { scheduled: due, overruns: 0 };
        assert_eq!(plan(4_999_999), RunPlan::Hop(due));
        assert_eq!(plan(5_000_000), run);
        rearm.end();
        assert_eq!(plan(4_999_999), RunPlan::Nothing);
        assert_eq!(plan(5_000_000), run);
    }

    /// Goal: a timer that is moved while it is handed out early does not run before, and keeps a moment when
    /// the move comes to nothing. Method: other moments of an arm that is under way, with a wait that goes on
    /// and with one that was ended; and the arm that comes after it.
    #[test]
    fn what_is_moved_while_it_is_handed_out_early_does_not_run() {
        let length = TickLength::default();
        let millis = |count: u64| Nanos(count * 1_000_000);
        let rearm = Rearm::new();
        rearm.lock().begin(millis(9), Nanos(0));
        let expires = length.start(length.floor(TickKind::not_before(millis(9), Nanos(0))));
        for other in [millis(3), millis(30)] {
            rearm.due.store(other);
            let plan = || rearm.plan(expires, || millis(2), Some(length));
            assert_eq!(plan(), RunPlan::Hop(millis(9)), "the base knows");
            rearm.end();
            assert_eq!(plan(), RunPlan::Nothing);
            rearm.lock().begin(other, Nanos(0));
            assert_eq!(rearm.lock().next(RunPlan::Nothing, millis(2)), None, "that arm is under way");
            assert!(rearm.follows(), "and goes on");
        }
    }

    /// Goal: a moment that the base does not confirm is not believed. Method: what is due against ticks of
    /// the base, of a timer that runs once and of one that is far ahead.
    #[test]
    fn a_plan_believes_the_base() {
        let length = TickLength::default();
        let millis = |count: u64| Nanos(count * 1_000_000);
        let rearm = Rearm::new();
        rearm.due.store(Nanos(5_000_001));
        let expires = length.start(length.floor(TickKind::not_before(Nanos(5_000_001), Nanos(0))));
        let run = |scheduled| RunPlan::Run { scheduled, overruns: 0 };
        assert_eq!(rearm.plan(expires, || millis(6), Some(length)), run(Nanos(5_000_001)));
        assert_eq!(rearm.plan(millis(2), || millis(6), Some(length)), run(millis(3)));
        assert_eq!(rearm.plan(Nanos(7), || millis(6), None), run(Nanos(7)));
        rearm.lock().begin(Nanos(5_000_001), Nanos(0));
        assert_eq!(rearm.plan(expires, || millis(1), Some(length)), RunPlan::Hop(Nanos(5_000_001)));
        assert_eq!(
            rearm.plan(millis(2), || millis(3), Some(length)),
            run(millis(3)),
            "another arm is under way"
        );
        assert_eq!(rearm.lock().next(RunPlan::Hop(millis(5)), millis(1)), Some(millis(5)));
        assert_eq!(rearm.lock().next(RUN, millis(6)), None);
        assert!(!rearm.follows(), "it has come to its end");
    }
}
