//! What an explanation consists of; field for field the JSON of `quietcore explain --json`.
//!
//! Described for users in `docs/reference/explain-json.md`, schema 2. A figure is `None` (JSON `null`) when
//! the events it is made of are not in the input, and its path is in [`Explanation::not_recorded`];
//! it is never 0 for that reason. Maps are ordered, their keys are CPU or group numbers.

use crate::finding::Finding;
use serde::Serialize;
use std::collections::BTreeMap;

/// Counts by CPU or group number.
pub type CountByNumber = BTreeMap<u16, u64>;
/// Counts by function or task.
pub type CountByName = BTreeMap<String, u64>;

/// The explanation of one trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// Version of this layout: 2.
    pub schema: u32,
    /// The kernel's release, if the input or the host says.
    pub kernel: Option<String>,
    /// Whether the kernel has PREEMPT_RT, as its release or its threads say.
    pub preempt_rt: bool,
    /// One more than the highest possible CPU.
    pub cpus: u16,
    /// The isolated CPUs that the figures are about, a kernel list.
    pub isolated: String,
    /// Where that list is from: `option`, `recording` or `host`.
    pub isolated_source: &'static str,
    /// CPUs with `nohz_full`, a kernel list; not part of `isolated` unless listed there.
    pub nohz_full: String,
    /// The sysctl `kernel.timer_migration`, if the input or the host says.
    pub timer_migration: Option<bool>,
    /// When an isolated CPU was taken out of timer migration, the last time; `None` where the input does not
    /// show it.
    pub isolated_at_ns: Option<u64>,
    /// The time of the first event, on the recording's clock.
    pub begin_ns: Option<u64>,
    /// What the wall clock was at time 0 of the recording's clock, since 1970 (UTC); `None` where the input
    /// does not say.
    pub wall_clock_ns: Option<u64>,
    /// From the first to the last event; `None` when the clock has no unit.
    pub duration_ns: Option<u64>,
    /// Events read.
    pub events: u64,
    /// Events that the kernel or the recorder lost.
    pub lost_events: u64,
    /// Paths of the figures that are `None` because their events are not in the input.
    pub not_recorded: Vec<&'static str>,
    /// Why the figures are approximate: lost events, malformed lines, evicted identities.
    pub incomplete: Vec<String>,
    /// Plain counts of the wheel timers' events.
    pub timers: TimerTotals,
    /// Armed on a CPU that is not isolated, ran on an isolated one.
    pub foreign: Disturbance,
    /// Armed on one isolated CPU, ran on another.
    pub between_isolated: Disturbance,
    /// Ran on another CPU than the base's, isolated or not.
    pub remote: RemoteExpiries,
    /// Remote expiries after which the timer was armed on its old base again.
    pub ping_pong: PingPong,
    /// TIMER softirqs.
    pub softirq: SoftirqTotals,
    /// High-resolution timers.
    pub hrtimers: HrtimerTotals,
    /// Wake-ups of real-time tasks.
    pub rt_wakeups: RtWakeups,
    /// The level-0 groups of the migration hierarchy.
    pub groups: HierarchyGroups,
    /// What each isolated CPU was made to run.
    pub isolated_cpus: Vec<IsolatedCpu>,
    /// What took isolated CPUs away from their tasks, or all CPUs where none is isolated.
    pub interruptions: Vec<Interruption>,
    /// What the kernel's osnoise tracer measured itself, where its events are in the input.
    pub osnoise: Vec<MeasuredNoise>,
    /// How long CPUs stayed in their idle states, by CPU and state; states that were never entered are left
    /// out.
    pub idle: Option<Vec<IdleResidency>>,
    /// What was open around the moment that was asked for, if one was.
    pub at: Option<MomentReport>,
    /// The pieces of the recording, if [`ExplainOptions::timeline`](crate::ExplainOptions::timeline) asked
    /// for them; not in the JSON.
    #[serde(skip)]
    pub timeline: Option<TimelineReport>,
    /// Lines that could not be read.
    pub malformed: UnreadableLines,
    /// Events without a type of their own, by name.
    pub unknown_events: CountByName,
    /// Identities that were forgotten because a table was full.
    pub evicted: u64,
    /// Sentences a reader must know before trusting the figures.
    pub warnings: Vec<String>,
    /// What is wrong, why, and what to change.
    pub findings: Vec<Finding>,
}

/// Plain counts of the wheel timers' events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TimerTotals {
    /// `timer_start` events.
    pub started: Option<u64>,
    /// `timer_expire_entry` events.
    pub expired: Option<u64>,
    /// `timer_cancel` events; one precedes every expiry and every re-arm of a pending timer.
    pub cancel_events: Option<u64>,
    /// Expiries of an identity without an earlier `timer_start`.
    pub expired_unknown_start: Option<u64>,
}

/// Timers that ran on an isolated CPU and were armed elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Disturbance {
    /// All of them.
    pub total: Option<u64>,
    /// Ran on another CPU than the one whose base they were in.
    pub pulled: Option<u64>,
    /// Ran on the CPU whose base they were put into.
    pub placed: Option<u64>,
    /// Those of `total` that ran after their CPU was taken out of timer migration the last time; all of those
    /// on CPUs of which the input does not show it.
    pub since_isolated: Option<u64>,
    /// By callback.
    pub by_function: Option<CountByName>,
    /// `pulled` by callback; not in the JSON.
    #[serde(skip)]
    pub pulled_by_function: CountByName,
    /// `placed` by callback; not in the JSON.
    #[serde(skip)]
    pub placed_by_function: CountByName,
    /// By the CPU they ran on.
    pub by_cpu: Option<CountByNumber>,
    /// By the CPU whose base they were in.
    pub by_base_cpu: Option<CountByNumber>,
    /// By the level-0 group of the CPU they ran on.
    pub by_group: Option<CountByNumber>,
    /// For how long their callbacks took the CPU away, without what was on top of them; of those whose end is
    /// in the input.
    pub took_ns: TookSpans,
    /// Lines that prove it: at most two of each kind per CPU.
    pub examples: Vec<ExampleExpiry>,
}

/// One expiry, with the lines of the input that prove it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExampleExpiry {
    /// `pulled` or `placed`.
    pub kind: &'static str,
    /// The callback.
    pub function: String,
    /// The CPU it was armed on.
    pub armed_cpu: u16,
    /// Line of its `timer_start`.
    pub armed_line: u64,
    /// The CPU whose base it was in.
    pub base_cpu: u16,
    /// The CPU it ran on.
    pub cpu: u16,
    /// Line of its `timer_expire_entry`.
    pub line: u64,
}

/// Expiries by another CPU than the base's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RemoteExpiries {
    /// All of them.
    pub total: Option<u64>,
    /// By the CPU they ran on.
    pub by_cpu: Option<CountByNumber>,
}

/// See [`Explanation::ping_pong`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PingPong {
    /// How often.
    pub count: Option<u64>,
    /// Per second of the recording.
    pub per_s: Option<f64>,
}

/// TIMER softirqs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SoftirqTotals {
    /// `softirq_entry` events of the TIMER vector.
    pub timer_entries: Option<u64>,
    /// Those that left again without one `timer_expire_entry` on that CPU.
    pub timer_empty: Option<u64>,
    /// `timer_empty` by CPU.
    pub by_cpu: Option<CountByNumber>,
    /// From entry to exit of those that were empty.
    pub empty_ns: TookSpans,
}

/// High-resolution timers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HrtimerTotals {
    /// `hrtimer_expire_entry` events.
    pub expired: Option<u64>,
    /// Those on another CPU than that of the timer's last `hrtimer_start`.
    pub off_arming_cpu: Option<u64>,
    /// Those of `off_arming_cpu` that were started on a CPU that is not isolated and ran on one
    /// that is.
    pub foreign: Option<u64>,
    /// Expiries of `hrtimer_wakeup` by the task that started the timer, `comm-pid`.
    pub by_task: Option<CountByName>,
    /// The timers that packet schedulers wait on.
    pub qdisc_watchdog: WatchdogTotals,
}

/// Expiries of `qdisc_watchdog`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WatchdogTotals {
    /// All of them.
    pub expired: Option<u64>,
    /// Those on another CPU than that of the timer's last `hrtimer_start`.
    pub off_arming_cpu: Option<u64>,
    /// All of them by the CPU they ran on.
    pub by_cpu: Option<CountByNumber>,
}

/// Wake-ups of tasks with a priority below 100.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RtWakeups {
    /// `sched_waking` events.
    pub count: Option<u64>,
    /// Those of the kernel's own threads.
    pub kernel_threads: Option<u64>,
    /// Those of other tasks whose target CPU was inside a NET_TX, NET_RX, BLOCK or IRQ_POLL softirq.
    pub behind_softirq: Option<u64>,
    /// From `sched_waking` to the task's `sched_switch` in, over `behind_softirq`.
    pub delay_ns: DelayQuantiles,
}

/// Quantiles of a span in ns, to three significant digits (`max` exactly); `None` without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DelayQuantiles {
    /// Half are at most this.
    pub p50: Option<u64>,
    /// 99 of 100 are at most this.
    pub p99: Option<u64>,
    /// The largest.
    pub max: Option<u64>,
}

/// How long something took in ns, in all and each time; `None` without samples. Quantiles to three
/// significant digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TookSpans {
    /// In all.
    pub total: Option<u64>,
    /// Half took at most this.
    pub p50: Option<u64>,
    /// 99 of 100 took at most this.
    pub p99: Option<u64>,
    /// The longest.
    pub max: Option<u64>,
}

/// The level-0 groups, numbered by their lowest CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HierarchyGroups {
    /// True when the input does not say and groups of eight were assumed.
    pub estimated: bool,
    /// The CPUs of each group, a kernel list.
    pub cpus: BTreeMap<u16, String>,
}

/// What one isolated CPU was made to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IsolatedCpu {
    /// The CPU.
    pub cpu: u16,
    /// Its level-0 group.
    pub group: u16,
    /// Foreign expiries that it pulled.
    pub pulled: u64,
    /// Foreign expiries that were placed on it.
    pub placed: u64,
    /// Both, by callback.
    pub by_function: CountByName,
}

/// What took one CPU away, all of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Interruption {
    /// The CPU.
    pub cpu: u16,
    /// `device`, `processor` (an interrupt that no device raised), `softirq`, `nmi`, `timer` and `hrtimer`
    /// (callbacks), `work` (a work item) or `task`.
    pub source: &'static str,
    /// Number and name of a device's interrupt, the processor's own, the softirq's vector, the handler, the
    /// function or the task.
    pub name: String,
    /// A task that is what the CPU is there for: it had it longest and is not the kernel's.
    pub own: bool,
    /// How often it began.
    pub count: u64,
    /// For how long in all, without what was on top of it; this and the rest are `None` where no end is in
    /// the input.
    pub total_ns: Option<u64>,
    /// 99 of 100 took at most this, to two significant digits.
    pub p99_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
    /// When that ended, on the recording's clock.
    pub max_at_ns: Option<u64>,
    /// In which line.
    pub max_line: Option<u64>,
    /// Why it ran, the most frequent first, at most 16; those whose cause is not in the input are in none.
    pub causes: Vec<Cause>,
    /// For how long in each piece of [`Explanation::timeline`], in ns; not in the JSON.
    #[serde(skip)]
    pub taken_ns: Vec<u64>,
    /// How many took from 2^n to less than 2^(n+1) ns, the first those of 0, too; with a timeline alone, and
    /// not in the JSON.
    #[serde(skip)]
    pub durations: Vec<u64>,
}

/// The pieces of a recording, all of one length, in which the times of [`Interruption::taken_ns`] are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimelineReport {
    /// Where the first one begins, on the recording's clock.
    pub from_ns: u64,
    /// How long each is.
    pub piece_ns: u64,
    /// How many there are, at most 360.
    pub pieces: usize,
    /// By CPU: how often it is said that events were lost, by piece.
    pub lost_by_cpu: BTreeMap<u16, Vec<u64>>,
}

/// Why something ran on a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cause {
    /// How often it began for this cause.
    pub count: u64,
    /// For how long in all; `None` where no end is in the input.
    pub total_ns: Option<u64>,
    /// What started it, then what had started that, as far as the input shows: 1 to 4.
    pub steps: Vec<CauseStep>,
}

/// What the osnoise tracer measured on one CPU, all of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MeasuredNoise {
    /// The CPU.
    pub cpu: u16,
    /// `interrupt`, `softirq`, `task` or `nmi`.
    pub source: &'static str,
    /// The interrupt, the softirq or the task; empty for an NMI.
    pub name: String,
    /// How often.
    pub count: u64,
    /// For how long in all, without what was on top of it.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// When that was over, on the recording's clock.
    pub max_at_ns: u64,
}

/// How often one CPU went into one idle state, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct IdleResidency {
    /// The CPU.
    pub cpu: u16,
    /// The state's number, as the kernel counts the CPU's states: the deeper the higher.
    pub state: u32,
    /// How often it was entered.
    pub entries: u64,
    /// For how long in all; this and the rest are `None` where no end is in the input.
    pub total_ns: Option<u64>,
    /// The longest residency.
    pub max_ns: Option<u64>,
    /// `total_ns` as a share of the recording; `None` where that took no time.
    pub share: Option<f64>,
}

/// What was open around a moment, on the CPUs whose interruptions are counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MomentReport {
    /// The moment, on the recording's clock.
    pub at_ns: u64,
    /// So long before and after it belongs to it.
    pub around_ns: u64,
    /// What was open then, by begin; at most 256.
    pub spans: Vec<NearSpan>,
    /// How many more there were.
    pub more: u64,
}

/// Something that ran on a CPU around a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NearSpan {
    /// The CPU.
    pub cpu: u16,
    /// As [`Interruption::source`].
    pub source: &'static str,
    /// As [`Interruption::name`].
    pub name: String,
    /// When it began, on the recording's clock; what another task interrupted begins again after it.
    pub begin_ns: u64,
    /// When it ended; `None` where its end is not in the input.
    pub end_ns: Option<u64>,
    /// For how long nothing else was on top of it.
    pub own_ns: Option<u64>,
    /// As [`Cause::steps`]; empty where the cause is not in the input.
    pub steps: Vec<CauseStep>,
}

/// How something was started, and what the CPU was doing that started it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct CauseStep {
    /// `armed`, `sent`, `raised`, `woken` or `queued`.
    pub how: &'static str,
    /// Of an interrupt that was sent: what its receiver is to call, or the function that sent it.
    pub function: Option<String>,
    /// The CPU that started it.
    pub cpu: u16,
    /// What that CPU was doing, as [`Interruption::source`].
    pub source: &'static str,
    /// As [`Interruption::name`].
    pub name: String,
}

/// Lines that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnreadableLines {
    /// How many.
    pub count: u64,
    /// The first of them: `line N: why: the line`.
    pub first: Vec<String>,
}
