//! What a CPU does when an interrupt was handled: answers, looks for timers, begins softirqs.

use super::layer::CpuLayer;
use crate::scenario::names::ScenarioPolicy;
use crate::world::context::{NotedEvent, RunAccess};
use crate::world::cpu_id::id;
use crate::world::event::SimEvent;
use crate::world::tasks::{InterruptState, SoftirqState};
use crate::world::why;
use quietcore_core::Nanos;
use quietcore_core::softirq::Vector;

impl CpuLayer<'_> {
    /// An interrupt was handled, or `cpu` is about to be asleep.
    pub(crate) fn interrupt_ends(&mut self, cpu: u16) {
        let now = self.now();
        let this = self.cpu(cpu);
        let hard = std::mem::replace(&mut this.hard, InterruptState::None);
        if hard == InterruptState::FallingAsleep {
            if this.pending == 0 && !this.has_task() {
                this.is_asleep = true;
                this.asleep_since = now;
                let state = this.idle_state;
                self.recorder().idle.enter(cpu, state);
                return;
            }
            if this.pending == 0 {
                return;
            }
            // It came just in time: this CPU never slept.
            (this.hard, this.hard_left) = (InterruptState::Interrupt, 0);
            return;
        }
        if hard == InterruptState::Leaving && this.pending == 0 {
            self.softirqs.begin_round(cpu);
            return;
        }
        let reasons = std::mem::take(&mut this.pending);
        if !self.timers().contact(cpu).in_idle {
            self.timers().answered(cpu);
        }
        let mut cost = 0;
        if !self.is_kernel() || reasons & why::KICK != 0 {
            // A lane is awake as soon as it turns, also when only timers are due; a kicked CPU leaves its
            // idle loop.
            cost = self.leave_idle(cpu);
        }
        if !self.is_kernel() {
            self.cpu(cpu).looked_at = now / self.plan().tick.0;
            self.watch(cpu);
        }
        let handled = self.softirqs.handle_arrivals(cpu);
        self.look_for_timers(cpu, reasons);
        if handled > 0 {
            let this = self.cpu(cpu);
            (this.hard, this.hard_left) = (InterruptState::Leaving, handled + cost);
            return;
        }
        self.softirqs.begin_round(cpu);
        self.cpu(cpu).soft_left += cost;
    }

    /// Raises the timer softirq if something is due, or whenever the rule of `cpu` says.
    pub(crate) fn look_for_timers(&mut self, cpu: u16, reasons: u8) {
        let now = Nanos(self.now());
        let is_due = self.timers().machine.handle_tick(id(cpu), now);
        self.note(NotedEvent::Tick, cpu, u64::from(is_due));
        let this = self.cpu(cpu);
        let has_more = this.turn.has_more() && matches!(this.soft, SoftirqState::None);
        if has_more || self.timers().raises(cpu, reasons, is_due) {
            self.softirqs.raise(cpu, Vector::TIMER);
        }
    }

    /// A lane between two tasks: once per tick, and whenever it was kicked, it looks at its timers and
    /// neighbours.
    pub(crate) fn look_around(&mut self, cpu: u16) {
        let edge = self.now() / self.plan().tick.0;
        let this = self.cpu(cpu);
        if this.pending == 0 && this.looked_at == edge && !this.turn.has_more() {
            return;
        }
        (this.pending, this.looked_at) = (0, edge);
        self.timers().answered(cpu);
        self.watch(cpu);
        self.look_for_timers(cpu, why::TICK);
        self.softirqs.begin_round(cpu);
    }

    /// Lanes look after each other; a kernel has interrupts.
    pub(crate) fn watch(&mut self, cpu: u16) {
        if self.plan().policy == ScenarioPolicy::Pull && !self.timers().contact(cpu).is_parked {
            self.move_stall_deadline();
            let marked = self.timers().watch(cpu);
            if marked > 0 {
                self.note(NotedEvent::Marked, cpu, u64::from(marked));
            }
            self.timers().carry_out(cpu);
        }
    }

    /// Switches the tick of `cpu`. Only a kernel has one.
    pub(crate) fn set_tick(&mut self, cpu: u16, is_on: bool) {
        let is_on = is_on && self.is_kernel();
        let this = self.cpu(cpu);
        if this.tick_is_on == is_on {
            return;
        }
        this.tick_is_on = is_on;
        this.tick_generation = this.tick_generation.wrapping_add(1);
        if is_on {
            let generation = this.tick_generation;
            let next = self.next_edge(cpu);
            self.push(Nanos(next), SimEvent::Tick(cpu, generation));
        }
    }
}
