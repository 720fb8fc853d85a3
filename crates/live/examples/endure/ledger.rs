//! The books of one timer: what was armed, and what became of it.
//!
//! A period begins with an arm and ends in exactly one of: ran, cancelled, superseded by the next arm. Arm
//! and cancel say whether they ended a period; a run says when it was. Runs of a timer come in the order of
//! its periods and never overlap, so the n-th run ended the n-th period that nothing else ended, whichever
//! thread learned what first. The runtime's own word for a run's deadline is not used.
//!
//! Invariant: `open` holds, in order, what was armed and has not ended as far as its owner knows.

use quietcore_live::Nanos;
use std::collections::{BTreeMap, VecDeque};

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Ran before its deadline.
    Early,
    /// Never ran, although nothing else ended it.
    Lost,
    /// Ran, or was said to be pending, without a period to end.
    Twice,
}

/// What was wrong, and how much was done, over many timers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) armed: u64,
    pub(crate) ran: u64,
    pub(crate) cancelled: u64,
    pub(crate) superseded: u64,
    /// Given up by its owner, who dropped the timer.
    pub(crate) dropped: u64,
    pub(crate) early: u64,
    pub(crate) lost: u64,
    pub(crate) twice: u64,
    /// How each of these was noticed, and how often.
    pub(crate) noticed: BTreeMap<&'static str, u64>,
    /// The latest run of a callback, after its deadline.
    pub(crate) late_max: Nanos,
}

impl Tally {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.armed += other.armed;
        self.ran += other.ran;
        self.cancelled += other.cancelled;
        self.superseded += other.superseded;
        self.dropped += other.dropped;
        self.early += other.early;
        self.lost += other.lost;
        self.twice += other.twice;
        for (how, count) in &other.noticed {
            *self.noticed.entry(how).or_default() += count;
        }
        self.late_max = self.late_max.max(other.late_max);
    }

    /// Something that was due at `due` had happened by `now`.
    pub(crate) fn ran(&mut self, due: Nanos, now: Nanos) {
        self.ran += 1;
        self.fault(Fault::Early, u64::from(now < due), "ran before it was due");
    }

    /// That many faults; none is nothing.
    pub(crate) fn fault(&mut self, fault: Fault, count: u64, how: &'static str) {
        if count == 0 {
            return;
        }
        *match fault {
            Fault::Early => &mut self.early,
            Fault::Lost => &mut self.lost,
            Fault::Twice => &mut self.twice,
        } += count;
        *self.noticed.entry(how).or_default() += count;
    }
}

/// What a call did with the period before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// It was pending.
    Pending,
    /// There was none, as far as the base knows; a run of it may be under way.
    None,
}

impl From<bool> for Before {
    fn from(was_pending: bool) -> Self {
        if was_pending { Self::Pending } else { Self::None }
    }
}

/// The open periods of one timer, each by its deadline.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    open: VecDeque<Nanos>,
}

impl Ledger {
    /// An arm for `deadline`.
    pub(crate) fn armed(&mut self, deadline: Nanos, before: Before, tally: &mut Tally) {
        if before == Before::Pending {
            tally.superseded += 1;
            let _ = self.close_last(tally);
        }
        tally.armed += 1;
        self.open.push_back(deadline);
    }

    /// An arm for `deadline`, or for what was pending before that.
    pub(crate) fn reduced(&mut self, deadline: Nanos, before: Before, tally: &mut Tally) {
        if before == Before::Pending {
            let old = self.close_last(tally);
            self.open.push_back(old.map_or(deadline, |old| old.min(deadline)));
        } else {
            tally.armed += 1;
            self.open.push_back(deadline);
        }
    }

    /// An arm for `deadline`, if something was pending.
    pub(crate) fn modified(&mut self, deadline: Nanos, before: Before, tally: &mut Tally) {
        if before == Before::Pending {
            self.armed(deadline, before, tally);
        }
    }

    pub(crate) fn cancelled(&mut self, before: Before, tally: &mut Tally) {
        if before == Before::Pending {
            tally.cancelled += 1;
            let _ = self.close_last(tally);
        }
    }

    fn close_last(&mut self, tally: &mut Tally) -> Option<Nanos> {
        let last = self.open.pop_back();
        tally.fault(Fault::Twice, u64::from(last.is_none()), "callback: pending, but it had ended");
        last
    }

    /// A run, in the order of runs.
    pub(crate) fn ran(&mut self, now: Nanos, tally: &mut Tally) {
        match self.open.pop_front() {
            Some(due) => {
                tally.ran(due, now);
                tally.late_max = tally.late_max.max(now.since(due));
            }
            None => tally.fault(Fault::Twice, 1, "callback: ran, but it had ended"),
        }
    }

    /// The first deadline that is open.
    pub(crate) fn first(&self) -> Option<Nanos> {
        self.open.front().copied()
    }

    pub(crate) fn open(&self) -> usize {
        self.open.len()
    }

    /// Nothing will run any more: whatever is open is lost.
    pub(crate) fn give_up(&mut self, how: &'static str, tally: &mut Tally) {
        tally.fault(Fault::Lost, self.open.len() as u64, how);
        self.open.clear();
    }
}
