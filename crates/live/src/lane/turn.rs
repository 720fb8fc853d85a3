//! A lane's turns: what is due, what waits for the lane, and once per tick its neighbours.
//!
//! States, protocol and races: [README.md](README.md). Going idle and waking up: `wait.rs`.

use super::current;
use super::idle_predictor::IdlePredictor;
use super::outcome::TurnWork;
use super::slot::LaneSlot;
use super::waiting::{NextWatch, Waiting};
use crate::machine::Machine;
use crate::softirq::Softirqs;
use crate::words::park::Parker;
use quietcore_core::softirq::TimerRaise;
use quietcore_core::{CpuId, Machine as Core, Nanos, Turn};

/// What kind of CPU a thread drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Lane,
    /// It leaves to lanes what they can do.
    Spare,
}

/// A thread's hold on a CPU.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) machine: &'static Machine,
    pub(super) slot: &'static LaneSlot,
    pub(super) turn: Turn,
    pub(super) waiting: Waiting,
    pub(super) next_watch: NextWatch,
    pub(super) role: Role,
    pub(super) predictor: IdlePredictor,
    /// The tick in which it last looked at its neighbours.
    looked: u64,
    /// When it last looked for what is due.
    pub(super) turned: Nanos,
    /// Others may have something to run for this lane: it waited, or a tick has passed.
    pub(super) must_help: bool,
    /// Made when it is first needed.
    pub(super) softirqs: Option<Softirqs>,
}

impl Lane {
    /// For a thread that has claimed `slot`, whose CPU is online and active in the hierarchy.
    pub(super) fn new(machine: &'static Machine, slot: &'static LaneSlot) -> Self {
        Self {
            machine,
            slot,
            turn: Turn::new(slot.cpu),
            waiting: Waiting::Awake,
            next_watch: NextWatch::Usual,
            role: Role::Lane,
            predictor: IdlePredictor::new(machine.lanes.tick),
            looked: 0,
            turned: Nanos(0),
            must_help: false,
            softirqs: None,
        }
    }

    /// The same for a spare, whose CPU the hierarchy has as idle.
    pub(super) fn spare(machine: &'static Machine, slot: &'static LaneSlot) -> Self {
        let (waiting, role) = (Waiting::Sleeping { until: None }, Role::Spare);
        Self { waiting, role, ..Self::new(machine, slot) }
    }

    pub(super) fn cpu(&self) -> CpuId {
        self.slot.cpu
    }

    pub(super) fn is_spare(&self) -> bool {
        self.role == Role::Spare
    }

    pub(super) fn slot(&self) -> &'static LaneSlot {
        self.slot
    }

    pub(super) fn parker(&self) -> &'static Parker {
        self.slot.parker().expect("a lane has claimed its slot")
    }

    /// Whether it should turn at once; after the end of the machine nothing is left to run.
    pub(super) fn has_more(&self) -> bool {
        (self.turn.has_more() || self.has_items()) && self.machine.is_running()
    }

    /// Runs what is due, and what else waits for this lane.
    #[inline]
    pub(super) fn turn(&mut self) -> TurnWork {
        // A standalone CPU looks after no other: with nothing armed on it there is no reason to look at the
        // clock.
        let is_quiet = self.waiting.is_awake() && self.slot.standalone.is_set() && !self.turn.has_more();
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
            self.refuse_kicks();
            return TurnWork::default();
        }
        let now = self.machine.clock.now();
        self.exit_idle(now);
        let timers = self.run_timers(now);
        let is_helping = core::mem::take(&mut self.must_help) && self.is_help_wanted();
        if !self.has_items() && !is_helping {
            return TurnWork { timers, ..TurnWork::default() };
        }
        let work = self.run_items(now);
        if work != TurnWork::default() {
            self.predictor.work(now);
        }
        TurnWork { timers: timers + work.timers, ..work }
    }

    /// Between two items: the clock, and what is due. Returns the time, and how many timers ran.
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
                let kernel_now = self.machine.clock.to_kernel(now);
                self.machine.lanes.stall_deadline.hold(&self.machine.alarm, kernel_now);
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
            self.predictor.work(now);
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
    pub(super) fn look_around(&mut self, now: Nanos) {
        self.looked = self.tick_of(now);
        self.must_help = true;
        self.machine.offer_backlog(&self.slot.queue);
        if self.takes_part() && self.machine.lanes.watch() {
            let (core, cpu) = (&self.machine.core, self.slot.cpu);
            let watch = match core::mem::take(&mut self.next_watch) {
                NextWatch::Usual => Core::watch,
                NextWatch::BeforeSleep => Core::watch_before_sleep,
            };
            if self.machine.act(|actions| watch(core, cpu, now, actions)) > 0 {
                self.machine.report_stalls(now);
                self.machine.offer_items_of_marked();
            }
        }
    }

    /// Whether its CPU is part of the hierarchy: not standalone.
    pub(super) fn takes_part(&self) -> bool {
        !self.slot.standalone.is_set()
    }

    /// The thread leaves its CPU, which goes offline: what is on it is for others.
    pub(super) fn leave(&mut self) {
        // A forked child has the locks as they were at that moment: perhaps taken, for ever.
        if !self.machine.is_forked() {
            self.refuse_kicks();
            self.machine.take_offline(self.slot, &mut self.turn);
        }
    }

    fn tick_of(&self, now: Nanos) -> u64 {
        now.0 / self.machine.lanes.tick.0
    }

    /// The end of the tick that `now` is in.
    pub(super) fn next_edge(&self, now: Nanos) -> Nanos {
        Nanos((self.tick_of(now) + 1).saturating_mul(self.machine.lanes.tick.0))
    }
}
