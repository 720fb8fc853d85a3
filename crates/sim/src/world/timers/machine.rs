//! What the world tells the machine about its CPUs.

use super::layer::TimerLayer;
use crate::world::context::NotedEvent;
use crate::world::cpu_id::id;
use quietcore_core::place::Housekeeping;
use quietcore_core::{CpuSet, IdleDecision, Nanos};

impl TimerLayer<'_> {
    pub(crate) fn online(&mut self, cpu: u16) {
        let now = Nanos(self.run.now);
        self.machine.online(id(cpu), now, &mut self.actions).expect("it was offline");
    }

    /// Says whether it is offline: refused when no housekeeping CPU would be left.
    pub(crate) fn offline(&mut self, cpu: u16) -> bool {
        self.machine.offline(id(cpu), Nanos(self.run.now), &mut self.actions).is_ok()
    }

    /// These CPUs are isolated beside those of the plan: refused when no housekeeping CPU would be left.
    pub(crate) fn set_isolated(&mut self, cpus: &CpuSet) -> bool {
        self.machine.set_isolated(cpus, Nanos(self.run.now), &mut self.actions).is_ok()
    }

    /// Looks whether another CPU is silent, on behalf of `cpu`; returns how many it marked.
    pub(crate) fn watch(&mut self, cpu: u16) -> u32 {
        self.machine.watch(id(cpu), Nanos(self.run.now), &mut self.actions)
    }

    /// No lane has turned for a while.
    pub(crate) fn handle_silence(&mut self) {
        let _ = self.machine.handle_silence(Nanos(self.run.now), &mut self.actions);
        // The world's own thread carries these out; no CPU pays.
        self.carry_out(u16::MAX);
    }

    /// The alarm that the machine asked for, unless it was moved meanwhile.
    pub(crate) fn handle_alarm(&mut self) {
        let Some(at) = self.alarm.filter(|at| at.0 <= self.run.now) else { return };
        self.alarm = None;
        self.run.note(NotedEvent::Alarm, 0, at.0);
        self.machine.handle_alarm(Nanos(self.run.now), &mut self.actions);
        // The world's own timer carries these out; no CPU pays.
        self.carry_out(u16::MAX);
    }

    /// `cpu` has nothing to run.
    pub(crate) fn enter_idle(&mut self, cpu: u16) -> IdleDecision {
        let decision = self.machine.enter_idle(id(cpu), Nanos(self.run.now));
        self.answered(cpu);
        self.carry_out(cpu);
        self.contact(cpu).in_idle = true;
        decision
    }

    /// Follows which CPUs are online and isolated now.
    pub(crate) fn renew_masks(&mut self) {
        let isolation = self.machine.isolation();
        self.masks.isolated = isolation.any();
        if let Ok(masks) = Housekeeping::new(&self.machine.online_cpus(), &isolation) {
            self.masks.housekeeping = masks;
        }
    }
}
