//! TIMER on isolated CPUs whose softirqs are threads: when a tick raises it, and who arms from elsewhere.
//!
//! With `timer_raise` in the scenario, every raise on an isolated CPU costs the way to a helper thread and
//! back. The rule is the core's (`TimerRaise`), so is the flag that coalesces calls (`Call`). Somebody who
//! arms a timer there from another CPU decides at one moment, and others see it at a later one: between the
//! two the tick may look. The simulator has no memory ordering; the span in between stands for it.

use super::cpu::why;
use super::record::What;
use super::softirq::Arrival;
use super::task::{Next, Program};
use super::{Event, World, id};
use crate::figures::RaiseFigures;
use crate::scenario::Cost;
use quietcore_core::softirq::TimerRaise;
use quietcore_core::{Arm, Context, Nanos};

/// The reasons for which an isolated CPU looks for timers.
const LOOKS: u8 = why::TICK | why::WAKEUP;

impl World<'_> {
    /// The rule of `cpu`, if it has one of its own.
    fn raise_rule(&self, cpu: u16) -> Option<TimerRaise> {
        self.plan.timer_raise.filter(|_| self.is_isolated(cpu))
    }

    pub(super) fn raise_figures(&mut self) -> &mut RaiseFigures {
        self.recorder.figures.timer_raise.get_or_insert_default()
    }

    /// Whether `cpu`, interrupted for `reasons`, raises TIMER; `is_due` is what the machine says.
    pub(super) fn raises(&self, cpu: u16, reasons: u8, is_due: bool) -> bool {
        let Some(rule) = self.raise_rule(cpu) else { return is_due };
        let now = Nanos(self.now);
        let next = self.machine.next_event(id(cpu));
        // Not for its own timers: for those of others, if it pulls, or because it was stalled.
        let is_due_elsewhere = is_due && next.is_none_or(|next| next > now);
        if reasons & LOOKS == 0 {
            return is_due_elsewhere;
        }
        let is_pending = rule == TimerRaise::Bitmap && self.machine.renewed_next_event(id(cpu)).is_some();
        is_due_elsewhere || rule.raises(next, is_pending, now)
    }

    /// What it costs `cpu` to get to where TIMER runs, and back.
    pub(super) fn helper_begins(&mut self, cpu: u16) -> u64 {
        if self.raise_rule(cpu).is_none() {
            return 0;
        }
        *self.raise_figures().raises.entry(cpu).or_default() += 1;
        self.costs.of(Cost::HelperSwitch)
    }

    /// The TIMER handler of `cpu` is over.
    pub(super) fn helper_returns(&mut self, cpu: u16) {
        if self.raise_rule(cpu).is_some() && self.cpu(cpu).softirqs.expired == 0 {
            *self.raise_figures().idle_raises.entry(cpu).or_default() += 1;
        }
    }

    /// A timer runs on `cpu`: later than it may? `granule` is what the wheel may add.
    pub(super) fn check_lateness(&mut self, cpu: u16, (expires, seen_at): (u64, u64), granule: u64) {
        self.cpu(cpu).softirqs.expired += 1;
        if self.raise_rule(cpu).is_none() {
            return;
        }
        let tick = self.plan.tick.0;
        let late = self.now.saturating_sub(expires.max(seen_at));
        let allowed = granule.max(tick) + tick;
        let figures = self.raise_figures();
        // The wheel adds a tick to what is to be due now.
        if seen_at >= expires + tick {
            figures.overdue += 1;
            figures.overdue_ns_max = figures.overdue_ns_max.max(late);
        }
        figures.late += u64::from(late > allowed);
        figures.late_ns_max = figures.late_ns_max.max(late.saturating_sub(allowed));
    }

    /// Somebody on `cpu` arms `timer` on `target`, to be due at `expires`. Returns what that costs.
    fn arm_there(&mut self, cpu: u16, timer: u32, (target, expires): (u16, u64)) -> u64 {
        let now = self.now;
        let context = Context::on(id(cpu), Nanos(now));
        let this = &mut self.timers[timer as usize];
        let arm = Arm::at(Nanos(expires)).on(id(target));
        // Its CPU may have gone offline meanwhile: nothing is armed.
        let Ok(armed) = self.machine.arm(this.id.wheel(), arm, context, &mut self.actions) else {
            return 0;
        };
        assert!(armed.was_pending == this.is_pending, "timer {timer}: the machine lost count of it");
        let base = armed.base.cpu.index() as u16;
        (this.expires, this.delay, this.armed_on, this.base) =
            (expires, expires.saturating_sub(now), target, base);
        (this.is_pending, this.is_pinned, this.seen_at, this.pulled_from) = (true, true, now, None);
        self.recorder.figures.arms += 1;
        self.note(What::Arm, cpu, expires ^ u64::from(timer) << 40 ^ u64::from(base) << 20);
        self.export(|exporter, world| exporter.armed(world, cpu, timer));
        let arm = self.costs.of(Cost::Arm);
        let cost = self.work_on(base, cpu, arm) + self.carry_out(cpu);
        cost + self.call(cpu, base)
    }

    /// `from` has armed something on `cpu`, which others can see by now.
    fn call(&mut self, from: u16, cpu: u16) -> u64 {
        if cpu == from || !self.raise_rule(cpu).is_some_and(TimerRaise::calls) {
            return 0;
        }
        if !self.cpu(cpu).call.begin() {
            self.raise_figures().coalesced += 1;
            return 0;
        }
        self.raise_figures().calls += 1;
        let at = self.now + self.costs.of(Cost::KickLatency);
        self.queue.push(Nanos(at), Event::Call(cpu));
        self.costs.of(Cost::Kick)
    }

    pub(super) fn called(&mut self, cpu: u16) {
        self.arrive(cpu, Arrival::Called(cpu), why::CALL);
    }

    /// `cpu` handles the call of `of`, which may be offline by now: first its flag, then the look.
    pub(super) fn call_arrives(&mut self, cpu: u16, of: u16) {
        self.cpu(of).call.arrive();
        self.note(What::Called, cpu, 0);
        self.raise(cpu, quietcore_core::softirq::Vector::TIMER);
    }

    /// Somebody who arms on another CPU: decides just before its tick, and is seen up to `slow` later.
    pub(super) fn remote_part(&mut self, cpu: u16, task: u32) -> Next {
        let Program::Remote { target, period, slow, timer } = self.tasks[task as usize].program else {
            return Next::End;
        };
        let this = &mut self.tasks[task as usize];
        let part = this.part;
        this.part = (part + 1) % 3;
        match part {
            0 => {
                // To be due as soon as can be: with the tick that the wheel adds, at the target's next edge.
                let edge = self.next_edge(target);
                self.tasks[task as usize].round_at = edge.saturating_sub(self.plan.tick.0);
                Next::Run(self.random.below(slow + 1))
            }
            1 => {
                let expires = self.tasks[task as usize].round_at;
                let is_pending = self.timers[timer as usize].is_pending;
                let cost = if is_pending { 0 } else { self.arm_there(cpu, timer, (target, expires)) };
                Next::Run(cost)
            }
            _ => {
                // So long before an edge of the target's tick that half of its arms are late for it.
                let to_wake = [Cost::IdleExit, Cost::Interrupt, Cost::ContextSwitch];
                let to_wake: u64 = to_wake.into_iter().map(|cost| self.costs.of(cost)).sum();
                let lead = to_wake + self.random.below(slow + 1);
                let edge = self.edge_after(target, self.now + period);
                self.queue.push(Nanos(edge.saturating_sub(lead).max(self.now + 1)), Event::Start(task));
                Next::Block
            }
        }
    }
}
