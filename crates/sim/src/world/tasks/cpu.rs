//! A CPU, as data: what it has to do, topmost first, and how long each of that still takes.
//!
//! At any moment a CPU does the topmost thing it has: an interrupt, a softirq, a real-time task, a task, a
//! task that only fills time, nothing. When something comes on top, the rest of what it did is kept. Under
//! `cooperative` nothing comes on top of a task: what arrives is looked at when the task ends.

use super::softirqs::{Arrival, CpuSoftirqs};
use quietcore_core::realtime::{Priority, RealtimeQueue};
use quietcore_core::softirq::Vector;
use quietcore_core::{ExpiredTimer, Nanos, Turn};
use std::collections::VecDeque;

/// Something to do for ever.
pub(crate) const ENDLESS: u64 = u64::MAX;

/// What a CPU spends its time on at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunLevel {
    /// Nothing: asleep, offline, or stalled.
    None,
    Interrupt,
    Softirq,
    Task,
}

/// The topmost segment of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InterruptState {
    None,
    /// An interrupt, or waking up.
    Interrupt,
    /// Pays for what the handlers of an interrupt did.
    Leaving,
    /// On its way to sleep; what arrives meanwhile is looked at first.
    FallingAsleep,
}

/// Where a CPU is in its softirqs: which handler runs, and where that of timers is.
#[derive(Debug)]
pub(crate) enum SoftirqState {
    None,
    /// Raised, not begun.
    Raised,
    /// Runs a timer's callback.
    Callback(ExpiredTimer<u32>),
    /// Pays for what it did last.
    Finishing,
    Handler(Vector),
}

/// A CPU and what it has: segments, queues, tick.
#[derive(Debug)]
pub(crate) struct SimCpu {
    pub(crate) is_online: bool,
    pub(crate) is_asleep: bool,
    /// A fault holds it.
    pub(crate) is_stalled: bool,
    pub(crate) level: RunLevel,
    pub(crate) since: u64,
    /// Changes whenever a segment's end is no longer what was planned.
    pub(crate) generation: u32,
    pub(crate) hard: InterruptState,
    pub(crate) hard_left: u64,
    /// Reasons to be looked at, of `why.rs`.
    pub(crate) pending: u8,
    pub(crate) soft: SoftirqState,
    pub(crate) soft_left: u64,
    pub(crate) turn: Turn,
    pub(crate) softirqs: CpuSoftirqs,
    /// What interrupts have brought and no handler has taken yet.
    pub(crate) arrived: Vec<Arrival>,
    pub(crate) current: Option<u32>,
    /// The task before, to know whether a switch costs anything.
    pub(crate) last_task: Option<u32>,
    /// The priority of the task before, if it was a real-time one.
    pub(crate) last_priority: Option<Priority>,
    pub(crate) realtime: RealtimeQueue<u32>,
    /// Normal, fillers.
    pub(crate) queues: [VecDeque<u32>; 2],
    pub(crate) tick_is_on: bool,
    pub(crate) tick_generation: u32,
    pub(crate) wakeup_generation: u32,
    /// The last tick edge that a lane looked at.
    pub(crate) looked_at: u64,
    pub(crate) asleep_since: u64,
    /// The state that it sleeps in, or goes to; 0 where there are none.
    pub(crate) idle_state: u8,
}

impl SimCpu {
    pub(crate) fn new(turn: Turn, limit: Nanos) -> Self {
        Self {
            is_online: true,
            is_asleep: false,
            is_stalled: false,
            level: RunLevel::None,
            since: 0,
            generation: 0,
            hard: InterruptState::None,
            hard_left: 0,
            pending: 0,
            soft: SoftirqState::None,
            soft_left: 0,
            turn,
            softirqs: CpuSoftirqs::new(limit),
            arrived: Vec::new(),
            current: None,
            last_task: None,
            last_priority: None,
            realtime: RealtimeQueue::new(),
            queues: [VecDeque::new(), VecDeque::new()],
            tick_is_on: false,
            tick_generation: 0,
            wakeup_generation: 0,
            looked_at: 0,
            asleep_since: 0,
            idle_state: 0,
        }
    }

    pub(crate) fn has_task(&self) -> bool {
        self.current.is_some()
            || !self.realtime.is_empty()
            || self.queues.iter().any(|queue| !queue.is_empty())
    }
}
