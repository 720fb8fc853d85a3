//! The figures that are numbers, by the names that `[expect]` uses.
//!
//! A figure of a part that a run does not have (packets, real-time tasks) is absent.

use super::{RunFigures, SpanQuantiles};

/// What a figure is called, and where it is.
pub(crate) type NamedFigure = (&'static str, fn(&RunFigures) -> Option<f64>);

/// All of them, in the order in which they are listed.
pub(crate) const NUMBERS: [NamedFigure; 97] = [
    ("arms", |of| count(of.arms)),
    ("cancels", |of| count(of.cancels)),
    ("expiries", |of| count(of.expiries)),
    ("expiries_per_s", |of| of.per_second(of.expiries)),
    ("foreign", |of| count(of.foreign)),
    ("foreign_pulled", |of| count(of.foreign_pulled)),
    ("remote", |of| count(of.remote)),
    ("pinned_away", |of| count(of.pinned_away)),
    ("wakeups", |of| count(of.wakeups)),
    ("wakeups_per_s", |of| of.per_second(of.wakeups)),
    ("wakeups_isolated", |of| count(of.wakeups_isolated)),
    ("kicks", |of| count(of.kicks)),
    ("ping_pongs", |of| count(of.ping_pongs)),
    ("ping_pongs_per_s", |of| of.per_second(of.ping_pongs)),
    ("lateness_p50", |of| quantile(of.lateness_ns, |found| found.p50)),
    ("lateness_p99", |of| quantile(of.lateness_ns, |found| found.p99)),
    ("lateness_p999", |of| quantile(of.lateness_ns, |found| found.p999)),
    ("lateness_max", |of| quantile(of.lateness_ns, |found| found.max)),
    ("task_delay_p50", |of| quantile(of.task_delay_ns, |found| found.p50)),
    ("task_delay_p99", |of| quantile(of.task_delay_ns, |found| found.p99)),
    ("task_delay_max", |of| quantile(of.task_delay_ns, |found| found.max)),
    ("gap_p99", |of| count(of.gaps_ns.values().map(|found| found.p99).max()?)),
    ("gap_max", |of| count(of.gaps_ns.values().map(|found| found.max).max()?)),
    ("throughput", |of| of.throughput),
    ("timeouts", |of| count(of.timeouts)),
    ("pair_ns", |of| of.pair_ns),
    ("looks", |of| count(of.looks)),
    ("lock_waits", |of| count(of.lock_waits)),
    ("lock_wait_ns", |of| count(of.lock_wait_ns)),
    ("panics", |of| count(of.panics)),
    ("early", |of| count(of.early)),
    ("past_bound", |of| count(of.past_bound)),
    ("lost", |of| count(of.lost)),
    ("busy_share", |of| Some(of.busy_share)),
    ("idle_spans", |of| count(of.idle_spans)),
    ("events", |of| count(of.events)),
    ("gap_p50", |of| count(of.gaps_ns.values().map(|found| found.p50).max()?)),
    ("rt_latency_p50", |of| quantile(of.realtime.as_ref()?.latency_ns, |found| found.p50)),
    ("rt_latency_p99", |of| quantile(of.realtime.as_ref()?.latency_ns, |found| found.p99)),
    ("rt_latency_p999", |of| quantile(of.realtime.as_ref()?.latency_ns, |found| found.p999)),
    ("rt_latency_max", |of| quantile(of.realtime.as_ref()?.latency_ns, |found| found.max)),
    ("rt_cycles", |of| count(of.realtime.as_ref()?.sum(|thread| thread.cycles))),
    ("rt_skipped", |of| count(of.realtime.as_ref()?.sum(|thread| thread.skipped))),
    ("rt_expected", |of| count(of.realtime.as_ref()?.sum(|thread| thread.expected))),
    ("rt_unfinished", |of| count(of.realtime.as_ref()?.unfinished())),
    ("rt_migrations", |of| count(of.realtime.as_ref()?.migrations())),
    ("rt_placed", |of| count(of.realtime.as_ref()?.placed)),
    ("rt_pushed", |of| count(of.realtime.as_ref()?.pushed)),
    ("rt_pulled", |of| count(of.realtime.as_ref()?.pulled)),
    ("rt_on_isolated", |of| count(of.realtime.as_ref()?.on_isolated)),
    ("rt_disorder", |of| count(of.realtime.as_ref()?.disorder)),
    ("net_rx_delay_p50", |of| quantile(of.softirq_delay("NET_RX"), |found| found.p50)),
    ("net_rx_delay_p99", |of| quantile(of.softirq_delay("NET_RX"), |found| found.p99)),
    ("net_rx_delay_max", |of| quantile(of.softirq_delay("NET_RX"), |found| found.max)),
    ("block_delay_p50", |of| quantile(of.softirq_delay("BLOCK"), |found| found.p50)),
    ("block_delay_p99", |of| quantile(of.softirq_delay("BLOCK"), |found| found.p99)),
    ("block_delay_max", |of| quantile(of.softirq_delay("BLOCK"), |found| found.max)),
    ("vectors_raised", |of| count(of.softirqs.as_ref()?.raised)),
    ("vectors_ran", |of| count(of.softirqs.as_ref()?.ran())),
    ("vectors_left", |of| count(of.softirqs.as_ref()?.left)),
    ("vectors_lost", |of| count(of.softirqs.as_ref()?.lost())),
    ("deferred", |of| count(of.softirqs.as_ref()?.deferred)),
    ("deferral_max", |of| count(of.softirqs.as_ref()?.deferral_ns_max)),
    ("limit_reached", |of| count(of.softirqs.as_ref()?.limit_reached)),
    ("pass_max", |of| count(of.softirqs.as_ref()?.pass_ns_max)),
    ("ksoftirqd_wakeups", |of| count(of.softirqs.as_ref()?.ksoftirqd_wakeups)),
    ("raises", |of| count(of.timer_raise.as_ref()?.raises.values().sum())),
    ("raises_per_s", |of| of.per_second(of.timer_raise.as_ref()?.raises.values().sum())),
    ("idle_raises", |of| count(of.timer_raise.as_ref()?.idle_raises.values().sum())),
    ("calls", |of| count(of.timer_raise.as_ref()?.calls)),
    ("calls_coalesced", |of| count(of.timer_raise.as_ref()?.coalesced)),
    ("late", |of| count(of.timer_raise.as_ref()?.late)),
    ("late_max", |of| count(of.timer_raise.as_ref()?.late_ns_max)),
    ("overdue", |of| count(of.timer_raise.as_ref()?.overdue)),
    ("overdue_max", |of| count(of.timer_raise.as_ref()?.overdue_ns_max)),
    ("packets_per_s", |of| of.per_second(of.packets.as_ref()?.dequeues())),
    ("packets_dropped", |of| count(of.packets.as_ref()?.dropped)),
    ("packets_held", |of| count(of.packets.as_ref()?.held)),
    ("packets_lost", |of| count(of.packets.as_ref()?.lost)),
    ("dequeues", |of| count(of.packets.as_ref()?.dequeues())),
    ("dequeues_elsewhere", |of| count(of.packets.as_ref()?.elsewhere)),
    ("elsewhere_share", |of| of.packets.as_ref()?.elsewhere_share()),
    ("lock_share", |of| of.packets.as_ref()?.share_of_busy(|found| found.lock_wait_ns)),
    ("enqueue_share", |of| of.packets.as_ref()?.share_of_busy(|found| found.enqueue_ns)),
    ("dequeue_share", |of| of.packets.as_ref()?.share_of_busy(|found| found.dequeue_ns)),
    ("queue_lock_waits", |of| count(of.packets.as_ref()?.lock_waits)),
    ("queue_lock_wait_ns", |of| count(of.packets.as_ref()?.lock_wait_ns)),
    ("queue_max", |of| count(of.packets.as_ref()?.queue_max)),
    ("watchdogs", |of| count(of.packets.as_ref()?.watchdogs.values().sum())),
    ("watchdogs_elsewhere", |of| count(of.packets.as_ref()?.watchdogs_elsewhere)),
    ("watchdogs_top_share", |of| of.packets.as_ref()?.top_share()),
    ("packet_late_p50", |of| quantile(of.packets.as_ref()?.late_ns, |found| found.p50)),
    ("packet_late_p99", |of| quantile(of.packets.as_ref()?.late_ns, |found| found.p99)),
    ("packet_late_max", |of| quantile(of.packets.as_ref()?.late_ns, |found| found.max)),
    ("deep_idle_share", |of| Some(of.idle.as_ref()?.last()?.share)),
    ("idle_entries", |of| count(of.idle_sum(|found| found.entries)?)),
    ("idle_short", |of| count(of.idle_sum(|found| found.short)?)),
];

/// The figures that are numbers, in the order in which they are listed: by the names that `[expect]` uses,
/// each with whether it is a span in ns.
pub fn run_figure_names() -> impl Iterator<Item = (&'static str, bool)> {
    NUMBERS.into_iter().map(|(name, _)| (name, is_span(name)))
}

/// Quantiles and maxima are of spans, but for how long a queue was.
fn is_span(name: &str) -> bool {
    let is_quantile = ["_p50", "_p99", "_p999", "_max", "_ns"].into_iter().any(|end| name.ends_with(end));
    is_quantile && name != "queue_max"
}

fn count(count: u64) -> Option<f64> {
    Some(count as f64)
}

fn quantile(quantiles: Option<SpanQuantiles>, of: fn(&SpanQuantiles) -> u64) -> Option<f64> {
    count(of(&quantiles?))
}

/// A part of `whole`; of nothing there is no part.
pub(super) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
