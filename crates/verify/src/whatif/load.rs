//! The load of a recording: what happened whatever the policy, in order, and nothing of what a policy
//! decided.
//!
//! An arm keeps the CPU that made it, its expiry and its kind; a cancel, its timer; an awake interval, its
//! two ends. The CPU on which a timer ran is kept apart ([`RecordedLoad::recorded_cpu`]), for comparing
//! with, and no decision of a replay reads it.
//!
//! Invariants: ticks never go back; a timer's number is below [`RecordedLoad::timers`], a CPU's below
//! [`RecordedLoad::cpus`]; at most [`INPUTS_MAX`] inputs. Not here: how an event becomes an input
//! (`reader.rs`), or where in a tick it stood: only their order counts.

use quietcore_core::place::Policy;
use quietcore_core::{CpuId, CpuSet, Nanos};
use quietcore_trace::TimerModel;

/// So many arms, cancels and ends of awake intervals are kept; a longer recording is cut there, and says so.
pub const INPUTS_MAX: usize = 4_000_000;

/// Which base of a CPU a timer waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadBase {
    /// Pinned: runs on that CPU only.
    Local,
    /// Unpinned: others may run it.
    Global,
    /// Deferrable: wakes no CPU.
    Deferrable,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LoadArm {
    pub(super) timer: u32,
    pub(super) function: u32,
    /// In jiffies, as asked for.
    pub(super) expires: u64,
    pub(super) jiffies: u64,
    /// The CPU of the event.
    pub(super) cpu: CpuId,
    /// The CPU whose base the kernel chose.
    pub(super) base: CpuId,
    pub(super) kind: LoadBase,
    /// Also of deferrable ones, which wait in their own base either way.
    pub(super) is_pinned: bool,
    /// The arming CPU ran its idle task.
    pub(super) is_idle: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum LoadEvent {
    Arm(LoadArm),
    /// Taken out before it ran; by its number.
    Cancel(u32),
    /// The CPU left idle.
    Awake(CpuId),
    /// The CPU stopped its tick.
    Idle(CpuId),
    /// It got its place in the tree.
    Join(CpuId),
    /// It takes part in the hierarchy.
    Available(CpuId),
    /// It no longer does.
    Unavailable(CpuId),
    /// It stopped its tick; only until another source of awake intervals is known.
    TickStop(CpuId),
    /// A task ran there after it; the same.
    TaskAfterTickStop(CpuId),
    /// A place that turned out to belong to an expiry.
    Nothing,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LoadInput {
    /// Jiffies, counted from those of the first arm: [`RecordedLoad::first_jiffy`] is 2^32.
    pub(super) tick: u64,
    pub(super) what: LoadEvent,
}

/// The ticks of a load begin here, so that what was armed for the past stays positive.
pub(super) const FIRST_TICK: u64 = 1 << 32;

/// What a recording says about its machine, as far as a replay needs it.
#[derive(Clone, Debug, Default)]
pub struct LoadFacts {
    /// One more than the highest possible CPU.
    pub cpu_count: Option<u16>,
    /// Ticks per second.
    pub hz: Option<u32>,
    /// How that kernel places unpinned timers.
    pub model: Option<TimerModel>,
    /// The sysctl `kernel.timer_migration`.
    pub timer_migration: Option<bool>,
    /// The CPUs that must stay quiet: what `foreign` is about, and what a push leaves out.
    pub isolated: CpuSet,
    /// CPUs with `nohz_full`.
    pub nohz_full: CpuSet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AwakeSource {
    /// `tmigr_cpu_active`, `tmigr_cpu_idle` and `timer_base_idle`.
    BaseIdle,
    /// `tick_stop`, and the first event of a task after it.
    TickStop,
    /// No such events: every CPU counts as awake.
    None,
}

/// A recording, as a replay needs it. Made by [`LoadReader`](super::LoadReader).
#[derive(Debug)]
pub struct RecordedLoad {
    pub(super) inputs: Vec<LoadInput>,
    pub(super) functions: Vec<String>,
    /// How many different timers there are.
    pub(super) timers: usize,
    /// The jiffies that tick [`FIRST_TICK`] is.
    pub(super) first_jiffy: u64,
    pub(super) tick: Nanos,
    pub(super) cpus: u16,
    pub(super) nodes: Vec<u16>,
    /// CPUs whose joining, and whose becoming available, is among the inputs.
    pub(super) joining: CpuSet,
    pub(super) appearing: CpuSet,
    /// CPUs that sleep when the recording begins.
    pub(super) asleep_first: CpuSet,
    /// CPUs that did something, and never said that they were idle.
    pub(super) never_idle: CpuSet,
    pub(super) awake_source: AwakeSource,
    pub(super) model: TimerModel,
    pub(super) policy: Policy,
    pub(super) facts: LoadFacts,
    /// By the place of an arm among the inputs: on which CPU the kernel ran it.
    pub(super) ran_on: Vec<(u32, CpuId)>,
    pub(super) is_cut: bool,
}

impl RecordedLoad {
    /// How many inputs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Whether there is nothing to replay.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// One more than the highest CPU.
    #[must_use]
    pub const fn cpus(&self) -> u16 {
        self.cpus
    }

    /// How the recording's own kernel placed unpinned timers.
    #[must_use]
    pub const fn policy(&self) -> Policy {
        self.policy
    }

    /// Whether the recording was longer than [`INPUTS_MAX`] and only its beginning is here.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// All CPUs in the order in which they get their places in the tree: those without such an input first.
    pub(super) fn joining_order(&self) -> impl Iterator<Item = CpuId> + '_ {
        let early = (0..u64::from(self.cpus)).filter_map(|cpu| CpuId::new(cpu).ok());
        let early = early.filter(|cpu| !self.joining.contains(*cpu));
        let mut joined = CpuSet::new();
        early.chain(self.inputs.iter().filter_map(move |input| match input.what {
            LoadEvent::Join(cpu) if joined.insert(cpu) => Some(cpu),
            _ => None,
        }))
    }

    /// The CPU on which the kernel ran what input `place` armed: to compare with, not to decide with.
    pub(super) fn recorded_cpu(&self, place: u32) -> Option<CpuId> {
        let found = self.ran_on.binary_search_by_key(&place, |(place, _)| *place).ok()?;
        Some(self.ran_on[found].1)
    }

    pub(super) const fn jiffies(&self, tick: u64) -> u64 {
        self.first_jiffy.wrapping_add(tick.wrapping_sub(FIRST_TICK))
    }

    /// The tick of jiffies, for those within what can be told apart.
    pub(super) const fn tick_of(&self, jiffies: u64) -> u64 {
        jiffies.wrapping_sub(self.first_jiffy).wrapping_add(FIRST_TICK)
    }
}
