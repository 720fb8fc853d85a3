//! Interrupts: what arrives at a CPU, and what is done about it when it is handled.

use super::cpu::{Hard, Soft, why};
use super::record::What;
use super::{Event, World, id};
use crate::scenario::Cost;
use crate::scenario::names::PolicyName;
use quietcore_core::Nanos;
use quietcore_core::softirq::Vector;

impl World<'_> {
    /// Something arrives at `cpu` for `reason`.
    pub(super) fn interrupt(&mut self, cpu: u16, reason: u8) {
        let is_kernel = self.is_kernel();
        let this = self.cpu(cpu);
        if !this.is_online {
            return;
        }
        this.pending |= reason;
        if this.is_stalled || this.hard != Hard::None {
            return;
        }
        if this.is_asleep {
            let woken = self.wake_up(cpu);
            self.begin_interrupt(cpu, woken);
        } else if is_kernel {
            self.pause(cpu);
            self.begin_interrupt(cpu, 0);
        }
    }

    /// `extra` is what waking up takes.
    pub(super) fn begin_interrupt(&mut self, cpu: u16, extra: u64) {
        let entry = if self.is_kernel() { self.costs.of(Cost::Interrupt) } else { 0 };
        let this = self.cpu(cpu);
        (this.hard, this.hard_left) = (Hard::Interrupt, entry.saturating_add(extra));
        self.proceed(cpu);
    }

    /// An interrupt was handled, or `cpu` is about to be asleep.
    pub(super) fn interrupt_ends(&mut self, cpu: u16) {
        let now = self.now;
        let this = self.cpu(cpu);
        let hard = std::mem::replace(&mut this.hard, Hard::None);
        if hard == Hard::FallingAsleep {
            if this.pending == 0 && !this.has_task() {
                this.is_asleep = true;
                this.asleep_since = now;
                return;
            }
            if this.pending == 0 {
                return;
            }
            // It came just in time: this CPU never slept.
            (this.hard, this.hard_left) = (Hard::Interrupt, 0);
            return;
        }
        if hard == Hard::Leaving && this.pending == 0 {
            self.begin_round(cpu);
            return;
        }
        let reasons = std::mem::take(&mut this.pending);
        if !this.in_idle {
            self.answered(cpu);
        }
        let mut cost = 0;
        if !self.is_kernel() || reasons & why::KICK != 0 {
            // A lane is awake as soon as it turns, also when only timers are due; a kicked CPU leaves its
            // idle loop.
            cost = self.leave_idle(cpu);
        }
        if !self.is_kernel() {
            self.cpu(cpu).looked_at = now / self.plan.tick.0;
            self.watch(cpu);
        }
        let handled = self.handle_arrivals(cpu);
        self.look_for_timers(cpu, reasons);
        if handled > 0 {
            let this = self.cpu(cpu);
            (this.hard, this.hard_left) = (Hard::Leaving, handled + cost);
            return;
        }
        self.begin_round(cpu);
        self.cpu(cpu).soft_left += cost;
    }

    /// Raises the timer softirq if something is due, or whenever the rule of `cpu` says.
    pub(super) fn look_for_timers(&mut self, cpu: u16, reasons: u8) {
        let is_due = self.machine.handle_tick(id(cpu), Nanos(self.now));
        self.note(What::Tick, cpu, u64::from(is_due));
        let this = self.cpu(cpu);
        let has_more = this.turn.has_more() && matches!(this.soft, Soft::None);
        if has_more || self.raises(cpu, reasons, is_due) {
            self.raise(cpu, Vector::TIMER);
        }
    }

    /// A lane between two tasks: once per tick, and whenever somebody asked, it looks at its timers and
    /// neighbours.
    pub(super) fn look_around(&mut self, cpu: u16) {
        let edge = self.now / self.plan.tick.0;
        let this = self.cpu(cpu);
        if this.pending == 0 && this.looked_at == edge && !this.turn.has_more() {
            return;
        }
        (this.pending, this.looked_at) = (0, edge);
        self.answered(cpu);
        self.watch(cpu);
        self.look_for_timers(cpu, why::TICK);
        self.begin_round(cpu);
    }

    /// Lanes look after each other; a kernel has interrupts.
    pub(super) fn watch(&mut self, cpu: u16) {
        if self.plan.policy == PolicyName::Pull && !self.cpu(cpu).is_parked {
            self.hold_switch();
            let marked = self.machine.watch(id(cpu), Nanos(self.now), &mut self.actions);
            if marked > 0 {
                self.note(What::Marked, cpu, u64::from(marked));
            }
            self.carry_out(cpu);
        }
    }

    pub(super) fn tick(&mut self, cpu: u16, generation: u32) {
        let this = self.cpu(cpu);
        if !this.tick_is_on || this.tick_generation != generation {
            return;
        }
        self.queue.push(Nanos(self.now + self.plan.tick.0), Event::Tick(cpu, generation));
        self.interrupt(cpu, why::TICK);
    }

    /// Switches the tick of `cpu`. Only a kernel has one.
    pub(super) fn set_tick(&mut self, cpu: u16, is_on: bool) {
        let is_on = is_on && self.is_kernel();
        let this = &mut self.cpus[usize::from(cpu)];
        if this.tick_is_on == is_on {
            return;
        }
        this.tick_is_on = is_on;
        this.tick_generation = this.tick_generation.wrapping_add(1);
        if is_on {
            let generation = this.tick_generation;
            let next = self.next_edge(cpu);
            self.queue.push(Nanos(next), Event::Tick(cpu, generation));
        }
    }

    /// The next moment at which the tick of `cpu` goes off.
    pub(super) fn next_edge(&self, cpu: u16) -> u64 {
        self.edge_after(cpu, self.now)
    }

    /// The first such moment after `now`.
    pub(super) fn edge_after(&self, cpu: u16, now: u64) -> u64 {
        let tick = self.plan.tick.0;
        let phase = if self.plan.skew { tick * u64::from(cpu) / self.cpus.len() as u64 } else { 0 };
        let since = now.saturating_sub(phase);
        if now < phase { phase } else { phase + (since / tick + 1) * tick }
    }
}
