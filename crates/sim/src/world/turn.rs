//! Timers: arming and cancelling them, the softirq that runs them, and what their callbacks do.

use super::cpu::Soft;
use super::record::What;
use super::{World, id};
use crate::scenario::{Cost, LoadKind, Periodic};
use crate::script::Happened;
use quietcore_core::place::{Arming, Policy, push_target};
use quietcore_core::softirq::Vector;
use quietcore_core::{Context, ExactId, Expired, Nanos, TimerId, TimerOptions};

/// What a timer is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    /// The periodic load with this number in the plan.
    Periodic(u32),
    /// Wakes this task.
    Wake(u32),
    /// Hands so much work to the worker of the CPU where it runs.
    Work(u64),
    /// Guards a request; nearly always cancelled.
    Guard,
    /// Armed from elsewhere; does nothing.
    Remote,
    /// The timer of a script with this number.
    Scripted(u32),
    /// The watchdog of this transmit queue.
    Watchdog(u16),
}

/// What the machine calls a timer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Name {
    Wheel(TimerId),
    Exact(ExactId),
}

impl Name {
    /// Of a timer that is not exact: only watchdogs are, and they are armed by those who run queues.
    pub(super) fn wheel(self) -> TimerId {
        match self {
            Self::Wheel(id) => id,
            Self::Exact(_) => unreachable!("watchdogs are armed by those who run queues"),
        }
    }
}

/// A timer of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    pub(super) id: Name,
    pub(super) role: Role,
    /// The moment it was last armed for, and how far ahead that was.
    pub(super) expires: u64,
    pub(super) delay: u64,
    pub(super) armed_on: u16,
    /// Whose base it was put on.
    pub(super) base: u16,
    pub(super) is_pending: bool,
    pub(super) is_pinned: bool,
    pub(super) is_deferrable: bool,
    /// Since when others see that it is armed.
    pub(super) seen_at: u64,
    /// It last ran on another CPU than that of its base, which is this one.
    pub(super) pulled_from: Option<u16>,
}

impl Timer {
    /// One that is not armed.
    pub(super) const fn new(id: Name, role: Role, options: TimerOptions) -> Self {
        Self {
            id,
            role,
            expires: 0,
            delay: 0,
            armed_on: 0,
            base: 0,
            is_pending: false,
            is_pinned: options.is_pinned(),
            is_deferrable: options.is_deferrable(),
            seen_at: 0,
            pulled_from: None,
        }
    }
}

impl World<'_> {
    /// `cpu` arms `timer` for `delay` from now. Returns what that costs it.
    pub(super) fn arm(&mut self, cpu: u16, timer: u32, delay: u64) -> u64 {
        let looks = self.looks(cpu, timer);
        self.recorder.figures.looks += looks;
        let expires = self.now.saturating_add(delay);
        let this = &mut self.timers[timer as usize];
        let context = Context::on(id(cpu), Nanos(self.now));
        let armed = self
            .machine
            .arm(this.id.wheel(), Nanos(expires), context, &mut self.actions)
            .expect("a world's timers exist and are not shut down");
        let base = armed.base.cpu.index() as u16;
        assert!(armed.was_pending == this.is_pending, "timer {timer}: the machine lost count of it");
        (this.expires, this.delay, this.armed_on, this.base) = (expires, delay, cpu, base);
        (this.is_pending, this.seen_at) = (true, self.now);
        if this.pulled_from.take() == Some(cpu) {
            self.recorder.figures.ping_pongs += 1;
        }
        self.recorder.figures.arms += 1;
        self.note(What::Arm, cpu, expires ^ u64::from(timer) << 40 ^ u64::from(base) << 20);
        self.export(|exporter, world| exporter.armed(world, cpu, timer));
        let arm = self.costs.of(Cost::Arm);
        self.work_on(base, cpu, arm) + looks * self.costs.of(Cost::Look) + self.carry_out(cpu)
    }

    /// How many CPUs are looked at to find a busy one for `timer`.
    pub(super) fn looks(&self, cpu: u16, timer: u32) -> u64 {
        let this = &self.timers[timer as usize];
        if self.plan.policy.policy() != Policy::Push || this.is_pinned || this.is_deferrable {
            return 0;
        }
        let mut looks = 0;
        let arming = Arming { cpu: id(cpu), is_idle: self.cpus[usize::from(cpu)].in_idle };
        let _ = push_target(arming, &self.housekeeping, self.plan.topology.domains(id(cpu)), |other| {
            looks += 1;
            self.cpus[other.index()].in_idle
        });
        looks
    }

    /// `cpu` cancels `timer`. Returns what that costs it.
    pub(super) fn cancel(&mut self, cpu: u16, timer: u32) -> u64 {
        let this = &mut self.timers[timer as usize];
        let context = Context::on(id(cpu), Nanos(self.now));
        let was_pending = self.machine.cancel(this.id.wheel(), context).expect("a world's timers exist");
        assert!(was_pending == this.is_pending, "timer {timer}: the machine lost count of it");
        let base = this.base;
        this.is_pending = false;
        self.recorder.figures.cancels += u64::from(was_pending);
        self.note(What::Cancel, cpu, u64::from(timer));
        if !was_pending {
            return 0; // seen without a lock
        }
        let cancel = self.costs.of(Cost::Cancel);
        self.work_on(base, cpu, cancel)
    }

    /// The timer softirq of `cpu` goes one step further.
    pub(super) fn softirq_step(&mut self, cpu: u16) {
        let now = Nanos(self.now);
        let this = &mut self.cpus[usize::from(cpu)];
        let cost = match std::mem::replace(&mut this.soft, Soft::None) {
            Soft::None => return,
            Soft::Finishing => {
                self.helper_returns(cpu);
                return self.next_vector(cpu);
            }
            Soft::Handler(vector) => {
                if let Some(length) = self.packet_step(cpu, vector) {
                    let this = &mut self.cpus[usize::from(cpu)];
                    (this.soft, this.soft_left) = (Soft::Handler(vector), length);
                    return;
                }
                self.export(|exporter, world| exporter.softirq(world, (cpu, vector), false));
                return self.next_vector(cpu);
            }
            Soft::Raised => {
                self.machine.begin_turn(&mut this.turn, now);
                self.note(What::Turn, cpu, 0);
                self.export(|exporter, world| exporter.softirq(world, (cpu, Vector::TIMER), true));
                self.carry_out(cpu)
            }
            Soft::Callback(expired) => {
                let timer = expired.payload();
                let cost = self.callback_ends(cpu, timer);
                self.export(|exporter, world| exporter.ran(world, cpu, timer));
                let this = &mut self.cpus[usize::from(cpu)];
                self.machine.finish(&mut this.turn, expired, now, &mut self.actions);
                self.note(What::Finish, cpu, u64::from(timer));
                cost + self.carry_out(cpu)
            }
        };
        self.next_timer(cpu, cost);
    }

    /// Runs the next timer; `debt` is what `cpu` has yet to pay for.
    fn next_timer(&mut self, cpu: u16, debt: u64) {
        let is_kernel = self.is_kernel();
        let this = &mut self.cpus[usize::from(cpu)];
        let expired = self.machine.next_expired(&mut this.turn, Nanos(self.now), &mut self.actions);
        let debt = debt + self.carry_out(cpu);
        let this = self.cpu(cpu);
        this.soft_left = debt;
        if let Some(expired) = expired {
            let cost = self.expires(cpu, &expired);
            let this = self.cpu(cpu);
            this.soft_left += cost;
            this.soft = Soft::Callback(expired);
        } else if this.turn.has_more() && (is_kernel || !this.has_task()) {
            this.soft = Soft::Raised;
        } else {
            this.soft = Soft::Finishing;
            self.export(|exporter, world| exporter.softirq(world, (cpu, Vector::TIMER), false));
        }
    }

    /// A timer begins to run on `cpu`; returns how long it takes from its base to the end of its callback.
    fn expires(&mut self, cpu: u16, expired: &Expired<u32>) -> u64 {
        let timer = expired.payload();
        let base = expired.base().cpu.index() as u16;
        let this = &mut self.timers[timer as usize];
        assert!(this.is_pending, "timer {timer} runs a second time, or was cancelled");
        this.is_pending = false;
        let (armed_on, was_pinned, expires) = (this.armed_on, this.is_pinned, this.expires);
        let (role, is_deferrable, own_base) = (this.role, this.is_deferrable, this.base);
        let (seen_at, granule) = (this.seen_at, this.delay / 7);
        let is_remote = base != cpu;
        this.pulled_from = is_remote.then_some(own_base);
        let is_foreign = armed_on != cpu && self.is_isolated(cpu) && !self.is_isolated(armed_on);
        let figures = &mut self.recorder.figures;
        figures.expiries += 1;
        figures.remote += u64::from(is_remote);
        figures.foreign_pulled += u64::from(is_foreign && is_remote);
        figures.early += u64::from(self.now < expires);
        figures.pinned_away += u64::from(was_pinned && cpu != armed_on);
        if is_foreign {
            self.recorder.foreign(id(cpu));
        }
        if !is_deferrable {
            self.recorder.lateness(self.now.saturating_sub(expires));
            self.check_lateness(cpu, (expires, seen_at), granule);
        }
        self.note(What::Expire, cpu, u64::from(timer) << 16 | u64::from(base));
        self.export(|exporter, world| exporter.expires(world, cpu, timer));
        let callback = match role {
            Role::Periodic(load) => self.periodic(load).callback,
            Role::Wake(_)
            | Role::Work(_)
            | Role::Guard
            | Role::Remote
            | Role::Scripted(_)
            | Role::Watchdog(_) => 0,
        };
        if let Role::Scripted(number) = role {
            self.tell(cpu, number, Happened::Ran);
        }
        let collect = self.costs.of(Cost::Collect);
        self.work_on(base, cpu, collect) + self.costs.of(Cost::Dispatch) + callback
    }

    fn periodic(&self, load: u32) -> Periodic {
        match self.plan.loads[load as usize].kind {
            LoadKind::Periodic(periodic) => periodic,
            ref other => panic!("load {load} is no timer but {other:?}"),
        }
    }

    /// What a callback does at its end, and what that costs.
    fn callback_ends(&mut self, cpu: u16, timer: u32) -> u64 {
        match self.timers[timer as usize].role {
            Role::Periodic(load) => {
                let periodic = self.periodic(load);
                let percent = self.plan.faults.panics;
                let panics = percent > 0 && self.random.chance(percent);
                self.recorder.figures.panics += u64::from(panics);
                // Whoever catches the panic keeps the interval going.
                let jitter = self.random.below(periodic.jitter + 1);
                self.arm(cpu, timer, periodic.period + jitter)
            }
            Role::Wake(task) => {
                self.tasks[task as usize].due = self.timers[timer as usize].expires;
                self.wake(task, cpu)
            }
            Role::Work(length) => self.queue_work(cpu, length),
            Role::Guard => {
                self.recorder.figures.timeouts += 1;
                0
            }
            Role::Watchdog(queue) => {
                self.watchdog_ends(cpu, queue);
                0
            }
            Role::Remote | Role::Scripted(_) => 0,
        }
    }

    /// Timers that are overdue beyond every bound.
    pub(super) fn lost(&self) -> u64 {
        let faults = &self.plan.faults;
        let blocked = faults.stalls.iter().map(|stall| stall.blocked).max().unwrap_or(0);
        // A lost kick is sent again until it arrives: a hundred in a row are not lost.
        let retries = if faults.lost_kicks.0 > 0 { faults.lost_kicks.1 * 100 } else { 0 };
        let callbacks: u64 = self.plan.loads.iter().map(|load| load.longest()).max().unwrap_or(0);
        let slack = blocked + retries + faults.late_wakeups.1 + 100 * callbacks + 10 * self.plan.tick.0;
        let is_lost = |timer: &&Timer| {
            let bound = timer.expires + timer.delay / 7 + slack;
            timer.is_pending && !timer.is_deferrable && bound < self.end
        };
        self.timers.iter().filter(is_lost).count() as u64
    }
}
