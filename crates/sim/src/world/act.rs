//! Carrying out what the machine asks for: kicks and the alarm.

use super::cpu::why;
use super::record::What;
use super::{Event, World};
use crate::scenario::Cost;
use quietcore_core::Nanos;

impl World<'_> {
    /// Carries out what the last call to the machine left, on behalf of `cpu`. Returns what that costs it.
    pub(super) fn carry_out(&mut self, cpu: u16) -> u64 {
        let mut cost = 0;
        if self.actions.is_empty() {
            return cost;
        }
        while let Some(target) = self.actions.take_kick() {
            let target = target.index() as u16;
            if target != cpu {
                cost += self.costs.of(Cost::Kick);
            }
            self.send_kick(target);
        }
        if let Some(at) = self.actions.take_alarm() {
            self.note(What::Alarm, cpu, at.0);
            if self.alarm.is_none_or(|alarm| at < alarm) {
                self.alarm = Some(at);
                self.queue.push(at.max(Nanos(self.now)), Event::Alarm);
            }
        }
        cost
    }

    /// A kick can be lost; then it is sent again, as the contract asks of a world.
    pub(super) fn send_kick(&mut self, target: u16) {
        self.recorder.figures.kicks += 1;
        self.note(What::Kick, target, 0);
        let (percent, retry) = self.plan.faults.lost_kicks;
        let mut at = self.now + self.costs.of(Cost::KickLatency);
        while percent > 0 && self.random.chance(percent) {
            at += retry;
        }
        self.queue.push(Nanos(at), Event::Kick(target));
        self.kicked += u32::from(!std::mem::replace(&mut self.cpu(target).is_kicked, true));
    }

    /// `cpu` has looked at everything since it was kicked.
    pub(super) fn answered(&mut self, cpu: u16) {
        self.kicked -= u32::from(std::mem::take(&mut self.cpu(cpu).is_kicked));
    }

    pub(super) fn kicked(&mut self, cpu: u16) {
        self.interrupt(cpu, why::KICK);
    }

    pub(super) fn alarm(&mut self) {
        let Some(at) = self.alarm.filter(|at| at.0 <= self.now) else { return };
        self.alarm = None;
        self.note(What::Alarm, 0, at.0);
        self.machine.handle_alarm(Nanos(self.now), &mut self.actions);
        // The world's own timer carries these out; nobody pays.
        self.carry_out(u16::MAX);
    }
}
