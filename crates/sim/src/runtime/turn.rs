//! Running what is due, with callbacks that take their time and arm again.

use super::oracle::{LONG_CALLBACK, ThreadsSince};
use super::world::RuntimeWorld;
use quietcore_core::{At, CpuId, Nanos, Turn};

const US: u64 = 1_000;

impl RuntimeWorld {
    /// Runs what is due; returns how many, and the moment of its last look at the clock.
    pub(super) fn take_turn(&self, turn: &mut Turn, cpu: Option<CpuId>) -> (u32, Nanos) {
        let mut now = self.clock();
        self.machine.collect_due(turn, now);
        let mut ran = 0;
        // It counts as run when it is handed out, under its base's lock: from then on it may be armed again.
        let fire = |number, _| self.fire(number);
        while let Some((expired, ())) =
            self.act(|actions| self.machine.next_expired_with(turn, At { now, actions }, fire))
        {
            ran += 1;
            self.run_callback(expired.payload(), cpu, now);
            if self.is_child() {
                break;
            }
            now = self.clock();
            let number = expired.payload();
            self.act(|actions| self.machine.finish(turn, expired, now, actions));
            self.timers.borrow_mut()[number as usize].end_run(self.host.moment());
        }
        (ran, now)
    }

    fn fire(&self, number: u32) {
        self.note(|| format!("runs {number}"));
        self.counts.borrow_mut().expiries += 1;
        if self.is_child() {
            self.violate(format!("timer {number} runs in a child"));
        }
        let mut timers = self.timers.borrow_mut();
        let timer = &mut timers[number as usize];
        let held = self.host.held_since(0);
        let drivers: Vec<_> = self.drivers.borrow().iter().flatten().copied().collect();
        let home = timer.keeper.lane().and_then(|cpu| self.drivers.borrow()[cpu.index()]);
        let threads = ThreadsSince { plan: &self.plan, held: &held, drivers: &drivers, home };
        if let Err(what) = timer.fire(self.host.moment(), &threads) {
            self.violate(format!("timer {number} ({:?}): {what}", timer.promise));
        }
    }

    fn run_callback(&self, number: u32, cpu: Option<CpuId>, now: Nanos) {
        let is_long = self.chance(self.plan.faults.long_callbacks) && !self.drains.get();
        let most = if is_long { LONG_CALLBACK } else { 5 * US };
        self.host.compute(self.host.random(most));
        self.may_fork(50);
        if self.chance(20) {
            self.raise_somewhere();
        }
        self.wake_now_and_then(10);
        // Some go on, as periods do, whichever lane runs them.
        if let Some(cpu) = cpu.filter(|_| self.chance(50)) {
            self.arm_on_lane(number, cpu, now);
        }
    }
}
