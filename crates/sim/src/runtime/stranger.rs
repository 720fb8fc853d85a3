//! Arms, cancels, and what else comes from outside of the lanes; and what lanes arm for themselves.

use super::world::{CoreTimer, RuntimeWorld};
use quietcore_core::place::nearest_housekeeping;
use quietcore_core::{Context, CpuId, CpuSet, Expiry, Nanos, RawLock};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

impl RuntimeWorld {
    /// A stranger arms on the CPU that it happens to be on, or near it if that takes no strangers.
    fn context(&self, now: Nanos) -> Context {
        let open = self.machine.online_cpus().difference(&self.machine.isolation().any());
        let present = CpuId::new(self.host.random(u64::from(self.plan.lanes.max(1)))).expect("few");
        let near = nearest_housekeeping(self.machine.topology(), present, &open);
        Context::near(near.expect("a spare is online"), now)
    }

    /// A thread that is no lane: arms, cancels, waits.
    pub(super) fn be_strange(&self, number: u16) {
        let first = u32::from(number) * u32::from(self.plan.timers);
        let end = self.host.moment() + self.plan.duration;
        while self.host.moment() < end {
            self.may_fork(2);
            let timer = first + self.host.random(u64::from(self.plan.timers)) as u32;
            match self.host.random(8) {
                0 => self.cancel(timer),
                1 if !self.tasks.is_empty() => self.wake_somewhere(),
                2 | 3 if !self.softirqs.is_empty() => self.raise_somewhere(),
                _ => self.arm_as_stranger(timer),
            }
            let pause = self.host.random([20 * US, 300 * US, 3 * MS][self.host.random(3) as usize]);
            let _ = self.host.wait(Some(self.host.moment() + pause));
        }
    }

    /// A random moment after `now`.
    fn later_than(&self, now: Nanos) -> Nanos {
        let delay = match self.host.random(6) {
            0 => 0,
            1 => self.host.random(self.plan.tick),
            _ => self.host.random(self.plan.longest_delay),
        };
        Nanos(now.0 + delay)
    }

    /// The coarse clock: the moment of the last tick of the host.
    fn coarse_clock(&self) -> Nanos {
        let now = self.clock();
        Nanos(now.0 - now.0 % self.plan.host_tick)
    }

    fn arm_as_stranger(&self, number: u32) {
        if self.is_child() {
            return;
        }
        let at = self.later_than(self.clock());
        let context = self.context(self.coarse_clock());
        self.arm(number, at, context);
    }

    /// A lane arms one of its own timers; it last looked at the clock at `looked`.
    pub(super) fn arm_own(&self, cpu: CpuId, looked: Nanos) {
        let count = u64::from(self.plan.lane_timers);
        if count > 0 && cpu.index() < usize::from(self.plan.lanes) && self.is_busy() && self.chance(10) {
            self.arm_on_lane(self.first_of(cpu) + self.host.random(count) as u32, cpu, looked);
        }
    }

    /// The same for one of them, which has no other owner.
    pub(super) fn arm_on_lane(&self, number: u32, cpu: CpuId, looked: Nanos) {
        if self.is_busy() && !self.is_child() {
            let at = self.later_than(Nanos(self.host.moment()));
            let now = self.machine.moment_for_arm(at, looked, || self.coarse_clock());
            self.arm(number, at, Context::on(cpu, now));
        }
    }

    /// Whether threads still arm.
    pub(super) fn is_busy(&self) -> bool {
        self.host.moment() < self.plan.duration
    }

    fn arm(&self, number: u32, at: Nanos, context: Context) {
        if self.timers.borrow()[number as usize].is_in_call() {
            return;
        }
        // Until its lane was told, it need not know.
        self.acting.set(self.acting.get() + 1);
        self.timers.borrow_mut()[number as usize].begin_arm(at.0, self.host.moment());
        let (key, was_isolated) = (self.keys[number as usize], self.isolated.borrow().clone());
        let armed = self.act(|actions| match key {
            CoreTimer::Tick(timer) => self.machine.arm(timer, at, context, actions),
            CoreTimer::Exact(timer) => self.machine.arm(timer, Expiry::at(at.0), context, actions),
        });
        let armed = armed.expect("it exists");
        self.note(|| format!("armed {number} for {} on {:?}: {armed:?}", at.0, context));
        {
            let mut timers = self.timers.borrow_mut();
            let timer = &mut timers[number as usize];
            timer.end_arm(armed.was_pending, self.host.moment());
            let cpu = armed.base.cpu;
            timer.stay_on(cpu, was_isolated.contains(cpu) || self.isolated.borrow().contains(cpu));
        }
        self.counts.borrow_mut().arms += 1;
        let is_own = || context.own_cpu() == Some(armed.base.cpu);
        let _ = self.lanes.after_arm(armed.base, matches!(key, CoreTimer::Exact(_)), at, is_own);
        self.acting.set(self.acting.get() - 1);
        if let Some(what) = self.timers.borrow()[number as usize].is_wrong() {
            self.violate(format!("timer {number}: {what}"));
        }
    }

    fn cancel(&self, number: u32) {
        if self.is_child() || self.timers.borrow()[number as usize].is_in_call() {
            return;
        }
        let now = self.clock();
        let context = self.context(now);
        // Until it has returned, the timer may be gone though it counts as pending.
        self.acting.set(self.acting.get() + 1);
        let was_pending = match self.keys[number as usize] {
            CoreTimer::Tick(timer) => self.machine.cancel(timer, context),
            CoreTimer::Exact(timer) => self.machine.cancel(timer, context),
        };
        let was_pending = was_pending.expect("it exists");
        self.timers.borrow_mut()[number as usize].end_cancel(was_pending);
        self.acting.set(self.acting.get() - 1);
        self.counts.borrow_mut().cancels += u64::from(was_pending);
    }

    /// Lanes are isolated as said from now on: others run what is not pinned of those that are so no more.
    fn end_isolation(&self, isolated: CpuSet) {
        let now = self.host.moment();
        let before = self.isolated.replace(isolated);
        let joined = before.difference(&self.isolated.borrow());
        let timers = &mut *self.timers.borrow_mut();
        for cpu in joined.iter() {
            timers.iter_mut().filter(|timer| !timer.is_pinned).for_each(|timer| timer.leave(cpu, now));
        }
    }

    /// The thread that changes which lanes are isolated.
    pub(super) fn isolate(&self) {
        let every = self.plan.faults.isolation_every;
        let lanes = CpuSet::range(CpuId::default(), self.plan.lanes).expect("few");
        loop {
            let _ = self.host.wait(Some(self.host.moment() + 1 + self.host.random(2 * every)));
            let ends = self.drains.get() || self.is_over.get();
            let chosen = |_: &CpuId| !ends && self.host.random(3) == 0;
            let isolated: CpuSet = lanes.iter().filter(chosen).collect();
            self.control.lock_remote();
            let now = self.clock();
            let before = self.isolated.borrow().clone();
            self.isolated.replace(before.union(&isolated));
            let report = self.act(|actions| self.machine.set_isolated(&isolated, now, actions));
            self.note(|| format!("isolates {isolated}: {report:?}"));
            self.end_isolation(if report.is_ok() { isolated } else { before });
            if let Ok(report) = report {
                self.act(|actions| self.lanes.handle_isolation(&self.machine, &report, now, actions));
                self.change_queues();
            } else {
                self.control.unlock();
            }
            if ends {
                return;
            }
        }
    }
}
