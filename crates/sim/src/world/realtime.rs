//! Real-time tasks: threads like those of cyclictest, and where they run.
//!
//! A thread sleeps until its interval is over, which an interrupt of its own CPU tells it (a high-resolution
//! timer: not one of the core's), notes how late it is, works, and sleeps again; intervals that are over by
//! then are skipped. Where it wakes up, whom a CPU gives away and whom it takes, the core decides
//! (`wake_target`, `find_lowest`, `RealtimeQueue`); this file keeps its `CpuPriorities` true. Within a
//! priority it is first come, first served, and one that was preempted goes on before its equals.
//!
//! Invariant: a task that may move never runs on an isolated CPU. Absent: deadlines, throttling, fair
//! shares; the cost of searching a CPU.

use super::cpu::{Cpu, why};
use super::record::What;
use super::softirq::Arrival;
use super::task::{Next, Program, State, Task};
use super::{Event, World, id};
use crate::figures::CyclicThread;
use crate::scenario::{Cost, Cyclic};
use quietcore_core::realtime::{
    CpuPriorities, CpuPriority, Priority, Running, Seeker, Waking, find_lowest, fits, wake_target,
};
use quietcore_core::{CpuSet, Nanos};

/// A real-time thread of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    pub(super) cyclic: Cyclic,
    pub(super) task: u32,
    /// When its interval is over, or was.
    pub(super) due: u64,
    first_due: u64,
    cycles: u64,
    skipped: u64,
    least: u64,
    last: u64,
    sum: u64,
    most: u64,
}

impl Thread {
    pub(super) const fn new(cyclic: Cyclic, task: u32, due: u64) -> Self {
        let (cycles, skipped, sum) = (0, 0, 0);
        Self { cyclic, task, due, first_due: due, cycles, skipped, least: u64::MAX, last: 0, sum, most: 0 }
    }

    /// What it amounts to at `end`.
    fn figures(&self, end: u64) -> CyclicThread {
        let expected =
            if end < self.first_due { 0 } else { (end - self.first_due) / self.cyclic.interval + 1 };
        CyclicThread {
            task: self.task,
            priority: self.cyclic.priority.get(),
            interval_ns: self.cyclic.interval,
            cycles: self.cycles,
            expected,
            skipped: self.skipped,
            min_ns: if self.cycles == 0 { 0 } else { self.least },
            act_ns: self.last,
            avg_ns: self.sum.checked_div(self.cycles).unwrap_or(0),
            max_ns: self.most,
            latency_ns: None,
        }
    }
}

/// What is known of all CPUs and threads.
#[derive(Debug)]
pub(super) struct Realtime {
    pub(super) priorities: CpuPriorities,
    pub(super) threads: Vec<Thread>,
    /// CPUs with more than one real-time task, one of which may go.
    pub(super) overloaded: CpuSet,
    /// Counts up with every search: which of equally good CPUs is taken.
    turn: usize,
    /// Counts up with every task that is put behind its equals.
    stamp: u64,
}

impl Realtime {
    pub(super) fn new(cpu_count: u16) -> Self {
        Self {
            priorities: CpuPriorities::new(cpu_count),
            threads: Vec::new(),
            overloaded: CpuSet::new(),
            turn: 0,
            stamp: 0,
        }
    }

    pub(super) fn next_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }
}

impl World<'_> {
    /// The highest priority on `cpu`, of who runs and of who waits.
    pub(super) fn highest(&self, cpu: u16) -> Option<Priority> {
        let this = &self.cpus[usize::from(cpu)];
        let current = this.current.and_then(|task| self.tasks[task as usize].priority);
        current.max(this.realtime.highest())
    }

    /// What others should know of `cpu`.
    fn priority_of(&self, cpu: u16) -> CpuPriority {
        let this = &self.cpus[usize::from(cpu)];
        if !this.is_online || self.is_isolated(cpu) {
            CpuPriority::Absent
        } else if this.is_stalled {
            CpuPriority::Higher
        } else {
            self.highest(cpu).map_or(CpuPriority::Normal, CpuPriority::Realtime)
        }
    }

    /// Tells everybody what the highest priority on `cpu` is now.
    pub(super) fn renew_priority(&mut self, cpu: u16) {
        let priority = self.priority_of(cpu);
        let this = &self.cpus[usize::from(cpu)];
        let runs = this.current.is_some_and(|task| self.tasks[task as usize].priority.is_some());
        let is_overloaded = this.realtime.len() + usize::from(runs) > 1
            && this.realtime.first(|task| self.tasks[*task as usize].may_move).is_some();
        self.realtime.priorities.set(id(cpu), priority);
        if is_overloaded {
            self.realtime.overloaded.insert(id(cpu));
        } else {
            self.realtime.overloaded.remove(id(cpu));
        }
    }

    /// Whether a task waits on `cpu` that should run instead of what runs.
    pub(super) fn is_outranked(&self, cpu: u16) -> bool {
        let this = &self.cpus[usize::from(cpu)];
        if this.softirqs.is_boosted {
            return this.current != this.softirqs.ksoftirqd;
        }
        match this.current {
            Some(_) if self.is_whole(cpu) => false,
            Some(task) => match self.tasks[task as usize].priority {
                Some(priority) => this.realtime.highest() > Some(priority),
                None if self.tasks[task as usize].is_filler() => {
                    !this.realtime.is_empty() || !this.queues[0].is_empty()
                }
                None => !this.realtime.is_empty(),
            },
            None => this.has_task(),
        }
    }

    /// The interval of `thread` is over: an interrupt of the CPU where it went to sleep.
    pub(super) fn interval_ends(&mut self, thread: u32) {
        let task = self.realtime.threads[thread as usize].task;
        let cpu = self.tasks[task as usize].cpu;
        self.arrive(cpu, Arrival::Wake(task), why::HRTIMER);
    }

    /// `task` can run; `from` is the CPU whose interrupt says so. Returns what that costs it.
    pub(super) fn wake_realtime(&mut self, task: u32, from: u16) -> u64 {
        let this = &self.tasks[task as usize];
        if this.state != State::Blocked {
            return 0;
        }
        let before = this.cpu;
        let target = self.place_realtime(task, from);
        if target != before {
            self.recorder.realtime().placed += 1;
        }
        self.enqueue(task, target);
        let cost = self.reschedule(target, from, task);
        cost + self.push_tasks(target, from)
    }

    /// Where `task`, which wakes up, goes.
    fn place_realtime(&mut self, task: u32, from: u16) -> u16 {
        let this = &self.tasks[task as usize];
        let (previous, home) = (this.cpu, this.home);
        if !this.may_move {
            return self.online_near(home);
        }
        if self.realtime.priorities.of(id(previous)) == CpuPriority::Absent {
            return self.find_room(task, from);
        }
        let Some(seeker) = self.seeker(task, from) else { return previous };
        let running = match self.cpus[usize::from(previous)].current {
            None => Running::Nothing,
            Some(other) => {
                let other = &self.tasks[other as usize];
                let can_move = other.may_move;
                other.priority.map_or(Running::Normal, |priority| Running::Realtime { priority, can_move })
            }
        };
        let waking = Waking { seeker, running };
        let topology = &self.plan.topology;
        let target = wake_target(&self.realtime.priorities, topology, waking, |cpu| self.fits(cpu.index()));
        self.realtime.turn += 1;
        target.index() as u16
    }

    /// For a task that has to leave its CPU: the one where it disturbs least, or any that takes tasks.
    pub(super) fn find_room(&mut self, task: u32, from: u16) -> u16 {
        let found = self.lowest(task, from);
        found.unwrap_or_else(|| {
            let near = self.online_near(self.tasks[task as usize].home);
            if self.is_isolated(near) { self.housekeeper_near(near) } else { near }
        })
    }

    /// The CPU with the lowest priority below that of `task`.
    fn lowest(&mut self, task: u32, from: u16) -> Option<u16> {
        let seeker = self.seeker(task, from)?;
        let topology = &self.plan.topology;
        let found = find_lowest(&self.realtime.priorities, topology, seeker, |cpu| self.fits(cpu.index()));
        self.realtime.turn += 1;
        found.map(|cpu| cpu.index() as u16)
    }

    fn seeker(&self, task: u32, from: u16) -> Option<Seeker<'_>> {
        let this = &self.tasks[task as usize];
        let Program::Realtime { thread } = this.program else { return None };
        let affinity = self.realtime.threads[thread as usize].cyclic.affinity;
        Some(Seeker {
            priority: this.priority?,
            affinity: &self.plan.affinities[affinity as usize],
            previous: id(this.cpu),
            here: id(from),
            turn: self.realtime.turn,
        })
    }

    fn fits(&self, cpu: usize) -> bool {
        let claims = &self.cpus[cpu].softirqs.claims;
        !self.plan.awareness.places() || fits(claims.active(), claims.pending())
    }

    /// `cpu` gives away real-time tasks that wait on it, if others are free for them. Returns what that
    /// costs `from`, who does it.
    pub(super) fn push_tasks(&mut self, cpu: u16, from: u16) -> u64 {
        let mut cost = 0;
        loop {
            let this = &self.cpus[usize::from(cpu)];
            let found = this.realtime.first(|task| self.tasks[*task as usize].may_move);
            let Some((priority, &task)) = found else { return cost };
            let current = this.current.and_then(|task| self.tasks[task as usize].priority);
            if current < Some(priority) {
                return cost; // it runs here as soon as it can
            }
            let Some(target) = self.lowest(task, cpu).filter(|target| *target != cpu) else { return cost };
            self.cpu(cpu).realtime.take_first(|other| *other == task);
            self.recorder.realtime().pushed += 1;
            self.renew_priority(cpu);
            self.enqueue(task, target);
            cost += self.costs.of(Cost::LockHandover) + self.reschedule(target, from, task);
        }
    }

    /// `cpu` is about to run something lower than before: it takes tasks that wait elsewhere. Returns what
    /// that costs it.
    pub(super) fn pull_tasks(&mut self, cpu: u16) -> u64 {
        let mut cost = 0;
        if self.realtime.overloaded.is_empty() || self.realtime.priorities.of(id(cpu)) == CpuPriority::Absent
        {
            return cost;
        }
        let others: Vec<u16> = self.realtime.overloaded.iter().map(|other| other.index() as u16).collect();
        let split = others.partition_point(|other| *other <= cpu);
        for &source in others[split..].iter().chain(&others[..split]) {
            cost += self.costs.of(Cost::Look);
            let Some(task) = self.to_pull(cpu, source) else { continue };
            self.cpu(source).realtime.take_first(|other| *other == task);
            self.recorder.realtime().pulled += 1;
            self.renew_priority(source);
            self.enqueue(task, cpu);
            cost += self.costs.of(Cost::LockHandover);
        }
        cost
    }

    /// The task of `source` that `cpu` may take: one that outranks all that `cpu` has, and not what `source`
    /// runs, where it would run at once.
    fn to_pull(&self, cpu: u16, source: u16) -> Option<u32> {
        if source == cpu {
            return None;
        }
        let this = &self.cpus[usize::from(source)];
        let current = this.current.and_then(|task| self.tasks[task as usize].priority);
        let may_go = |task: &u32| {
            let Program::Realtime { thread } = self.tasks[*task as usize].program else { return false };
            let affinity = self.realtime.threads[thread as usize].cyclic.affinity;
            self.tasks[*task as usize].may_move && self.plan.affinities[affinity as usize].contains(id(cpu))
        };
        let (priority, task) = this.realtime.first(may_go)?;
        let is_useful = Some(priority) > self.highest(cpu) && Some(priority) <= current;
        is_useful.then_some(*task)
    }

    /// Whether `cpu` has real-time tasks that may move.
    pub(super) fn has_guests(&self, cpu: u16) -> bool {
        let this = &self.cpus[usize::from(cpu)];
        let may_move = |task: &u32| self.tasks[*task as usize].may_move;
        this.current.is_some_and(|task| may_move(&task)) || this.realtime.first(may_move).is_some()
    }

    /// `cpu` was isolated: tasks that may move leave it. It is paused.
    pub(super) fn evict(&mut self, cpu: u16) {
        let mut leaving = Vec::new();
        let current = self.cpu(cpu).current.filter(|task| self.tasks[*task as usize].may_move);
        if let Some(task) = current {
            self.cpu(cpu).current = None;
            leaving.push(task);
        }
        loop {
            let tasks = &self.tasks;
            let this: &mut Cpu = &mut self.cpus[usize::from(cpu)];
            let Some((_, task)) = this.realtime.take_first(|task| tasks[*task as usize].may_move) else {
                break;
            };
            leaving.push(task);
        }
        self.renew_priority(cpu);
        for task in leaving {
            let target = self.find_room(task, cpu);
            self.recorder.realtime().pushed += 1;
            self.enqueue(task, target);
            let _ = self.reschedule(target, cpu, task);
        }
    }

    /// A thread goes on: it is awake, or it has worked.
    pub(super) fn realtime_part(&mut self, cpu: u16, task: u32, thread: u32) -> Next {
        let now = self.now;
        let this = &mut self.realtime.threads[thread as usize];
        let is_awake = std::mem::replace(&mut self.tasks[task as usize].part, 1) == 0;
        if is_awake {
            let late = now.saturating_sub(this.due);
            (this.last, this.least, this.most) = (late, this.least.min(late), this.most.max(late));
            this.cycles += 1;
            this.sum += late;
            let work = this.cyclic.work + self.costs.of(Cost::Arm);
            self.recorder.latency(thread as usize, late);
            self.recorder.realtime().on_isolated +=
                u64::from(self.tasks[task as usize].may_move && self.is_isolated(cpu));
            self.note(What::Thread, cpu, u64::from(task) << 40 ^ late);
            return Next::Run(work);
        }
        self.tasks[task as usize].part = 0;
        let over = (now - this.due) / this.cyclic.interval;
        this.skipped += over;
        this.due += (over + 1) * this.cyclic.interval;
        self.queue.push(Nanos(this.due), Event::Interval(thread));
        Next::Block
    }

    /// Everybody knows the priority of `cpu`, and nobody who may move is on it if it is isolated.
    pub(super) fn check_priority(&self, cpu: u16) {
        let known = self.realtime.priorities.of(id(cpu));
        assert_eq!(known, self.priority_of(cpu), "CPU {cpu}: what others know of its priority");
        let is_home = !self.is_isolated(cpu) || !self.has_guests(cpu);
        assert!(is_home, "CPU {cpu} is isolated and has tasks that may move");
    }

    /// `task` leaves the queue of `cpu` to run: none of its equals has waited longer there.
    pub(super) fn check_order(&mut self, cpu: u16, task: u32) {
        let this = self.tasks[task as usize];
        let is_passed = |other: &Task| {
            other.cpu == cpu
                && other.state == State::Runnable
                && other.priority == this.priority
                && other.stamp < this.stamp
        };
        if this.priority.is_some() && self.tasks.iter().any(is_passed) {
            self.recorder.realtime().disorder += 1;
        }
    }

    pub(super) fn finish_realtime(&mut self) {
        if self.realtime.threads.is_empty() {
            return;
        }
        let end = self.end;
        let threads = self.realtime.threads.iter().map(|thread| thread.figures(end)).collect();
        self.recorder.realtime().threads = threads;
    }
}
