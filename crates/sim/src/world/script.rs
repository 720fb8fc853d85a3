//! Steps that are given exactly: a task on each CPU does those of its CPU.

use super::task::{Next, Program};
use super::turn::Role;
use super::{Event, World, id};
use crate::script::{Happened, Occurrence, Step, Verb};
use quietcore_core::{Nanos, Precision, TimerOptions};
use std::collections::VecDeque;

/// What is left to do, and what happened.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// By CPU, in the order of their times.
    steps: Vec<VecDeque<Step>>,
    /// The world's number of timer 0.
    first_timer: u32,
    happened: Vec<Occurrence>,
}

impl World<'_> {
    /// Adds the timers of `steps`, and a task for every CPU that has any.
    pub(crate) fn follow(&mut self, steps: &[Step], precision: Precision) {
        self.script.first_timer = self.timers.len() as u32;
        for timer in 0..steps.iter().map(|step| step.timer + 1).max().unwrap_or(0) {
            self.add_timer(TimerOptions::new().precision(precision), Role::Scripted(timer));
        }
        self.script.steps = self.cpus.iter().map(|_| VecDeque::new()).collect();
        let mut steps = steps.to_vec();
        steps.sort_by_key(|step| step.at);
        for step in steps {
            self.script.steps[step.cpu.index()].push_back(step);
        }
        for cpu in 0..self.cpus.len() as u16 {
            if let Some(first) = self.script.steps[usize::from(cpu)].front() {
                self.queue.push(first.at, Event::Start(self.tasks.len() as u32));
                self.add_task(Program::Script, cpu);
            }
        }
    }

    /// What happens, up to the end of the plan.
    pub(crate) fn play(mut self) -> Vec<Occurrence> {
        self.run_events(&mut |_, _| true);
        self.script.happened
    }

    /// Does what is due on `cpu`, and then waits for the next step.
    pub(super) fn script_part(&mut self, cpu: u16, task: u32) -> Next {
        let mut cost = 0;
        let mut next = self.due_step(cpu);
        let is_done = next.is_none();
        while let Some(step) = next {
            cost += self.step(cpu, step);
            next = self.due_step(cpu);
        }
        if is_done {
            return Next::Block;
        }
        if let Some(next) = self.script.steps[usize::from(cpu)].front() {
            self.queue.push(next.at, Event::Start(task));
        }
        // What became due meanwhile is done before it blocks.
        Next::Run(cost)
    }

    fn due_step(&mut self, cpu: u16) -> Option<Step> {
        let steps = &mut self.script.steps[usize::from(cpu)];
        if steps.front()?.at.0 <= self.now { steps.pop_front() } else { None }
    }

    /// Returns what the step costs.
    fn step(&mut self, cpu: u16, step: Step) -> u64 {
        let timer = self.script.first_timer + step.timer;
        let was_pending = self.timers[timer as usize].is_pending;
        let (cost, what) = match step.verb {
            Verb::Arm { expires } => {
                let delay = expires.since(Nanos(self.now)).0;
                (self.arm(cpu, timer, delay), Happened::Armed { was_pending })
            }
            Verb::Cancel => (self.cancel(cpu, timer), Happened::Cancelled { was_pending }),
        };
        self.tell(cpu, step.timer, what);
        cost
    }

    /// Remembers what happened to a timer of the script.
    pub(super) fn tell(&mut self, cpu: u16, timer: u32, what: Happened) {
        let at = Nanos(self.now);
        self.script.happened.push(Occurrence { at, cpu: id(cpu), timer, what });
    }
}
