//! What was counted in an interval, and since the beginning.

use quietcore_trace::WallClock;
use quietcore_watch::{LeftOut, WatchReport, WatchedCause, WatchedRow};
use serde::Serialize;
use std::collections::BTreeMap;

/// A line of `quietcore watch --json`, schema 1.
#[derive(Debug, Serialize)]
pub(crate) struct IntervalReport {
    pub(crate) schema: u32,
    /// The end of the interval, in ns since 1970.
    pub(crate) at_ns: u64,
    pub(crate) interval_ns: u64,
    /// Since the watch began.
    pub(crate) watched_ns: u64,
    pub(crate) cpus: String,
    pub(crate) rows: Vec<IntervalRow>,
    pub(crate) losses: IntervalLosses,
    pub(crate) left_out: Vec<IntervalLeftOut>,
    /// Whether functions have their names; otherwise these are addresses.
    pub(crate) function_names: bool,
}

/// What took a CPU away, by who started it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct IntervalRow {
    pub(crate) cpu: u16,
    pub(crate) source: &'static str,
    pub(crate) name: String,
    /// The task that had its CPU longest, a user's: what the CPU is there for.
    pub(crate) own: bool,
    /// In this interval.
    pub(crate) count: u64,
    pub(crate) own_ns: u64,
    /// In this interval; `null` if none ended in it. The end of the power of two in which it lies.
    pub(crate) p50_ns: Option<u64>,
    pub(crate) p99_ns: Option<u64>,
    /// Since the watch began.
    pub(crate) longest_ns: u64,
    pub(crate) count_total: u64,
    pub(crate) own_total_ns: u64,
    /// `null` if it is not known.
    pub(crate) cause: Option<IntervalCause>,
}

/// Who started it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct IntervalCause {
    pub(crate) how: &'static str,
    pub(crate) cpu: u16,
    pub(crate) source: &'static str,
    pub(crate) name: String,
    /// What an interrupt was sent for.
    pub(crate) function: Option<String>,
    /// The task on whose behalf.
    pub(crate) task: Option<String>,
    /// Of that task.
    pub(crate) cgroup: Option<String>,
    /// The pod, container, unit or group that it is of.
    pub(crate) owner: Option<String>,
    /// Functions of the kernel that started one of the first, the innermost first.
    pub(crate) stack: Vec<String>,
}

/// What may be wrong with the counts, since the watch began.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct IntervalLosses {
    pub(crate) skipped: u64,
    pub(crate) overflows: u64,
    pub(crate) unnamed: u64,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct IntervalLeftOut {
    pub(crate) tracepoint: String,
    pub(crate) why: String,
}

impl IntervalReport {
    /// What came between two reports of one watch.
    pub(crate) fn between(before: &WatchReport, now: &WatchReport, clock: WallClock) -> Self {
        let interval = now.watched.saturating_sub(before.watched);
        let before: BTreeMap<_, _> = before.rows.iter().map(|row| (row.identity(), row)).collect();
        let own_tasks = now.own_tasks();
        let row = |now: &WatchedRow| {
            let since = now.since(before.get(&now.identity()).copied());
            let is_own = !now.is_of_kernel && own_tasks.get(&now.cpu) == Some(&now.name.as_str());
            interval_row(now, &since, is_own)
        };
        let left_out = |LeftOut { tracepoint, why, .. }: &LeftOut| IntervalLeftOut {
            tracepoint: tracepoint.clone(),
            why: why.clone(),
        };
        Self {
            schema: 1,
            at_ns: clock.since_1970.as_u64(),
            interval_ns: interval.as_nanos() as u64,
            watched_ns: now.watched.as_nanos() as u64,
            cpus: now.cpus.to_string(),
            rows: now.rows.iter().map(row).collect(),
            losses: IntervalLosses {
                skipped: now.losses.skipped,
                overflows: now.losses.overflows,
                unnamed: now.losses.unnamed,
            },
            left_out: now.left_out.iter().map(left_out).collect(),
            function_names: now.has_function_names,
        }
    }
}

fn interval_row(now: &WatchedRow, since: &WatchedRow, is_own: bool) -> IntervalRow {
    let cause = |cause: &WatchedCause| IntervalCause {
        how: cause.how.name(),
        cpu: cause.cpu.index() as u16,
        source: cause.source.name(),
        name: cause.name.clone(),
        function: cause.called.clone(),
        task: cause.task.clone(),
        cgroup: cause.owner.as_ref().map(|owner| owner.path.clone()),
        owner: cause.owner.as_ref().map(|owner| owner.name().to_owned()),
        stack: now.stack.clone(),
    };
    // None of them lasted longer than all of them.
    let quantile = |share| since.quantile(share).map(|span| span.min(since.total).as_u64());
    IntervalRow {
        cpu: now.cpu.index() as u16,
        source: now.source.name(),
        name: now.name.clone(),
        own: is_own,
        count: since.count,
        own_ns: since.total.as_u64(),
        p50_ns: quantile(0.5),
        p99_ns: quantile(0.99),
        longest_ns: now.longest.as_u64(),
        count_total: now.count,
        own_total_ns: now.total.as_u64(),
        cause: now.cause.as_ref().map(cause),
    }
}
