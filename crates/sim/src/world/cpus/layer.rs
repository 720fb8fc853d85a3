//! What a CPU spends its time on: the topmost thing that it has, until that ends or something comes on top.

use super::state::{ScriptState, SentinelState};
use crate::scenario::Cost;
use crate::world::context::{RunAccess, RunContext};
use crate::world::softirqs::SoftirqLayer;
use crate::world::tasks::{ENDLESS, InterruptState, RunLevel, SimCpu, SoftirqState, TaskLayer};
use crate::world::timers::TimerLayer;

/// What CPUs do, on top of softirqs.
pub(crate) struct CpuLayer<'p> {
    pub(crate) softirqs: SoftirqLayer<'p>,
    pub(super) sentinel: SentinelState,
    pub(crate) script: ScriptState,
}

impl<'p> RunAccess<'p> for CpuLayer<'p> {
    fn run(&self) -> &RunContext<'p> {
        self.softirqs.run()
    }

    fn run_mut(&mut self) -> &mut RunContext<'p> {
        self.softirqs.run_mut()
    }
}

impl<'p> CpuLayer<'p> {
    /// CPUs that have nothing to do yet.
    pub(crate) fn new(softirqs: SoftirqLayer<'p>) -> Self {
        Self { softirqs, sentinel: SentinelState::default(), script: ScriptState::default() }
    }

    pub(crate) fn cpu(&mut self, cpu: u16) -> &mut SimCpu {
        self.softirqs.cpu(cpu)
    }

    pub(crate) fn tasks(&mut self) -> &mut TaskLayer<'p> {
        &mut self.softirqs.tasks
    }

    pub(crate) fn timers(&mut self) -> &mut TimerLayer<'p> {
        &mut self.softirqs.tasks.timers
    }
}

impl CpuLayer<'_> {
    /// Stops what `cpu` is doing, and keeps the rest.
    pub(crate) fn pause(&mut self, cpu: u16) {
        let now = self.now();
        let this = self.cpu(cpu);
        let spent = now - this.since;
        this.generation = this.generation.wrapping_add(1);
        match std::mem::replace(&mut this.level, RunLevel::None) {
            RunLevel::None => {}
            RunLevel::Interrupt => this.hard_left = this.hard_left.saturating_sub(spent),
            RunLevel::Softirq => this.soft_left = this.soft_left.saturating_sub(spent),
            RunLevel::Task => {
                let task = this.current.expect("a CPU at task level has a task");
                self.tasks().task_pauses(task, spent);
            }
        }
    }

    /// What `cpu` does now, and how long; `None` when it does nothing.
    pub(crate) fn topmost(&mut self, cpu: u16) -> Option<(RunLevel, u64)> {
        let this = self.cpu(cpu);
        if !this.is_online || this.is_stalled || this.is_asleep {
            return None;
        }
        let is_free = this.hard == InterruptState::None && matches!(this.soft, SoftirqState::None);
        // What no task may run is still to be run before the CPU sleeps.
        if is_free && !self.pick(cpu) && !self.softirqs.begin_round(cpu) {
            self.fall_asleep(cpu);
        }
        let this = self.cpu(cpu);
        if this.hard != InterruptState::None {
            return Some((RunLevel::Interrupt, this.hard_left));
        }
        if !matches!(this.soft, SoftirqState::None) {
            return Some((RunLevel::Softirq, this.soft_left));
        }
        let task = this.current?;
        Some((RunLevel::Task, self.tasks().task_resumes(cpu, task)))
    }

    /// Chooses what `cpu` runs; says whether there is anything.
    pub(crate) fn pick(&mut self, cpu: u16) -> bool {
        if let Some(current) = self.cpu(cpu).current {
            if !self.is_kernel() || !self.tasks().is_outranked(cpu) {
                return true;
            }
            self.tasks().put_back(cpu, current);
        }
        let highest = self.cpu(cpu).realtime.highest();
        let falls = self.cpu(cpu).last_priority > highest;
        let mut cost = if falls { self.tasks().pull_tasks(cpu) } else { 0 };
        let next = self.tasks().take_next(cpu);
        let priority = next.and_then(|task| self.tasks().all[task as usize].priority);
        let this = self.cpu(cpu);
        (this.current, this.last_priority) = (next, priority);
        self.tasks().renew_priority(cpu);
        let Some(task) = next else { return false };
        let is_switch = self.cpu(cpu).last_task.replace(task) != Some(task);
        if priority.is_some() {
            cost += self.tasks().push_tasks(cpu, cpu);
        }
        cost += self.leave_idle(cpu);
        cost += if is_switch { self.cost(Cost::ContextSwitch) } else { 0 };
        let task = &mut self.tasks().all[task as usize];
        match task.left {
            ENDLESS => task.return_cost += cost,
            _ => task.left += cost,
        }
        true
    }

    /// What `cpu` was doing is done.
    pub(crate) fn complete(&mut self, cpu: u16) {
        let this = self.cpu(cpu);
        this.generation = this.generation.wrapping_add(1);
        match std::mem::replace(&mut this.level, RunLevel::None) {
            RunLevel::None => {}
            RunLevel::Interrupt => {
                this.hard_left = 0;
                self.interrupt_ends(cpu);
            }
            RunLevel::Softirq => {
                this.soft_left = 0;
                self.softirq_step(cpu);
            }
            RunLevel::Task => {
                let task = this.current.expect("a CPU at task level has a task");
                self.tasks().all[task as usize].left = 0;
                self.task_step(cpu, task);
                if !self.is_kernel() {
                    self.look_around(cpu);
                }
            }
        }
    }
}
