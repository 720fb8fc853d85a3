//! Queues of tasks, and waking.
//!
//! In a kernel a higher class interrupts a lower one; within a class it is first come, first served, and a
//! task runs until it sleeps (fillers take turns). A task stays on its CPU unless that goes offline or it is
//! woken elsewhere (`wake = "here"`). Absent: fair shares and load balancing.

use super::cpu::{ENDLESS, SimCpu};
use super::task::{CpuWorker, Program, SimTask, SimTaskState};
use super::threads::RealtimeState;
use crate::scenario::Cost;
use crate::scenario::names::{KsoftirqdRule, WakePlace};
use crate::world::context::{RunAccess, RunContext};
use crate::world::cpu_id::id;
use crate::world::timers::TimerLayer;
use quietcore_core::Turn;
use quietcore_core::place::nearest_housekeeping;
use quietcore_core::realtime::Priority;
use std::collections::VecDeque;

/// CPUs, tasks and real-time threads, on top of timers.
pub(crate) struct TaskLayer<'p> {
    pub(crate) timers: TimerLayer<'p>,
    pub(crate) cpus: Vec<SimCpu>,
    pub(crate) all: Vec<SimTask>,
    pub(crate) workers: Vec<CpuWorker>,
    pub(crate) realtime: RealtimeState,
}

impl<'p> RunAccess<'p> for TaskLayer<'p> {
    fn run(&self) -> &RunContext<'p> {
        &self.timers.run
    }

    fn run_mut(&mut self) -> &mut RunContext<'p> {
        &mut self.timers.run
    }
}

impl<'p> TaskLayer<'p> {
    /// The CPUs of the plan, without tasks.
    pub(crate) fn new(timers: TimerLayer<'p>) -> Self {
        let plan = timers.plan();
        let cpu_count = plan.topology.cpu_count() as u16;
        Self {
            timers,
            cpus: (0..cpu_count).map(|cpu| SimCpu::new(Turn::new(id(cpu)), plan.defer_limit)).collect(),
            all: Vec::new(),
            workers: (0..cpu_count).map(|_| CpuWorker::default()).collect(),
            realtime: RealtimeState::new(cpu_count),
        }
    }

    /// Whether a CPU is online and active in the hierarchy.
    pub(crate) fn has_awake_cpu(&self) -> bool {
        let mut cpus = self.cpus.iter().zip(&self.timers.contacts);
        cpus.any(|(cpu, contact)| cpu.is_online && !contact.is_parked)
    }

    pub(crate) fn cpu(&mut self, cpu: u16) -> &mut SimCpu {
        &mut self.cpus[usize::from(cpu)]
    }
}

impl TaskLayer<'_> {
    pub(crate) fn add_task(&mut self, program: Program, cpu: u16) {
        self.all.push(SimTask::new(program, cpu));
    }

    /// Whether ksoftirqd runs on `cpu` and lets no task in before its pass is over.
    pub(crate) fn is_whole(&self, cpu: u16) -> bool {
        let this = &self.cpus[usize::from(cpu)];
        self.plan().ksoftirqd == KsoftirqdRule::Whole
            && this.softirqs.ksoftirqd_runs.pass_since.is_some()
            && this.current == this.softirqs.ksoftirqd
    }

    /// Whether a task waits on `cpu` that should run instead of what runs.
    pub(crate) fn is_outranked(&self, cpu: u16) -> bool {
        let this = &self.cpus[usize::from(cpu)];
        if this.softirqs.is_boosted {
            return this.current != this.softirqs.ksoftirqd;
        }
        match this.current {
            Some(_) if self.is_whole(cpu) => false,
            Some(task) => match self.all[task as usize].priority {
                Some(priority) => this.realtime.highest() > Some(priority),
                None if self.all[task as usize].is_filler() => {
                    !this.realtime.is_empty() || !this.queues[0].is_empty()
                }
                None => !this.realtime.is_empty(),
            },
            None => this.has_task(),
        }
    }

    /// The highest priority on `cpu`, running or waiting.
    pub(crate) fn highest(&self, cpu: u16) -> Option<Priority> {
        let this = &self.cpus[usize::from(cpu)];
        let current = this.current.and_then(|task| self.all[task as usize].priority);
        current.max(this.realtime.highest())
    }

    /// Puts `task` into the queue of `target`.
    pub(crate) fn enqueue(&mut self, task: u32, target: u16) {
        let this = &mut self.all[task as usize];
        (this.state, this.cpu) = (SimTaskState::Runnable, target);
        let class = this.class();
        if let Some(priority) = this.priority {
            this.stamp = self.realtime.next_stamp();
            self.cpu(target).realtime.push(priority, task);
            self.renew_priority(target);
        } else {
            self.cpu(target).queues[class].push_back(task);
        }
        if self.cpu(target).softirqs.is_in_round() && self.is_outranked(target) {
            self.cpu(target).softirqs.end_early();
        }
    }

    /// `task` can run; `from` is the CPU that says so. Returns what that costs it.
    pub(crate) fn wake(&mut self, task: u32, from: u16) -> u64 {
        let this = &self.all[task as usize];
        if this.state != SimTaskState::Blocked {
            return 0;
        }
        if matches!(this.program, Program::Realtime { .. }) {
            return self.wake_realtime(task, from);
        }
        let is_fixed = matches!(this.program, Program::Worker | Program::Ksoftirqd | Program::Sender { .. });
        let may_move = !is_fixed && !self.timers.is_isolated(from) && self.cpus[usize::from(from)].is_online;
        let wanted = match self.plan().wake {
            WakePlace::Here if may_move => from,
            _ => this.home,
        };
        let target = self.online_near(wanted);
        self.enqueue(task, target);
        self.reschedule(target, from, task)
    }

    /// Makes `target` notice `task`; what that costs `from`.
    pub(crate) fn reschedule(&mut self, target: u16, from: u16, task: u32) -> u64 {
        let is_kernel = self.is_kernel();
        let this = &self.cpus[usize::from(target)];
        let task = &self.all[task as usize];
        let interrupts = is_kernel && this.current.is_some_and(|now| task.outranks(&self.all[now as usize]));
        if target == from || !(this.is_asleep || interrupts) {
            return 0;
        }
        self.timers.send_kick(target);
        self.cost(Cost::Kick)
    }

    /// Puts a runnable task into the queue of another CPU, and makes that notice.
    pub(crate) fn move_task(&mut self, task: u32, target: u16) {
        if matches!(self.all[task as usize].program, Program::Measure) {
            self.all[task as usize].away_since = None;
        }
        self.enqueue(task, target);
        if self.cpu(target).is_asleep {
            self.timers.send_kick(target);
        }
    }

    /// A callback on `cpu` hands work to the worker there. Returns what that costs.
    pub(crate) fn queue_work(&mut self, cpu: u16, length: u64) -> u64 {
        let worker = &mut self.workers[usize::from(cpu)];
        worker.backlog.push_back(length);
        let task = *worker.task.get_or_insert_with(|| {
            self.all.push(SimTask::new(Program::Worker, cpu));
            self.all.len() as u32 - 1
        });
        self.wake(task, cpu)
    }

    /// `wanted` if it is online, else the nearest CPU that is and may run tasks.
    pub(crate) fn online_near(&self, wanted: u16) -> u16 {
        if self.cpus[usize::from(wanted)].is_online {
            return wanted;
        }
        self.housekeeper_near(wanted)
    }

    /// The housekeeping CPU nearest to `wanted`.
    pub(crate) fn housekeeper_near(&self, wanted: u16) -> u16 {
        let near =
            nearest_housekeeping(&self.plan().topology, id(wanted), self.timers.masks.housekeeping.work());
        near.map_or(wanted, |cpu| cpu.index() as u16)
    }

    /// `current` of `cpu` is preempted: it goes on before its equals.
    pub(crate) fn put_back(&mut self, cpu: u16, current: u32) {
        let task = self.all[current as usize];
        let this = self.cpu(cpu);
        this.current = None;
        match task.priority {
            Some(priority) => this.realtime.push_first(priority, current),
            None => this.queues[task.class()].push_front(current),
        }
    }

    pub(crate) fn take_next(&mut self, cpu: u16) -> Option<u32> {
        let this = self.cpu(cpu);
        let first = this.softirqs.ksoftirqd.filter(|_| this.softirqs.is_boosted);
        let boosted = first.and_then(|first| this.queues[0].iter().position(|task| *task == first));
        if let Some(at) = boosted {
            return this.queues[0].remove(at);
        }
        if let Some((_, task)) = this.realtime.pop() {
            if self.run().options.check {
                self.check_order(cpu, task);
            }
            return Some(task);
        }
        this.queues.iter_mut().find_map(VecDeque::pop_front)
    }

    /// `task`, which is current on `cpu`, runs on; returns how long.
    pub(crate) fn task_resumes(&mut self, cpu: u16, task: u32) -> u64 {
        let this = &mut self.all[task as usize];
        if let Some(since) = this.away_since.take() {
            let gap = self.timers.run.now - since + std::mem::take(&mut this.return_cost);
            self.recorder().gap(id(cpu), gap);
        }
        self.all[task as usize].left
    }

    /// `task` is interrupted after `spent`.
    pub(crate) fn task_pauses(&mut self, task: u32, spent: u64) {
        let now = self.now();
        let this = &mut self.all[task as usize];
        if this.left != ENDLESS {
            this.left = this.left.saturating_sub(spent);
        }
        if matches!(this.program, Program::Measure) {
            this.away_since = Some(now);
        }
    }
}
