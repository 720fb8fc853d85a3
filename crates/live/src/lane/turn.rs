//! A lane's turns: what is due, what waits for the lane, and once per tick its neighbours.
//!
//! When a turn does what is decided in the core. Going idle and waking up: `wait.rs`.

use super::current;
use super::outcome::TurnWork;
use super::slot::{LanePlace, ThreadSlot};
use crate::machine::Machine;
use crate::payload::Payload;
use crate::run_queue::RunQueue;
use crate::words::lock::FutexLock;
use crate::words::park::Parker;
use crate::words::present_cpu;
use quietcore_core::lane::{Lane, LaneContext, LaneLook};
use quietcore_core::softirq::{LaneSoftirqs, TimerRaise};
use quietcore_core::{Actions, CpuId, Nanos};

/// What the core's calls are about.
type Here = LaneContext<'static, FutexLock, Payload, LanePlace>;

/// A thread's hold on a CPU.
#[derive(Debug)]
pub(super) struct LaneDriver {
    pub(super) machine: &'static Machine,
    pub(super) slot: &'static ThreadSlot,
    pub(super) state: Lane,
    /// Made when it is first needed.
    pub(super) softirqs: Option<LaneSoftirqs>,
}

impl LaneDriver {
    /// For a thread that has claimed `slot`, whose CPU is online and active in the hierarchy.
    pub(super) fn new(machine: &'static Machine, slot: &'static ThreadSlot) -> Self {
        let state = Lane::new(slot.cpu(), machine.lanes.table().tick());
        Self { machine, slot, state, softirqs: None }
    }

    /// The same for a spare, whose CPU the hierarchy has as idle.
    pub(super) fn spare(machine: &'static Machine, slot: &'static ThreadSlot) -> Self {
        let state = Lane::spare(slot.cpu(), machine.lanes.table().tick());
        Self { state, ..Self::new(machine, slot) }
    }

    pub(super) fn cpu(&self) -> CpuId {
        self.slot.cpu()
    }

    pub(super) fn slot(&self) -> &'static ThreadSlot {
        self.slot
    }

    pub(super) fn queue(&self) -> &'static RunQueue {
        &self.slot.world.queue
    }

    pub(super) fn parker(&self) -> &'static Parker {
        self.slot.world.parker().expect("a lane has claimed its slot")
    }

    #[inline]
    pub(super) fn here(&self) -> Here {
        LaneContext { machine: &self.machine.core, lanes: self.machine.lanes.table(), slot: self.slot }
    }

    /// Whether it should turn at once; after the end of the machine nothing is left to run.
    pub(super) fn has_more(&self) -> bool {
        (self.state.turn.has_more() || self.has_items()) && self.machine.is_running()
    }

    /// Whether it looks after its own CPU only, and takes nothing that waits on others.
    #[inline]
    fn is_alone(&self) -> bool {
        self.state.is_quiet(self.slot) && !self.queue().gate.is_open()
    }

    /// Whether a turn would do nothing but say that the lane goes on. A standalone CPU looks after no other:
    /// what counts is whether something is due on it, and with nothing armed there is no reason to look at
    /// the clock. Another one has that to look at which may change within a tick.
    #[inline]
    pub(super) fn has_nothing(&self) -> bool {
        if self.has_items() {
            return false;
        }
        let clock = &self.machine.clock;
        if self.is_alone() {
            self.machine.timer_raise == TimerRaise::NextExpiry
                && self.machine.core.has_nothing(self.cpu(), || clock.latest())
        } else {
            self.state.has_nothing(self.here(), clock.latest())
        }
    }

    /// Runs what is due, and what else waits for this lane.
    #[inline]
    pub(super) fn turn(&mut self) -> TurnWork {
        let when = self.machine.timer_raise;
        let is_quiet = || self.is_alone() && !self.has_items() && !self.state.is_marked(self.here());
        if when != TimerRaise::NextExpiry && is_quiet() && self.machine.is_running() {
            return self.turn_by_tick(when).unwrap_or_default();
        }
        self.turn_by_the_clock()
    }

    #[inline]
    fn turn_by_the_clock(&mut self) -> TurnWork {
        if !self.machine.is_running() {
            self.refuse_kicks();
            return TurnWork::default();
        }
        let now = self.machine.clock.now();
        self.exit_idle(now);
        let timers = self.run_timers(now);
        let (queues, role) = (self.machine.queues(), self.state.role());
        let is_helping = self.state.take_must_help() && queues.must_help(self.cpu(), role);
        if !self.has_items() && !is_helping {
            return TurnWork { timers, ..TurnWork::default() };
        }
        let work = self.run_items(now);
        if work != TurnWork::default() {
            self.state.handle_work(now);
        }
        TurnWork { timers: timers + work.timers, ..work }
    }

    /// Between two items: the clock, and what is due. Returns the time, and how many timers ran.
    pub(super) fn between_items(&mut self) -> (Nanos, u32) {
        let now = self.machine.clock.now();
        self.machine.core.keep_alive(self.cpu(), now);
        (now, self.run_timers(now))
    }

    fn run_timers(&mut self, now: Nanos) -> u32 {
        current::looked_at_clock(now);
        let here = self.here();
        if self.state.is_marked(here) {
            self.return_from_mark(now);
        }
        if self.state.is_tick_over(now) {
            self.look_around(now);
        }
        if !self.state.handle_turn(here, now) {
            self.machine.turns_again(self.cpu(), now);
            return 0;
        }
        let ran = self.machine.take_turn(&mut self.state.turn);
        if ran > 0 {
            self.state.handle_work(now);
        }
        ran
    }

    #[cold]
    fn return_from_mark(&mut self, now: Nanos) {
        let here = self.here();
        self.machine.act(|actions| self.state.handle_return(here, now, actions));
    }

    #[cold]
    fn look_around(&mut self, now: Nanos) {
        self.decide(now, |state, here, actions| state.handle_tick(here, now, actions));
    }

    /// Does what the core decides, and what follows if the lane has looked around.
    #[inline]
    pub(super) fn decide(
        &mut self,
        now: Nanos,
        input: impl FnOnce(&mut Lane, Here, &mut Actions) -> LaneLook,
    ) {
        let here = self.here();
        let look = self.machine.act(|actions| input(&mut self.state, here, actions));
        if !look.looked_around {
            return;
        }
        // Since the last look it may have been moved.
        let _ = present_cpu::remember();
        if look.marked > 0 {
            self.machine.report_stalls(now);
        }
        self.machine.queues().handle_look(self.cpu(), look);
    }

    /// TIMER was raised: one turn, whether anything is due or not.
    pub(super) fn take_raised_turn(&mut self) -> u32 {
        current::looked_at_clock(self.machine.clock.now());
        self.machine.take_turn(&mut self.state.turn)
    }

    /// The thread leaves its CPU, which goes offline: what is on it is for others.
    pub(super) fn leave(&self) {
        // A forked child has the locks as they were at that moment: perhaps taken, for ever.
        if !self.machine.is_forked() {
            self.refuse_kicks();
            self.machine.take_offline(self.slot);
        }
    }
}
