//! What a run amounts to: the figures of one variant.
//!
//! Names are those of `quietcore explain` where both measure the same. Invariant: a figure that a run cannot
//! have (a throughput without clients) is absent, never 0. All of them are integers or ratios of integers, so
//! a figure is the same on every platform.

mod packets;
mod realtime;
mod recorder;

pub use packets::PacketFigures;
pub use realtime::{CyclicThread, RaiseFigures, RealtimeFigures, SoftirqFigures};
pub(crate) use recorder::Recorder;

use quietcore_core::{CpuId, CpuSet};
use serde::Serialize;
use std::collections::BTreeMap;

/// The figures that are numbers, by the names that `[expect]` uses.
pub(crate) const NUMBERS: [&str; 93] = [
    "arms",
    "cancels",
    "expiries",
    "expiries_per_s",
    "foreign",
    "foreign_pulled",
    "remote",
    "pinned_away",
    "wakeups",
    "wakeups_per_s",
    "wakeups_isolated",
    "kicks",
    "ping_pongs",
    "ping_pongs_per_s",
    "lateness_p50",
    "lateness_p99",
    "lateness_p999",
    "lateness_max",
    "task_delay_p50",
    "task_delay_p99",
    "task_delay_max",
    "gap_p99",
    "gap_max",
    "throughput",
    "timeouts",
    "pair_ns",
    "looks",
    "lock_waits",
    "lock_wait_ns",
    "panics",
    "early",
    "lost",
    "busy_share",
    "idle_spans",
    "events",
    "gap_p50",
    "rt_latency_p50",
    "rt_latency_p99",
    "rt_latency_p999",
    "rt_latency_max",
    "rt_cycles",
    "rt_skipped",
    "rt_expected",
    "rt_unfinished",
    "rt_migrations",
    "rt_placed",
    "rt_pushed",
    "rt_pulled",
    "rt_on_isolated",
    "rt_disorder",
    "net_rx_delay_p50",
    "net_rx_delay_p99",
    "net_rx_delay_max",
    "block_delay_p50",
    "block_delay_p99",
    "block_delay_max",
    "vectors_raised",
    "vectors_ran",
    "vectors_left",
    "vectors_lost",
    "deferred",
    "deferral_max",
    "limit_reached",
    "pass_max",
    "ksoftirqd_wakeups",
    "raises",
    "raises_per_s",
    "idle_raises",
    "calls",
    "calls_coalesced",
    "late",
    "late_max",
    "overdue",
    "overdue_max",
    "packets_per_s",
    "packets_dropped",
    "packets_held",
    "packets_lost",
    "dequeues",
    "dequeues_elsewhere",
    "elsewhere_share",
    "lock_share",
    "enqueue_share",
    "dequeue_share",
    "queue_lock_waits",
    "queue_lock_wait_ns",
    "queue_max",
    "watchdogs",
    "watchdogs_elsewhere",
    "watchdogs_top_share",
    "packet_late_p50",
    "packet_late_p99",
    "packet_late_max",
];
/// The figures that are CPU lists.
pub(crate) const CPU_LISTS: [&str; 1] = ["pullers"];
/// The figures that there are of each CPU, or, if they are called so, of each thread.
pub(crate) const PER_CPU: [&str; 12] = [
    "foreign",
    "wakeups",
    "gap_p50",
    "gap_p99",
    "gap_max",
    "raises",
    "raises_per_s",
    "idle_raises",
    "thread_p50",
    "thread_p99",
    "thread_max",
    "watchdogs",
];

/// Quantiles of a distribution, in ns: to three significant digits (two where there is one per CPU), the
/// maximum rounded up likewise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SpanQuantiles {
    /// Half are at most this.
    pub p50: u64,
    /// 99 in a hundred are at most this.
    pub p99: u64,
    /// 999 in a thousand are at most this.
    pub p999: u64,
    /// The largest.
    pub max: u64,
}

/// What one variant of a scenario amounts to. All of it is simulated.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunFigures {
    /// The simulated time, in ns.
    pub duration_ns: u64,
    /// Timers armed or armed anew.
    pub arms: u64,
    /// Pending timers that were cancelled.
    pub cancels: u64,
    /// Timers that ran.
    pub expiries: u64,
    /// Armed on a CPU that is not isolated, ran on one that is.
    pub foreign: u64,
    /// The same by the CPU that they ran on.
    pub foreign_by_cpu: BTreeMap<u16, u64>,
    /// Those of them that were taken from another CPU's base; the others waited on that CPU, as timers that
    /// it adopted.
    pub foreign_pulled: u64,
    /// The CPUs that they ran on.
    #[serde(serialize_with = "as_list")]
    pub pullers: CpuSet,
    /// Ran on another CPU than the one whose base they were on.
    pub remote: u64,
    /// Pinned timers that ran on another CPU; contract: only when theirs went offline.
    pub pinned_away: u64,
    /// Times that an idle CPU woke up.
    pub wakeups: u64,
    /// The same by CPU.
    pub wakeups_by_cpu: BTreeMap<u16, u64>,
    /// The same of isolated CPUs.
    pub wakeups_isolated: u64,
    /// Kicks sent to other CPUs.
    pub kicks: u64,
    /// Remote expiries after which the timer was next armed on the CPU whose base it had been on.
    pub ping_pongs: u64,
    /// From the moment a timer was armed for to its callback; `None` when none ran.
    pub lateness_ns: Option<SpanQuantiles>,
    /// From that moment until the task that it woke runs; `None` when none did.
    pub task_delay_ns: Option<SpanQuantiles>,
    /// How long measuring loops were away, by CPU; empty when none were.
    pub gaps_ns: BTreeMap<u16, SpanQuantiles>,
    /// Requests per second; `None` without client/server pairs.
    pub throughput: Option<f64>,
    /// Requests whose timeout ran.
    pub timeouts: u64,
    /// Mean time of arming and cancelling in a loop, in ns; `None` without such loops.
    pub pair_ns: Option<f64>,
    /// CPUs that were looked at in search of a busy one.
    pub looks: u64,
    /// Times that a lock was held by another CPU when it was wanted.
    pub lock_waits: u64,
    /// How long was waited for locks, in all.
    pub lock_wait_ns: u64,
    /// Callbacks that panicked.
    pub panics: u64,
    /// Timers that ran before the moment they were armed for; contract: 0.
    pub early: u64,
    /// Timers that were overdue beyond every bound at the end, or vanished; contract: 0 unless their CPU
    /// stalls.
    pub lost: u64,
    /// Share of all CPUs' time that was not idle.
    pub busy_share: f64,
    /// Spans of idle time.
    pub idle_spans: u64,
    /// Real-time threads; `None` without any.
    pub realtime: Option<RealtimeFigures>,
    /// Softirqs; `None` when no device raises any.
    pub softirqs: Option<SoftirqFigures>,
    /// TIMER on isolated CPUs; `None` where it is as on all others.
    pub timer_raise: Option<RaiseFigures>,
    /// Transmit queues; `None` without any.
    pub packets: Option<PacketFigures>,
    /// Events that the simulator handled.
    pub events: u64,
    /// How often the machine's invariants were checked.
    pub checks: u64,
    /// Everything that the machine saw, in 64 bits; as hexadecimal text.
    #[serde(serialize_with = "as_hex")]
    pub hash: u64,
}

fn as_list<S: serde::Serializer>(cpus: &CpuSet, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(cpus)
}

fn as_hex<S: serde::Serializer>(hash: &u64, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(&format_args!("{hash:016x}"))
}

impl RunFigures {
    /// Times per second of simulated time.
    fn per_second(&self, count: u64) -> f64 {
        if self.duration_ns == 0 { 0.0 } else { count as f64 * 1e9 / self.duration_ns as f64 }
    }

    /// The largest over all measuring CPUs.
    fn over_gaps(&self, of: impl Fn(&SpanQuantiles) -> u64) -> Option<f64> {
        self.gaps_ns.values().map(of).max().map(|ns| ns as f64)
    }

    /// A figure by the name that `[expect]` uses; `None` when there is no such figure, or this run has none.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        let lateness =
            |of: fn(&SpanQuantiles) -> u64| self.lateness_ns.as_ref().map(|found| of(found) as f64);
        let delay = |of: fn(&SpanQuantiles) -> u64| self.task_delay_ns.as_ref().map(|found| of(found) as f64);
        let count = match name {
            "arms" => self.arms,
            "cancels" => self.cancels,
            "expiries" => self.expiries,
            "foreign" => self.foreign,
            "foreign_pulled" => self.foreign_pulled,
            "remote" => self.remote,
            "pinned_away" => self.pinned_away,
            "wakeups" => self.wakeups,
            "wakeups_isolated" => self.wakeups_isolated,
            "kicks" => self.kicks,
            "ping_pongs" => self.ping_pongs,
            "timeouts" => self.timeouts,
            "looks" => self.looks,
            "lock_waits" => self.lock_waits,
            "lock_wait_ns" => self.lock_wait_ns,
            "panics" => self.panics,
            "early" => self.early,
            "lost" => self.lost,
            "idle_spans" => self.idle_spans,
            "events" => self.events,
            "expiries_per_s" => return Some(self.per_second(self.expiries)),
            "wakeups_per_s" => return Some(self.per_second(self.wakeups)),
            "ping_pongs_per_s" => return Some(self.per_second(self.ping_pongs)),
            "lateness_p50" => return lateness(|found| found.p50),
            "lateness_p99" => return lateness(|found| found.p99),
            "lateness_p999" => return lateness(|found| found.p999),
            "lateness_max" => return lateness(|found| found.max),
            "task_delay_p50" => return delay(|found| found.p50),
            "task_delay_p99" => return delay(|found| found.p99),
            "task_delay_max" => return delay(|found| found.max),
            "gap_p50" => return self.over_gaps(|found| found.p50),
            "gap_p99" => return self.over_gaps(|found| found.p99),
            "gap_max" => return self.over_gaps(|found| found.max),
            "throughput" => return self.throughput,
            "pair_ns" => return self.pair_ns,
            "busy_share" => return Some(self.busy_share),
            _ => return self.number_of_part(name),
        };
        Some(count as f64)
    }

    fn number_of_part(&self, name: &str) -> Option<f64> {
        if name == "packets_per_s" {
            return Some(self.per_second(self.packets.as_ref()?.dequeues()));
        }
        if name == "raises_per_s" {
            let raises = self.timer_raise.as_ref()?.raises.values().sum();
            return Some(self.per_second(raises));
        }
        let realtime = self.realtime.as_ref().and_then(|found| found.number(name));
        let softirqs = || self.softirqs.as_ref().and_then(|found| found.number(name));
        let raise = || self.timer_raise.as_ref().and_then(|found| found.number(name));
        let packets = || self.packets.as_ref().and_then(|found| found.number(name));
        realtime.or_else(softirqs).or_else(raise).or_else(packets)
    }

    /// One CPU's figure by one of [`PER_CPU`].
    pub(crate) fn number_of(&self, name: &str, cpu: CpuId) -> Option<f64> {
        let cpu = cpu.index() as u16;
        let gap = |of: fn(&SpanQuantiles) -> u64| self.gaps_ns.get(&cpu).map(|found| of(found) as f64);
        match name {
            "foreign" => Some(self.foreign_by_cpu.get(&cpu).copied().unwrap_or(0) as f64),
            "wakeups" => Some(self.wakeups_by_cpu.get(&cpu).copied().unwrap_or(0) as f64),
            "gap_p50" => gap(|found| found.p50),
            "gap_p99" => gap(|found| found.p99),
            "gap_max" => gap(|found| found.max),
            "raises_per_s" => {
                let raises = self.timer_raise.as_ref()?.raises.get(&cpu).copied().unwrap_or(0);
                Some(self.per_second(raises))
            }
            _ => {
                let thread =
                    || self.realtime.as_ref().and_then(|found| found.number_of(name, usize::from(cpu)));
                self.timer_raise
                    .as_ref()
                    .and_then(|found| found.number_of(name, cpu))
                    .or_else(thread)
                    .or_else(|| self.packets.as_ref()?.number_of(name, cpu))
            }
        }
    }

    /// A CPU list by one of [`CPU_LISTS`].
    pub(crate) fn cpus(&self, name: &str) -> Option<&CpuSet> {
        (name == "pullers").then_some(&self.pullers)
    }
}

#[cfg(test)]
mod tests {
    use super::{CyclicThread, PacketFigures, RaiseFigures, RealtimeFigures, SoftirqFigures};
    use super::{NUMBERS, PER_CPU, RunFigures, SpanQuantiles};
    use quietcore_core::CpuId;

    /// Goal: every name leads to a figure. Method: figures in which nothing is absent.
    #[test]
    fn every_name_leads_to_a_figure() {
        let quantiles = SpanQuantiles { p50: 1, p99: 2, p999: 3, max: 4 };
        let thread = CyclicThread { latency_ns: Some(quantiles), ..CyclicThread::default() };
        let realtime = RealtimeFigures {
            threads: vec![thread; 8],
            latency_ns: Some(quantiles),
            ..RealtimeFigures::default()
        };
        let delay_ns = [("NET_RX", quantiles), ("BLOCK", quantiles)].into();
        let softirqs = SoftirqFigures { delay_ns, ..SoftirqFigures::default() };
        let packets = PacketFigures {
            late_ns: Some(quantiles),
            busy_ns: 1,
            at_home: 1,
            watchdogs: [(7, 1)].into(),
            ..PacketFigures::default()
        };
        let figures = RunFigures {
            lateness_ns: Some(quantiles),
            task_delay_ns: Some(quantiles),
            gaps_ns: [(7, quantiles)].into(),
            throughput: Some(1.0),
            pair_ns: Some(1.0),
            realtime: Some(realtime),
            softirqs: Some(softirqs),
            timer_raise: Some(RaiseFigures::default()),
            packets: Some(packets),
            ..RunFigures::default()
        };
        for name in NUMBERS {
            assert!(figures.number(name).is_some(), "{name}");
        }
        for name in PER_CPU {
            assert!(figures.number_of(name, CpuId::new(7).unwrap()).is_some(), "{name}");
        }
        assert_eq!((figures.number("hash"), figures.cpus("hash")), (None, None));
    }
}
