//! All transmit queues, and what each CPU has to do with them, as data.

use super::queue::SimQueue;
use crate::world::timers::Locks;
use quietcore_core::softirq::Vector;
use quietcore_qdisc::DEVICE_WEIGHT;
use std::collections::VecDeque;

/// Frames that one handler takes in (`netdev_budget`), and those of one queue before the next one's turn.
const BUDGET: u32 = 300;
pub(super) const WEIGHT: u32 = DEVICE_WEIGHT as u32;

/// All queues, and what CPUs have to do with them.
#[derive(Debug)]
pub(crate) struct PacketState {
    pub(crate) queues: Vec<SimQueue>,
    pub(super) stations: Vec<PacketStation>,
    /// By queue.
    pub(super) locks: Locks,
}

/// A CPU's part.
#[derive(Debug, Default)]
pub(super) struct PacketStation {
    /// Queues that its NET_TX is to run.
    pub(super) scheduled: VecDeque<u16>,
    /// Those that a handler of it runs next.
    pub(super) in_hand: VecDeque<u16>,
    /// The one that it runs now.
    pub(super) transmits: Option<u16>,
    pub(super) receives: ReceiveState,
}

impl PacketState {
    pub(crate) fn new(cpu_count: usize) -> Self {
        let stations = (0..cpu_count).map(|_| PacketStation::default()).collect();
        Self { queues: Vec::new(), stations, locks: Locks::new(0) }
    }

    /// Frames of `queue` have arrived at `cpu`.
    pub(crate) fn has_frames(&mut self, cpu: u16, queue: u16) {
        self.stations[usize::from(cpu)].receives.ready.push_back(queue);
    }

    pub(crate) fn begin_handler(&mut self, cpu: u16, vector: Vector) {
        let this = &mut self.stations[usize::from(cpu)];
        match vector {
            Vector::NET_TX => this.in_hand.append(&mut this.scheduled),
            Vector::NET_RX => (this.receives.budget, this.receives.weight) = (BUDGET, WEIGHT),
            _ => {}
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }
}

/// Where NET_RX of a CPU is.
#[derive(Debug, Default)]
pub(super) struct ReceiveState {
    /// Queues that have frames, in turns.
    pub(super) ready: VecDeque<u16>,
    /// What the handler, and the first of them, may yet take in.
    pub(super) budget: u32,
    pub(super) weight: u32,
    /// This queue's frame has been taken in, and is to be answered.
    pub(super) answers: Option<u16>,
    /// It runs this queue.
    pub(super) runs: Option<u16>,
    /// What it has for the task that copies, in ns.
    pub(super) copies: u64,
}

impl ReceiveState {
    /// The next queue's turn.
    pub(super) fn turn(&mut self) {
        if let Some(first) = self.ready.pop_front() {
            self.ready.push_back(first);
        }
        self.weight = WEIGHT;
    }
}
