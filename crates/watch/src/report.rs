//! What was counted, with names.

use crate::cgroups::Owner;
use crate::layout::BUCKETS;
use crate::program::LeftOut;
use quietcore_core::{CpuId, CpuSet, Nanos};
use quietcore_trace::{DisturbanceSource, Initiation};
use std::collections::BTreeMap;
use std::time::Duration;

/// What was counted since the watch began. Totals never become less.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WatchReport {
    /// The CPUs that are watched.
    pub cpus: CpuSet,
    /// From the begin of the watch to when what was counted was taken over last.
    pub watched: Duration,
    /// By CPU, kind, name and cause.
    pub rows: Vec<WatchedRow>,
    /// What may be wrong with them.
    pub losses: Losses,
    /// Tracepoints that are not counted.
    pub left_out: Vec<LeftOut>,
    /// Whether the kernel lets this process know the names of its functions.
    pub has_function_names: bool,
}

/// What may be wrong with the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// How often the kernel left the program out, as it was in it already on that CPU.
    pub skipped: u64,
    /// How often too much was open at once on a CPU, so that durations are not known.
    pub overflows: u64,
    /// How often something was counted under its kind alone, as there was no room for its name and cause.
    pub unnamed: u64,
}

/// What took a CPU away, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchedRow {
    /// The CPU.
    pub cpu: CpuId,
    /// The kind of thing.
    pub source: DisturbanceSource,
    /// A function, the name of an interrupt, a softirq, a task.
    pub name: String,
    /// A task that is a thread of the kernel's own, or anything but a task.
    pub is_of_kernel: bool,
    /// Who started it; `None` if it is not known.
    pub cause: Option<WatchedCause>,
    /// How often it began.
    pub count: u64,
    /// How often it ended; durations are of these.
    pub ended: u64,
    /// How long it had the CPU in all, without what came on top of it.
    pub total: Nanos,
    /// The longest of them.
    pub longest: Nanos,
    /// How many lasted 2^n ns or longer, and less than 2^(n+1).
    pub buckets: [u64; BUCKETS],
    /// The functions of the kernel that started one of the first, the innermost first; empty if it is not
    /// known.
    pub stack: Vec<String>,
}

/// Who started something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct WatchedCause {
    /// How.
    pub how: Initiation,
    /// On which CPU.
    pub cpu: CpuId,
    /// What that CPU was doing.
    pub source: DisturbanceSource,
    /// Its name, as of a row.
    pub name: String,
    /// What an interrupt was sent for: the function to call, or the one that sent it.
    pub called: Option<String>,
    /// The task on whose behalf, if it is known.
    pub task: Option<String>,
    /// Its control group: [`Owner::path`].
    pub owner: Option<Owner>,
}

impl WatchReport {
    /// Of each CPU the task of a user that had it longest: what the CPU is there for.
    #[must_use]
    pub fn own_tasks(&self) -> BTreeMap<CpuId, &str> {
        let mut totals: BTreeMap<(CpuId, &str), u64> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| !row.is_of_kernel) {
            *totals.entry((row.cpu, row.name.as_str())).or_default() += row.total.as_u64();
        }
        let mut longest: BTreeMap<CpuId, (&str, u64)> = BTreeMap::new();
        for ((cpu, name), total) in totals {
            let of_cpu = longest.entry(cpu).or_insert((name, total));
            if total > of_cpu.1 {
                *of_cpu = (name, total);
            }
        }
        longest.into_iter().map(|(cpu, (name, _))| (cpu, name)).collect()
    }
}

impl WatchedRow {
    /// What tells it from the others of a report.
    #[must_use]
    pub fn identity(&self) -> (CpuId, DisturbanceSource, &str, bool, Option<&WatchedCause>) {
        (self.cpu, self.source, &self.name, self.is_of_kernel, self.cause.as_ref())
    }

    /// Adds one of the same identity.
    pub(crate) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.ended += other.ended;
        self.total = Nanos(self.total.0 + other.total.0);
        self.longest = self.longest.max(other.longest);
        self.buckets.iter_mut().zip(other.buckets).for_each(|(sum, count)| *sum += count);
        if self.stack.is_empty() {
            self.stack.clone_from(&other.stack);
        }
    }

    /// What came since an earlier report of the same watch; the longest stays that of all.
    #[must_use]
    pub fn since(&self, before: Option<&Self>) -> Self {
        let mut row = self.clone();
        if let Some(before) = before {
            row.count -= before.count.min(row.count);
            row.ended -= before.ended.min(row.ended);
            row.total = row.total.since(before.total);
            let buckets = row.buckets.iter_mut().zip(before.buckets);
            buckets.for_each(|(count, before)| *count -= before.min(*count));
        }
        row
    }

    /// A duration that `share` (0 to 1) of those that ended did not reach: the end of the power of two in
    /// which it lies, at most the longest; `None` if none ended.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Nanos> {
        let rank = (share.clamp(0.0, 1.0) * self.ended as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            below += count;
            if below >= rank {
                let end = 2_u64 << bucket;
                return Some(if bucket + 1 == BUCKETS { self.longest } else { self.longest.min(Nanos(end)) });
            }
        }
        None
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Losses, WatchReport, WatchedCause, WatchedRow};
    use crate::cgroups::Owner;
    use crate::layout::BUCKETS;
    use quietcore_core::{CpuId, Nanos};
    use quietcore_trace::{DisturbanceSource, Initiation};
    use std::time::Duration;

    /// A timer's callback on CPU 1, so often, 1,000 ns each, that cron armed on CPU 0.
    pub(crate) fn row(name: &str, count: u64) -> WatchedRow {
        let cpu = |number| CpuId::new(number).expect("a small number");
        let mut buckets = [0; BUCKETS];
        buckets[9] = count;
        let unit = Some("cron.service".to_owned());
        let owner = Owner { path: "/system.slice/cron.service".to_owned(), unit, ..Owner::default() };
        WatchedRow {
            cpu: cpu(1),
            source: DisturbanceSource::Timer,
            name: name.to_owned(),
            is_of_kernel: true,
            cause: Some(WatchedCause {
                how: Initiation::Armed,
                cpu: cpu(0),
                source: DisturbanceSource::Task,
                name: "cron".to_owned(),
                called: None,
                task: Some("cron".to_owned()),
                owner: Some(owner),
            }),
            count,
            ended: count,
            total: Nanos(1_000 * count),
            longest: Nanos(1_000),
            buckets,
            stack: vec![],
        }
    }

    /// A minute with these rows.
    pub(crate) fn report(rows: Vec<WatchedRow>) -> WatchReport {
        let cpus = [CpuId::new(1).expect("a small number")].into_iter().collect();
        let watched = Duration::from_secs(60);
        let losses = Losses::default();
        WatchReport { cpus, watched, rows, losses, left_out: vec![], has_function_names: true }
    }

    /// Goal: what a CPU is there for is the task of a user that had it longest, of each CPU. Method: three
    /// tasks, of which the kernel's had it longest, and one that had it in two rows.
    #[test]
    fn a_cpu_is_there_for_the_task_that_had_it_longest() {
        let task = |name: &str, count, is_of_kernel| {
            let source = DisturbanceSource::Task;
            WatchedRow { source, is_of_kernel, cause: None, ..row(name, count) }
        };
        let rows =
            vec![task("kworker/1:1", 9, true), task("a", 3, false), task("b", 4, false), task("a", 2, false)];
        let report = report(rows);
        let own: Vec<(usize, &str)> =
            report.own_tasks().iter().map(|(cpu, name)| (cpu.index(), *name)).collect();
        assert_eq!(own, [(1, "a")]);
    }

    /// Goal: what came since an earlier report is the difference, and nothing of it is negative. Method: a
    /// row that grew, one that is new, and one of another watch.
    #[test]
    fn what_came_since_is_the_difference() {
        let (before, now) = (row("a", 3), row("a", 10));
        let since = now.since(Some(&before));
        assert_eq!((since.count, since.ended, since.total, since.buckets[9]), (7, 10 - 3, Nanos(7_000), 7));
        assert_eq!(since.longest, now.longest);
        assert_eq!(now.since(None), now);
        let none = before.since(Some(&now));
        assert_eq!((none.count, none.ended, none.total, none.buckets[9]), (0, 0, Nanos(0), 0));
        let mut sum = before.clone();
        sum.add(&now);
        assert_eq!((sum.count, sum.ended, sum.total, sum.buckets[9]), (13, 13, Nanos(13_000), 13));
    }

    /// Goal: a quantile is the end of its power of two and no longer than the longest; nothing that ended has
    /// none. Method: ten short ones and a long one.
    #[test]
    fn quantiles_are_ends_of_powers_of_two() {
        let mut of = row("a", 10);
        of.buckets[20] = 1;
        (of.ended, of.longest) = (11, Nanos(1_500_000));
        assert_eq!(of.quantile(0.5), Some(Nanos(1_024)));
        assert_eq!(of.quantile(10.0 / 11.0), Some(Nanos(1_024)));
        assert_eq!(of.quantile(0.99), Some(Nanos(1_500_000)));
        assert_eq!((of.quantile(0.0), of.quantile(7.0)), (Some(Nanos(1_024)), Some(Nanos(1_500_000))));
        let none = WatchedRow { ended: 0, buckets: [0; BUCKETS], ..of };
        assert_eq!(none.quantile(0.5), None);
    }
}
