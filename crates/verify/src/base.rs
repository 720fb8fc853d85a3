//! One timer base of one CPU: its wheel, the clocks it can have, and the bucket that is being run.
//!
//! The kernel keeps a base's next expiry and computes it anew only when it must. A cancel that empties the
//! first bucket leaves the old value standing until the idle code looks at the base or the softirq runs the
//! empty bucket, and neither writes an event. So a recording leaves open whether the next expiry is the
//! wheel's own or one of `emptied`; that is all it leaves open.
//!
//! Invariants: `emptied` holds bucket expiries that were the first until a cancel emptied the bucket, in
//! ascending order, none before the clock. Of a run, `front` and what the wheel has collected are the timers
//! still to expire, `front` first.
//!
//! Source: Linux 6.12, kernel/time/timer.c, `forward_timer_base`, `get_next_timer_interrupt`, `__run_timers`.

use crate::class::ClockClass;
use crate::wheel::{BaseWheel, PendingTimer, WheelLevels};
use quietcore_core::CpuId;
use quietcore_wheel::{SlotKey, Tick};
use std::fmt;

/// So many emptied buckets are remembered: every bucket of the wheel.
const EMPTIED_MAX: usize = 9 * 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TimerBaseKind {
    /// Unpinned timers; up to 6.8 the pinned ones as well.
    Global,
    /// Pinned timers, from 6.9.
    Local,
    Deferrable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BaseName {
    pub(crate) cpu: CpuId,
    pub(crate) kind: TimerBaseKind,
}

impl fmt::Display for BaseName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            TimerBaseKind::Global => "global",
            TimerBaseKind::Local => "local",
            TimerBaseKind::Deferrable => "deferrable",
        };
        write!(out, "{kind} base of CPU {}", self.cpu)
    }
}

/// Where a pending timer is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArmedTimer {
    pub(crate) base: BaseName,
    pub(crate) key: SlotKey,
}

/// A clock that a base can have, and why it is not jiffies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PossibleClock {
    pub(crate) at: Tick,
    /// `None`: it is jiffies.
    pub(crate) class: Option<ClockClass>,
}

/// A bucket expiry that a CPU is running.
#[derive(Debug)]
pub(crate) struct BucketRun {
    pub(crate) cpu: CpuId,
    /// The line of its first expiry.
    pub(crate) line: u64,
    /// The buckets it runs, in jiffies.
    pub(crate) expiry: Tick,
    /// The first of the collected timers that were not taken out yet, if it was looked at.
    front: Option<PendingTimer>,
    /// A bucket that was due when the last timer of this run expired.
    pub(crate) more: Option<Tick>,
}

/// A timer that a softirq took out, and that is still in its bucket here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingTimer {
    pub(crate) key: SlotKey,
    pub(crate) timer: u64,
    /// Whose softirq.
    pub(crate) cpu: CpuId,
}

/// Where a timer was when it was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakenFrom {
    /// In a bucket, with the base's next expiry at that moment.
    Bucket { next_expiry: Option<Tick> },
    /// Collected, and the next to expire.
    Front,
    /// Collected, and `front` is to expire before it.
    Behind { front: u64 },
}

#[derive(Debug)]
pub(crate) struct TimerBase {
    pub(crate) wheel: BaseWheel,
    emptied: Vec<Tick>,
    pub(crate) run: Option<BucketRun>,
    pub(crate) waiting: Option<WaitingTimer>,
    /// Timers armed at boot, before a second CPU wrote a line (see `boot_gap` in `starts.rs`).
    pub(crate) early: Vec<u64>,
}

impl TimerBase {
    /// An empty base that is first heard of at `jiffies`.
    pub(crate) fn new(levels: WheelLevels, jiffies: Tick) -> Self {
        let wheel = BaseWheel::new(levels, jiffies);
        Self { wheel, emptied: Vec::new(), run: None, waiting: None, early: Vec::new() }
    }

    /// The clocks that the base can have when it is forwarded at `jiffies`, the likeliest first.
    pub(crate) fn clocks(&mut self, jiffies: Tick) -> Vec<PossibleClock> {
        let clock = self.wheel.clock();
        if jiffies.is_before(clock) {
            // Its bucket of this jiffy was run: a run leaves the clock one ahead.
            return vec![PossibleClock { at: clock, class: Some(ClockClass::AheadRun) }];
        }
        // Forwarding never passes a bucket that is not run.
        let due = self.wheel.next_expiry().filter(|first| first.is_before(jiffies));
        let mut clocks = vec![match due {
            Some(first) => PossibleClock { at: first, class: Some(ClockClass::BehindDue) },
            None => PossibleClock { at: jiffies, class: None },
        }];
        for &expiry in &self.emptied {
            if expiry.is_before(jiffies) {
                clocks.push(PossibleClock { at: expiry, class: Some(ClockClass::BehindDeleted) });
            } else if expiry == jiffies {
                // Due now: not run yet (the clock above), or run already.
                clocks.push(PossibleClock { at: jiffies.plus(1), class: Some(ClockClass::AheadEmpty) });
            }
        }
        clocks
    }

    /// Takes the clock on: forwarded at `jiffies`, it was one of `kept`.
    pub(crate) fn settle(&mut self, jiffies: Tick, kept: &[PossibleClock]) {
        let Some(first) = kept.iter().map(|clock| clock.at).reduce(earlier) else { return };
        self.emptied.retain(|expiry| {
            if jiffies.is_before(*expiry) {
                // Not due: it shows only in a base that was not held back before it.
                kept.iter().any(|clock| !clock.at.is_before(jiffies))
            } else {
                kept.iter().any(|clock| clock.at == *expiry)
            }
        });
        self.wheel.forward(first);
    }

    /// Arms a timer; an earlier bucket than the next expiry becomes it, so that old ones are forgotten.
    pub(crate) fn arm(&mut self, expires: Tick, pending: PendingTimer) -> SlotKey {
        self.emptied.retain(|expiry| expiry.is_before(pending.place.expiry));
        self.wheel.arm(expires, pending)
    }

    /// Whether a run that begins now begins with the timer's bucket.
    pub(crate) fn is_in_first_bucket(&mut self, key: SlotKey) -> bool {
        let expiry = self.wheel.get(key).map(|pending| pending.place.expiry);
        expiry.is_some() && expiry == self.wheel.next_expiry()
    }

    /// Takes a timer out of its bucket, or out of those that are to expire.
    pub(crate) fn take_out(&mut self, key: SlotKey, timer: u64) -> Option<(PendingTimer, TakenFrom)> {
        let front = self.front().map(|front| front.timer);
        if front == Some(timer) {
            let pending = self.run.as_mut()?.front.take()?;
            return Some((pending, TakenFrom::Front));
        }
        let before = self.wheel.next_expiry();
        let pending = self.wheel.cancel(key)?;
        if let (Some(front), Some(run)) = (front, &self.run)
            && pending.place.expiry == run.expiry
        {
            return Some((pending, TakenFrom::Behind { front }));
        }
        let emptied = before.filter(|_| self.wheel.next_expiry() != before);
        if let Some(expiry) = emptied {
            self.emptied.truncate(EMPTIED_MAX - 1);
            self.emptied.push(expiry);
        }
        Some((pending, TakenFrom::Bucket { next_expiry: before }))
    }

    /// The base was looked at: its next expiry is the wheel's own.
    pub(crate) fn look(&mut self) {
        self.emptied.clear();
    }

    /// The tick `expiry` is run: its buckets are collected, and the clock is one past it.
    pub(crate) fn collect(&mut self, run: BucketRun) {
        let expiry = run.expiry;
        if self.wheel.next_expiry() == Some(expiry) {
            self.wheel.collect(expiry);
        } else {
            self.wheel.forward(expiry.plus(1)); // its only timer was taken out already
        }
        self.emptied.clear();
        self.run = Some(run);
    }

    /// An empty run at `line`.
    pub(crate) fn run(cpu: CpuId, line: u64, expiry: Tick) -> BucketRun {
        BucketRun { cpu, line, expiry, front: None, more: None }
    }

    /// The next timer of the run, which stays to be taken out.
    pub(crate) fn front(&mut self) -> Option<&PendingTimer> {
        let run = self.run.as_mut()?;
        if run.front.is_none() {
            run.front = self.wheel.pop_collected();
        }
        run.front.as_ref()
    }

    /// A timer of the run expired at `now`: what else is due when it was the last.
    pub(crate) fn note_more(&mut self, now: Tick) {
        if self.front().is_some() {
            return;
        }
        let due = self.wheel.next_expiry().filter(|first| !now.is_before(*first));
        if let Some(run) = &mut self.run {
            run.more = due;
        }
    }

    /// Ends the run: the next timer that should have expired and did not.
    pub(crate) fn pop_left(&mut self) -> Option<PendingTimer> {
        self.front()?;
        self.run.as_mut()?.front.take()
    }
}

fn earlier(one: Tick, other: Tick) -> Tick {
    if other.is_before(one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::{ClockClass, PossibleClock, TakenFrom, TimerBase};
    use crate::wheel::{PendingTimer, WheelLevels};
    use quietcore_core::CpuId;
    use quietcore_wheel::{SlotKey, Tick};

    fn arm(base: &mut TimerBase, timer: u64, expires: u64) -> SlotKey {
        let place = base.wheel.place(Tick(expires));
        base.arm(Tick(expires), PendingTimer { timer, place, is_early: false, is_irq_safe: false })
    }

    fn clocks(base: &mut TimerBase, jiffies: u64) -> Vec<(u64, Option<ClockClass>)> {
        base.clocks(Tick(jiffies)).into_iter().map(|clock| (clock.at.0, clock.class)).collect()
    }

    /// Goal: which clocks are possible, before, at and after each bucket. Method: buckets due at 105 and 110.
    #[test]
    fn a_due_bucket_holds_the_clock_back() {
        let mut base = TimerBase::new(WheelLevels::Nine, Tick(100));
        arm(&mut base, 1, 104);
        let first = arm(&mut base, 2, 109);
        assert_eq!(clocks(&mut base, 105), [(105, None)], "due now");
        assert_eq!(clocks(&mut base, 120), [(105, Some(ClockClass::BehindDue))]);
        base.take_out(first, 2).expect("pending");
        assert_eq!(clocks(&mut base, 120), [(105, Some(ClockClass::BehindDue))], "it was not the first");
    }

    /// Goal: an emptied first bucket stays possible until the idle code looked. Method: each way out of it.
    #[test]
    fn an_emptied_bucket_stays_possible_until_somebody_looks() {
        let emptied = || {
            let mut base = TimerBase::new(WheelLevels::Nine, Tick(100));
            let key = arm(&mut base, 1, 104);
            base.take_out(key, 1).expect("pending");
            base
        };
        assert_eq!(clocks(&mut emptied(), 104), [(104, None)], "not due");
        assert_eq!(clocks(&mut emptied(), 105), [(105, None), (106, Some(ClockClass::AheadEmpty))]);
        assert_eq!(clocks(&mut emptied(), 106), [(106, None), (105, Some(ClockClass::BehindDeleted))]);
        let mut looked_at = emptied();
        looked_at.look();
        assert_eq!(clocks(&mut looked_at, 106), [(106, None)]);
        let mut earlier_armed = emptied();
        arm(&mut earlier_armed, 2, 102);
        assert_eq!(clocks(&mut earlier_armed, 106), [(103, Some(ClockClass::BehindDue))]);
        let mut settled = emptied();
        settled.settle(Tick(106), &[PossibleClock { at: Tick(106), class: None }]);
        assert_eq!(clocks(&mut settled, 107), [(107, None)]);
    }

    /// Goal: a run hands its timers out in order, and its clock is one ahead. Method: two of one bucket.
    #[test]
    fn a_run_knows_what_comes_next() {
        let mut base = TimerBase::new(WheelLevels::Nine, Tick(100));
        let [first, second, third] = [1, 2, 3].map(|timer| arm(&mut base, timer, 104));
        let (_, position) = base.take_out(third, 3).expect("pending");
        assert_eq!(position, TakenFrom::Bucket { next_expiry: Some(Tick(105)) });
        let cpu = CpuId::new(0).expect("a CPU");
        base.collect(TimerBase::run(cpu, 1, Tick(105)));
        assert_eq!(clocks(&mut base, 105), [(106, Some(ClockClass::AheadRun))]);
        assert_eq!(base.take_out(first, 1).expect("pending").1, TakenFrom::Behind { front: 2 });
        assert_eq!(base.take_out(second, 2).expect("pending").1, TakenFrom::Front);
        assert!(base.pop_left().is_none());
    }
}
