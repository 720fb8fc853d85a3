//! The handlers of NET_TX and NET_RX, packet by packet, and what makes a queue run again.

use super::queue::SimQueue;
use crate::world::context::{NotedEvent, RunAccess};
use crate::world::event::SimEvent;
use crate::world::softirqs::SoftirqLayer;
use crate::world::timers::Locks;
use quietcore_core::Nanos;
use quietcore_core::softirq::Vector;

impl SoftirqLayer<'_> {
    /// The handler of `vector` goes one packet further on `cpu`: how long that takes; `None` when it is over.
    pub(crate) fn packet_step(&mut self, cpu: u16, vector: Vector) -> Option<u64> {
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
            if let Some(queue) = self.packets.stations[at].transmits.take() {
                let (goes_on, cost) = self.run_step(cpu, queue);
                self.packets.stations[at].transmits = goes_on.then_some(queue);
                return Some(cost);
            }
            let queue = self.packets.stations[at].in_hand.pop_front()?;
            let tx = &mut self.packets.queues[usize::from(queue)].tx;
            tx.scheduled();
            // A run that is under way looks again.
            self.packets.stations[at].transmits = tx.begin().then_some(queue);
        }
    }

    /// `queue` is to be run by NET_TX of `cpu`.
    pub(crate) fn schedule_queue(&mut self, cpu: u16, queue: u16) {
        if self.packets.queues[usize::from(queue)].tx.schedule() {
            self.packets.stations[usize::from(cpu)].scheduled.push_back(queue);
        }
        self.raise(cpu, Vector::NET_TX);
    }

    /// The watchdog of `queue` has gone off on `cpu`.
    pub(crate) fn watchdog_ends(&mut self, cpu: u16, queue: u16) {
        let this = &mut self.packets.queues[usize::from(queue)];
        this.tx.watchdog_expired();
        let is_elsewhere = cpu != this.home;
        let figures = self.recorder().packets();
        *figures.watchdogs.entry(cpu).or_default() += 1;
        figures.watchdogs_elsewhere += u64::from(is_elsewhere);
        self.note(NotedEvent::Watchdog, cpu, u64::from(queue));
        self.schedule_queue(cpu, queue);
    }

    /// A packet that was dropped is sent again.
    pub(crate) fn send_again(&mut self, queue: u16) {
        let now = self.now();
        let this = &mut self.packets.queues[usize::from(queue)];
        this.missed -= 1;
        this.wire.push_front(now);
        self.expect_frames(queue);
    }

    /// Interrupts when there is something for `queue`, unless its CPU looks anyway.
    pub(super) fn expect_frames(&mut self, queue: u16) {
        let now = self.now();
        let this = &mut self.packets.queues[usize::from(queue)];
        this.generate(now);
        if this.is_polled || this.is_expected {
            return;
        }
        let Some(&first) = this.wire.front() else { return };
        this.is_expected = true;
        let at = first.max(now) + this.load.coalesce;
        self.push(Nanos(at), SimEvent::Frames(queue));
    }

    /// The first look at every queue.
    pub(crate) fn begin_packets(&mut self) {
        self.packets.locks = Locks::new(self.packets.queues.len());
        for queue in 0..self.packets.queues.len() as u16 {
            self.expect_frames(queue);
        }
    }

    /// What holds between any two events.
    pub(crate) fn check_packets(&self) {
        for (number, queue) in self.packets.queues.iter().enumerate() {
            assert_eq!(queue.lost(), 0, "queue {number}: {queue:?}");
            let (tx, armed) = (&queue.tx, queue.tx.armed());
            let is_served = tx.is_running() || tx.is_scheduled() || armed.is_some();
            assert!(is_served || queue.qlen() == 0, "queue {number} is served by no CPU: {queue:?}");
            let expires = self.tasks.timers.all[queue.watchdog as usize].expires;
            assert!(
                armed.is_none_or(|armed| armed.0 == expires),
                "queue {number}: its watchdog is not armed for {armed:?}"
            );
        }
    }

    pub(crate) fn finish_packets(&mut self) {
        if self.packets.is_empty() {
            return;
        }
        let lost = self.packets.queues.iter().map(SimQueue::lost).sum();
        let held = self.packets.queues.iter().map(SimQueue::qlen).sum();
        let figures = self.recorder().packets();
        (figures.lost, figures.held) = (lost, held);
    }
}
