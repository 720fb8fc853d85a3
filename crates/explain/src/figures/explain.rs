//! [`Explain`]: what an explanation must know, and which counter takes which event.

use super::count::KindCounts;
use super::hierarchy::GroupCounts;
use super::hrtimer::HrtimerCounts;
use super::idle::IdleCounts;
use super::interruptions::{CallbackOf, Gap, InterruptionCounts, RecordedMoment};
use super::interrupts::SoftirqCounts;
use super::noise::NoiseCounts;
use super::switches::SwitchChain;
use super::timers::{TimerCounts, TimerExpiry};
use quietcore_core::{CpuSet, Nanos};
use quietcore_trace::{
    Event, IDENTITIES_MAX, KernelRelease, Migration, MigrationStep, NameTable, Record, WakeStep, WallClock,
};

/// What an explanation must know besides the events.
#[derive(Clone, Debug)]
pub struct ExplainOptions {
    /// The CPUs that must stay quiet.
    pub isolated: CpuSet,
    /// `option`, `recording` or `host`.
    pub isolated_source: &'static str,
    /// CPUs with `nohz_full`; shown, not counted as isolated.
    pub nohz_full: CpuSet,
    /// The kernel that wrote the trace.
    pub kernel: Option<KernelRelease>,
    /// One more than the highest possible CPU, if known.
    pub cpu_count: Option<u16>,
    /// The sysctl `kernel.timer_migration`, if known.
    pub timer_migration: Option<bool>,
    /// The wall clock at one time of the recording, if known.
    pub wall_clock: Option<WallClock>,
    /// Tracepoints known to have been on: their absence then means 0, not "not recorded".
    pub switched_on: Vec<String>,
    /// The moment to say of what CPUs were doing then.
    pub at: Option<RecordedMoment>,
    /// Whether to say when CPUs were taken away: [`Explanation::timeline`](crate::Explanation::timeline).
    pub timeline: bool,
    /// Look for a stretch longer than this in which an isolated CPU was taken away: [`Explain::gap`].
    pub gap: Option<Nanos>,
    /// How many timers, and how many hrtimers, are remembered at most.
    pub identities_max: usize,
}

impl Default for ExplainOptions {
    fn default() -> Self {
        Self {
            isolated: CpuSet::new(),
            isolated_source: "option",
            nohz_full: CpuSet::new(),
            kernel: None,
            cpu_count: None,
            timer_migration: None,
            wall_clock: None,
            switched_on: Vec::new(),
            at: None,
            timeline: false,
            gap: None,
            identities_max: IDENTITIES_MAX,
        }
    }
}

/// Takes events, ends in an [`Explanation`](crate::Explanation). One thread; cost per event some tens of ns.
///
/// See the crate's front page for an example.
#[derive(Debug)]
pub struct Explain {
    pub(super) options: ExplainOptions,
    pub(super) names: NameTable,
    pub(super) kinds: KindCounts,
    pub(super) wheel: TimerCounts,
    pub(super) interrupts: SoftirqCounts,
    pub(super) hrtimers: HrtimerCounts,
    pub(super) hierarchy: GroupCounts,
    pub(super) interruptions: InterruptionCounts,
    pub(super) noise: NoiseCounts,
    pub(super) idle: IdleCounts,
    pub(super) switches: SwitchChain,
    pub(super) first_at: Option<Nanos>,
    pub(super) last_at: Nanos,
    /// One more than the highest CPU that an event happened on.
    pub(super) cpus_seen: u16,
}

impl Explain {
    /// An explanation that has seen nothing.
    #[must_use]
    pub fn new(options: ExplainOptions) -> Self {
        Self {
            wheel: TimerCounts::new(options.identities_max),
            hrtimers: HrtimerCounts::new(options.identities_max),
            interrupts: SoftirqCounts::new(),
            hierarchy: GroupCounts::default(),
            interruptions: InterruptionCounts::new(options.isolated.clone(), options.at)
                .with_timeline(options.timeline)
                .with_gap(options.gap),
            noise: NoiseCounts::default(),
            idle: IdleCounts::default(),
            switches: SwitchChain::default(),
            names: NameTable::new(),
            kinds: KindCounts::default(),
            first_at: None,
            last_at: Nanos(0),
            cpus_seen: 0,
            options,
        }
    }

    /// The first stretch so far in which an isolated CPU was taken away from its tasks for longer than
    /// [`ExplainOptions::gap`]: by interrupts, softirqs, and tasks of the kernel that follow each other
    /// within 5 us. Known when it is over.
    #[must_use]
    pub fn gap(&self) -> Option<Gap> {
        self.interruptions.gap()
    }

    /// Takes the next event of the input.
    pub fn take(&mut self, record: &Record<'_>) {
        if let Event::Lost { .. } = record.event {
            // What was lost may have ended, moved or begun anything, on whatever CPU that began.
            self.interrupts.forget(record);
            self.wheel.forget(record);
            self.hrtimers.forget(record);
            self.interruptions.forget(record);
            self.idle.forget(record.cpu);
            self.switches.forget(record.cpu);
            return;
        }
        self.first_at = Some(self.first_at.map_or(record.at, |first| first.min(record.at)));
        self.last_at = self.last_at.max(record.at);
        self.cpus_seen = self.cpus_seen.max(record.cpu.index() as u16 + 1);
        self.kinds.add(&record.event);
        let isolated = &self.options.isolated;
        match &record.event {
            Event::TimerStart(start) => {
                let by = self.interruptions.initiator(record, &mut self.names);
                self.wheel.take_start(record, start, by);
            }
            Event::TimerExpireEntry { timer, function, .. } => {
                self.interrupts.take_expiry(record.cpu);
                let function = self.names.number(function);
                let expiry = TimerExpiry { line: record.line, ran_on: record.cpu, timer: *timer, function };
                let by = self.wheel.take_expiry(&expiry, isolated, &self.names);
                self.interruptions.take_callback(record, CallbackOf::Wheel(function), by);
            }
            Event::HrtimerStart(start) => {
                let by = self.interruptions.initiator(record, &mut self.names);
                self.hrtimers.take_start(record, start, by, &mut self.names);
            }
            Event::HrtimerExpireEntry { hrtimer, function, .. } => {
                let by = self.hrtimers.take_expiry(record, *hrtimer, function, isolated);
                let function = self.names.number(function);
                self.interruptions.take_callback(record, CallbackOf::HighResolution(function), by);
            }
            Event::Softirq { step, vector } => {
                self.interrupts.take_softirq(record.at, record.cpu, *step, *vector);
            }
            Event::SchedWake { step: WakeStep::Waking, task, priority, target } => {
                self.interrupts.take_waking(record, *task, *priority, *target);
            }
            Event::SchedSwitch { previous, next, .. } => {
                self.interrupts.take_switch(record.at, previous.pid, next.pid);
                self.switches.take(record.cpu, previous.pid, next.pid);
            }
            Event::Noise { .. } => self.noise.take(record, &mut self.names),
            Event::CpuIdle { cpu, state } => self.idle.take(record.at, *cpu, *state),
            Event::Migration(migration) => {
                self.hierarchy.take(record, isolated, &self.options.nohz_full);
                if let Migration::Cpu { step: MigrationStep::Unavailable, cpu, .. } = migration {
                    self.wheel.take_isolation(*cpu);
                }
            }
            _ => {}
        }
        self.interruptions.take(record, &mut self.names);
    }
}
