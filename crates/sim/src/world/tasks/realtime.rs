//! Where real-time tasks run: where one wakes up, which of its tasks a CPU gives away, and which it takes.
//!
//! The core decides (`wake_target`, `push_target`, `pull_source`, `RealtimeQueue`); this file keeps its
//! `CpuPriorities` true. Within a priority it is first come, first served, and a task that was preempted goes
//! on before its equals.
//!
//! Invariant: a task that may move never runs on an isolated CPU. Absent: deadlines, throttling, fair
//! shares; the cost of searching a CPU.

use super::cpu::SimCpu;
use super::layer::TaskLayer;
use super::task::{Program, SimTask, SimTaskState};
use crate::scenario::Cost;
use crate::world::context::RunAccess;
use crate::world::cpu_id::id;
use quietcore_core::realtime::{
    CpuPriority, PullSource, RunnableTask, RunningTask, Seeker, find_lowest, fits, pull_source, push_target,
    wake_target,
};

impl TaskLayer<'_> {
    /// What others should know of `cpu`.
    fn priority_of(&self, cpu: u16) -> CpuPriority {
        let this = &self.cpus[usize::from(cpu)];
        if !this.is_online || self.timers.is_isolated(cpu) {
            CpuPriority::Absent
        } else if this.is_stalled {
            CpuPriority::Higher
        } else {
            self.highest(cpu).map_or(CpuPriority::Normal, CpuPriority::Realtime)
        }
    }

    /// Publishes the highest priority on `cpu`, which other CPUs read when they place tasks.
    pub(crate) fn renew_priority(&mut self, cpu: u16) {
        let priority = self.priority_of(cpu);
        let this = &self.cpus[usize::from(cpu)];
        let runs = this.current.is_some_and(|task| self.all[task as usize].priority.is_some());
        let is_overloaded = this.realtime.len() + usize::from(runs) > 1
            && this.realtime.first(|task| self.all[*task as usize].may_move).is_some();
        self.realtime.priorities.set(id(cpu), priority);
        if is_overloaded {
            self.realtime.overloaded.insert(id(cpu));
        } else {
            self.realtime.overloaded.remove(id(cpu));
        }
    }

    /// `task` can run; `from` is the CPU whose interrupt says so. Returns what that costs it.
    pub(crate) fn wake_realtime(&mut self, task: u32, from: u16) -> u64 {
        let this = &self.all[task as usize];
        if this.state != SimTaskState::Blocked {
            return 0;
        }
        let before = this.cpu;
        let target = self.place_realtime(task, from);
        if target != before {
            self.recorder().realtime().placed += 1;
        }
        self.enqueue(task, target);
        let cost = self.reschedule(target, from, task);
        cost + self.push_tasks(target, from)
    }

    /// Where `task`, which wakes up, goes.
    fn place_realtime(&mut self, task: u32, from: u16) -> u16 {
        let this = &self.all[task as usize];
        let (previous, home) = (this.cpu, this.home);
        if !this.may_move {
            return self.online_near(home);
        }
        if self.realtime.priorities.of(id(previous)) == CpuPriority::Absent {
            return self.find_room(task, from);
        }
        let Some(seeker) = self.seeker(task, from) else { return previous };
        let task = RunnableTask { seeker, running: self.running(previous) };
        let topology = &self.plan().topology;
        let target = wake_target(&self.realtime.priorities, topology, task, |cpu| self.fits(cpu.index()));
        self.realtime.turn += 1;
        target.index() as u16
    }

    /// For a task that has to leave its CPU: the one where it disturbs least, or any that takes tasks.
    pub(crate) fn find_room(&mut self, task: u32, from: u16) -> u16 {
        let found = self.lowest(task, from);
        found.unwrap_or_else(|| {
            let near = self.online_near(self.all[task as usize].home);
            if self.timers.is_isolated(near) { self.housekeeper_near(near) } else { near }
        })
    }

    /// The CPU with the lowest priority below that of `task`.
    fn lowest(&mut self, task: u32, from: u16) -> Option<u16> {
        let seeker = self.seeker(task, from)?;
        let topology = &self.plan().topology;
        let found = find_lowest(&self.realtime.priorities, topology, seeker, |cpu| self.fits(cpu.index()));
        self.realtime.turn += 1;
        found.map(|cpu| cpu.index() as u16)
    }

    fn running(&self, cpu: u16) -> RunningTask {
        let Some(task) = self.cpus[usize::from(cpu)].current else { return RunningTask::Nothing };
        let task = &self.all[task as usize];
        let can_move = task.may_move;
        task.priority.map_or(RunningTask::Normal, |priority| RunningTask::Realtime { priority, can_move })
    }

    fn seeker(&self, task: u32, from: u16) -> Option<Seeker<'_>> {
        let this = &self.all[task as usize];
        let Program::Realtime { thread } = this.program else { return None };
        let affinity = self.realtime.threads[thread as usize].cyclic.affinity;
        Some(Seeker {
            priority: this.priority?,
            affinity: &self.plan().affinities[affinity as usize],
            previous: id(this.cpu),
            here: id(from),
            turn: self.realtime.turn,
        })
    }

    fn fits(&self, cpu: usize) -> bool {
        let claims = &self.cpus[cpu].softirqs.claims;
        !self.plan().awareness.places() || fits(claims.active(), claims.pending())
    }

    /// `cpu` gives away real-time tasks that wait on it, if others are free for them. Returns what that
    /// costs `from`, who does it.
    pub(crate) fn push_tasks(&mut self, cpu: u16, from: u16) -> u64 {
        let mut cost = 0;
        loop {
            let this = &self.cpus[usize::from(cpu)];
            let found = this.realtime.first(|task| self.all[*task as usize].may_move);
            let Some((_, &task)) = found else { return cost };
            let Some(target) = self.push_target(task, cpu) else { return cost };
            self.cpu(cpu).realtime.take_first(|other| *other == task);
            self.recorder().realtime().pushed += 1;
            self.renew_priority(cpu);
            self.enqueue(task, target);
            cost += self.cost(Cost::LockHandover) + self.reschedule(target, from, task);
        }
    }

    /// Where `task`, which waits on `cpu`, goes.
    fn push_target(&mut self, task: u32, cpu: u16) -> Option<u16> {
        let seeker = self.seeker(task, cpu)?;
        let task = RunnableTask { seeker, running: self.running(cpu) };
        let (priorities, topology) = (&self.realtime.priorities, &self.plan().topology);
        let is_search = task.running.holds_up(seeker.priority);
        let target = push_target(priorities, topology, task, |_| true, |cpu| self.fits(cpu.index()));
        self.realtime.turn += usize::from(is_search);
        target.map(|cpu| cpu.index() as u16)
    }

    /// `cpu` is about to run something lower than before: it takes tasks that wait elsewhere. Returns what
    /// that costs it.
    pub(crate) fn pull_tasks(&mut self, cpu: u16) -> u64 {
        let mut cost = 0;
        if self.realtime.overloaded.is_empty() || self.realtime.priorities.of(id(cpu)) == CpuPriority::Absent
        {
            return cost;
        }
        let others: Vec<u16> = self.realtime.overloaded.iter().map(|other| other.index() as u16).collect();
        let split = others.partition_point(|other| *other <= cpu);
        for &source in others[split..].iter().chain(&others[..split]) {
            cost += self.cost(Cost::Look);
            let Some(task) = self.to_pull(cpu, source) else { continue };
            self.cpu(source).realtime.take_first(|other| *other == task);
            self.recorder().realtime().pulled += 1;
            self.renew_priority(source);
            self.enqueue(task, cpu);
            cost += self.cost(Cost::LockHandover);
        }
        cost
    }

    /// The task of `source` that `cpu` takes.
    fn to_pull(&self, cpu: u16, source: u16) -> Option<u32> {
        if source == cpu {
            return None;
        }
        let this = &self.cpus[usize::from(source)];
        let may_go = |task: &u32| {
            let Program::Realtime { thread } = self.all[*task as usize].program else { return false };
            let affinity = self.realtime.threads[thread as usize].cyclic.affinity;
            self.all[*task as usize].may_move && self.plan().affinities[affinity as usize].contains(id(cpu))
        };
        let (waiting, task) = this.realtime.first(may_go)?;
        let source = PullSource { cpu: id(source), waiting, running: self.running(source) };
        pull_source([source], self.highest(cpu)).map(|_| *task)
    }

    /// Whether `cpu` has real-time tasks that may move.
    pub(crate) fn has_guests(&self, cpu: u16) -> bool {
        let this = &self.cpus[usize::from(cpu)];
        let may_move = |task: &u32| self.all[*task as usize].may_move;
        this.current.is_some_and(|task| may_move(&task)) || this.realtime.first(may_move).is_some()
    }

    /// `cpu` was isolated: tasks that may move leave it. It is paused.
    pub(crate) fn evict(&mut self, cpu: u16) {
        let mut leaving = Vec::new();
        let current = self.cpu(cpu).current.filter(|task| self.all[*task as usize].may_move);
        if let Some(task) = current {
            self.cpu(cpu).current = None;
            leaving.push(task);
        }
        loop {
            let tasks = &self.all;
            let this: &mut SimCpu = &mut self.cpus[usize::from(cpu)];
            let Some((_, task)) = this.realtime.take_first(|task| tasks[*task as usize].may_move) else {
                break;
            };
            leaving.push(task);
        }
        self.renew_priority(cpu);
        for task in leaving {
            let target = self.find_room(task, cpu);
            self.recorder().realtime().pushed += 1;
            self.enqueue(task, target);
            let _ = self.reschedule(target, cpu, task);
        }
    }

    /// The published priority of `cpu` is right, and no task that may move is on it if it is isolated.
    pub(crate) fn check_priority(&self, cpu: u16) {
        let known = self.realtime.priorities.of(id(cpu));
        assert_eq!(known, self.priority_of(cpu), "CPU {cpu}: what others know of its priority");
        let is_home = !self.timers.is_isolated(cpu) || !self.has_guests(cpu);
        assert!(is_home, "CPU {cpu} is isolated and has tasks that may move");
    }

    /// `task` leaves the queue of `cpu` to run: none of its equals has waited longer there.
    pub(crate) fn check_order(&mut self, cpu: u16, task: u32) {
        let this = self.all[task as usize];
        let is_passed = |other: &SimTask| {
            other.cpu == cpu
                && other.state == SimTaskState::Runnable
                && other.priority == this.priority
                && other.stamp < this.stamp
        };
        if this.priority.is_some() && self.all.iter().any(is_passed) {
            self.recorder().realtime().disorder += 1;
        }
    }

    pub(crate) fn finish_realtime(&mut self) {
        if self.realtime.threads.is_empty() {
            return;
        }
        let end = self.run().end;
        let threads = self.realtime.threads.iter().map(|thread| thread.figures(end)).collect();
        self.recorder().realtime().threads = threads;
    }
}
