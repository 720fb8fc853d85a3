//! What a run amounts to: the figures of one variant.
//!
//! Names are those of `quietcore explain` where both measure the same. Invariant: a figure that a run cannot
//! have (a throughput without clients) is absent, never 0. All of them are integers or ratios of integers, so
//! a figure is the same on every platform.

mod idle;
mod names;
mod packets;
mod realtime;
mod recorder;

pub(crate) use idle::ResidencyCounts;
pub use idle::{CpuResidency, IdleStateFigures};
pub use names::run_figure_names;
pub(crate) use names::{NUMBERS, NamedFigure};
pub use packets::PacketFigures;
pub(crate) use realtime::Lateness;
pub use realtime::{CyclicThread, RaiseFigures, RealtimeFigures, SoftirqFigures};
pub(crate) use recorder::Recorder;

use quietcore_core::{CpuId, CpuSet};
use serde::Serialize;
use std::collections::BTreeMap;

pub(crate) const CPU_LISTS: [&str; 1] = ["pullers"];
/// The figures that there are of each CPU, or, if they are called so, of each thread.
pub(crate) const PER_CPU: [&str; 13] = [
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
    "deep_idle_share",
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
    /// How long measuring loops were away, by CPU; without CPUs on which none ever was.
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
    /// Timers that ran later than their precision allows, by more than what the faults amount to, eight of
    /// the longest callbacks and four ticks; contract: 0, unless a CPU has more to do than it can.
    pub past_bound: u64,
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
    /// Idle states, the shallowest first; `None` where the machine has none.
    pub idle: Option<Vec<IdleStateFigures>>,
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
    fn per_second(&self, count: u64) -> Option<f64> {
        Some(if self.duration_ns == 0 { 0.0 } else { count as f64 * 1e9 / self.duration_ns as f64 })
    }

    /// A sum over all idle states and CPUs.
    fn idle_sum(&self, of: fn(&CpuResidency) -> u64) -> Option<u64> {
        Some(self.idle.as_ref()?.iter().map(|state| state.sum(of)).sum())
    }

    fn softirq_delay(&self, vector: &str) -> Option<SpanQuantiles> {
        self.softirqs.as_ref()?.delay_ns.get(vector).copied()
    }

    /// A figure by the name that `[expect]` uses; `None` when there is no such figure, or this run has none.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        let (_, of) = NUMBERS.iter().find(|(known, _)| *known == name)?;
        of(self)
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
            "deep_idle_share" => {
                let deepest = self.idle.as_ref()?.last()?;
                Some(deepest.by_cpu.get(&cpu).map_or(0.0, |found| found.share))
            }
            "raises_per_s" => {
                self.per_second(self.timer_raise.as_ref()?.raises.get(&cpu).copied().unwrap_or(0))
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
mod tests;
