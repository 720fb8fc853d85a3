//! A lane between two waits: what a look at the clock brings. Going idle and waking up: `idle.rs`.

use super::idle_predictor::IdlePredictor;
use super::slots::{LaneSlot, LaneTable, Sleeper};
use super::waiting::{NextWatch, Told, Waiting};
use crate::{Actions, CpuId, Machine, Nanos, RawLock, Turn};

/// What kind of CPU a thread drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// One of a host.
    Lane,
    /// One that no host has: it leaves to lanes what they can do.
    Spare,
}

/// What a lane's calls are about: its machine, all lanes, and its own slot.
#[derive(Debug)]
pub struct LaneContext<'a, L: RawLock, T: Copy, S> {
    /// The CPUs and their timers.
    pub machine: &'a Machine<L, T>,
    /// All lanes of the machine.
    pub lanes: &'a LaneTable<S>,
    /// The lane's own.
    pub slot: &'a LaneSlot<S>,
}

impl<L: RawLock, T: Copy, S> Clone for LaneContext<'_, L, T, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: RawLock, T: Copy, S> Copy for LaneContext<'_, L, T, S> {}

/// What a lane saw when it looked at its neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "the world has the other half of it"]
pub struct LaneLook {
    /// It did, as it does once per tick and when it wakes up: the world offers what waits behind it.
    pub looked_around: bool,
    /// So many of them were marked absent: the world reports that, and offers what they have.
    pub marked: u32,
}

/// A thread's hold on a CPU: what the thread must remember from one call to the next. It owns the CPU's turn.
///
/// The world calls a `handle_*` when that has happened, carries out the [`Actions`] at once, and does what
/// the answer says. All calls are for the driving thread, with moments that do not go back.
#[derive(Debug)]
pub struct Lane {
    /// The CPU's turn, for the world's loop over what is due.
    pub turn: Turn,
    pub(super) waiting: Waiting,
    pub(super) next_watch: NextWatch,
    pub(super) role: Role,
    pub(super) predictor: IdlePredictor,
    /// The tick in which it last looked at its neighbours.
    looked: u64,
    /// Others may have something to run for this lane: it waited, or a tick has passed.
    pub(super) must_help: bool,
}

impl Lane {
    /// For a thread that has claimed `cpu`, which is online and active in the hierarchy.
    #[must_use]
    pub fn new(cpu: CpuId, tick: Nanos) -> Self {
        Self {
            turn: Turn::new(cpu),
            waiting: Waiting::Awake,
            next_watch: NextWatch::Usual,
            role: Role::Lane,
            predictor: IdlePredictor::new(tick),
            looked: 0,
            must_help: false,
        }
    }

    /// The same for a spare, whose CPU the hierarchy has as idle.
    #[must_use]
    pub fn spare(cpu: CpuId, tick: Nanos) -> Self {
        let (waiting, role) = (Waiting::Sleeping { until: None }, Role::Spare);
        Self { waiting, role, ..Self::new(cpu, tick) }
    }

    /// What kind of CPU it is.
    #[inline]
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Whether it neither waits nor is about to.
    #[inline]
    #[must_use]
    pub fn is_awake(&self) -> bool {
        self.waiting.is_awake()
    }

    /// Whether it waits for a tick at most, and the hierarchy was told nothing of it: what the end of that
    /// wait does with the moment is to count how long waits are.
    #[inline]
    #[must_use]
    pub fn dozes_untold(&self) -> bool {
        matches!(self.waiting, Waiting::Dozing { told: Told::Nothing, .. })
    }

    /// Whether a turn need not look at the clock: the lane is awake, has collected nothing, looks after no
    /// other CPU, and nothing waits on its own. Cost: a few loads.
    #[inline]
    #[must_use]
    pub fn is_quiet<S: Sleeper>(&self, slot: &LaneSlot<S>) -> bool {
        slot.is_standalone() && self.is_awake() && !self.turn.has_more()
    }

    /// Whether a turn at `now`, which may be a little ahead, would do nothing: the lane is awake, has
    /// collected nothing, has looked around in this tick and asked what others have, and nothing is due here
    /// or at those that it looks after. What is left of the turn is to say that it goes on. Cost: a few
    /// loads.
    #[inline]
    #[must_use]
    pub fn has_nothing<L: RawLock, T: Copy, S: Sleeper>(
        &self,
        at: LaneContext<'_, L, T, S>,
        now: Nanos,
    ) -> bool {
        let has_looked = self.is_awake() && !self.must_help && !self.is_tick_over(now);
        let has_nothing = has_looked && !self.handle_turn(at, now);
        if has_nothing {
            at.machine.keep_alive(at.slot.cpu(), now);
        }
        has_nothing
    }

    /// Whether the lane has to [look around](Self::handle_tick): `now` is in another tick than its last look.
    #[inline]
    #[must_use]
    pub fn is_tick_over(&self, now: Nanos) -> bool {
        self.tick_of(now) != self.looked
    }

    /// Once per tick, awake: the lane looks at its neighbours, and holds the stall deadline.
    pub fn handle_tick<L: RawLock, T: Copy, S: Sleeper>(
        &mut self,
        at: LaneContext<'_, L, T, S>,
        now: Nanos,
        actions: &mut Actions,
    ) -> LaneLook {
        let look = self.look_around(at, now, actions);
        if takes_part(at.slot) {
            at.lanes.deadline.hold(now, || at.machine.is_awake(at.slot.cpu()), actions);
        }
        look
    }

    /// Whether the lane was marked absent, by itself or by others: before it looks for what is due it
    /// [returns](Self::handle_return), and the stall deadline is armed for it. Cost: a load.
    #[inline]
    #[must_use]
    pub fn is_marked<L: RawLock, T: Copy, S: Sleeper>(&self, at: LaneContext<'_, L, T, S>) -> bool {
        at.machine.is_marked(at.slot.cpu())
    }

    /// The lane, awake, looks for what is due at `now`; says whether it takes a turn. Cost: a few loads.
    #[inline]
    #[must_use = "what is due has to be run"]
    pub fn handle_turn<L: RawLock, T: Copy, S: Sleeper>(
        &self,
        at: LaneContext<'_, L, T, S>,
        now: Nanos,
    ) -> bool {
        self.turn.has_more() || at.machine.handle_tick(at.slot.cpu(), now)
    }

    /// It ran timers or items at `now`: its wait was not for nothing.
    #[inline]
    pub fn handle_work(&mut self, now: Nanos) {
        self.predictor.work(now);
    }

    /// Whether others may have something to run for this lane since it was last asked: it waited, or a tick
    /// has passed.
    #[inline]
    pub const fn take_must_help(&mut self) -> bool {
        core::mem::replace(&mut self.must_help, false)
    }

    /// Whether `now` is in another tick than the last look was.
    pub fn is_new_tick(&mut self, now: Nanos) -> bool {
        let tick = self.tick_of(now);
        core::mem::replace(&mut self.looked, tick) != tick
    }

    /// Once per tick: the neighbours.
    pub(super) fn look_around<L: RawLock, T: Copy, S: Sleeper>(
        &mut self,
        at: LaneContext<'_, L, T, S>,
        now: Nanos,
        actions: &mut Actions,
    ) -> LaneLook {
        self.looked = self.tick_of(now);
        self.must_help = true;
        let mut look = LaneLook { looked_around: true, marked: 0 };
        // Where no lane is ever marked, repairs are made all the same.
        if takes_part(at.slot) && (at.lanes.watch() || at.machine.has_repairs()) {
            look.marked = match core::mem::take(&mut self.next_watch) {
                NextWatch::Usual => at.machine.watch(at.slot.cpu(), now, actions),
                NextWatch::BeforeSleep => at.machine.watch_before_sleep(at.slot.cpu(), now, actions),
            };
        }
        look
    }

    fn tick_of(&self, now: Nanos) -> u64 {
        now.0 / self.predictor.tick().0
    }
}

/// Whether its CPU is part of the hierarchy: not standalone.
#[inline]
pub(super) fn takes_part<S: Sleeper>(slot: &LaneSlot<S>) -> bool {
    !slot.is_standalone()
}
