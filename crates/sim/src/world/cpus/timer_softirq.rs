//! TIMER: the softirq that runs timers, and what their callbacks do.

use super::layer::CpuLayer;
use crate::scenario::Cost;
use crate::script::ScriptEvent;
use crate::world::context::{NotedEvent, RunAccess};
use crate::world::tasks::{SoftirqState, TaskLayer};
use crate::world::timers::TimerRole;
use quietcore_core::softirq::Vector;
use quietcore_core::{ExpiredTimer, Nanos};
use quietcore_trace::SoftirqStep;

impl CpuLayer<'_> {
    /// The timer softirq of `cpu` goes one step further.
    pub(crate) fn softirq_step(&mut self, cpu: u16) {
        let now = Nanos(self.now());
        let this = self.cpu(cpu);
        let cost = match std::mem::replace(&mut this.soft, SoftirqState::None) {
            SoftirqState::None => return,
            SoftirqState::Finishing => {
                self.softirqs.helper_returns(cpu);
                return self.softirqs.next_vector(cpu);
            }
            SoftirqState::Handler(vector) => {
                if let Some(length) = self.softirqs.packet_step(cpu, vector) {
                    let this = self.cpu(cpu);
                    (this.soft, this.soft_left) = (SoftirqState::Handler(vector), length);
                    return;
                }
                self.export(|exporter| exporter.softirq(cpu, vector, SoftirqStep::Exit));
                return self.softirqs.next_vector(cpu);
            }
            SoftirqState::Raised => {
                let tasks = self.tasks();
                tasks.timers.machine.begin_turn(&mut tasks.cpus[usize::from(cpu)].turn, now);
                self.note(NotedEvent::Turn, cpu, 0);
                self.export(|exporter| exporter.softirq(cpu, Vector::TIMER, SoftirqStep::Entry));
                self.timers().carry_out(cpu)
            }
            SoftirqState::Callback(expired) => {
                let timer = expired.payload();
                let cost = self.callback_ends(cpu, timer);
                self.export(|exporter| exporter.ran(cpu, timer));
                let TaskLayer { timers, cpus, .. } = self.tasks();
                let turn = &mut cpus[usize::from(cpu)].turn;
                timers.machine.finish(turn, expired, now, &mut timers.actions);
                self.note(NotedEvent::Finish, cpu, u64::from(timer));
                cost + self.timers().carry_out(cpu)
            }
        };
        self.next_timer(cpu, cost);
    }

    /// Runs the next timer; `debt` is what `cpu` has yet to pay for.
    fn next_timer(&mut self, cpu: u16, debt: u64) {
        let is_kernel = self.is_kernel();
        let now = Nanos(self.now());
        let TaskLayer { timers, cpus, .. } = self.tasks();
        let turn = &mut cpus[usize::from(cpu)].turn;
        let expired = timers.machine.next_expired(turn, now, &mut timers.actions);
        let debt = debt + self.timers().carry_out(cpu);
        let this = self.cpu(cpu);
        this.soft_left = debt;
        if let Some(expired) = expired {
            let cost = self.expires(cpu, &expired);
            let this = self.cpu(cpu);
            this.soft_left += cost;
            this.soft = SoftirqState::Callback(expired);
        } else if this.turn.has_more() && (is_kernel || !this.has_task()) {
            this.soft = SoftirqState::Raised;
        } else {
            this.soft = SoftirqState::Finishing;
            self.export(|exporter| exporter.softirq(cpu, Vector::TIMER, SoftirqStep::Exit));
        }
    }

    /// A timer begins to run on `cpu`; returns how long it takes from its base to the end of its callback.
    fn expires(&mut self, cpu: u16, expired: &ExpiredTimer<u32>) -> u64 {
        let timer = self.timers().begins(cpu, expired);
        if !timer.is_deferrable {
            self.softirqs.check_lateness(cpu, &timer);
        }
        let mut callback = 0;
        match timer.role {
            TimerRole::Periodic(load) => callback = self.periodic(load).callback,
            TimerRole::Scripted(number) => self.tell(cpu, number, ScriptEvent::Ran),
            _ => {}
        }
        let base = expired.base().cpu.index() as u16;
        let collect = self.cost(Cost::Collect);
        self.timers().work_on(base, cpu, collect) + self.cost(Cost::Dispatch) + callback
    }

    /// What a callback does at its end, and what that costs.
    fn callback_ends(&mut self, cpu: u16, timer: u32) -> u64 {
        match self.timers().all[timer as usize].role {
            TimerRole::Periodic(load) => {
                let periodic = self.periodic(load);
                let percent = self.plan().faults.panics;
                let panics = percent > 0 && self.random().chance(percent);
                self.recorder().figures.panics += u64::from(panics);
                // What catches the panic keeps the interval going.
                let jitter = self.random().below(periodic.jitter + 1);
                self.timers().arm(cpu, timer, periodic.period + jitter)
            }
            TimerRole::Wake(task) => {
                let tasks = self.tasks();
                tasks.all[task as usize].due = tasks.timers.all[timer as usize].expires;
                tasks.wake(task, cpu)
            }
            TimerRole::Work(length) => self.tasks().queue_work(cpu, length),
            TimerRole::Guard => {
                self.recorder().figures.timeouts += 1;
                0
            }
            TimerRole::Watchdog(queue) => {
                self.softirqs.watchdog_ends(cpu, queue);
                0
            }
            TimerRole::Remote | TimerRole::Scripted(_) => 0,
        }
    }
}
