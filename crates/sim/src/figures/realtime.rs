//! Figures of softirqs, of real-time tasks, and of TIMER on isolated CPUs.
//!
//! Invariants that hold whatever a scenario says: what was raised has run or is still there (`lost` is 0);
//! every interval of a thread was met, skipped, or is under way; no task overtakes its equals.

use super::SpanQuantiles;
use serde::Serialize;
use std::collections::BTreeMap;

/// A thread like those of cyclictest, in ns: how late it ran after it wanted to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CyclicThread {
    /// Which task it is.
    pub task: u32,
    /// Its priority, 1 to 99.
    pub priority: u8,
    /// Its interval.
    pub interval_ns: u64,
    /// How often it ran.
    pub cycles: u64,
    /// Moments at which it should have run.
    pub expected: u64,
    /// Those of them that were over when it had run the one before.
    pub skipped: u64,
    /// The shortest; this and the next three are `None` when it never ran.
    pub min_ns: Option<u64>,
    /// The last.
    pub act_ns: Option<u64>,
    /// The mean, rounded down.
    pub avg_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
    /// The distribution; `None` when it never ran.
    pub latency_ns: Option<SpanQuantiles>,
}

/// Real-time tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RealtimeFigures {
    /// In the order of the scenario.
    pub threads: Vec<CyclicThread>,
    /// How late they ran, all together; `None` when none ran.
    pub latency_ns: Option<SpanQuantiles>,
    /// Wake-ups on another CPU than before.
    pub placed: u64,
    /// Tasks that a CPU gave away.
    pub pushed: u64,
    /// Tasks that a CPU took.
    pub pulled: u64,
    /// Times that a task that may move ran on an isolated CPU; contract: 0.
    pub on_isolated: u64,
    /// Times that a task overtook one of its priority that had waited longer on that CPU; contract: 0.
    pub disorder: u64,
}

impl RealtimeFigures {
    /// Times that a task changed its CPU.
    #[must_use]
    pub fn migrations(&self) -> u64 {
        self.placed + self.pushed + self.pulled
    }

    pub(super) fn sum(&self, of: impl Fn(&CyclicThread) -> u64) -> u64 {
        self.threads.iter().map(of).sum()
    }

    /// Intervals that are under way.
    pub(super) fn unfinished(&self) -> u64 {
        self.sum(|thread| thread.expected) - self.sum(|thread| thread.cycles + thread.skipped)
    }

    pub(super) fn number_of(&self, name: &str, thread: usize) -> Option<f64> {
        let latency = self.threads.get(thread)?.latency_ns?;
        match name {
            "thread_p50" => Some(latency.p50 as f64),
            "thread_p99" => Some(latency.p99 as f64),
            "thread_max" => Some(latency.max as f64),
            _ => None,
        }
    }
}

/// Softirqs that devices raise.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SoftirqFigures {
    /// Pieces of work that devices raised a vector for.
    pub raised: u64,
    /// Those of them whose handler ran on top of what their CPU did.
    pub ran_inline: u64,
    /// Those whose handler ran in ksoftirqd.
    pub ran_ksoftirqd: u64,
    /// Those that waited at the end.
    pub left: u64,
    /// By vector: from a device's interrupt until the handler begins.
    pub delay_ns: BTreeMap<&'static str, SpanQuantiles>,
    /// Times that a vector was held back for a real-time task.
    pub deferred: u64,
    /// For how long at most, in ns.
    pub deferral_ns_max: u64,
    /// Times that a vector ran because it had been held back long enough.
    pub limit_reached: u64,
    /// The longest pass, in ns.
    pub pass_ns_max: u64,
    /// Times that ksoftirqd was woken.
    pub ksoftirqd_wakeups: u64,
}

impl SoftirqFigures {
    /// Pieces of work whose handler ran, wherever.
    pub(super) const fn ran(&self) -> u64 {
        self.ran_inline + self.ran_ksoftirqd
    }

    /// Work that neither ran nor waits; contract: 0.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.raised.abs_diff(self.ran() + self.left)
    }
}

/// TIMER on isolated CPUs where it runs in a thread of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RaiseFigures {
    /// Times that it was raised, by CPU.
    pub raises: BTreeMap<u16, u64>,
    /// Those of them that found nothing due.
    pub idle_raises: BTreeMap<u16, u64>,
    /// Calls by who armed from elsewhere, and arms that relied on one that was under way.
    pub calls: u64,
    /// See `calls`.
    pub coalesced: u64,
    /// Timers that ran later than they may.
    pub late: u64,
    /// Later than they may, at most, in ns.
    pub late_ns_max: u64,
    /// Timers that were due when others first saw them, because their arm took so long.
    pub overdue: u64,
    /// From that moment to their callback, at most, in ns.
    pub overdue_ns_max: u64,
}

/// How late a timer runs, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lateness {
    /// Counted from when others see that it is armed.
    pub(crate) late: u64,
    /// How late it may be.
    pub(crate) allowed: u64,
    /// It was to be due before others saw it.
    pub(crate) is_overdue: bool,
}

impl RaiseFigures {
    /// A timer runs.
    pub(crate) fn count(&mut self, Lateness { late, allowed, is_overdue }: Lateness) {
        if is_overdue {
            self.overdue += 1;
            self.overdue_ns_max = self.overdue_ns_max.max(late);
        }
        self.late += u64::from(late > allowed);
        self.late_ns_max = self.late_ns_max.max(late.saturating_sub(allowed));
    }

    pub(super) fn number_of(&self, name: &str, cpu: u16) -> Option<f64> {
        let of = |counts: &BTreeMap<u16, u64>| Some(counts.get(&cpu).copied().unwrap_or(0) as f64);
        match name {
            "raises" => of(&self.raises),
            "idle_raises" => of(&self.idle_raises),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Lateness, RaiseFigures};

    /// Goal: a timer that is later than it may be is counted, and by how much; one whose arm took too long
    /// is, too. Method: timers at the edge and beyond it, the longest not the last.
    #[test]
    fn late_timers_are_counted() {
        let mut figures = RaiseFigures::default();
        for (late, is_overdue) in
            [(140, false), (171, false), (151, false), (23, true), (90, true), (61, true)]
        {
            figures.count(Lateness { late, allowed: 140, is_overdue });
        }
        let RaiseFigures { late, late_ns_max, overdue, overdue_ns_max, .. } = figures;
        assert_eq!((late, late_ns_max, overdue, overdue_ns_max), (2, 31, 3, 90));
    }
}
