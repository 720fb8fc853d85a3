//! The books of one timer: what was armed, and what became of it.
//!
//! A period begins with an arm and ends in exactly one of: ran, cancelled, superseded by the next arm. Arm and
//! cancel say whether they ended a period; a run says when it was. Runs of a timer come in the order of its periods and never
//! overlap, so the n-th run ended the n-th period that nothing else ended, whichever thread learned what first. The
//! runtime's own word for a run's deadline is not used.
//!
//! Invariant: `open` holds, in order, what was armed and has not ended as far as its owner knows.

use quietcore_live::Nanos;
use std::collections::VecDeque;

/// What was wrong, and how much was done, over many timers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) armed: u64,
    pub(crate) ran: u64,
    pub(crate) cancelled: u64,
    pub(crate) superseded: u64,
    /// Given up with a period open: its owner dropped the timer.
    pub(crate) dropped: u64,
    /// Ran before its deadline.
    pub(crate) early: u64,
    /// Never ran, although nothing else ended it.
    pub(crate) lost: u64,
    /// Ran, or was said to be pending, without a period to end.
    pub(crate) twice: u64,
    /// The latest run, after its deadline.
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
        self.late_max = self.late_max.max(other.late_max);
    }

    pub(crate) fn is_clean(&self) -> bool {
        (self.early, self.lost, self.twice) == (0, 0, 0)
    }

    /// A run at `now` of what was due at `due`.
    pub(crate) fn ran(&mut self, due: Nanos, now: Nanos) {
        self.ran += 1;
        self.early += u64::from(now < due);
        self.late_max = self.late_max.max(now.since(due));
    }
}

/// Whether a call ended a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Period,
    Nothing,
}

/// The open periods of one timer, each by its deadline.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    open: VecDeque<Nanos>,
}

impl Ledger {
    /// An arm for `deadline`, which ended the period before it or not.
    pub(crate) fn armed(&mut self, deadline: Nanos, ended: Ended, tally: &mut Tally) {
        tally.armed += 1;
        if ended == Ended::Period {
            tally.superseded += 1;
            self.close_last(tally);
        }
        self.open.push_back(deadline);
    }

    /// A cancel that ended a period.
    pub(crate) fn cancelled(&mut self, tally: &mut Tally) {
        tally.cancelled += 1;
        self.close_last(tally);
    }

    fn close_last(&mut self, tally: &mut Tally) {
        if self.open.pop_back().is_none() {
            tally.twice += 1;
        }
    }

    /// A run, in the order of runs.
    pub(crate) fn ran(&mut self, now: Nanos, tally: &mut Tally) {
        match self.open.pop_front() {
            Some(due) => tally.ran(due, now),
            None => tally.twice += 1,
        }
    }

    /// The first deadline that is open.
    pub(crate) fn first(&self) -> Option<Nanos> {
        self.open.front().copied()
    }

    /// Nothing will run any more: whatever is open is lost.
    pub(crate) fn give_up(&mut self, tally: &mut Tally) {
        tally.lost += self.open.len() as u64;
        self.open.clear();
    }

    /// Its owner dropped the timer; a run may be under way. Returns how many runs there may still be.
    pub(crate) fn dropped(&mut self, tally: &mut Tally) -> usize {
        tally.dropped += self.open.len() as u64;
        core::mem::take(&mut self.open).len()
    }
}
