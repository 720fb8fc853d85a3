//! Sleeping and waking up.
//!
//! A CPU with nothing to run asks the machine how long it may sleep. In a kernel the tick stops only when the
//! machine says so, and the forecast that chose the depth of sleep is never overslept. A lane parks.

use super::layer::CpuLayer;
use crate::scenario::{Cost, IdleState};
use crate::world::context::{NotedEvent, RunAccess};
use crate::world::cpu_id::id;
use crate::world::event::SimEvent;
use crate::world::tasks::{InterruptState, RunLevel};
use quietcore_core::{IdleDecision, Nanos};

impl CpuLayer<'_> {
    /// `cpu` has nothing to run.
    pub(crate) fn fall_asleep(&mut self, cpu: u16) {
        let now = Nanos(self.now());
        let forecast = if self.is_kernel() && !self.timers().contact(cpu).is_parked {
            Some(self.timers().machine.forecast_idle(id(cpu), now))
        } else {
            None
        };
        let levels = if self.timers().contact(cpu).is_parked { 0 } else { self.timers().levels_down(cpu) };
        let decision = self.timers().enter_idle(cpu);
        let (walk, wakes_at) = match decision {
            IdleDecision::Stay { next } => {
                self.note(NotedEvent::Stay, cpu, next.0);
                // A lane dozes for a tick at most, and a CPU with a tick is woken by that; a kernel's CPU
                // that sleeps already is about to be woken.
                let tick_is_on = self.cpu(cpu).tick_is_on;
                let has_edges = tick_is_on || !self.is_kernel();
                let edge = if has_edges { next.0.min(self.next_edge(cpu)) } else { next.0 };
                if !tick_is_on {
                    self.set_wakeup(cpu, edge.max(self.now() + 1));
                }
                (0, Some(edge))
            }
            IdleDecision::Sleep { until } => {
                let forecast = forecast.and_then(|forecast| match forecast {
                    IdleDecision::Sleep { until } => until,
                    IdleDecision::Stay { next } => Some(next),
                });
                let until = [until, forecast].into_iter().flatten().min();
                self.note(NotedEvent::Sleep, cpu, until.map_or(u64::MAX, |until| until.0));
                self.set_tick(cpu, false);
                if let Some(until) = until {
                    self.set_wakeup(cpu, until.0.max(self.now()));
                }
                self.timers().contact(cpu).is_parked = true;
                (levels * self.cost(Cost::Walk), until.map(|until| until.0))
            }
        };
        self.recorder().figures.idle_spans += 1;
        let entry = self.cost(Cost::IdleEntry) + walk;
        let left = wakes_at.map(|at| at.saturating_sub(self.now() + entry));
        let deeper = self.choose_idle_state(cpu, left);
        let this = self.cpu(cpu);
        (this.hard, this.hard_left) = (InterruptState::FallingAsleep, entry + deeper);
    }

    /// Chooses how deep `cpu` sleeps, which expects to be woken in `span`, if at all; returns what it costs
    /// to get there. Nothing where sleep has one depth.
    fn choose_idle_state(&mut self, cpu: u16, span: Option<u64>) -> u64 {
        let states = &self.run().idle_states;
        let number = IdleState::deepest(states, span);
        let Some(entry) = states.get(number).map(|state| state.entry) else { return 0 };
        self.cpu(cpu).idle_state = number as u8;
        self.note(NotedEvent::Depth, cpu, number as u64);
        entry
    }

    fn set_wakeup(&mut self, cpu: u16, at: u64) {
        let this = self.cpu(cpu);
        this.wakeup_generation = this.wakeup_generation.wrapping_add(1);
        let generation = this.wakeup_generation;
        self.push(Nanos(at), SimEvent::Wakeup(cpu, generation));
    }

    /// `cpu` stops sleeping; returns how long that takes.
    pub(crate) fn wake_up(&mut self, cpu: u16) -> u64 {
        let now = self.now();
        let this = self.cpu(cpu);
        let (state, slept) = (this.idle_state, now - this.asleep_since);
        self.account_idle(cpu);
        self.recorder().idle.woken(cpu, state, slept);
        let this = self.cpu(cpu);
        this.is_asleep = false;
        this.wakeup_generation = this.wakeup_generation.wrapping_add(1);
        this.level = RunLevel::None;
        self.recorder().wakeup(id(cpu));
        self.note(NotedEvent::Wakeup, cpu, 0);
        let fault = self.plan().faults.late_wakeups;
        let is_late = fault.percent > 0 && self.random().chance(fault.percent);
        let late = if is_late { self.random().below(fault.span) } else { 0 };
        let deeper = self.run().idle_states.get(usize::from(state)).map_or(0, |state| state.exit);
        self.cost(Cost::IdleExit) + deeper + late
    }

    /// Counts the time that `cpu` has slept so far.
    pub(crate) fn account_idle(&mut self, cpu: u16) {
        let now = self.now();
        let this = self.cpu(cpu);
        if this.is_asleep {
            let (state, span) = (this.idle_state, now - this.asleep_since);
            this.asleep_since = now;
            self.recorder().idle_ns += span;
            self.recorder().idle.stayed(cpu, state, span);
        }
    }

    /// `cpu` has something to run: it is active in the hierarchy from now on. Returns what that costs.
    pub(crate) fn leave_idle(&mut self, cpu: u16) -> u64 {
        if !self.timers().contact(cpu).in_idle {
            return 0;
        }
        let levels = if self.timers().contact(cpu).is_parked { self.timers().levels_up(cpu) } else { 0 };
        let now = Nanos(self.now());
        self.timers().machine.exit_idle(id(cpu), now);
        self.timers().answered(cpu);
        self.note(NotedEvent::Awake, cpu, 0);
        let contact = self.timers().contact(cpu);
        (contact.in_idle, contact.is_parked) = (false, false);
        self.move_stall_deadline();
        self.set_tick(cpu, true);
        levels * self.cost(Cost::Walk)
    }
}
