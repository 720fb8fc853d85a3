//! Carrying out what the machine asks for: kicks and the alarm.

use super::layer::TimerLayer;
use crate::scenario::Cost;
use crate::world::context::{NotedEvent, RunAccess};
use crate::world::event::SimEvent;
use quietcore_core::Nanos;

impl TimerLayer<'_> {
    /// Carries out what the last call to the machine left, on behalf of `cpu`. Returns what that costs it.
    pub(crate) fn carry_out(&mut self, cpu: u16) -> u64 {
        let mut cost = 0;
        if self.actions.is_empty() {
            return cost;
        }
        while let Some(target) = self.actions.take_kick() {
            let target = target.index() as u16;
            if target != cpu {
                cost += self.cost(Cost::Kick);
            }
            self.send_kick(target);
        }
        if let Some(at) = self.actions.take_alarm() {
            self.note(NotedEvent::Alarm, cpu, at.0);
            if self.alarm.is_none_or(|alarm| at < alarm) {
                self.alarm = Some(at);
                self.push(at.max(Nanos(self.now())), SimEvent::Alarm);
            }
        }
        cost
    }

    /// A kick can be lost; then it is sent again, as the contract asks of a world.
    pub(crate) fn send_kick(&mut self, target: u16) {
        self.recorder().figures.kicks += 1;
        self.note(NotedEvent::Kick, target, 0);
        let lost = self.plan().faults.lost_kicks;
        let mut at = self.now() + self.cost(Cost::KickLatency);
        while lost.percent > 0 && self.random().chance(lost.percent) {
            at += lost.span;
        }
        self.push(Nanos(at), SimEvent::Kick(target));
        self.kicked += u32::from(!std::mem::replace(&mut self.contact(target).is_kicked, true));
    }

    /// `cpu` has looked at everything since it was kicked.
    pub(crate) fn answered(&mut self, cpu: u16) {
        self.kicked -= u32::from(std::mem::take(&mut self.contact(cpu).is_kicked));
    }
}
