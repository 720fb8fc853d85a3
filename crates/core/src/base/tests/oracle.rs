//! What must be true of timers, kept in plain lists: the oracle of the random scripts.
//!
//! It knows of each timer whether it is pending, for what and where, and whether it runs; of each base who
//! holds its token and when it was last looked at. It knows nothing of wheels, buckets, runs or words.
//! Where the bases have a choice (which base a re-arm that stays in its bucket ends in) it says what is
//! allowed and then takes what was chosen.

use super::super::arm::ArmOutcome;
use super::super::{BaseId, BaseKind};
use crate::CpuId;
use alloc::vec::Vec;

/// One pending period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    /// What it was armed for: ticks, or nanoseconds of an exact timer.
    pub(super) expires: u64,
    /// The base it is pending in.
    pub(super) base: BaseId,
    /// From here on it may not be pending after everything was run; in the unit of `expires`.
    pub(super) latest: u64,
}

/// A timer.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) period: Option<Period>,
    /// Where it runs.
    pub(super) runs_on: Option<BaseId>,
    pub(super) is_shut_down: bool,
    pub(super) is_exact: bool,
    /// ArmOutcome with `Tick` precision.
    pub(super) is_precise: bool,
    /// It never counts as running.
    pub(super) is_detached: bool,
    pub(super) armed: u64,
    pub(super) ended: u64,
}

/// A machine of timers.
#[derive(Debug)]
pub(super) struct Oracle {
    pub(super) timers: Vec<Known>,
    /// Of each CPU that is offline: who has its timers.
    pub(super) adopters: Vec<Option<u16>>,
    /// Of each base, by CPU and kind: the tick up to which its clock has come at least.
    pub(super) clocks: Vec<u64>,
    /// The present tick. A base's clock is at most one ahead of it.
    pub(super) now: u64,
}

impl Oracle {
    pub(super) fn new(timers: Vec<Known>, cpu_count: u16) -> Self {
        let cpus = usize::from(cpu_count);
        Self {
            timers,
            adopters: alloc::vec![None; cpus],
            clocks: alloc::vec![0; cpus * BaseKind::ALL.len()],
            now: 0,
        }
    }

    pub(super) fn clock(&mut self, base: BaseId) -> &mut u64 {
        &mut self.clocks[base.cpu.index() * BaseKind::ALL.len() + base.kind.index()]
    }

    /// Where an arm for `onto` goes.
    pub(super) fn open(&self, mut onto: BaseId) -> BaseId {
        while let Some(adopter) = self.adopters[onto.cpu.index()] {
            onto.cpu = CpuId(adopter);
        }
        onto
    }

    /// How late a timer may be: a tick, or of a coarse one an eighth of its delay, counted from the clock.
    fn latest(&mut self, timer: usize, expires: u64, base: BaseId) -> u64 {
        if self.timers[timer].is_exact {
            return expires;
        }
        let delay = expires.saturating_sub(*self.clock(base));
        let granule = if self.timers[timer].is_precise { 1 } else { (delay / 7).max(1) };
        expires.max(self.now + 1) + granule
    }

    /// An arm that had an effect unless the timer is shut down.
    pub(super) fn arm(&mut self, timer: usize, expires: u64, onto: BaseId, armed: ArmOutcome) {
        let known = self.timers[timer].clone();
        assert_eq!(armed.is_refused, known.is_shut_down, "timer {timer}");
        assert_eq!(armed.was_pending, known.period.is_some(), "timer {timer} was pending: {known:?}");
        if known.is_shut_down {
            return;
        }
        let wanted = self.open(onto);
        match (known.runs_on, known.period) {
            (Some(base), _) => assert_eq!(armed.base, base, "timer {timer} runs there"),
            (None, Some(period)) if armed.base == period.base => {
                let may_stay = period.base == wanted
                    || (period.base.kind == wanted.kind && wanted.kind != BaseKind::Local)
                    || (period.base.kind.is_pullable() && wanted.kind.is_pullable());
                assert!(may_stay, "timer {timer} stays on {} instead of {wanted}", period.base);
            }
            _ => assert_eq!(armed.base, wanted, "timer {timer}"),
        }
        let mut latest = self.latest(timer, expires, armed.base);
        if let Some(period) = known.period.filter(|period| period.base == armed.base) {
            // In the same bucket it keeps the lateness that it had.
            latest = latest.max(expires + (period.latest - period.expires.min(period.latest)));
        }
        let known = &mut self.timers[timer];
        known.ended += u64::from(armed.was_pending);
        known.armed += 1;
        known.period = Some(Period { expires, base: armed.base, latest });
    }

    /// A pending timer goes to another base.
    pub(super) fn transfer(&mut self, timer: usize, base: BaseId) {
        let Some(period) = self.timers[timer].period else { panic!("timer {timer} is idle") };
        let latest = self.latest(timer, period.expires, base).max(period.latest);
        self.timers[timer].period = Some(Period { base, latest, ..period });
    }

    pub(super) fn end_period(&mut self, timer: usize) -> bool {
        let known = &mut self.timers[timer];
        known.ended += u64::from(known.period.is_some());
        known.period.take().is_some()
    }

    /// It was handed out from `base` at tick `now`, `nanos`.
    pub(super) fn begin(&mut self, timer: usize, expires: u64, base: BaseId, now: (u64, u64)) {
        let known = &mut self.timers[timer];
        let period = known.period.take().unwrap_or_else(|| panic!("timer {timer} ran and was not pending"));
        assert_eq!((period.expires, period.base), (expires, base), "timer {timer}");
        let is_due = if known.is_exact { now.1 >= expires } else { now.0 > expires };
        assert!(is_due, "timer {timer} for {expires} ran early at {now:?}");
        assert_eq!(known.runs_on, None, "timer {timer} is concurrent with itself");
        known.runs_on = (!known.is_detached).then_some(base);
        known.ended += 1;
    }

    /// Its run ended. Nothing could run it before, so it is not late before now.
    pub(super) fn end_run(&mut self, timer: usize, nanos: u64) {
        let now = if self.timers[timer].is_exact { nanos } else { self.now };
        let known = &mut self.timers[timer];
        if known.is_detached {
            return;
        }
        known.runs_on = None;
        if let Some(period) = &mut known.period {
            period.latest = period.latest.max(now);
        }
    }

    /// Pending timers of `base` that nothing prevents from running.
    pub(super) fn runnable(&self, base: BaseId) -> impl Iterator<Item = (usize, &Known, Period)> {
        self.timers.iter().enumerate().filter_map(move |(number, known)| {
            let period = known.period.filter(|period| period.base == base && known.runs_on.is_none())?;
            Some((number, known, period))
        })
    }

    /// Each pending period ended in exactly one way, or is pending.
    pub(super) fn check(&self) {
        for (number, known) in self.timers.iter().enumerate() {
            let pending = u64::from(known.period.is_some());
            assert_eq!(known.armed, known.ended + pending, "timer {number}: {known:?}");
        }
    }
}
