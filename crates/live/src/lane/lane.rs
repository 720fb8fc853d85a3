//! What every player of a CPU does: takes turns, goes idle, waits, comes back.
//!
//! The common ways cost no lock: a turn with nothing due is a few loads and a look at the clock, a doze a
//! fence and the wait. An isolated lane with nothing armed does not even look at the clock: nobody watches
//! it, and it watches nobody.
//!
//! Going idle is: say that kicks are wanted (`Parker::prepare`), then go idle in the books, under the bases'
//! locks. Whoever arms before that is seen there; whoever arms after it sees an idle CPU, and its kick finds
//! the word. A doze has no lock in it: its second look is at the base's words, after the fence.
//!
//! A lane does not sleep while one that it watches is silent: it dozes, and at the next tick marks it absent,
//! also if nothing is overdue yet. Otherwise the silent one would be the only one awake in the books, and all
//! timers would wait for the sentinel.
//!
//! Absent: which thread it is (`cpu.rs`, `spare.rs`), and whom to wake. Source: PROTOCOL sections 3, 4 and 6.

use super::current;
use super::idle_predictor::{End, Rest};
use super::outcome::{IdleUntil, TurnWork};
use super::slot::Slot;
use crate::machine::Machine;
use crate::probe;
use crate::softirq::Softirqs;
use crate::words::park::Parker;
use quietcore_core::softirq::TimerRaise;
use quietcore_core::{CpuId, IdleDecision as Decision, Machine as Core, Nanos, Turn};

/// How the lane waits, or is about to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    No,
    /// Until then, awake in the books unless it slept before.
    Dozes(Nanos),
    Sleeps(Option<Nanos>),
}

/// What a thread plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Lane,
    /// What lanes can do it leaves to them.
    Spare,
}

impl Lane {
    /// Whether it is a spare.
    pub(super) fn is_spare(&self) -> bool {
        self.role == Role::Spare
    }
}

/// A thread's hold on a CPU.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) machine: &'static Machine,
    slot: &'static Slot,
    turn: Turn,
    waiting: Waiting,
    /// The park word says that kicks are wanted.
    is_prepared: bool,
    /// The books say that this CPU is idle.
    is_parked: bool,
    /// It would sleep if another one were not silent.
    is_wary: bool,
    /// It would sleep if nothing were due soon.
    is_kept_up: bool,
    role: Role,
    rest: Rest,
    /// The tick in which it last looked after others.
    looked: u64,
    /// When it last looked for what is due.
    turned: Nanos,
    /// Others may have something to run for this lane, as it was asleep.
    must_help: bool,
    /// Made when it is first needed.
    pub(super) softirqs: Option<Softirqs>,
}

impl Lane {
    /// For a thread that has claimed `slot`, whose CPU is online and awake in the books.
    pub(super) fn new(machine: &'static Machine, slot: &'static Slot) -> Self {
        Self {
            machine,
            slot,
            turn: Turn::new(slot.cpu),
            waiting: Waiting::No,
            is_prepared: false,
            is_parked: false,
            is_wary: false,
            is_kept_up: false,
            role: Role::Lane,
            rest: Rest::new(machine.lanes.tick),
            looked: 0,
            turned: Nanos(0),
            must_help: false,
            softirqs: None,
        }
    }

    /// The same for a spare, whose CPU the books have as asleep.
    pub(super) fn spare(machine: &'static Machine, slot: &'static Slot) -> Self {
        let (waiting, role) = (Waiting::Sleeps(None), Role::Spare);
        Self { waiting, is_parked: true, role, ..Self::new(machine, slot) }
    }

    pub(super) fn cpu(&self) -> CpuId {
        self.slot.cpu
    }

    /// Whether it should turn at once; after the end of the machine nothing is left to run.
    pub(super) fn has_more(&self) -> bool {
        (self.turn.has_more() || self.has_items()) && self.machine.is_running()
    }

    pub(super) fn parker(&self) -> &'static Parker {
        self.slot.parker().expect("a lane has claimed its slot")
    }

    /// Runs what is due, and what else waits for this lane.
    #[inline]
    pub(super) fn turn(&mut self) -> TurnWork {
        // An isolated CPU answers for nobody: with nothing armed on it there is no reason to look at the
        // clock.
        let is_quiet = self.waiting == Waiting::No && self.slot.alone.is_set() && !self.turn.has_more();
        if is_quiet && !self.has_items() {
            let when = self.machine.timer_raise;
            if when != TimerRaise::NextExpiry {
                return self.turn_by_tick(when).unwrap_or_default();
            }
            if !self.machine.core.handle_tick(self.slot.cpu, Nanos(u64::MAX)) {
                return TurnWork::default();
            }
        }
        self.turn_by_the_clock()
    }

    fn turn_by_the_clock(&mut self) -> TurnWork {
        if !self.machine.is_running() {
            self.stop_waiting();
            return TurnWork::default();
        }
        let now = self.machine.clock.now();
        self.exit_idle(now);
        let timers = self.run_timers(now);
        let is_helping = core::mem::take(&mut self.must_help) && self.is_help_wanted();
        if !self.has_items() && !is_helping {
            return TurnWork { timers, ..TurnWork::default() };
        }
        let ran = self.run_items(now);
        if ran != TurnWork::default() {
            self.rest.work(now);
        }
        TurnWork { timers: timers + ran.timers, ..ran }
    }

    /// Between two items: the clock, and what is due. Says what time it is, and how many timers ran.
    pub(super) fn between_items(&mut self) -> (Nanos, u32) {
        let now = self.machine.clock.now();
        self.machine.core.keep_alive(self.slot.cpu, now);
        (now, self.run_timers(now))
    }

    fn run_timers(&mut self, now: Nanos) -> u32 {
        current::looked_at_clock(now);
        if self.tick_of(now) != self.looked {
            self.look_around(now);
            if self.takes_part() {
                self.machine.lanes.switch.hold(&self.machine.alarm, self.machine.clock.to_kernel(now));
            }
        }
        self.turned = now;
        let is_due = self.turn.has_more() || self.machine.core.handle_tick(self.slot.cpu, now);
        if !is_due {
            self.machine.turns_again(self.slot.cpu, now);
            return 0;
        }
        let ran = self.machine.take_turn(&mut self.turn);
        if ran > 0 {
            self.rest.work(now);
        }
        ran
    }

    /// Whether another lane has something that it does not get to, and this one may take it.
    fn is_help_wanted(&self) -> bool {
        let may_help = match self.role {
            Role::Lane => self.slot.queue.gate.is_open(),
            Role::Spare => !self.machine.has_free_lane(),
        };
        may_help && self.machine.is_help_wanted(self.slot.cpu)
    }

    /// Whether `now` is in another tick than the last look was.
    pub(super) fn enter_tick(&mut self, now: Nanos) -> bool {
        let tick = self.tick_of(now);
        core::mem::replace(&mut self.looked, tick) != tick
    }

    /// TIMER was raised: one turn, whether anything is due or not.
    pub(super) fn take_raised_turn(&mut self) -> u32 {
        current::looked_at_clock(self.machine.clock.now());
        self.machine.take_turn(&mut self.turn)
    }

    /// Once per tick: the neighbours.
    fn look_around(&mut self, now: Nanos) {
        self.looked = self.tick_of(now);
        self.must_help = true;
        self.machine.offer_backlog(&self.slot.queue);
        if self.takes_part() && self.machine.lanes.watch() {
            let (core, cpu) = (&self.machine.core, self.slot.cpu);
            let is_wary = core::mem::take(&mut self.is_wary);
            let watch = if is_wary { Core::watch_before_sleep } else { Core::watch };
            if self.machine.act(|actions| watch(core, cpu, now, actions)) > 0 {
                self.machine.report_stalls(now);
                self.machine.offer_items_of_marked();
            }
        }
    }

    /// Whether it is part of the tree, and not alone.
    fn takes_part(&self) -> bool {
        !self.slot.alone.is_set()
    }

    /// Nothing to run: from now on kicks arrive, and the lane may wait.
    pub(super) fn enter_idle(&mut self) -> IdleUntil {
        let now = self.machine.clock.now();
        if self.machine.is_forked() {
            return IdleUntil::Stay { until: now };
        }
        self.stop_waiting();
        self.is_prepared = true;
        self.parker().prepare();
        probe::lane_park(self.slot.cpu);
        let has_items = self.has_items();
        if self.turn.has_more() || has_items || !self.machine.is_running() {
            // After the word: whoever shuts the machine down kicks afterwards.
            return self.doze(now, now);
        }
        let takes_part = self.takes_part();
        let should_doze = self.rest.begin(now);
        if takes_part && !self.is_parked {
            self.is_wary =
                self.machine.lanes.watch() && self.machine.core.watches_stalled(self.slot.cpu, now);
            if self.is_wary {
                return self.doze(self.next_edge(now), now);
            }
            let is_stuck = |cpu| self.machine.core.is_marked(cpu);
            if self.role == Role::Spare && self.machine.lanes.has_waiting_lane(is_stuck) {
                return self.stand_down(now);
            }
            if should_doze {
                return self.doze(self.next_edge(now), now);
            }
        }
        self.sleep(now, takes_part)
    }

    /// Goes idle in the books as one that wakes up for nobody: the tree's alarm is asked for, and whom that
    /// wakes is a lane. Only a spare that no lane could relieve does what a lane does.
    fn stand_down(&mut self, now: Nanos) -> IdleUntil {
        let (core, cpu) = (&self.machine.core, self.slot.cpu);
        match self.machine.act(|actions| core.stand_down(cpu, now, actions)) {
            Decision::Stay { next } => {
                self.is_kept_up = true;
                self.doze(next.min(self.next_edge(now)), now)
            }
            Decision::Sleep { until } => {
                self.is_parked = true;
                let until = self.also_exact(until);
                self.waiting = Waiting::Sleeps(until);
                self.leave_switch(now, until);
                IdleUntil::Sleep { until }
            }
        }
    }

    /// Waits without a word to the books, until `until` or what is due before that.
    fn doze(&mut self, until: Nanos, now: Nanos) -> IdleUntil {
        self.slot.doze.begin(until);
        // The second look: whoever armed without seeing `until` has left its timer here before.
        let core = &self.machine.core;
        let next = core.next_event(self.slot.cpu);
        // What was due for others and is still there was not to be had: again with the next tick.
        let remote = core.hierarchy().next_remote(self.slot.cpu).filter(|remote| *remote > self.turned);
        let until = [next, remote].into_iter().flatten().fold(until, Nanos::min).max(now);
        self.waiting = Waiting::Dozes(until);
        IdleUntil::Stay { until }
    }

    /// Goes idle in the books.
    fn sleep(&mut self, now: Nanos, takes_part: bool) -> IdleUntil {
        let (core, cpu) = (&self.machine.core, self.slot.cpu);
        match core.enter_idle_beside_others(cpu, now) {
            Decision::Stay { next } if self.is_parked => {
                self.waiting = Waiting::Sleeps(Some(next));
                IdleUntil::Sleep { until: Some(next) }
            }
            // Still awake in the books, and so still looking after others, every tick.
            Decision::Stay { next } => {
                self.is_kept_up = true;
                let until = if takes_part { next.min(self.next_edge(now)) } else { next };
                self.doze(until, now)
            }
            Decision::Sleep { until } => {
                self.is_parked = true;
                let until = self.also_exact(until);
                self.waiting = Waiting::Sleeps(until);
                if takes_part {
                    self.leave_switch(now, until);
                }
                IdleUntil::Sleep { until }
            }
        }
    }

    /// Others look at what this lane published with their ticks. A timer that is due between two ticks is an
    /// exact one, so the lane wakes up for that itself.
    fn also_exact(&self, until: Option<Nanos>) -> Option<Nanos> {
        let global = self.machine.core.next_global(self.slot.cpu);
        let exact = global.filter(|next| next.0 % self.machine.lanes.tick.0 != 0);
        [until, exact].into_iter().flatten().min()
    }

    /// Goes idle and waits, unless there turns out to be work; the lane is up again afterwards. For one that
    /// waits by a futex.
    pub(super) fn park(&mut self, has_work: impl FnOnce() -> bool) {
        let until = self.enter_idle().until();
        if !has_work() {
            let _ = self.parker().wait(until.map(|until| self.machine.clock.to_kernel(until)));
            self.is_prepared = false;
        }
        self.exit_idle(self.machine.clock.now());
    }

    pub(super) fn slot(&self) -> &'static Slot {
        self.slot
    }

    /// There is something to run, or the wait is over. Does nothing if the lane was not idle.
    #[inline]
    pub(super) fn exit_idle(&mut self, now: Nanos) {
        if self.waiting != Waiting::No {
            self.get_up(now);
        }
    }

    fn get_up(&mut self, now: Nanos) {
        if self.machine.is_forked() {
            self.waiting = Waiting::No;
            return;
        }
        probe::lane_unpark(self.slot.cpu);
        self.stop_waiting();
        let end = match self.waiting {
            Waiting::Dozes(until) if now >= until => End::Dozed,
            Waiting::Sleeps(Some(until)) if now >= until => End::Slept,
            _ => End::Early,
        };
        self.waiting = Waiting::No;
        self.must_help = true;
        self.rest.end(now, end);
        if core::mem::take(&mut self.is_kept_up) {
            self.machine.core.keep_running(self.slot.cpu, now);
        }
        if core::mem::take(&mut self.is_parked) {
            self.machine.core.exit_idle(self.slot.cpu, now);
            if self.takes_part() {
                self.machine.arm_switch(now);
                self.look_around(now);
            }
        }
    }

    /// Kicks are not wanted any more. In a forked child nothing: a descriptor is the parent's, too.
    fn stop_waiting(&mut self) {
        if self.machine.is_forked() {
            return;
        }
        self.slot.doze.end();
        if core::mem::take(&mut self.is_prepared) {
            let _ = self.parker().finish();
        }
    }

    /// The thread is about to block in user code: others take over what they can.
    pub(super) fn go_absent(&mut self) {
        let now = self.machine.clock.now();
        self.exit_idle(now);
        let (core, cpu) = (&self.machine.core, self.slot.cpu);
        self.machine.act(|actions| core.go_absent(cpu, now, actions));
        self.machine.offer_items_of(cpu);
        if self.takes_part() {
            self.leave_switch(now, None);
        }
    }

    /// The thread is back. If the locks are not to be had now, the next turn tries again.
    pub(super) fn come_back(&mut self) {
        let now = self.machine.clock.now();
        let is_back = self.machine.core.return_from_absence(self.slot.cpu, now);
        if is_back && self.takes_part() {
            self.machine.arm_switch(now);
        }
    }

    /// The thread leaves its CPU, which goes offline: what is on it is for others.
    pub(super) fn leave(&mut self) {
        // A child that was forked has the locks as they were at that moment: perhaps taken, for ever.
        if !self.machine.is_forked() {
            self.stop_waiting();
            self.machine.take_offline(self.slot, &mut self.turn);
        }
    }

    /// This lane is not awake any more. If it was the last one, nobody holds the switch.
    fn leave_switch(&self, now: Nanos, until: Option<Nanos>) {
        let machine = self.machine;
        let is_anybody_awake = || machine.core.hierarchy().is_active(self.slot.cpu);
        if is_anybody_awake() {
            return;
        }
        // Another one that went to sleep before may have to be up sooner, and oversleep.
        let first = [until, machine.first_wakeup()].into_iter().flatten().min();
        let until = first.map(|until| machine.clock.to_kernel(until));
        let moments = (machine.clock.to_kernel(now), until);
        machine.lanes.switch.leave(&machine.alarm, moments, is_anybody_awake);
    }

    fn tick_of(&self, now: Nanos) -> u64 {
        now.0 / self.machine.lanes.tick.0
    }

    /// The end of the tick that `now` is in.
    fn next_edge(&self, now: Nanos) -> Nanos {
        Nanos((self.tick_of(now) + 1).saturating_mul(self.machine.lanes.tick.0))
    }
}
