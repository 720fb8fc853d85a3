//! Steps that are given exactly: a task on each CPU does those of its CPU.

use super::layer::CpuLayer;
use crate::script::{ScriptEvent, ScriptOccurrence, ScriptStep, ScriptVerb};
use crate::world::context::RunAccess;
use crate::world::cpu_id::id;
use crate::world::event::SimEvent;
use crate::world::tasks::{NextPart, Program};
use crate::world::timers::TimerRole;
use quietcore_core::{Nanos, Precision, TimerOptions};
use std::collections::VecDeque;

impl CpuLayer<'_> {
    /// Adds the timers of `steps`, and a task for every CPU that has any.
    pub(crate) fn follow(&mut self, steps: &[ScriptStep], precision: Precision) {
        self.script.first_timer = self.timers().all.len() as u32;
        for timer in 0..steps.iter().map(|step| step.timer + 1).max().unwrap_or(0) {
            self.timers().add_timer(TimerOptions::new().precision(precision), TimerRole::Scripted(timer));
        }
        let cpu_count = self.tasks().cpus.len();
        self.script.steps = vec![VecDeque::new(); cpu_count];
        let mut steps = steps.to_vec();
        steps.sort_by_key(|step| step.at);
        for step in steps {
            self.script.steps[step.cpu.index()].push_back(step);
        }
        for cpu in 0..cpu_count as u16 {
            if let Some(first) = self.script.steps[usize::from(cpu)].front() {
                let (at, task) = (first.at, self.softirqs.tasks.all.len() as u32);
                self.push(at, SimEvent::Start(task));
                self.tasks().add_task(Program::Script, cpu);
            }
        }
    }
}

impl CpuLayer<'_> {
    /// Does what is due on `cpu`, and then waits for the next step.
    pub(crate) fn script_part(&mut self, cpu: u16, task: u32) -> NextPart {
        let mut cost = 0;
        let mut next = self.due_step(cpu);
        let is_done = next.is_none();
        while let Some(step) = next {
            cost += self.step(cpu, step);
            next = self.due_step(cpu);
        }
        if is_done {
            return NextPart::Block;
        }
        if let Some(next) = self.script.steps[usize::from(cpu)].front() {
            self.push(next.at, SimEvent::Start(task));
        }
        // What became due meanwhile is done before it blocks.
        NextPart::Run(cost)
    }

    fn due_step(&mut self, cpu: u16) -> Option<ScriptStep> {
        let now = self.now();
        let steps = &mut self.script.steps[usize::from(cpu)];
        if steps.front()?.at.0 <= now { steps.pop_front() } else { None }
    }

    /// Returns what the step costs.
    fn step(&mut self, cpu: u16, step: ScriptStep) -> u64 {
        let timer = self.script.first_timer + step.timer;
        let was_pending = self.timers().all[timer as usize].is_pending;
        let (cost, what) = match step.verb {
            ScriptVerb::Arm { expires } => {
                let delay = expires.since(Nanos(self.now())).0;
                (self.timers().arm(cpu, timer, delay), ScriptEvent::Armed { was_pending })
            }
            ScriptVerb::Cancel => (self.timers().cancel(cpu, timer), ScriptEvent::Cancelled { was_pending }),
        };
        self.tell(cpu, step.timer, what);
        cost
    }

    /// Remembers what happened to a timer of the script.
    pub(crate) fn tell(&mut self, cpu: u16, timer: u32, what: ScriptEvent) {
        let at = Nanos(self.now());
        self.script.happened.push(ScriptOccurrence { at, cpu: id(cpu), timer, what });
    }
}
