//! The replay: every timer of every base, as far as the lines so far tell.
//!
//! Decides what each line does to the state; what a start, a cancel and an expiry are held against is in
//! `starts.rs`, `cancels.rs` and `expiries.rs`. Text without flags (`trace-cmd report`) cannot be replayed;
//! `without_flags.rs` takes it instead.
//!
//! Invariants: a timer is in `armed` exactly while it is in a wheel, collected, or the front of a run. At
//! most `timers_max` timers are armed. Where lines are missing, everything is forgotten: a lost event on one
//! CPU may have cancelled a timer of any other.

use crate::base::{ArmedTimer, BaseName, TakenFrom, TimerBase, TimerBaseKind, WaitingTimer};
use crate::between::Between;
use crate::counts::ReplayCounts;
use crate::mismatch::{Check, MismatchText};
use crate::swapped::{Owed, Swapped};
use crate::tmigr::{HierarchyReplay, Wheels};
use crate::wheel::{PendingTimer, WheelLevels};
use quietcore_core::{CpuId, Nanos};
use quietcore_trace::{Event, Header, IdentityTable, InterruptContext, Migration, MigrationStep, Record};
use quietcore_wheel::Tick;
use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Copy, Debug)]
pub(crate) struct RemovedTimer {
    pub(crate) base: BaseName,
    pub(crate) pending: PendingTimer,
    pub(crate) position: TakenFrom,
}

/// A timer that a softirq took out: the next line tells whether it is to expire.
#[derive(Debug)]
pub(crate) struct TakenTimer {
    pub(crate) out: OutOfWheel,
    pub(crate) line: Owed,
    /// It expires with interrupts off.
    pub(crate) is_irq_safe: bool,
    /// Which other context wrote lines since then.
    pub(crate) between: Option<Between>,
}

/// How much of a taken timer is out of our wheel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OutOfWheel {
    /// All: it was not pending here.
    Unknown,
    /// Nothing yet: if it is to expire, our wheel must hand it out itself.
    Waiting(BaseName),
    Removed(RemovedTimer),
}

/// What is known of one CPU that wrote a line.
#[derive(Debug, Default)]
pub(crate) struct ReplayCpu {
    pub(crate) taken: Option<TakenTimer>,
    /// The base whose bucket it runs, and the line of the run's first expiry.
    pub(crate) running: Option<(BaseName, u64)>,
    /// The latest jiffies that any line had shown up to its last one; what it read since is not earlier.
    shown: Option<Tick>,
    /// Its last line took a pending timer out.
    cancelled: Option<CancelledTimer>,
    /// The thread `ktimers/N` that took the last timer in a softirq, if it was this one.
    pub(crate) thread: Option<i32>,
    /// Other tasks wrote lines since the last expiry of the run.
    pub(crate) is_preempted: bool,
}

impl ReplayCpu {
    /// Whether `record` is of another context than the softirq that took a timer or runs a bucket here.
    fn between(&self, record: &Record<'_>) -> Option<Between> {
        let is_open = self.taken.is_some() || self.running.is_some();
        Between::of(record, self.thread).filter(|_| is_open)
    }

    /// What is open here stays open at a line of `between`.
    fn pass(&mut self, between: Between) {
        if let Some(taken) = &mut self.taken {
            taken.between = Some(between);
        }
        self.is_preempted |= self.running.is_some() && between == Between::Preemption;
    }
}

/// A pending timer that a `timer_cancel` took out: a `mod_timer` may be under way.
#[derive(Clone, Copy, Debug)]
struct CancelledTimer {
    timer: u64,
    base: BaseName,
    /// [`ReplayCpu::shown`] before that line.
    shown_before: Option<Tick>,
}

/// What stood before a line on its CPU.
#[derive(Debug)]
pub(crate) struct LineBefore {
    /// The timer that the line before took out.
    pub(crate) taken: Option<TakenTimer>,
    /// Which context wrote the line, if it came between two lines of a softirq.
    pub(crate) between: Option<Between>,
    /// Nothing: it is the CPU's first line, or its first one after a loss.
    pub(crate) is_first: bool,
}

/// Which of the three events were seen; without them all, the state is not known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SeenEvents {
    pub(crate) cancel: bool,
    pub(crate) expiry: bool,
    pub(crate) bucket_expiry: bool,
    pub(crate) baseclk: bool,
}

#[derive(Debug)]
pub(crate) struct TimerReplay {
    pub(crate) levels: WheelLevels,
    pub(crate) hz: Option<u32>,
    /// 2 or 3; decided by the kernel's release, or by the first start.
    pub(crate) bases_per_cpu: Option<u32>,
    pub(crate) bases: BTreeMap<BaseName, TimerBase>,
    pub(crate) armed: HashMap<u64, ArmedTimer>,
    pub(crate) timers_max: usize,
    pub(crate) cpus: BTreeMap<CpuId, ReplayCpu>,
    pub(crate) swapped: Swapped,
    /// In place of bases, for text without flags: the bucket expiry of each timer.
    pub(crate) due: Option<IdentityTable<u64>>,
    /// The latest jiffies that a line showed.
    shown: Option<Tick>,
    pub(crate) begins_at_boot: Option<bool>,
    /// Only CPU 0 wrote lines so far.
    pub(crate) is_alone: bool,
    /// Lines are missing, here or before.
    pub(crate) is_lossy: bool,
    /// `timers_max` was reached.
    pub(crate) is_full: bool,
    pub(crate) seen: SeenEvents,
    pub(crate) counts: ReplayCounts,
    /// Groups, walks and queues; asks the bases.
    pub(crate) hierarchy: HierarchyReplay,
}

impl TimerReplay {
    pub(crate) fn new(header: &Header, timers_max: usize) -> Self {
        let two_or_three = |has_three: bool| if has_three { 3 } else { 2 };
        Self {
            levels: WheelLevels::of(header.hz),
            hz: header.hz,
            bases_per_cpu: header.kernel.as_ref().map(|kernel| two_or_three(kernel.at_least(6, 9))),
            bases: BTreeMap::new(),
            armed: HashMap::new(),
            timers_max,
            cpus: BTreeMap::new(),
            swapped: Swapped::default(),
            due: None,
            shown: None,
            begins_at_boot: None,
            is_alone: true,
            is_lossy: header.lost_events > 0,
            is_full: false,
            seen: SeenEvents::default(),
            counts: ReplayCounts::default(),
            hierarchy: HierarchyReplay::new(header, 1_000_000_000 / u64::from(header.hz.unwrap_or(1000))),
        }
    }

    pub(crate) fn take(&mut self, record: &Record<'_>) {
        if let Event::Lost { .. } = record.event {
            return self.forget();
        }
        let is_settled = !self.is_unsettled();
        let wheels = &mut Wheels { bases: &mut self.bases, armed: &self.armed, is_settled };
        self.hierarchy.take(record, wheels);
        let is_ours = matches!(
            record.event,
            Event::TimerStart(_) | Event::TimerCancel { .. } | Event::TimerExpireEntry { .. }
        );
        if is_ours && record.context.is_none() && self.due.is_none() {
            self.forget();
            self.due = Some(IdentityTable::new(self.timers_max));
        }
        if self.due.is_some() {
            return self.take_without_flags(record);
        }
        self.is_alone &= record.cpu == CpuId::default();
        self.settle_swapped(record.at);
        let before = self.enter(record);
        let cancelled = self.cancelled(record);
        match &record.event {
            Event::TimerStart(start) => self.take_start(record, start),
            Event::TimerCancel { timer } => self.take_cancel(record, *timer, &before),
            Event::TimerExpireEntry { .. } => self.take_expiry(record, before),
            event => self.take_other(record.cpu, event),
        }
        let cpu = self.cpus.entry(record.cpu).or_default();
        (cpu.shown, cpu.cancelled) = (self.shown, cancelled);
    }

    /// The pending timer that the line takes out.
    fn cancelled(&self, record: &Record<'_>) -> Option<CancelledTimer> {
        let Event::TimerCancel { timer } = record.event else { return None };
        let shown_before = self.cpus.get(&record.cpu)?.shown;
        self.armed.get(&timer).map(|armed| CancelledTimer { timer, base: armed.base, shown_before })
    }

    /// Jiffies when `cpu` forwarded `base` to start `timer` were these or later: `mod_timer` forwards the
    /// base of a pending timer before it takes the timer out, any other base after that, and writes no other
    /// line until the start's.
    pub(crate) fn shown_before_forward(&self, cpu: CpuId, timer: u64, base: BaseName) -> Option<Tick> {
        let cpu = self.cpus.get(&cpu)?;
        match cpu.cancelled.filter(|cancelled| cancelled.timer == timer && cancelled.base == base) {
            Some(cancelled) => cancelled.shown_before,
            None => cpu.shown,
        }
    }

    /// Events that show that the idle code looked at a CPU's bases: their next expiry is the true one.
    fn take_other(&mut self, cpu: CpuId, event: &Event<'_>) {
        use MigrationStep::{Idle, NewTimer, NewTimerIdle};
        let looked_at = match *event {
            Event::Migration(Migration::Cpu { step: Idle | NewTimer | NewTimerIdle, cpu, .. })
            | Event::TimerBaseIdle { is_idle: true, cpu } => cpu,
            Event::TickStop { .. } if self.bases_per_cpu == Some(2) => cpu,
            _ => return,
        };
        for kind in [TimerBaseKind::Global, TimerBaseKind::Local] {
            let name = BaseName { cpu: looked_at, kind };
            self.settle_taken(name);
            if let Some(base) = self.bases.get_mut(&name) {
                base.look();
            }
        }
    }

    /// What every line means for its CPU: it says what the line before it was, and may end a run.
    fn enter(&mut self, record: &Record<'_>) -> LineBefore {
        let is_first = !self.cpus.contains_key(&record.cpu);
        let cpu = self.cpus.entry(record.cpu).or_default();
        let in_interrupt =
            !matches!(record.context, Some(InterruptContext::Task | InterruptContext::Softirq));
        let between = cpu.between(record);
        let taken = cpu.taken.take_if(|taken| match between {
            Some(between) => taken.is_irq_safe || between.shows_deletion(record),
            None => !in_interrupt,
        });
        if let Some(between) = between {
            cpu.pass(between);
        }
        if let Some(taken) = &taken {
            let expires = match record.event {
                Event::TimerExpireEntry { timer, .. } => between.is_none() && timer == taken.line.timer,
                _ => false,
            };
            match taken.out {
                OutOfWheel::Waiting(name) if !expires => self.settle_taken(name),
                OutOfWheel::Unknown if !matches!(record.event, Event::TimerExpireEntry { .. }) => {
                    self.swapped.add(taken.line);
                }
                _ => {}
            }
        }
        if between.is_none()
            && matches!(record.context, Some(InterruptContext::Task | InterruptContext::Interrupt))
        {
            self.end_run(record.cpu, record.line, None);
        }
        LineBefore { taken: taken.filter(|_| between.is_none()), between, is_first }
    }

    /// A line that had to come with the same time stamp did not come.
    fn settle_swapped(&mut self, at: Nanos) {
        for owed in self.swapped.overdue(at) {
            let (expected, recorded, why) = match owed.cancels {
                1.. => (
                    "a timer_cancel with the same time stamp",
                    "none",
                    "the timer was pending when it was started again",
                ),
                _ if self.begins_at_boot == Some(true) && !self.is_lossy => {
                    ("a pending timer", "timer_cancel", "the timer is not pending")
                }
                _ => {
                    self.counts.notes.cancel_unseen += 1;
                    continue;
                }
            };
            self.counts.mismatch(owed.line, Check::TimerCancel, || MismatchText {
                event: format!("timer {:x}", owed.timer),
                expected: expected.to_owned(),
                recorded: recorded.to_owned(),
                why,
            });
        }
    }

    /// A line shows `jiffies`.
    pub(crate) fn show(&mut self, jiffies: Tick) {
        if self.shown.is_none_or(|shown| shown.is_before(jiffies)) {
            self.shown = Some(jiffies);
        }
    }

    /// Whether a base may be in another state than the replay has it.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.is_lossy || !self.seen.cancel || !self.seen.expiry
    }

    /// The base `name`; a new one is empty.
    pub(crate) fn base(&mut self, name: BaseName, jiffies: Tick) -> &mut TimerBase {
        let levels = self.levels;
        self.bases.entry(name).or_insert_with(|| TimerBase::new(levels, jiffies))
    }

    /// Takes `timer` out of wherever it is; `None` when it is not pending.
    pub(crate) fn take_out(&mut self, timer: u64) -> Option<RemovedTimer> {
        let ArmedTimer { base: name, key } = self.armed.remove(&timer)?;
        self.settle_taken(name);
        let (pending, position) = self.bases.get_mut(&name)?.take_out(key, timer)?;
        Some(RemovedTimer { base: name, pending, position })
    }

    /// Before anything else happens to the base `name`: a timer that a softirq took out of it goes.
    pub(crate) fn settle_taken(&mut self, name: BaseName) {
        let Some(base) = self.bases.get_mut(&name) else { return };
        let Some(WaitingTimer { key, timer, cpu }) = base.waiting.take() else { return };
        let Some((pending, position)) = base.take_out(key, timer) else { return };
        if let Some(taken) = self.cpus.get_mut(&cpu).and_then(|cpu| cpu.taken.as_mut()) {
            taken.out = OutOfWheel::Removed(RemovedTimer { base: name, pending, position });
        }
    }

    /// Lines are missing: what was known is not known any more.
    pub(crate) fn forget(&mut self) {
        self.counts.notes.forgotten += self.armed.len() as u64;
        // New ones, not cleared ones: clearing costs as much as a table was ever large.
        self.armed = HashMap::new();
        self.bases = BTreeMap::new();
        self.cpus = BTreeMap::new();
        self.swapped.forget();
        self.due = self.due.take().map(|_| IdentityTable::new(self.timers_max));
        self.is_lossy = true;
        self.hierarchy.forget();
    }
}
