//! Tasks: small programs that run, arm timers, sleep and wake each other.
//!
//! A task runs a span, then decides what comes next. Three classes: real-time (`realtime.rs`), normal, and
//! fillers (busy, measuring and enqueueing loops). In a kernel a higher class interrupts a lower one; within
//! a class it is first come, first served, and a task runs until it sleeps (fillers take turns). Deliberately
//! absent: fair shares and load balancing; a task stays on its CPU unless that goes offline or it is woken
//! elsewhere (`wake = "here"`).

use super::cpu::ENDLESS;
use super::{Event, World, id};
use crate::scenario::names::WakePlace;
use crate::scenario::{Cost, LoadKind};
use quietcore_core::Nanos;
use quietcore_core::place::nearest_housekeeping;
use quietcore_core::realtime::Priority;
use std::collections::VecDeque;

/// `due` of a task that no timer has woken.
pub(super) const NOT_DUE: u64 = u64::MAX;

/// What a task does. Numbers are those of timers and tasks; times are in its load.
#[derive(Clone, Copy, Debug)]
pub(super) enum Program {
    /// Arms a periodic timer once.
    Starter {
        timer: u32,
    },
    /// Handles a device's interrupts.
    Driver {
        period: u64,
        jitter: u64,
        delay: u64,
        timer: u32,
    },
    Timeout {
        delay: u64,
        run: u64,
        sleep: u64,
        guard: u32,
        timer: u32,
    },
    Sleeper {
        run: u64,
        sleep: u64,
        jitter: u64,
        is_rt: bool,
        timer: u32,
    },
    Busy {
        chunk: u64,
        normal: bool,
    },
    Measure,
    Client {
        request: u64,
        timeout: u64,
        server: u32,
        guard: u32,
    },
    Server {
        service: u64,
        client: u32,
    },
    Enqueue {
        delay: u64,
        timer: u32,
    },
    Worker,
    /// One of the real-time threads.
    Realtime {
        thread: u32,
    },
    /// Runs softirqs that their CPU left.
    Ksoftirqd,
    /// Arms a timer on another CPU.
    Remote {
        target: u16,
        period: u64,
        slow: u64,
        timer: u32,
    },
    /// Sends packets through this transmit queue.
    Sender {
        queue: u16,
    },
    /// Does the steps of a script.
    Script,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Waits to be woken.
    Blocked,
    /// In a queue, or current.
    Runnable,
    /// Will never run again.
    Ended,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) program: Program,
    pub(super) state: State,
    pub(super) cpu: u16,
    /// Where it belongs; it returns there when that CPU comes back.
    pub(super) home: u16,
    /// Of a real-time task.
    pub(super) priority: Option<Priority>,
    /// Whether it may be placed, pushed and pulled.
    pub(super) may_move: bool,
    /// When it was last put behind its equals: a number that counts up.
    pub(super) stamp: u64,
    /// Which part of its program comes next.
    pub(super) part: u8,
    pub(super) left: u64,
    /// When the timer was due that woke it.
    pub(super) due: u64,
    /// A measuring loop: since when it is away, and how much longer it takes to come back.
    pub(super) away_since: Option<u64>,
    pub(super) return_cost: u64,
    /// An enqueueing loop: when its round began.
    pub(super) round_at: u64,
}

/// What comes next for a task.
pub(super) enum Next {
    Run(u64),
    /// Behind its equals.
    Yield(u64),
    Block,
    End,
}

/// Work that waits for a CPU's worker.
#[derive(Debug, Default)]
pub(super) struct Worker {
    pub(super) task: Option<u32>,
    pub(super) backlog: VecDeque<u64>,
}

impl Task {
    pub(super) fn new(program: Program, cpu: u16) -> Self {
        Self {
            program,
            state: State::Blocked,
            cpu,
            home: cpu,
            // Sleepers have no priorities among themselves.
            priority: matches!(program, Program::Sleeper { is_rt: true, .. }).then_some(Priority::LOWEST),
            may_move: false,
            stamp: 0,
            part: 0,
            left: 0,
            due: NOT_DUE,
            away_since: None,
            return_cost: 0,
            round_at: 0,
        }
    }

    /// Which queue of its CPU it waits in, if it is no real-time task.
    pub(super) fn class(&self) -> usize {
        usize::from(self.is_filler())
    }

    pub(super) fn is_filler(&self) -> bool {
        match self.program {
            Program::Busy { normal, .. } => !normal,
            Program::Measure | Program::Enqueue { .. } => true,
            _ => false,
        }
    }

    /// Whether it never sleeps.
    pub(super) fn is_loop(&self) -> bool {
        self.is_filler() || matches!(self.program, Program::Busy { .. })
    }

    /// Whether it runs in the place of `other` as soon as it can.
    fn outranks(&self, other: &Self) -> bool {
        match (self.priority, other.priority) {
            (None, None) => self.class() < other.class(),
            (own, others) => own > others,
        }
    }
}

impl World<'_> {
    /// Chooses what `cpu` runs; says whether there is anything.
    pub(super) fn pick(&mut self, cpu: u16) -> bool {
        if let Some(current) = self.cpus[usize::from(cpu)].current {
            if !self.is_kernel() || !self.is_outranked(cpu) {
                return true;
            }
            self.put_back(cpu, current);
        }
        let highest = self.cpus[usize::from(cpu)].realtime.highest();
        let falls = self.cpus[usize::from(cpu)].last_priority > highest;
        let mut cost = if falls { self.pull_tasks(cpu) } else { 0 };
        let next = self.take_next(cpu);
        let priority = next.and_then(|task| self.tasks[task as usize].priority);
        let this = &mut self.cpus[usize::from(cpu)];
        (this.current, this.last_priority) = (next, priority);
        self.renew_priority(cpu);
        let Some(task) = next else { return false };
        let is_switch = self.cpu(cpu).last_task.replace(task) != Some(task);
        if priority.is_some() {
            cost += self.push_tasks(cpu, cpu);
        }
        cost += self.leave_idle(cpu);
        cost += if is_switch { self.costs.of(Cost::ContextSwitch) } else { 0 };
        let task = &mut self.tasks[task as usize];
        match task.left {
            ENDLESS => task.return_cost += cost,
            _ => task.left += cost,
        }
        true
    }

    /// `current` of `cpu` is preempted: it goes on before its equals.
    fn put_back(&mut self, cpu: u16, current: u32) {
        let task = self.tasks[current as usize];
        let this = self.cpu(cpu);
        this.current = None;
        match task.priority {
            Some(priority) => this.realtime.push_first(priority, current),
            None => this.queues[task.class()].push_front(current),
        }
    }

    /// The task that `cpu` runs next.
    fn take_next(&mut self, cpu: u16) -> Option<u32> {
        let this = self.cpu(cpu);
        let first = this.softirqs.ksoftirqd.filter(|_| this.softirqs.is_boosted);
        let boosted = first.and_then(|first| this.queues[0].iter().position(|task| *task == first));
        if let Some(at) = boosted {
            return this.queues[0].remove(at);
        }
        if let Some((_, task)) = this.realtime.pop() {
            if self.options.check {
                self.check_order(cpu, task);
            }
            return Some(task);
        }
        this.queues.iter_mut().find_map(VecDeque::pop_front)
    }

    /// `task`, which is current on `cpu`, runs on; returns how long.
    pub(super) fn task_resumes(&mut self, cpu: u16, task: u32) -> u64 {
        let this = &mut self.tasks[task as usize];
        if let Some(since) = this.away_since.take() {
            let gap = self.now - since + std::mem::take(&mut this.return_cost);
            self.recorder.gap(id(cpu), gap);
        }
        self.tasks[task as usize].left
    }

    /// `task` is interrupted after `spent`.
    pub(super) fn task_pauses(&mut self, task: u32, spent: u64) {
        let now = self.now;
        let this = &mut self.tasks[task as usize];
        if this.left != ENDLESS {
            this.left = this.left.saturating_sub(spent);
        }
        if matches!(this.program, Program::Measure) {
            this.away_since = Some(now);
        }
    }

    /// `task` has run its span on `cpu`: what comes next.
    pub(super) fn task_step(&mut self, cpu: u16, task: u32) {
        let now = self.now;
        let this = &mut self.tasks[task as usize];
        let due = std::mem::replace(&mut this.due, NOT_DUE);
        if due != NOT_DUE {
            self.recorder.task_delay(now.saturating_sub(due));
        }
        let next = self.next_part(cpu, task);
        let this = &mut self.tasks[task as usize];
        match next {
            Next::Run(span) => this.left = span,
            Next::Yield(span) => {
                this.left = span;
                let class = this.class();
                if matches!(this.program, Program::Measure) {
                    this.away_since = Some(now);
                }
                let cpu = self.cpu(cpu);
                cpu.current = None;
                cpu.queues[class].push_back(task);
            }
            Next::Block => {
                this.state = State::Blocked;
                self.cpu(cpu).current = None;
                self.renew_priority(cpu);
            }
            Next::End => {
                this.state = State::Ended;
                self.cpu(cpu).current = None;
                self.renew_priority(cpu);
            }
        }
    }

    fn next_part(&mut self, cpu: u16, task: u32) -> Next {
        let this = &mut self.tasks[task as usize];
        let (program, part) = (this.program, this.part);
        match program {
            Program::Starter { timer } => self.first_arm(cpu, task, timer),
            Program::Sleeper { run, .. } if part == 0 => self.run_part(task, run),
            Program::Sleeper { sleep, jitter, timer, .. } => {
                let sleep = sleep + self.random.below(jitter + 1);
                self.sleep_part(cpu, task, timer, sleep)
            }
            Program::Timeout { delay, run, guard, .. } if part == 0 => {
                let cost = self.arm(cpu, guard, delay);
                self.run_part(task, run + cost)
            }
            Program::Timeout { sleep, guard, timer, .. } => {
                // What the cancel costs is paid by sleeping later.
                let cost = if part == 1 { self.cancel(cpu, guard) } else { 0 };
                self.sleep_part(cpu, task, timer, sleep + cost)
            }
            Program::Driver { .. } => self.driver_part(cpu, task),
            Program::Busy { chunk, .. } => Next::Yield(chunk),
            Program::Measure if self.is_kernel() => Next::Run(ENDLESS),
            Program::Measure => Next::Yield(self.plan.tick.0),
            Program::Client { .. } => self.client_part(cpu, task),
            Program::Server { service, client } => self.server_part(cpu, task, service, client),
            Program::Enqueue { delay, timer } => self.enqueue_part(cpu, task, delay, timer),
            Program::Worker => self.worker_part(task),
            Program::Realtime { thread } => self.realtime_part(cpu, task, thread),
            Program::Ksoftirqd => self.ksoftirqd_part(cpu),
            Program::Remote { .. } => self.remote_part(cpu, task),
            Program::Sender { queue } => self.sender_part(cpu, task, queue),
            Program::Script => self.script_part(cpu, task),
        }
    }

    fn first_arm(&mut self, cpu: u16, task: u32, timer: u32) -> Next {
        if self.tasks[task as usize].part == 1 {
            return Next::End;
        }
        let super::turn::Role::Periodic(load) = self.timers[timer as usize].role else { return Next::End };
        let LoadKind::Periodic(periodic) = self.plan.loads[load as usize].kind else { return Next::End };
        let delay = periodic.period + self.random.below(periodic.jitter + 1);
        let cost = self.arm(cpu, timer, delay);
        self.run_part(task, cost)
    }

    /// The device has interrupted: arms the delayed work unless that is pending, and expects the next
    /// interrupt.
    fn driver_part(&mut self, cpu: u16, task: u32) -> Next {
        let Program::Driver { period, jitter, delay, timer } = self.tasks[task as usize].program else {
            return Next::End;
        };
        let this = &mut self.tasks[task as usize];
        if std::mem::replace(&mut this.part, 1) == 1 {
            this.part = 0;
            return Next::Block;
        }
        let next = self.now + period + self.random.below(jitter + 1);
        self.queue.push(Nanos(next), Event::Start(task));
        let is_pending = self.timers[timer as usize].is_pending;
        Next::Run(if is_pending { 0 } else { self.arm(cpu, timer, delay) })
    }

    fn run_part(&mut self, task: u32, span: u64) -> Next {
        self.tasks[task as usize].part = 1;
        Next::Run(span)
    }

    /// Arms the timer that will wake the task; what that costs it runs before it blocks.
    fn sleep_part(&mut self, cpu: u16, task: u32, timer: u32, sleep: u64) -> Next {
        let this = &mut self.tasks[task as usize];
        if this.part == 2 {
            this.part = 0;
            if !self.timers[timer as usize].is_pending {
                return self.next_part(cpu, task); // it was woken before it slept
            }
            return Next::Block;
        }
        this.part = 2;
        let cost = self.arm(cpu, timer, sleep);
        Next::Run(cost)
    }

    fn client_part(&mut self, cpu: u16, task: u32) -> Next {
        let Program::Client { request, timeout, server, guard } = self.tasks[task as usize].program else {
            return Next::End;
        };
        let this = &mut self.tasks[task as usize];
        let part = this.part;
        this.part = (part + 1) % 4;
        match part {
            // Prepares the request, guards it, sends it, and waits for the answer.
            0 => Next::Run(request),
            1 => {
                let cost = self.arm(cpu, guard, timeout);
                Next::Run(cost)
            }
            2 => {
                // The answer cannot come before the request was sent.
                self.tasks[task as usize].state = State::Blocked;
                let _ = self.wake(server, cpu);
                Next::Block
            }
            _ => {
                let cost = self.cancel(cpu, guard);
                *self.recorder.requests.get_or_insert(0) += 1;
                Next::Run(cost)
            }
        }
    }

    fn server_part(&mut self, cpu: u16, task: u32, service: u64, client: u32) -> Next {
        let this = &mut self.tasks[task as usize];
        if std::mem::replace(&mut this.part, 1) == 0 {
            return Next::Run(service);
        }
        this.part = 0;
        this.state = State::Blocked;
        let _ = self.wake(client, cpu);
        Next::Block
    }

    fn enqueue_part(&mut self, cpu: u16, task: u32, delay: u64, timer: u32) -> Next {
        let now = self.now;
        let this = &mut self.tasks[task as usize];
        if std::mem::replace(&mut this.part, 1) == 0 {
            this.round_at = now;
            let cost = self.arm(cpu, timer, delay);
            return Next::Run(cost.max(1));
        }
        this.part = 2;
        let began = this.round_at;
        let cost = self.cancel(cpu, timer).max(1);
        self.tasks[task as usize].part = 0;
        let (rounds, ns) = self.recorder.rounds.get_or_insert((0, 0));
        *rounds += 1;
        *ns += now - began + cost;
        Next::Run(cost)
    }

    /// Also elsewhere, while its own CPU is offline.
    fn worker_part(&mut self, task: u32) -> Next {
        let home = self.tasks[task as usize].home;
        self.workers[usize::from(home)].backlog.pop_front().map_or(Next::Block, Next::Run)
    }

    /// A callback on `cpu` hands work to the worker there. Returns what that costs.
    pub(super) fn queue_work(&mut self, cpu: u16, length: u64) -> u64 {
        let worker = &mut self.workers[usize::from(cpu)];
        worker.backlog.push_back(length);
        let task = *worker.task.get_or_insert_with(|| {
            self.tasks.push(Task::new(Program::Worker, cpu));
            self.tasks.len() as u32 - 1
        });
        self.wake(task, cpu)
    }

    /// `task` can run; `from` is the CPU that says so. Returns what that costs it.
    pub(super) fn wake(&mut self, task: u32, from: u16) -> u64 {
        let this = &self.tasks[task as usize];
        if this.state != State::Blocked {
            return 0;
        }
        if matches!(this.program, Program::Realtime { .. }) {
            return self.wake_realtime(task, from);
        }
        let is_fixed = matches!(this.program, Program::Worker | Program::Ksoftirqd | Program::Sender { .. });
        let may_move = !is_fixed && !self.is_isolated(from) && self.cpus[usize::from(from)].is_online;
        let wanted = match self.plan.wake {
            WakePlace::Here if may_move => from,
            _ => this.home,
        };
        let target = self.online_near(wanted);
        self.enqueue(task, target);
        self.reschedule(target, from, task)
    }

    /// Puts `task` into the queue of `target`.
    pub(super) fn enqueue(&mut self, task: u32, target: u16) {
        let this = &mut self.tasks[task as usize];
        (this.state, this.cpu) = (State::Runnable, target);
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

    /// Makes `target` notice `task`; what that costs `from`.
    pub(super) fn reschedule(&mut self, target: u16, from: u16, task: u32) -> u64 {
        let is_kernel = self.is_kernel();
        let this = &self.cpus[usize::from(target)];
        let task = &self.tasks[task as usize];
        let interrupts =
            is_kernel && this.current.is_some_and(|now| task.outranks(&self.tasks[now as usize]));
        if target == from || !(this.is_asleep || interrupts) {
            return 0;
        }
        self.send_kick(target);
        self.costs.of(Cost::Kick)
    }

    /// `wanted` if it is online, else the nearest CPU that is and may run tasks.
    pub(super) fn online_near(&self, wanted: u16) -> u16 {
        if self.cpus[usize::from(wanted)].is_online {
            return wanted;
        }
        self.housekeeper_near(wanted)
    }

    /// The CPU nearest to `wanted` that takes anybody's tasks.
    pub(super) fn housekeeper_near(&self, wanted: u16) -> u16 {
        let near = nearest_housekeeping(&self.plan.topology, id(wanted), self.housekeeping.work());
        near.map_or(wanted, |cpu| cpu.index() as u16)
    }
}
