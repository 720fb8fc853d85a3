//! Who sends: NET_RX that acknowledges what came, or a task.

use super::queue::Run;
use crate::world::World;
use crate::world::task::Next;
use quietcore_core::softirq::Vector;
use std::collections::VecDeque;

/// Frames that one handler takes in (`netdev_budget`), and those of one queue before the next one's turn.
const BUDGET: u32 = 300;
const WEIGHT: u32 = 64;

/// Where NET_RX of a CPU is.
#[derive(Debug, Default)]
pub(super) struct Receiving {
    /// Queues that have frames, in turns.
    ready: VecDeque<u16>,
    /// What the handler, and the first of them, may yet take in.
    budget: u32,
    weight: u32,
    /// This queue's frame has been taken in, and is to be answered.
    answers: Option<u16>,
    /// It runs a queue.
    run: Option<Run>,
    /// What it has for the task that copies, in ns.
    copies: u64,
}

impl Receiving {
    pub(super) fn ready(&mut self, queue: u16) {
        self.ready.push_back(queue);
    }

    pub(super) const fn begin(&mut self) {
        (self.budget, self.weight) = (BUDGET, WEIGHT);
    }

    /// The next queue's turn.
    fn turn(&mut self) {
        if let Some(first) = self.ready.pop_front() {
            self.ready.push_back(first);
        }
        self.weight = WEIGHT;
    }
}

impl World<'_> {
    fn receives(&mut self, cpu: u16) -> &mut Receiving {
        &mut self.packets.stations[usize::from(cpu)].receives
    }

    /// NET_RX of `cpu`: the queue that it runs, an answer, the next frame; `None` when it is over.
    pub(super) fn receive_step(&mut self, cpu: u16) -> Option<u64> {
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
        let now = self.now;
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
            let _ = self.queue_work(cpu, copies);
        }
    }

    /// A task that sends: the queue that it runs, its packet, the next one.
    pub(in crate::world) fn sender_part(&mut self, cpu: u16, task: u32, queue: u16) -> Next {
        let now = self.now;
        let this = &mut self.packets.queues[usize::from(queue)];
        if let Some(run) = this.sender_run.take() {
            let (run, cost) = self.run_step(cpu, run);
            return self.sender_goes_on(cpu, queue, (run, cost));
        }
        if this.in_hand > 0 {
            let sent = self.send_packet(cpu, queue);
            return self.sender_goes_on(cpu, queue, sent);
        }
        if this.take_in(now) {
            let work = this.load.work;
            let part = &mut self.tasks[task as usize].part;
            *part = (*part + 1) % WEIGHT as u8;
            return if *part == 0 { Next::Yield(work) } else { Next::Run(work) };
        }
        this.is_polled = false;
        self.expect_frames(queue);
        Next::Block
    }

    fn sender_goes_on(&mut self, cpu: u16, queue: u16, (run, cost): (Option<Run>, u64)) -> Next {
        self.packets.queues[usize::from(queue)].sender_run = run;
        // As where bottom halves are enabled again: what was raised meanwhile runs.
        let _ = self.begin_round(cpu);
        Next::Run(cost)
    }
}
