//! The softirqs of a CPU, as data: what is pending, what runs, what is held back, and what interrupts
//! brought.

use quietcore_core::Nanos;
use quietcore_core::softirq::{Claims, Deferral, Passes, Vector, VectorSet};
use std::collections::VecDeque;

pub(crate) const VECTORS: usize = 16;

/// Work that a device has for a vector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceWork {
    pub(crate) vector: Vector,
    pub(crate) raised_at: u64,
    pub(crate) length: u64,
}

/// What an interrupt brings.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arrival {
    Work(DeviceWork),
    /// This real-time task's interval is over.
    Wake(u32),
    /// A timer was armed on this CPU from elsewhere.
    Called(u16),
    /// There is something for this transmit queue.
    Frames(u16),
}

/// One of the two runners of handlers on a CPU: its interrupts, and ksoftirqd.
#[derive(Debug, Default)]
pub(crate) struct RunnerState {
    pub(crate) round: Option<Passes>,
    /// What of its pass has not begun.
    pub(crate) rest: VectorSet,
    /// Its handler, of ksoftirqd, which goes on packet by packet.
    pub(crate) handler: Option<Vector>,
    /// Since when its pass runs, if it has one.
    pub(crate) pass_since: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct CpuSoftirqs {
    pub(crate) claims: Claims,
    pub(crate) deferral: Deferral,
    pub(crate) lane: RunnerState,
    pub(crate) ksoftirqd_runs: RunnerState,
    /// By vector, in the order of arrival.
    pub(crate) work: [VecDeque<DeviceWork>; VECTORS],
    pub(crate) held_since: [Option<u64>; VECTORS],
    /// When the next look at the limit is, if one is ahead.
    pub(crate) limit_look: Option<u64>,
    /// Its task, once there is one.
    pub(crate) ksoftirqd: Option<u32>,
    /// ksoftirqd holds what has waited long enough: it runs before every other task.
    pub(crate) is_boosted: bool,
    /// Timers that ran in this TIMER handler, where that is counted.
    pub(crate) expired: u32,
}

impl CpuSoftirqs {
    pub(crate) fn new(limit: Nanos) -> Self {
        Self {
            claims: Claims::new(),
            deferral: Deferral::new(limit),
            lane: RunnerState::default(),
            ksoftirqd_runs: RunnerState::default(),
            work: [const { VecDeque::new() }; VECTORS],
            held_since: [None; VECTORS],
            limit_look: None,
            ksoftirqd: None,
            is_boosted: false,
            expired: 0,
        }
    }

    /// Whether anything is pending or runs.
    pub(crate) fn is_quiet(&self) -> bool {
        self.claims.pending().union(self.claims.active()).is_empty()
    }

    pub(crate) fn is_in_round(&self) -> bool {
        self.lane.round.is_some()
    }

    /// A task waits that should run instead of what runs: rounds end after their pass.
    pub(crate) fn end_early(&mut self) {
        self.lane.round.iter_mut().for_each(Passes::end_early);
        self.ksoftirqd_runs.round.iter_mut().for_each(Passes::end_early);
    }

    pub(crate) fn left(&self) -> u64 {
        self.work.iter().map(|queue| queue.len() as u64).sum()
    }
}
