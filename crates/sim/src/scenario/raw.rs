//! A scenario as it is written: one struct per table, every value with its place in the file.
//!
//! Unknown keys are errors. Nothing is checked here but types; `plan.rs` gives them meaning.

use super::costs::CostValue;
use super::names::{
    AwarenessName, ExclusionName, KsoftirqdRule, Preempt, RaiseName, ScenarioPolicy, SenderName, Siblings,
    WakePlace, WatchdogName,
};
use super::value::{CpuChoice, Span};
use quietcore_core::CpuSet;
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeMap;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawScenario {
    pub(crate) about: Option<String>,
    pub(crate) seed: Option<Spanned<u64>>,
    pub(crate) duration: Spanned<Span>,
    /// A file with costs, beside the scenario.
    pub(crate) costs: Option<Spanned<String>>,
    pub(crate) machine: RawMachine,
    pub(crate) variants: Option<RawVariants>,
    #[serde(default)]
    pub(crate) load: RawLoads,
    #[serde(default)]
    pub(crate) fault: RawFaults,
    /// Costs that replace those of the file.
    #[serde(default)]
    pub(crate) cost: BTreeMap<Spanned<String>, Spanned<CostValue>>,
    /// Sums that are shown per variant.
    #[serde(default)]
    pub(crate) show: BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
    #[serde(default)]
    pub(crate) expect: BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawMachine {
    pub(crate) cpus: Spanned<u16>,
    pub(crate) nodes: Option<Spanned<u16>>,
    pub(crate) node_lists: Option<Spanned<Vec<RawCpuList>>>,
    pub(crate) threads_per_core: Option<Spanned<u16>>,
    /// Siblings are `n` and `n` + number of cores, as on most real machines, and not neighbours.
    pub(crate) siblings: Option<Siblings>,
    pub(crate) core_lists: Option<Spanned<Vec<RawCpuList>>>,
    pub(crate) cores_per_cache: Option<Spanned<u16>>,
    pub(crate) cache_lists: Option<Spanned<Vec<RawCpuList>>>,
    pub(crate) isolated: Option<Spanned<RawCpuList>>,
    pub(crate) nohz_full: Option<Spanned<RawCpuList>>,
    pub(crate) exclusion: Option<ExclusionName>,
    pub(crate) policy: Option<ScenarioPolicy>,
    pub(crate) wake: Option<WakePlace>,
    pub(crate) preempt: Option<Preempt>,
    pub(crate) tick: Option<Spanned<Span>>,
    /// Ticks of different CPUs fall on different moments.
    pub(crate) skew: Option<bool>,
    /// What is done about long softirqs for the sake of real-time tasks.
    pub(crate) awareness: Option<AwarenessName>,
    pub(crate) ksoftirqd: Option<KsoftirqdRule>,
    /// For how long at most a softirq waits for real-time tasks.
    pub(crate) defer_limit: Option<Spanned<Span>>,
    /// Isolated CPUs run TIMER in a thread of its own, and raise it by this rule.
    pub(crate) timer_raise: Option<RaiseName>,
    /// The shallowest first.
    #[serde(default)]
    pub(crate) idle_state: Vec<Spanned<RawIdleState>>,
}

/// A state that an idle CPU can be in.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawIdleState {
    pub(crate) name: Spanned<String>,
    /// What it costs to get into it.
    pub(crate) entry: Option<Spanned<Span>>,
    /// What it costs to get out.
    pub(crate) exit: Option<Spanned<Span>>,
    /// The target residency: how long it must be there to be worth it.
    pub(crate) residency: Spanned<Span>,
}

/// A CPU list, as `0-3,8`.
#[derive(Clone, Debug)]
pub(crate) struct RawCpuList(pub(crate) CpuSet);

impl<'de> Deserialize<'de> for RawCpuList {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        String::deserialize(source)?.parse().map(Self).map_err(de::Error::custom)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawVariants {
    pub(crate) policy: Option<Spanned<Vec<ScenarioPolicy>>>,
    pub(crate) exclusion: Option<Spanned<Vec<ExclusionName>>>,
    pub(crate) wake: Option<Spanned<Vec<WakePlace>>>,
    pub(crate) awareness: Option<Spanned<Vec<AwarenessName>>>,
    pub(crate) ksoftirqd: Option<Spanned<Vec<KsoftirqdRule>>>,
    pub(crate) timer_raise: Option<Spanned<Vec<RaiseName>>>,
    pub(crate) cpus: Option<Spanned<Vec<u16>>>,
    pub(crate) pairs: Option<Spanned<Vec<usize>>>,
    pub(crate) watchdog: Option<Spanned<Vec<WatchdogName>>>,
    pub(crate) window: Option<Spanned<Vec<u64>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RawLoads {
    pub(crate) periodic: Vec<Spanned<RawPeriodic>>,
    pub(crate) timeout: Vec<Spanned<RawTimeout>>,
    pub(crate) sleeper: Vec<Spanned<RawSleeper>>,
    pub(crate) busy: Vec<Spanned<RawBusy>>,
    pub(crate) driver: Vec<Spanned<RawDriver>>,
    pub(crate) measure: Vec<Spanned<RawMeasure>>,
    pub(crate) pairs: Vec<Spanned<RawPairs>>,
    pub(crate) enqueue: Vec<Spanned<RawEnqueue>>,
    pub(crate) softirq: Vec<Spanned<RawSoftirq>>,
    pub(crate) realtime: Vec<Spanned<RawRealtime>>,
    pub(crate) remote: Vec<Spanned<RawRemote>>,
    pub(crate) packets: Vec<Spanned<RawPackets>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PrecisionName {
    #[default]
    Coarse,
    Tick,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPeriodic {
    pub(crate) cpus: Spanned<CpuChoice>,
    pub(crate) every: Option<Spanned<usize>>,
    pub(crate) count: Option<Spanned<usize>>,
    pub(crate) period: Spanned<Span>,
    pub(crate) jitter: Option<Spanned<Span>>,
    pub(crate) callback: Option<Spanned<Span>>,
    #[serde(default)]
    pub(crate) pinned: bool,
    #[serde(default)]
    pub(crate) deferrable: bool,
    #[serde(default)]
    pub(crate) precision: PrecisionName,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTimeout {
    pub(crate) cpus: Spanned<CpuChoice>,
    pub(crate) every: Option<Spanned<usize>>,
    pub(crate) count: Option<Spanned<usize>>,
    pub(crate) delay: Spanned<Span>,
    pub(crate) run: Spanned<Span>,
    pub(crate) sleep: Spanned<Span>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSleeper {
    pub(crate) cpus: Spanned<CpuChoice>,
    pub(crate) every: Option<Spanned<usize>>,
    pub(crate) count: Option<Spanned<usize>>,
    pub(crate) run: Spanned<Span>,
    pub(crate) sleep: Spanned<Span>,
    pub(crate) jitter: Option<Spanned<Span>>,
    #[serde(default)]
    pub(crate) rt: bool,
    #[serde(default)]
    pub(crate) precision: PrecisionName,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawBusy {
    pub(crate) cpus: Spanned<CpuChoice>,
    pub(crate) every: Option<Spanned<usize>>,
    pub(crate) count: Option<Spanned<usize>>,
    pub(crate) chunk: Option<Spanned<Span>>,
    /// As a normal task, which takes turns with others.
    #[serde(default)]
    pub(crate) normal: bool,
}

/// A device whose interrupts raise a softirq.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSoftirq {
    pub(crate) cpus: Spanned<CpuChoice>,
    pub(crate) every: Option<Spanned<usize>>,
    pub(crate) count: Option<Spanned<usize>>,
    pub(crate) vector: Spanned<String>,
    /// From one interrupt to the next, on average.
    pub(crate) interval: Spanned<Span>,
    /// Lengths of the work: the least, the median, the most.
    pub(crate) least: Spanned<Span>,
    pub(crate) median: Spanned<Span>,
    pub(crate) most: Spanned<Span>,
    /// The exponent of the lengths above the median.
    pub(crate) tail: Spanned<f64>,
}

/// Threads as those of cyclictest.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRealtime {
    /// Where they may run.
    pub(crate) cpus: Spanned<CpuChoice>,
    pub(crate) every: Option<Spanned<usize>>,
    pub(crate) threads: Option<Spanned<usize>>,
    pub(crate) priority: Spanned<u8>,
    pub(crate) interval: Spanned<Span>,
    /// By how much the interval of each is longer than that of the one before.
    pub(crate) step: Option<Spanned<Span>>,
    pub(crate) work: Option<Spanned<Span>>,
    /// Each stays on its first CPU.
    #[serde(default)]
    pub(crate) pinned: bool,
}

/// A task that arms timers on other CPUs, about when their ticks are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRemote {
    /// The CPUs that the timers are armed on.
    pub(crate) cpus: Spanned<CpuChoice>,
    pub(crate) from: Spanned<CpuChoice>,
    pub(crate) period: Spanned<Span>,
    /// The longest time that an arm takes from its decision until others see it.
    pub(crate) slow: Spanned<Span>,
}

/// A device with transmit queues.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPackets {
    /// The CPUs that the queues belong to: the first CPU's is the first, and so on, in turns.
    pub(crate) cpus: Spanned<CpuChoice>,
    /// Lines of `tc`, as they are typed.
    pub(crate) tc: Vec<Spanned<String>>,
    #[serde(default)]
    pub(crate) sender: SenderName,
    /// Packets on their way through each queue.
    pub(crate) window: Option<Spanned<u64>>,
    /// Packets per second and queue.
    pub(crate) rate: Option<Spanned<u64>>,
    /// What the sender does for each.
    pub(crate) work: Option<Spanned<Span>>,
    /// What a task does with what came for each.
    pub(crate) copy: Option<Spanned<Span>>,
    /// What the driver does for each.
    pub(crate) transmit: Option<Spanned<Span>>,
    /// From a packet that left to what it brings.
    pub(crate) wire: Option<Spanned<Span>>,
    /// For how long an interrupt waits for more to come.
    pub(crate) coalesce: Option<Spanned<Span>>,
    #[serde(default)]
    pub(crate) watchdog: WatchdogName,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawDriver {
    pub(crate) cpus: Spanned<CpuChoice>,
    pub(crate) every: Option<Spanned<usize>>,
    pub(crate) count: Option<Spanned<usize>>,
    /// From one interrupt of the device to the next.
    pub(crate) period: Spanned<Span>,
    pub(crate) jitter: Option<Spanned<Span>>,
    /// From the interrupt to the work.
    pub(crate) delay: Spanned<Span>,
    /// Of the work that the timer's callback hands to a worker where it runs.
    pub(crate) work: Spanned<Span>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawMeasure {
    pub(crate) cpus: Spanned<CpuChoice>,
    pub(crate) every: Option<Spanned<usize>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPairs {
    pub(crate) cpus: Spanned<CpuChoice>,
    /// Absent when the variants say.
    pub(crate) count: Option<Spanned<usize>>,
    pub(crate) request: Spanned<Span>,
    pub(crate) service: Spanned<Span>,
    pub(crate) timeout: Spanned<Span>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawEnqueue {
    pub(crate) cpus: Spanned<CpuChoice>,
    pub(crate) every: Option<Spanned<usize>>,
    pub(crate) delay: Spanned<Span>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RawFaults {
    pub(crate) stall: Vec<Spanned<RawStall>>,
    pub(crate) lost_kicks: Option<Spanned<RawLostKicks>>,
    pub(crate) late_wakeups: Option<Spanned<RawLateWakeups>>,
    pub(crate) isolation: Vec<Spanned<RawFlips>>,
    pub(crate) hotplug: Vec<Spanned<RawFlips>>,
    pub(crate) panics: Option<Spanned<RawPanics>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStall {
    pub(crate) cpus: Spanned<CpuChoice>,
    pub(crate) blocked: Spanned<Span>,
    pub(crate) every: Spanned<Span>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLostKicks {
    pub(crate) percent: Spanned<u32>,
    pub(crate) retry: Spanned<Span>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLateWakeups {
    pub(crate) percent: Spanned<u32>,
    pub(crate) upto: Spanned<Span>,
}

/// Every so often one of the CPUs, drawn at random, changes sides.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFlips {
    pub(crate) cpus: Spanned<CpuChoice>,
    pub(crate) every: Spanned<Span>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPanics {
    pub(crate) percent: Spanned<u32>,
}
