//! Senders: NET_RX that acknowledges what came, or a task.

use super::queue::QueueRun;
use super::station::{ReceiveState, WEIGHT};
use crate::world::context::RunAccess;
use crate::world::softirqs::SoftirqLayer;
use crate::world::tasks::NextPart;
use quietcore_core::softirq::Vector;

impl SoftirqLayer<'_> {
    fn receives(&mut self, cpu: u16) -> &mut ReceiveState {
        &mut self.packets.stations[usize::from(cpu)].receives
    }

    /// NET_RX of `cpu`: the queue that it runs, an answer, the next frame; `None` when it is over.
    pub(crate) fn receive_step(&mut self, cpu: u16) -> Option<u64> {
        if let Some(run) = self.receives(cpu).run.take() {
            let (run, cost) = self.run_step(cpu, run);
            self.receives(cpu).run = run;
            return Some(cost);
        }
        let mut cost = None;
        if let Some(queue) = self.receives(cpu).answers.take() {
            let (run, spent) = self.send_packet(cpu, queue);
            let copy = self.packets.queues[usize::from(queue)].load.copy;
            let this = self.receives(cpu);
            (this.run, this.copies) = (run, this.copies + copy);
            cost = Some(spent);
            if this.run.is_some() {
                return cost;
            }
        }
        match self.next_frame(cpu) {
            Some(work) => Some(cost.unwrap_or(0) + work),
            None if cost.is_some() => cost,
            None => {
                self.receive_ends(cpu);
                None
            }
        }
    }

    /// Takes in a frame; returns what that costs.
    fn next_frame(&mut self, cpu: u16) -> Option<u64> {
        let now = self.now();
        loop {
            let this = self.receives(cpu);
            if this.budget == 0 {
                return None;
            }
            if this.weight == 0 {
                this.turn();
            }
            let queue = *this.ready.front()?;
            let queued = &mut self.packets.queues[usize::from(queue)];
            if queued.take_in(now) {
                let work = queued.load.work;
                let this = self.receives(cpu);
                (this.budget, this.weight) = (this.budget - 1, this.weight - 1);
                this.answers = Some(queue);
                return Some(work);
            }
            // All of it is taken in: from now on its device interrupts again.
            queued.is_polled = false;
            let this = self.receives(cpu);
            this.ready.pop_front();
            this.weight = WEIGHT;
            self.expect_frames(queue);
        }
    }

    /// The handler is over: what is left is for the next one, what came for the task.
    fn receive_ends(&mut self, cpu: u16) {
        let this = self.receives(cpu);
        let (is_left, copies) = (!this.ready.is_empty(), std::mem::take(&mut this.copies));
        if is_left {
            self.raise(cpu, Vector::NET_RX);
        }
        if copies > 0 {
            // To a task of this CPU, which is awake.
            let _ = self.tasks.queue_work(cpu, copies);
        }
    }

    /// A task that sends: the queue that it runs, its packet, the next one.
    pub(crate) fn sender_part(&mut self, cpu: u16, task: u32, queue: u16) -> NextPart {
        let now = self.now();
        let this = &mut self.packets.queues[usize::from(queue)];
        if let Some(run) = this.sender_run.take() {
            let (run, cost) = self.run_step(cpu, run);
            return self.sender_goes_on(cpu, queue, run, cost);
        }
        if this.in_hand > 0 {
            let (run, cost) = self.send_packet(cpu, queue);
            return self.sender_goes_on(cpu, queue, run, cost);
        }
        if this.take_in(now) {
            let work = this.load.work;
            let part = &mut self.tasks.all[task as usize].part;
            *part = (*part + 1) % WEIGHT as u8;
            return if *part == 0 { NextPart::Yield(work) } else { NextPart::Run(work) };
        }
        this.is_polled = false;
        self.expect_frames(queue);
        NextPart::Block
    }

    fn sender_goes_on(&mut self, cpu: u16, queue: u16, run: Option<QueueRun>, cost: u64) -> NextPart {
        self.packets.queues[usize::from(queue)].sender_run = run;
        // As where bottom halves are enabled again: what was raised meanwhile runs.
        let _ = self.begin_round(cpu);
        NextPart::Run(cost)
    }
}
