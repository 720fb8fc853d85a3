//! TIMER on isolated CPUs whose softirqs are threads: when a tick raises it, and what arming from elsewhere
//! does.
//!
//! With `timer_raise` in the scenario, every raise on an isolated CPU costs the way to a helper thread and
//! back. The rule is the core's (`TimerRaise`), so is the flag that coalesces calls (`Call`). A task that
//! arms a timer there from another CPU decides at one moment, and the isolated CPU sees the timer at a later
//! one: between the two its tick may look. The simulator has no memory ordering; that span stands for it.

use super::layer::TimerLayer;
use crate::scenario::Cost;
use crate::world::context::RunAccess;
use crate::world::cpu_id::id;
use crate::world::event::SimEvent;
use crate::world::why;
use quietcore_core::softirq::TimerRaise;
use quietcore_core::{Arm, Context, Nanos};

/// The reasons for which an isolated CPU looks for timers.
const LOOKS: u8 = why::TICK | why::WAKEUP;

impl TimerLayer<'_> {
    /// The rule of `cpu`, if it has one of its own.
    pub(crate) fn raise_rule(&self, cpu: u16) -> Option<TimerRaise> {
        self.plan().timer_raise.filter(|_| self.is_isolated(cpu))
    }

    /// Whether `cpu`, interrupted for `reasons`, raises TIMER; `is_due` is what the machine says.
    pub(crate) fn raises(&self, cpu: u16, reasons: u8, is_due: bool) -> bool {
        let Some(rule) = self.raise_rule(cpu) else { return is_due };
        let now = Nanos(self.now());
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
    pub(crate) fn helper_begins(&mut self, cpu: u16) -> u64 {
        if self.raise_rule(cpu).is_none() {
            return 0;
        }
        *self.raise_figures().raises.entry(cpu).or_default() += 1;
        self.cost(Cost::HelperSwitch)
    }

    /// A task on `cpu` arms `timer` on `target`, to be due at `expires`. Returns what that costs.
    pub(crate) fn arm_there(&mut self, cpu: u16, timer: u32, target: u16, expires: u64) -> u64 {
        let now = self.now();
        let context = Context::on(id(cpu), Nanos(now));
        let this = &mut self.all[timer as usize];
        let arm = Arm::at(Nanos(expires)).on(id(target));
        // Its CPU may have gone offline meanwhile: nothing is armed.
        let Ok(armed) = self.machine.arm(this.key.wheel(), arm, context, &mut self.actions) else {
            return 0;
        };
        assert!(armed.was_pending == this.is_pending, "timer {timer}: the machine lost count of it");
        let base = armed.base.cpu.index() as u16;
        (this.expires, this.delay, this.armed_on, this.base) =
            (expires, expires.saturating_sub(now), target, base);
        (this.is_pending, this.is_pinned, this.seen_at, this.pulled_from) = (true, true, now, None);
        self.was_armed(cpu, timer);
        let arm = self.cost(Cost::Arm);
        let cost = self.work_on(base, cpu, arm) + self.carry_out(cpu);
        cost + self.call(cpu, base)
    }

    /// `from` has armed something on `cpu`, which others can see by now.
    fn call(&mut self, from: u16, cpu: u16) -> u64 {
        if cpu == from || !self.raise_rule(cpu).is_some_and(TimerRaise::calls) {
            return 0;
        }
        if !self.contact(cpu).call.begin() {
            self.raise_figures().coalesced += 1;
            return 0;
        }
        self.raise_figures().calls += 1;
        let at = self.now() + self.cost(Cost::KickLatency);
        self.push(Nanos(at), SimEvent::Call(cpu));
        self.cost(Cost::Kick)
    }
}
