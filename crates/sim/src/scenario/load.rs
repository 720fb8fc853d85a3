//! The loads of a plan: what a machine has to do, one load on one CPU, with every value decided.

use super::raw::PrecisionName;
use quietcore_core::CpuId;
use quietcore_core::realtime::Priority;
use quietcore_core::softirq::Vector;

/// A timer that is armed again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Periodic {
    pub(crate) period: u64,
    pub(crate) jitter: u64,
    /// How long the callback itself takes.
    pub(crate) callback: u64,
    pub(crate) pinned: bool,
    pub(crate) deferrable: bool,
    pub(crate) precision: PrecisionName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedLoad {
    pub(crate) cpu: CpuId,
    pub(crate) kind: LoadKind,
}

impl PlannedLoad {
    /// The longest that it keeps a CPU from its timers, in ns.
    pub(crate) const fn longest(&self) -> u64 {
        match self.kind {
            LoadKind::Periodic(Periodic { callback, .. }) => callback,
            LoadKind::Driver { work, .. } => work,
            LoadKind::Timeout { run, .. } | LoadKind::Sleeper { run, .. } => run,
            LoadKind::Busy { chunk, .. } => chunk,
            LoadKind::Softirq(device) => device.most,
            LoadKind::Realtime(thread) => thread.work,
            LoadKind::Remote { slow, .. } => slow,
            LoadKind::Pair { request, service, .. } => request + service,
            LoadKind::Measure | LoadKind::Enqueue { .. } => 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadKind {
    Periodic(Periodic),
    /// A task that arms a timeout, works, cancels it, sleeps.
    Timeout {
        delay: u64,
        run: u64,
        sleep: u64,
    },
    /// A device interrupts every `period`; its handler arms a delayed work, whose timer hands `work` ns to
    /// the worker of the CPU where it runs.
    Driver {
        period: u64,
        jitter: u64,
        delay: u64,
        work: u64,
    },
    Sleeper {
        run: u64,
        sleep: u64,
        jitter: u64,
        rt: bool,
        precision: PrecisionName,
    },
    Busy {
        chunk: u64,
        normal: bool,
    },
    /// A busy loop that notices when it was away.
    Measure,
    /// A client here and a server there.
    Pair {
        server: CpuId,
        request: u64,
        service: u64,
        timeout: u64,
    },
    /// Arms and cancels one timer, over and over.
    Enqueue {
        delay: u64,
    },
    Softirq(SoftirqDevice),
    Realtime(Cyclic),
    /// Arms a timer on another CPU about when the tick of that is, `slow` ns after it decided to at most.
    Remote {
        target: CpuId,
        period: u64,
        slow: u64,
    },
}

/// A device whose interrupts raise a softirq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SoftirqDevice {
    pub(crate) vector: Vector,
    /// From one interrupt to the next, on average.
    pub(crate) interval: u64,
    pub(crate) least: u64,
    pub(crate) median: u64,
    pub(crate) most: u64,
    /// The exponent of the tail, in thousandths.
    pub(crate) tail: u32,
}

/// A real-time task that sleeps until its interval is over, and works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cyclic {
    pub(crate) priority: Priority,
    pub(crate) interval: u64,
    pub(crate) work: u64,
    /// Whether it stays on its first CPU.
    pub(crate) pinned: bool,
    /// Where it may run otherwise: a number of the plan's affinities.
    pub(crate) affinity: u32,
}
