//! Arming and cancelling the timers of loads, on the machine and with the locks of a run.
//!
//! Invariant: what this layer knows of a timer (pending or not, its base) is what the machine knows; each
//! call checks it.

use super::lock_costs::{GroupPath, LockCost, LockUse, Locks, paths};
use super::timer::{SimTimer, TimerKey, TimerRole};
use crate::scenario::Cost;
use crate::world::context::{NotedEvent, RunAccess, RunContext};
use crate::world::cpu_id::id;
use crate::world::event::SimEvent;
use quietcore_core::place::{Arming, ExactPolicy, Housekeeping, Policy, push_target};
use quietcore_core::softirq::Call;
use quietcore_core::{
    Actions, Context, CpuSet, Machine, Nanos, SequentialLock, Settings, TickLength, TimerOptions,
};
use quietcore_wheel::Expiry;

/// Which CPUs are isolated at this moment, in any way, and which take timers and tasks of others.
#[derive(Debug)]
pub(crate) struct CpuMasks {
    pub(crate) isolated: CpuSet,
    pub(crate) housekeeping: Housekeeping,
}

/// What the machine and a CPU have told each other.
#[derive(Debug)]
pub(crate) struct CpuContact {
    /// A kick is on its way to it, or was not answered yet.
    pub(crate) is_kicked: bool,
    /// The machine was told that it has nothing to run.
    pub(crate) in_idle: bool,
    /// The machine said that it may sleep: it is idle in the hierarchy.
    pub(crate) is_parked: bool,
    /// A call about a timer that was armed here.
    pub(crate) call: Call,
}

/// The machine, its timers, and what was said about each CPU.
pub(crate) struct TimerLayer<'p> {
    pub(crate) run: RunContext<'p>,
    pub(crate) machine: Machine<SequentialLock, u32>,
    pub(crate) actions: Actions,
    pub(crate) all: Vec<SimTimer>,
    pub(crate) contacts: Vec<CpuContact>,
    pub(crate) masks: CpuMasks,
    locks: Locks,
    /// By CPU: its way up the hierarchy.
    paths: Vec<GroupPath>,
    /// When the alarm is that the machine asked for, if it is ahead.
    pub(super) alarm: Option<Nanos>,
    /// CPUs that were kicked and have not answered yet.
    pub(crate) kicked: u32,
}

impl<'p> RunAccess<'p> for TimerLayer<'p> {
    fn run(&self) -> &RunContext<'p> {
        &self.run
    }

    fn run_mut(&mut self) -> &mut RunContext<'p> {
        &mut self.run
    }
}

impl<'p> TimerLayer<'p> {
    /// A machine for the plan of `run`: all CPUs offline, nothing armed.
    pub(crate) fn new(run: RunContext<'p>) -> Self {
        let plan = run.plan;
        let cpu_count = plan.topology.cpu_count();
        let settings = Settings {
            policy: plan.policy.policy(),
            exclusion: plan.exclusion,
            // Where timers are pushed, those of the kernel's hrtimers are, too.
            exact_policy: match plan.policy.policy() {
                Policy::Push => ExactPolicy::Kernel,
                Policy::Pull | Policy::Stay => ExactPolicy::Pull,
            },
            isolation: plan.isolation.clone(),
            tick: TickLength::new(plan.tick).expect("a plan's tick is possible"),
            ..Settings::default()
        };
        let refused = "a plan leaves housekeeping CPUs";
        let machine = Machine::new(plan.topology.clone(), settings).expect(refused);
        let housekeeping = Housekeeping::new(plan.topology.possible(), &plan.isolation).expect(refused);
        let contact =
            |_| CpuContact { is_kicked: false, in_idle: false, is_parked: false, call: Call::new() };
        Self {
            run,
            machine,
            actions: Actions::new(cpu_count as u16),
            all: Vec::new(),
            contacts: (0..cpu_count).map(contact).collect(),
            masks: CpuMasks { isolated: plan.isolation.any(), housekeeping },
            locks: Locks::new(cpu_count),
            paths: paths(&plan.topology),
            alarm: None,
            kicked: 0,
        }
    }

    pub(crate) fn contact(&mut self, cpu: u16) -> &mut CpuContact {
        &mut self.contacts[usize::from(cpu)]
    }

    pub(crate) fn is_isolated(&self, cpu: u16) -> bool {
        self.masks.isolated.contains(id(cpu))
    }

    /// A watchdog of a transmit queue: an exact timer.
    pub(crate) fn add_watchdog(&mut self, queue: u16, is_pinned: bool) -> u32 {
        let options = TimerOptions::default();
        let options = if is_pinned { options.pinned() } else { options };
        let number = self.all.len() as u32;
        let key = TimerKey::Exact(self.machine.add_exact(options, number));
        self.all.push(SimTimer::new(key, TimerRole::Watchdog(queue), options));
        number
    }

    /// `cpu` arms the watchdog `timer` for `until`. Returns what that costs it.
    pub(crate) fn arm_watchdog(&mut self, cpu: u16, timer: u32, until: u64) -> u64 {
        let looks = self.looks(cpu, timer);
        self.run.recorder.figures.looks += looks;
        let this = &mut self.all[timer as usize];
        let TimerKey::Exact(key) = this.key else { unreachable!("watchdogs are exact") };
        let context = Context::on(id(cpu), Nanos(self.run.now));
        let armed = self.machine.arm(key, Expiry::at(until), context, &mut self.actions);
        let armed = armed.expect("a world's timers exist and are not shut down");
        assert!(armed.was_pending == this.is_pending, "timer {timer}: the machine lost count of it");
        let base = armed.base.cpu.index() as u16;
        (this.expires, this.delay) = (until, until.saturating_sub(self.run.now));
        (this.armed_on, this.base, this.is_pending, this.seen_at) = (cpu, base, true, self.run.now);
        this.pulled_from = None;
        self.push(Nanos(until), SimEvent::Watchdog(timer));
        self.was_armed(cpu, timer);
        let arm = self.cost(Cost::Arm);
        self.work_on(base, cpu, arm) + looks * self.cost(Cost::Look) + self.carry_out(cpu)
    }

    /// Counts and notes that `cpu` has armed `timer`.
    pub(super) fn was_armed(&mut self, cpu: u16, timer: u32) {
        let this = &self.all[timer as usize];
        self.run.recorder.figures.arms += 1;
        self.run.note(
            NotedEvent::Arm,
            cpu,
            this.expires ^ u64::from(timer) << 40 ^ u64::from(this.base) << 20,
        );
        self.run.export(|exporter| exporter.armed(cpu, timer, this));
    }
}

impl TimerLayer<'_> {
    /// `cpu` arms `timer` for `delay` from now. Returns what that costs it.
    pub(crate) fn arm(&mut self, cpu: u16, timer: u32, delay: u64) -> u64 {
        let looks = self.looks(cpu, timer);
        self.recorder().figures.looks += looks;
        let expires = self.now().saturating_add(delay);
        let this = &mut self.all[timer as usize];
        let context = Context::on(id(cpu), Nanos(self.run.now));
        let armed = self
            .machine
            .arm(this.key.wheel(), Nanos(expires), context, &mut self.actions)
            .expect("a world's timers exist and are not shut down");
        let base = armed.base.cpu.index() as u16;
        assert!(armed.was_pending == this.is_pending, "timer {timer}: the machine lost count of it");
        (this.expires, this.delay, this.armed_on, this.base) = (expires, delay, cpu, base);
        (this.is_pending, this.seen_at) = (true, self.run.now);
        if this.pulled_from.take() == Some(cpu) {
            self.recorder().figures.ping_pongs += 1;
        }
        self.was_armed(cpu, timer);
        let arm = self.cost(Cost::Arm);
        self.work_on(base, cpu, arm) + looks * self.cost(Cost::Look) + self.carry_out(cpu)
    }

    /// How many CPUs are looked at to find a busy one for `timer`.
    pub(crate) fn looks(&self, cpu: u16, timer: u32) -> u64 {
        let this = &self.all[timer as usize];
        if self.plan().policy.policy() != Policy::Push || this.is_pinned || this.is_deferrable {
            return 0;
        }
        let mut looks = 0;
        let arming = Arming { cpu: id(cpu), is_idle: self.contacts[usize::from(cpu)].in_idle };
        let _ =
            push_target(arming, &self.masks.housekeeping, self.plan().topology.domains(id(cpu)), |other| {
                looks += 1;
                self.contacts[other.index()].in_idle
            });
        looks
    }

    /// `cpu` cancels `timer`. Returns what that costs it.
    pub(crate) fn cancel(&mut self, cpu: u16, timer: u32) -> u64 {
        let this = &mut self.all[timer as usize];
        let context = Context::on(id(cpu), Nanos(self.run.now));
        let was_pending = self.machine.cancel(this.key.wheel(), context).expect("a world's timers exist");
        assert!(was_pending == this.is_pending, "timer {timer}: the machine lost count of it");
        let base = this.base;
        this.is_pending = false;
        self.recorder().figures.cancels += u64::from(was_pending);
        self.note(NotedEvent::Cancel, cpu, u64::from(timer));
        if !was_pending {
            return 0; // seen without a lock
        }
        let cancel = self.cost(Cost::Cancel);
        self.work_on(base, cpu, cancel)
    }

    pub(crate) fn add_timer(&mut self, options: TimerOptions, role: TimerRole) -> u32 {
        let number = self.all.len() as u32;
        let name = TimerKey::Wheel(self.machine.add_timer(options, number));
        self.all.push(SimTimer::new(name, role, options));
        number
    }

    /// What it costs `by` to work for `hold` ns on the bases of `base`: waiting, getting the lock, working.
    pub(crate) fn work_on(&mut self, base: u16, by: u16, hold: u64) -> u64 {
        let handover = self.cost(Cost::LockHandover);
        let LockCost { wait, handover } = self.locks.take(base, by, self.run.now, LockUse { hold, handover });
        if wait > 0 {
            self.recorder().figures.lock_waits += 1;
            self.recorder().figures.lock_wait_ns += wait;
        }
        wait + handover + hold
    }

    /// How many groups change when `cpu` goes idle: all up to the first in which another child is active.
    pub(crate) fn levels_down(&self, cpu: u16) -> u64 {
        self.levels(cpu, |active, mask| active & !mask == 0)
    }

    /// How many groups change when `cpu` wakes up: all up to the first in which a child is active.
    pub(crate) fn levels_up(&self, cpu: u16) -> u64 {
        self.levels(cpu, |active, _| active == 0)
    }

    fn levels(&self, cpu: u16, goes_on: impl Fn(u8, u8) -> bool) -> u64 {
        if self.plan().policy.policy() != quietcore_core::place::Policy::Pull {
            return 0;
        }
        let mut levels = 0;
        for (group, mask) in &self.paths[usize::from(cpu)] {
            levels += 1;
            let active = self.machine.hierarchy().group_state(*group).map_or(0, |word| word.active());
            if !goes_on(active, mask.bits()) {
                break;
            }
        }
        levels
    }
}
