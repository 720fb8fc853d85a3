//! Raising softirqs, and handing them what interrupts have brought.
//!
//! Invariant: work that was raised has run or is queued here (`SoftirqFigures::lost`). Absent: budgets of
//! handlers, handlers that raise other vectors; RPS and threaded interrupts.

use crate::scenario::SenderName;
use crate::world::context::{NotedEvent, RunAccess, RunContext};
use crate::world::packets::PacketState;
use crate::world::tasks::{Arrival, InterruptState, SimCpu, SimTaskState, SoftirqState, TaskLayer};
use crate::world::timers::SimTimer;
use quietcore_core::softirq::{Raise, Vector, VectorSet};

/// Softirqs and transmit queues, on top of tasks.
pub(crate) struct SoftirqLayer<'p> {
    pub(crate) tasks: TaskLayer<'p>,
    pub(crate) packets: PacketState,
}

impl<'p> RunAccess<'p> for SoftirqLayer<'p> {
    fn run(&self) -> &RunContext<'p> {
        self.tasks.run()
    }

    fn run_mut(&mut self) -> &mut RunContext<'p> {
        self.tasks.run_mut()
    }
}

impl<'p> SoftirqLayer<'p> {
    /// Nothing is raised, and there is no transmit queue.
    pub(crate) fn new(tasks: TaskLayer<'p>) -> Self {
        let cpu_count = tasks.cpus.len();
        Self { tasks, packets: PacketState::new(cpu_count) }
    }

    pub(crate) fn cpu(&mut self, cpu: u16) -> &mut SimCpu {
        self.tasks.cpu(cpu)
    }
}

impl SoftirqLayer<'_> {
    pub(crate) fn raise(&mut self, cpu: u16, vector: Vector) {
        let raise = self.tasks.cpus[usize::from(cpu)].softirqs.claims.raise(vector.into());
        if vector != Vector::TIMER {
            let news = u64::from(raise == Raise::News);
            self.note(NotedEvent::Raise, cpu, (vector.index() as u64) << 1 | news);
        }
    }

    /// What interrupts have brought is handled; returns what that costs.
    pub(crate) fn handle_arrivals(&mut self, cpu: u16) -> u64 {
        if self.cpu(cpu).arrived.is_empty() {
            return 0;
        }
        let mut arrived = std::mem::take(&mut self.cpu(cpu).arrived);
        let mut cost = 0;
        for arrival in arrived.drain(..) {
            match arrival {
                Arrival::Work(work) => {
                    self.cpu(cpu).softirqs.work[work.vector.index()].push_back(work);
                    self.raise(cpu, work.vector);
                }
                Arrival::Wake(task) => cost += self.tasks.wake_realtime(task, cpu),
                Arrival::Called(of) => self.call_arrives(cpu, of),
                Arrival::Frames(queue) => cost += self.take_frames(cpu, queue),
            }
        }
        self.cpu(cpu).arrived = arrived;
        cost
    }

    /// `cpu` handles the call of `of`, which may be offline by now: first its flag, then the look.
    pub(crate) fn call_arrives(&mut self, cpu: u16, of: u16) {
        self.tasks.timers.contact(of).call.arrive();
        self.note(NotedEvent::Called, cpu, 0);
        self.raise(cpu, Vector::TIMER);
    }

    /// That interrupt is handled; returns what it costs.
    pub(crate) fn take_frames(&mut self, cpu: u16, queue: u16) -> u64 {
        let this = &self.packets.queues[usize::from(queue)];
        match this.load.sender {
            SenderName::Datagram => {
                let task = this.task.expect("a datagram's sender is a task");
                self.tasks.wake(task, cpu)
            }
            SenderName::Stream => {
                self.packets.has_frames(cpu, queue);
                self.raise(cpu, Vector::NET_RX);
                0
            }
        }
    }

    /// The TIMER handler of `cpu` is over.
    pub(crate) fn helper_returns(&mut self, cpu: u16) {
        if self.tasks.timers.raise_rule(cpu).is_some() && self.cpu(cpu).softirqs.expired == 0 {
            *self.raise_figures().idle_raises.entry(cpu).or_default() += 1;
        }
    }

    /// `timer` runs on `cpu`: later than it may?
    pub(crate) fn check_lateness(&mut self, cpu: u16, timer: &SimTimer) {
        self.cpu(cpu).softirqs.expired += 1;
        if self.tasks.timers.raise_rule(cpu).is_none() {
            return;
        }
        let tick = self.plan().tick.0;
        let lateness = timer.lateness(self.now(), tick);
        self.raise_figures().count(lateness);
    }

    /// What holds between any two events, whatever softirqs and real-time tasks do.
    pub(crate) fn check_softirqs(&self) {
        for (cpu, this) in self.tasks.cpus.iter().enumerate() {
            let (pending, active) = (this.softirqs.claims.pending(), this.softirqs.claims.active());
            for (vector, work) in this.softirqs.work.iter().enumerate() {
                let vector = Vector::from_index(vector as u8).expect("there are as many vectors");
                let is_known = work.is_empty() || pending.union(active).contains(vector);
                assert!(is_known, "CPU {cpu}: {} of {vector} that no handler will run", work.len());
            }
            let is_free = this.hard == InterruptState::None && matches!(this.soft, SoftirqState::None);
            let ksoftirqd = this.softirqs.ksoftirqd.map(|task| self.tasks.all[task as usize].state);
            let has_left = is_free && this.is_online && !this.is_stalled && this.pending == 0;
            let is_woken = ksoftirqd == Some(SimTaskState::Runnable);
            let waits = !pending.intersection(VectorSet::MOVABLE).is_empty();
            assert!(!(has_left && waits) || is_woken, "CPU {cpu}: {pending} pending, ksoftirqd sleeps");
            self.tasks.check_priority(cpu as u16);
        }
    }

    /// Work that waits at the end, also in interrupts that have not been handled; and what is held back.
    pub(crate) fn finish_softirqs(&mut self) {
        let is_work = |arrival: &&Arrival| matches!(arrival, Arrival::Work(_));
        let of = |cpu: &SimCpu| cpu.softirqs.left() + cpu.arrived.iter().filter(is_work).count() as u64;
        let left: u64 = self.tasks.cpus.iter().map(of).sum();
        let held = self.tasks.cpus.iter().flat_map(|cpu| cpu.softirqs.held_since.into_iter().flatten());
        let longest = held.map(|since| self.run().end - since).max().unwrap_or(0);
        if let Some(figures) = &mut self.recorder().figures.softirqs {
            figures.left = left;
            figures.deferral_ns_max = figures.deferral_ns_max.max(longest);
        }
    }
}
