//! What tasks do: the parts of their programs, one after the other.

use super::layer::CpuLayer;
use crate::scenario::{Cost, LoadKind};
use crate::world::context::{NotedEvent, RunAccess};
use crate::world::event::SimEvent;
use crate::world::tasks::{ENDLESS, NOT_DUE, NextPart, Program, SimTaskState};
use crate::world::timers::TimerRole;
use quietcore_core::Nanos;

impl CpuLayer<'_> {
    /// `task` has run its span on `cpu`: what comes next.
    pub(crate) fn task_step(&mut self, cpu: u16, task: u32) {
        let now = self.now();
        let this = &mut self.tasks().all[task as usize];
        let due = std::mem::replace(&mut this.due, NOT_DUE);
        if due != NOT_DUE {
            self.recorder().task_delay(now.saturating_sub(due));
        }
        let next = self.next_part(cpu, task);
        let this = &mut self.tasks().all[task as usize];
        match next {
            NextPart::Run(span) => this.left = span,
            NextPart::Yield(span) => {
                this.left = span;
                let class = this.class();
                if matches!(this.program, Program::Measure) {
                    this.away_since = Some(now);
                }
                let cpu = self.cpu(cpu);
                cpu.current = None;
                cpu.queues[class].push_back(task);
            }
            NextPart::Block => {
                this.state = SimTaskState::Blocked;
                self.cpu(cpu).current = None;
                self.tasks().renew_priority(cpu);
            }
            NextPart::End => {
                this.state = SimTaskState::Ended;
                self.cpu(cpu).current = None;
                self.tasks().renew_priority(cpu);
            }
        }
    }

    fn next_part(&mut self, cpu: u16, task: u32) -> NextPart {
        let this = &mut self.tasks().all[task as usize];
        let (program, part) = (this.program, this.part);
        match program {
            Program::Starter { timer } => self.first_arm(cpu, task, timer),
            Program::Sleeper { run, .. } if part == 0 => self.run_part(task, run),
            Program::Sleeper { sleep, jitter, timer, .. } => {
                let sleep = sleep + self.random().below(jitter + 1);
                self.sleep_part(cpu, task, timer, sleep)
            }
            Program::Timeout { delay, run, guard, .. } if part == 0 => {
                let cost = self.timers().arm(cpu, guard, delay);
                self.run_part(task, run + cost)
            }
            Program::Timeout { sleep, guard, timer, .. } => {
                // What the cancel costs is paid by sleeping later.
                let cost = if part == 1 { self.timers().cancel(cpu, guard) } else { 0 };
                self.sleep_part(cpu, task, timer, sleep + cost)
            }
            Program::Driver { .. } => self.driver_part(cpu, task),
            Program::Busy { chunk, .. } => NextPart::Yield(chunk),
            Program::Measure if self.is_kernel() => NextPart::Run(ENDLESS),
            Program::Measure => NextPart::Yield(self.plan().tick.0),
            Program::Client { .. } => self.client_part(cpu, task),
            Program::Server { service, client } => self.server_part(cpu, task, service, client),
            Program::Enqueue { delay, timer } => self.enqueue_part(cpu, task, delay, timer),
            Program::Worker => self.worker_part(task),
            Program::Realtime { thread } => self.realtime_part(cpu, task, thread),
            Program::Ksoftirqd => self.softirqs.ksoftirqd_part(cpu),
            Program::Remote { .. } => self.remote_part(cpu, task),
            Program::Sender { queue } => self.softirqs.sender_part(cpu, task, queue),
            Program::Script => self.script_part(cpu, task),
        }
    }

    fn first_arm(&mut self, cpu: u16, task: u32, timer: u32) -> NextPart {
        if self.tasks().all[task as usize].part == 1 {
            return NextPart::End;
        }
        let TimerRole::Periodic(load) = self.timers().all[timer as usize].role else { return NextPart::End };
        let LoadKind::Periodic(periodic) = self.plan().loads[load as usize].kind else {
            return NextPart::End;
        };
        let delay = periodic.period + self.random().below(periodic.jitter + 1);
        let cost = self.timers().arm(cpu, timer, delay);
        self.run_part(task, cost)
    }

    /// The device has interrupted: arms the delayed work unless that is pending, and expects the next
    /// interrupt.
    fn driver_part(&mut self, cpu: u16, task: u32) -> NextPart {
        let Program::Driver { period, jitter, delay, timer } = self.tasks().all[task as usize].program else {
            return NextPart::End;
        };
        let this = &mut self.tasks().all[task as usize];
        if std::mem::replace(&mut this.part, 1) == 1 {
            this.part = 0;
            return NextPart::Block;
        }
        let next = self.now() + period + self.random().below(jitter + 1);
        self.push(Nanos(next), SimEvent::Start(task));
        let is_pending = self.timers().all[timer as usize].is_pending;
        NextPart::Run(if is_pending { 0 } else { self.timers().arm(cpu, timer, delay) })
    }

    fn run_part(&mut self, task: u32, span: u64) -> NextPart {
        self.tasks().all[task as usize].part = 1;
        NextPart::Run(span)
    }

    /// Arms the timer that will wake the task; what that costs it runs before it blocks.
    fn sleep_part(&mut self, cpu: u16, task: u32, timer: u32, sleep: u64) -> NextPart {
        let this = &mut self.tasks().all[task as usize];
        if this.part == 2 {
            this.part = 0;
            if !self.timers().all[timer as usize].is_pending {
                return self.next_part(cpu, task); // it was woken before it slept
            }
            return NextPart::Block;
        }
        this.part = 2;
        let cost = self.timers().arm(cpu, timer, sleep);
        NextPart::Run(cost)
    }

    fn client_part(&mut self, cpu: u16, task: u32) -> NextPart {
        let Program::Client { request, timeout, server, guard } = self.tasks().all[task as usize].program
        else {
            return NextPart::End;
        };
        let this = &mut self.tasks().all[task as usize];
        let part = this.part;
        this.part = (part + 1) % 4;
        match part {
            // Prepares the request, guards it, sends it, and waits for the answer.
            0 => NextPart::Run(request),
            1 => {
                let cost = self.timers().arm(cpu, guard, timeout);
                NextPart::Run(cost)
            }
            2 => {
                // The answer cannot come before the request was sent.
                self.tasks().all[task as usize].state = SimTaskState::Blocked;
                let _ = self.tasks().wake(server, cpu);
                NextPart::Block
            }
            _ => {
                let cost = self.timers().cancel(cpu, guard);
                *self.recorder().requests.get_or_insert(0) += 1;
                NextPart::Run(cost)
            }
        }
    }

    fn server_part(&mut self, cpu: u16, task: u32, service: u64, client: u32) -> NextPart {
        let this = &mut self.tasks().all[task as usize];
        if std::mem::replace(&mut this.part, 1) == 0 {
            return NextPart::Run(service);
        }
        this.part = 0;
        this.state = SimTaskState::Blocked;
        let _ = self.tasks().wake(client, cpu);
        NextPart::Block
    }

    fn enqueue_part(&mut self, cpu: u16, task: u32, delay: u64, timer: u32) -> NextPart {
        let now = self.now();
        let this = &mut self.tasks().all[task as usize];
        if std::mem::replace(&mut this.part, 1) == 0 {
            this.round_at = now;
            let cost = self.timers().arm(cpu, timer, delay);
            return NextPart::Run(cost.max(1));
        }
        this.part = 2;
        let began = this.round_at;
        let cost = self.timers().cancel(cpu, timer).max(1);
        self.tasks().all[task as usize].part = 0;
        let (rounds, ns) = self.recorder().rounds.get_or_insert((0, 0));
        *rounds += 1;
        *ns += now - began + cost;
        NextPart::Run(cost)
    }

    /// Also elsewhere, while its own CPU is offline.
    fn worker_part(&mut self, task: u32) -> NextPart {
        let home = self.tasks().all[task as usize].home;
        self.tasks().workers[usize::from(home)].backlog.pop_front().map_or(NextPart::Block, NextPart::Run)
    }

    /// A thread goes on: it is awake, or it has worked.
    pub(crate) fn realtime_part(&mut self, cpu: u16, task: u32, thread: u32) -> NextPart {
        let now = self.now();
        let tasks = &mut self.softirqs.tasks;
        let state = &mut tasks.realtime.threads[thread as usize];
        let this = &mut tasks.all[task as usize];
        let (is_awake, may_move) = (this.part == 0, this.may_move);
        this.part = u8::from(is_awake);
        if !is_awake {
            let due = state.sleep(now);
            self.push(Nanos(due), SimEvent::Interval(thread));
            return NextPart::Block;
        }
        let late = state.wake(now);
        let work = state.cyclic.work + self.cost(Cost::Arm);
        let is_stray = may_move && self.timers().is_isolated(cpu);
        self.recorder().latency(thread as usize, late);
        self.recorder().realtime().on_isolated += u64::from(is_stray);
        self.note(NotedEvent::Thread, cpu, u64::from(task) << 40 ^ late);
        NextPart::Run(work)
    }

    /// Arms on another CPU: decides just before the tick of that CPU, which sees the timer up to `slow`
    /// later.
    pub(crate) fn remote_part(&mut self, cpu: u16, task: u32) -> NextPart {
        let Program::Remote { target, period, slow, timer } = self.tasks().all[task as usize].program else {
            return NextPart::End;
        };
        let this = &mut self.tasks().all[task as usize];
        let part = this.part;
        this.part = (part + 1) % 3;
        match part {
            0 => {
                // To be due as soon as can be: with the tick that the wheel adds, at the target's next edge.
                let edge = self.next_edge(target);
                self.tasks().all[task as usize].round_at = edge.saturating_sub(self.plan().tick.0);
                NextPart::Run(self.random().below(slow + 1))
            }
            1 => {
                let expires = self.tasks().all[task as usize].round_at;
                let is_pending = self.timers().all[timer as usize].is_pending;
                let cost = if is_pending { 0 } else { self.timers().arm_there(cpu, timer, target, expires) };
                NextPart::Run(cost)
            }
            _ => {
                // So long before an edge of the target's tick that half of its arms are late for it.
                let to_wake = [Cost::IdleExit, Cost::Interrupt, Cost::ContextSwitch];
                let to_wake: u64 = to_wake.into_iter().map(|cost| self.cost(cost)).sum();
                let lead = to_wake + self.random().below(slow + 1);
                let edge = self.edge_after(target, self.now() + period);
                self.push(Nanos(edge.saturating_sub(lead).max(self.now() + 1)), SimEvent::Start(task));
                NextPart::Block
            }
        }
    }
}
