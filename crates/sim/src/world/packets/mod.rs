//! Packets: transmit queues with a netem, a lock and a watchdog each, and who sends through them.
//!
//! Disciplines are those that programs use (`quietcore_qdisc::Netem`), watchdogs are the machine's exact
//! timers: it decides on which CPU one is queued. The simulator adds the time, and who does what where, as
//! the kernel does: who sends enqueues under the queue's lock and runs the queue, unless somebody does; who
//! runs it takes one packet per hold of the lock and gives it to the driver without it, 64 of them at most;
//! a queue whose head must wait arms the watchdog, where it was run; the watchdog puts the queue on the list
//! of the CPU where it goes off, and NET_TX there runs the list.
//!
//! A *stream*'s sender is a receiver that acknowledges: frames arrive, an interrupt raises NET_RX on the
//! queue's CPU, which takes in 300 at most, sends a packet for each, and leaves the data to a task that
//! copies it. A *datagram*'s sender is a task. Whoever waits for the lock does so at the expense of its CPU.
//!
//! Invariants, checked with the others: no packet of a window is lost; a queue whose head must wait has its
//! watchdog armed, is on a list, or is being run. Absent: interrupts while the lock is held (its holder is
//! paused, and the lock is free when it would have been), segmentation, losses on the way. Source: Linux
//! net/core/dev.c, net/sched/sch_generic.c and sch_netem.c of 2014, by behaviour.

mod queue;
mod receive;
mod serve;

pub(super) use queue::{Queue, Run};

use super::World;
use super::lock_costs::Locks;
use super::record::What;
use super::softirq::Arrival;
use super::{Event, cpu::why};
use crate::scenario::SenderName;
use quietcore_core::Nanos;
use quietcore_core::softirq::Vector;
use std::collections::VecDeque;

/// For how long a packet that was dropped is missed: the shortest time-out of TCP (`TCP_RTO_MIN`).
const RETRY: u64 = 200_000_000;

/// All queues, and what CPUs have to do with them.
#[derive(Debug)]
pub(super) struct Packets {
    pub(super) queues: Vec<Queue>,
    stations: Vec<Station>,
    /// By queue.
    locks: Locks,
}

/// A CPU's part.
#[derive(Debug, Default)]
struct Station {
    /// Queues that its NET_TX is to run.
    scheduled: VecDeque<u16>,
    /// Those that a handler of it runs now, the first of them as `run` says.
    in_hand: VecDeque<u16>,
    transmits: Option<Run>,
    receives: receive::Receiving,
}

impl Packets {
    pub(super) fn new(cpu_count: usize) -> Self {
        let stations = (0..cpu_count).map(|_| Station::default()).collect();
        Self { queues: Vec::new(), stations, locks: Locks::new(0) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }
}

impl World<'_> {
    /// Frames have arrived for `queue`, or there is room for more: its CPU is interrupted.
    pub(super) fn frames_arrive(&mut self, queue: u16) {
        let this = &mut self.packets.queues[usize::from(queue)];
        (this.is_expected, this.is_polled) = (false, true);
        let home = this.home;
        self.arrive(home, Arrival::Frames(queue), why::DEVICE);
    }

    /// That interrupt is handled; returns what it costs.
    pub(super) fn take_frames(&mut self, cpu: u16, queue: u16) -> u64 {
        let this = &self.packets.queues[usize::from(queue)];
        match this.load.sender {
            SenderName::Datagram => {
                let task = this.task.expect("a datagram's sender is a task");
                self.wake(task, cpu)
            }
            SenderName::Stream => {
                self.packets.stations[usize::from(cpu)].receives.ready(queue);
                self.raise(cpu, Vector::NET_RX);
                0
            }
        }
    }

    /// A packet that was dropped is sent again.
    pub(super) fn send_again(&mut self, queue: u16) {
        let now = self.now;
        let this = &mut self.packets.queues[usize::from(queue)];
        this.missed -= 1;
        this.wire.push_front(now);
        self.expect_frames(queue);
    }

    /// Interrupts when there is something for `queue`, unless somebody looks anyway.
    fn expect_frames(&mut self, queue: u16) {
        let now = self.now;
        let this = &mut self.packets.queues[usize::from(queue)];
        this.generate(now);
        if this.is_polled || this.is_expected {
            return;
        }
        let Some(&first) = this.wire.front() else { return };
        this.is_expected = true;
        let at = first.max(now) + this.load.coalesce;
        self.queue.push(Nanos(at), Event::Frames(queue));
    }

    /// The first look at every queue.
    pub(super) fn begin_packets(&mut self) {
        self.packets.locks = Locks::new(self.packets.queues.len());
        for queue in 0..self.packets.queues.len() as u16 {
            self.expect_frames(queue);
        }
    }

    /// The handler of `vector` begins on `cpu`.
    pub(super) fn begin_handler(&mut self, cpu: u16, vector: Vector) {
        let this = &mut self.packets.stations[usize::from(cpu)];
        match vector {
            Vector::NET_TX => this.in_hand.append(&mut this.scheduled),
            Vector::NET_RX => this.receives.begin(),
            _ => {}
        }
    }

    /// The handler of `vector` goes one packet further on `cpu`: how long that takes; `None` when it is over.
    pub(super) fn packet_step(&mut self, cpu: u16, vector: Vector) -> Option<u64> {
        if self.packets.is_empty() {
            return None;
        }
        match vector {
            Vector::NET_TX => self.transmit_step(cpu),
            Vector::NET_RX => self.receive_step(cpu),
            _ => None,
        }
    }

    /// NET_TX of `cpu`: one packet of the queue that it runs, or the next queue.
    fn transmit_step(&mut self, cpu: u16) -> Option<u64> {
        let at = usize::from(cpu);
        loop {
            if let Some(run) = self.packets.stations[at].transmits.take() {
                let (run, cost) = self.run_step(cpu, run);
                self.packets.stations[at].transmits = run;
                return Some(cost);
            }
            let queue = self.packets.stations[at].in_hand.pop_front()?;
            let this = &mut self.packets.queues[usize::from(queue)];
            this.is_scheduled = false;
            // Who runs it looks again.
            self.packets.stations[at].transmits = this.begin_run(queue);
        }
    }

    /// `queue` is to be run by NET_TX of `cpu`.
    pub(super) fn schedule_queue(&mut self, cpu: u16, queue: u16) {
        if !std::mem::replace(&mut self.packets.queues[usize::from(queue)].is_scheduled, true) {
            self.packets.stations[usize::from(cpu)].scheduled.push_back(queue);
        }
        self.raise(cpu, Vector::NET_TX);
    }

    /// The watchdog of `queue` has gone off on `cpu`.
    pub(super) fn watchdog_ends(&mut self, cpu: u16, queue: u16) {
        let this = &mut self.packets.queues[usize::from(queue)];
        this.armed = None;
        let is_elsewhere = cpu != this.home;
        let figures = self.recorder.packets();
        *figures.watchdogs.entry(cpu).or_default() += 1;
        figures.watchdogs_elsewhere += u64::from(is_elsewhere);
        self.note(What::Watchdog, cpu, u64::from(queue));
        self.schedule_queue(cpu, queue);
    }

    /// A watchdog's moment: the device of the CPU that has it interrupts.
    pub(super) fn watchdog_due(&mut self, timer: u32) {
        let this = &self.timers[timer as usize];
        if this.is_pending && this.expires == self.now {
            let base = this.base;
            self.interrupt(base, why::HRTIMER);
        }
    }

    /// What holds between any two events.
    pub(super) fn check_packets(&self) {
        for (number, queue) in self.packets.queues.iter().enumerate() {
            assert_eq!(queue.lost(), 0, "queue {number}: {queue:?}");
            let is_served = queue.is_running || queue.is_scheduled || queue.armed.is_some();
            assert!(is_served || queue.qlen() == 0, "queue {number} is served by nobody: {queue:?}");
            let expires = self.timers[queue.watchdog as usize].expires;
            assert!(
                queue.armed.is_none_or(|armed| armed == expires),
                "queue {number}: its watchdog is not armed for {:?}",
                queue.armed
            );
        }
    }

    pub(super) fn finish_packets(&mut self) {
        if self.packets.is_empty() {
            return;
        }
        let lost = self.packets.queues.iter().map(Queue::lost).sum();
        let held = self.packets.queues.iter().map(Queue::qlen).sum();
        let figures = self.recorder.packets();
        (figures.lost, figures.held) = (lost, held);
    }
}
