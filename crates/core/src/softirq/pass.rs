//! One round of softirqs: how many passes, and when the rest is left to ksoftirqd.
//!
//! A pass takes what is pending and runs it in ascending order; what is raised meanwhile is for the next
//! pass. There is another one only if something is pending, time and passes are left, and nothing more urgent
//! waits. The first pass always takes place: a round that did nothing would be called again at once.
//!
//! Source: Linux 6.12, kernel/softirq.c (`handle_softirqs`). Deviation: 2 ms are 2 ms, not up to one tick.

use super::VectorSet;
use crate::Nanos;

/// What a round may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Passes in all, at least 1.
    pub passes: u32,
    /// No pass begins after this, in ns.
    pub time: Nanos,
}

impl Default for Budget {
    /// 10 passes, 2 ms.
    fn default() -> Self {
        Self { passes: 10, time: Nanos(2_000_000) }
    }
}

/// Whose thread runs a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// The CPU's own, between two pieces of work.
    Lane,
    /// Its companion, at a normal priority: for what may leave the lane.
    Ksoftirqd,
}

/// What comes next in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "what is not run has to be left to somebody"]
pub enum Step {
    /// These, in ascending order; they are not pending any more.
    Run(VectorSet),
    /// The round is over.
    End {
        /// What is still pending. What of it [may move](VectorSet::MOVABLE) is for ksoftirqd, which has to be
        /// woken if there is any; the rest is for the lane's next round.
        left: VectorSet,
    },
}

/// A round.
#[derive(Clone, Copy, Debug)]
pub struct Passes {
    runner: Runner,
    latest: Nanos,
    left: u32,
    is_first: bool,
    must_hurry: bool,
}

impl Passes {
    /// A round of `runner` that begins at `now`.
    #[must_use]
    pub const fn begin(runner: Runner, budget: Budget, now: Nanos) -> Self {
        let latest = Nanos(now.0.saturating_add(budget.time.0));
        Self { runner, latest, left: budget.passes, is_first: true, must_hurry: false }
    }

    /// Something more urgent waits, a real-time task for example: this round has no further pass.
    pub const fn end_early(&mut self) {
        self.must_hurry = true;
    }

    /// The next step, with what is `pending` and what of that is `deferred`, at `now`.
    pub fn next(&mut self, pending: VectorSet, deferred: VectorSet, now: Nanos) -> Step {
        let may_run = match self.runner {
            Runner::Lane => pending.difference(deferred),
            // It is the one that things are deferred to.
            Runner::Ksoftirqd => pending.intersection(VectorSet::MOVABLE),
        };
        let is_allowed = self.is_first || !self.must_hurry && self.left > 0 && now < self.latest;
        if may_run.is_empty() || !is_allowed {
            return Step::End { left: pending };
        }
        self.is_first = false;
        self.left = self.left.saturating_sub(1);
        Step::Run(may_run)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Budget, Passes, Runner, Step};
    use crate::Nanos;
    use crate::softirq::{Vector, VectorSet};

    const NONE: VectorSet = VectorSet::EMPTY;

    /// Passes of a round in which `pending` is raised again by each, which takes `each` ns.
    fn passes(budget: Budget, pending: VectorSet, each: u64) -> u64 {
        let mut round = Passes::begin(Runner::Lane, budget, Nanos(100));
        (0..)
            .find(|pass| round.next(pending, NONE, Nanos(100 + pass * each)) != Step::Run(pending))
            .expect("it ends")
    }

    /// Goal: a vector that is raised again and again ends its round, by passes or by time, whichever is
    /// first; the first pass takes place whatever the budget. Method: passes of several lengths.
    #[test]
    fn a_round_ends() {
        let budget = Budget::default();
        for (each, expected) in [(1, 10), (222_222, 10), (222_223, 9), (1_000_000, 2), (5_000_000, 1)] {
            assert_eq!(passes(budget, VectorSet::LONG, each), expected, "{each} ns each");
        }
        assert_eq!(passes(Budget { passes: 0, time: Nanos(0) }, VectorSet::LONG, 1), 1);
        assert_eq!(passes(budget, NONE, 1), 0);
    }

    /// Goal: what is deferred does not run on the lane, others do, and all of it is left in the end; on
    /// ksoftirqd it runs, and what may not move is left. Method: two vectors, one of them deferred.
    #[test]
    fn what_is_deferred_is_left() {
        let (timer, packets) = (VectorSet::from(Vector::TIMER), VectorSet::from(Vector::NET_RX));
        let both = timer.union(packets);
        let mut lane = Passes::begin(Runner::Lane, Budget::default(), Nanos(0));
        assert_eq!(lane.next(both, packets, Nanos(0)), Step::Run(timer));
        assert_eq!(lane.next(packets, packets, Nanos(1)), Step::End { left: packets });
        let mut companion = Passes::begin(Runner::Ksoftirqd, Budget::default(), Nanos(0));
        assert_eq!(companion.next(both, packets, Nanos(0)), Step::Run(packets));
        assert_eq!(companion.next(timer, NONE, Nanos(1)), Step::End { left: timer });
    }
}
