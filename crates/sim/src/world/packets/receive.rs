//! Senders: NET_RX that acknowledges what came, or a task.

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
        if let Some(queue) = self.receives(cpu).runs.take() {
            let (goes_on, cost) = self.run_step(cpu, queue);
            self.receives(cpu).runs = goes_on.then_some(queue);
            return Some(cost);
        }
        let mut cost = None;
        if let Some(queue) = self.receives(cpu).answers.take() {
            let (goes_on, spent) = self.send_packet(cpu, queue);
            let copy = self.packets.queues[usize::from(queue)].load.copy;
            let this = self.receives(cpu);
            (this.runs, this.copies) = (goes_on.then_some(queue), this.copies + copy);
            cost = Some(spent);
            if goes_on {
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
        if this.is_run_by_task || this.in_hand > 0 {
            let step = if this.is_run_by_task { Self::run_step } else { Self::send_packet };
            let (goes_on, cost) = step(self, cpu, queue);
            self.packets.queues[usize::from(queue)].is_run_by_task = goes_on;
            // As where bottom halves are enabled again: what was raised meanwhile runs.
            let _ = self.begin_round(cpu);
            return NextPart::Run(cost);
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
}
