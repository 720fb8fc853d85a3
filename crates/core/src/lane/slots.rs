//! All lanes of a machine: a slot for each CPU that a thread can drive, and what there is once for all.
//!
//! Made with the machine and never changed in size: threads come and go, so a kick needs no count and no
//! lock. What a lane is besides, the world keeps in the slot (`S`).

use super::deadline::Deadline;
use super::slot_words::{DozeUntil, StandaloneFlag};
use super::stall_deadline::StallDeadline;
use crate::place::Policy;
use crate::tmigr::CpuState;
use crate::{Actions, BaseId, BaseKind, CpuId, CpuSet, IsolationReport, Machine, Nanos, RawLock, Settings};
use alloc::boxed::Box;

/// What a call of [`Sleeper::kick`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[must_use]
pub enum Kick {
    /// The owner was on its way to sleep, and this call wakes it.
    Woke,
    /// The owner is awake, or another thread wakes it.
    NotNeeded,
    /// No thread drives the CPU.
    Vacant,
}

/// A place to sleep for the thread that drives a CPU, its owner: the world's.
///
/// The owner says that it is about to sleep, looks at everything once more, and waits, or goes on if it found
/// something. A thread that leaves something for it and then kicks is either seen by that look or ends the
/// wait.
pub trait Sleeper {
    /// By the owner: kicks are wanted from now on. What it looks at afterwards is at least as new as what was
    /// left by those whose kick found it awake.
    fn prepare(&self);
    /// By the owner, awake again for whatever reason: kicks are not wanted any more.
    fn finish(&self);
    /// By any thread, which has left before what the owner is to find.
    fn kick(&self) -> Kick;
    /// The same, for an owner that is to look at what other lanes have, too.
    fn kick_to_help(&self) -> Kick;
    /// Whether the owner sleeps, or is about to; a hint.
    fn is_waiting(&self) -> bool;
}

/// A CPU's place for the lane that drives it. On cache lines of its own: its owner writes it at every wait.
#[derive(Debug)]
#[repr(align(128))]
pub struct LaneSlot<S> {
    cpu: CpuId,
    pub(super) doze: DozeUntil,
    /// Whether its CPU looks after its own timers only: it is isolated, or the machine pulls nothing.
    pub(super) standalone: StandaloneFlag,
    /// What the world keeps here.
    pub world: S,
}

impl<S: Sleeper> LaneSlot<S> {
    /// Which CPU it is.
    #[inline]
    #[must_use]
    pub const fn cpu(&self) -> CpuId {
        self.cpu
    }

    /// Whether its CPU looks after its own timers only, and no other CPU looks after it: it is isolated, or
    /// the machine pulls nothing. A hint. Cost: a load.
    #[inline]
    #[must_use]
    pub fn is_standalone(&self) -> bool {
        self.standalone.is_set()
    }

    /// Wakes the owner if it dozes beyond `at`; by another thread, or by the owner itself, which may arm
    /// between the end of its turn and its wait.
    #[inline]
    fn interrupt_doze(&self, at: Nanos, is_own: bool) {
        let dozes_on = if is_own { self.doze.is_own_later_than(at) } else { self.doze.is_later_than(at) };
        if dozes_on {
            let _ = self.world.kick();
        }
    }

    /// Whether the owner asks to be kicked for such timers. For tests and simulators.
    #[must_use]
    pub fn dozes(&self) -> bool {
        self.doze.is_later_than(Nanos(0))
    }
}

/// All lanes of a machine, and the deadline word behind them. A machine without lanes has the word alone:
/// its helper waits on it.
#[derive(Debug)]
pub struct LaneTable<S> {
    /// By CPU; `None` for those that no thread can drive.
    slots: Box<[Option<LaneSlot<S>>]>,
    pub(super) spares: CpuSet,
    pub(super) deadline: StallDeadline,
    pub(super) tick: Nanos,
}

impl<S: Sleeper> LaneTable<S> {
    /// Slots for the CPUs of `lanes` and `spares`, which are above all lanes; none at all if there is no
    /// lane. `world` makes what the world keeps of each.
    pub fn new(
        lanes: &CpuSet,
        spares: &CpuSet,
        settings: &Settings,
        mut world: impl FnMut(CpuId) -> S,
    ) -> Self {
        let spares = if lanes.is_empty() { CpuSet::new() } else { spares.clone() };
        let all = lanes.union(&spares);
        let count = all.last().map_or(0, |last| last.index() + 1);
        let mut slot = |index| {
            let cpu = CpuId(index as u16);
            let (doze, standalone) = (DozeUntil::new(), StandaloneFlag::new());
            all.contains(cpu).then(|| LaneSlot { cpu, doze, standalone, world: world(cpu) })
        };
        let tick = settings.tick.nanos();
        Self {
            slots: (0..count).map(&mut slot).collect(),
            spares,
            deadline: StallDeadline::new(tick, settings.stall_in_force()),
            tick,
        }
    }

    /// Whether this machine has lanes.
    #[inline]
    #[must_use]
    pub fn exist(&self) -> bool {
        !self.slots.is_empty()
    }

    /// The slot of `cpu`; `None` if no thread can drive it.
    #[inline]
    #[must_use]
    pub fn slot(&self, cpu: CpuId) -> Option<&LaneSlot<S>> {
        self.slots.get(cpu.index())?.as_ref()
    }

    /// A timer was put on `base`, to run at `at`: wakes the lane of its CPU if that is awake in the
    /// hierarchy, so that no action asks for it, but dozes beyond `at` and keeps this timer more exactly
    /// than its ticks: it is exact, or pinned. Returns the slot of such a timer. After every arm, by the
    /// thread that made it; `is_own` says whether that is the lane's. Cost: a compare; for such timers a
    /// load, and for another thread a fence; nothing without lanes.
    #[inline]
    pub fn after_arm(
        &self,
        base: BaseId,
        is_exact: bool,
        at: Nanos,
        is_own: impl FnOnce() -> bool,
    ) -> Option<&LaneSlot<S>> {
        if !is_exact && base.kind != BaseKind::Local {
            return None;
        }
        let slot = self.slot(base.cpu)?;
        slot.interrupt_doze(at, is_own());
        Some(slot)
    }

    /// All of them, lowest CPU first.
    pub fn all(&self) -> impl Iterator<Item = &LaneSlot<S>> {
        self.slots.iter().flatten()
    }

    /// Those that look after each other.
    pub(super) fn in_tree(&self) -> impl Iterator<Item = &LaneSlot<S>> {
        self.all().filter(|slot| !slot.is_standalone())
    }

    /// The threads without a CPU of a host.
    #[must_use]
    pub const fn spares(&self) -> &CpuSet {
        &self.spares
    }

    /// Length of a tick.
    #[inline]
    #[must_use]
    pub const fn tick(&self) -> Nanos {
        self.tick
    }

    /// Whether lanes look after each other.
    #[must_use]
    pub fn watch(&self) -> bool {
        !self.deadline.policy().is_never()
    }

    /// The word that the sentinel, or the helper of a machine without lanes, waits on.
    #[inline]
    #[must_use]
    pub const fn deadline(&self) -> &Deadline {
        &self.deadline.word
    }

    /// A CPU that may pull has to be awake at `at`, and none will be: what an
    /// [alarm](Actions::take_alarm) asks for. Any thread.
    pub fn request_alarm(&self, at: Nanos, actions: &mut Actions) {
        if self.exist() {
            self.deadline.ask(at, actions);
        } else {
            self.deadline.pull(at, actions);
        }
    }

    /// `cpu` has to look at its timers at once: what a [kick](Actions::take_kick) asks for. If no thread
    /// drives it, another one looks: a lane that sleeps, or a spare; on a machine without lanes the helper,
    /// for whose alarm the actions then ask. Any thread.
    pub fn kick<L: RawLock, T: Copy>(&self, machine: &Machine<L, T>, cpu: CpuId, actions: &mut Actions) {
        if !self.exist() {
            machine.next_event(cpu).into_iter().for_each(|next| actions.set_alarm(next));
        } else if self.slot(cpu).is_none_or(|slot| slot.world.kick() == Kick::Vacant) {
            self.wake_one(|cpu| machine.is_marked(cpu));
        }
    }

    /// Wakes the first lane that sleeps and can run what is not its own. One of which `is_stuck` says that it
    /// has missed its wake-up waits for its CPU, perhaps for long: it is woken only if none else can be. The
    /// thread that is just about to sleep looks once more. Any thread.
    pub fn wake_one(&self, is_stuck: impl Fn(CpuId) -> bool) {
        let wake = |stuck| {
            let mut lanes = self.in_tree().filter(|slot| is_stuck(slot.cpu) == stuck);
            lanes.any(|slot| slot.world.kick_to_help() == Kick::Woke)
        };
        let _ = wake(false) || wake(true);
    }

    /// The same for all of them.
    pub(super) fn wake_tree(&self) {
        self.in_tree().for_each(|slot| _ = slot.world.kick());
    }

    /// Wakes every driver that sleeps. Any thread.
    pub fn wake_all(&self) {
        self.all().for_each(|slot| _ = slot.world.kick());
    }

    /// Whether a lane waits that would take over what a spare does. `is_stuck` tells of one that waits for
    /// its CPU. Without a lock.
    pub(super) fn has_waiting_lane(&self, is_stuck: impl Fn(CpuId) -> bool) -> bool {
        let mut lanes = self.in_tree().filter(|slot| !self.spares.contains(slot.cpu));
        lanes.any(|slot| slot.world.is_waiting() && !is_stuck(slot.cpu))
    }

    /// Which lanes look after their own CPU only. Once the machine's first CPUs are online; after that the
    /// calls below do it. All of them are for the thread that made the change, under the world's lock for
    /// such changes.
    pub fn renew_standalone<L: RawLock, T: Copy>(&self, machine: &Machine<L, T>) {
        let pulls = machine.settings().policy == Policy::Pull;
        for slot in self.all() {
            let state = machine.hierarchy().cpu_state(slot.cpu);
            slot.standalone.set(!pulls || state == CpuState::Unavailable);
        }
    }

    /// A thread drives `cpu` from `now` on, which is online: others may count on it before its first turn.
    pub fn handle_claim<L: RawLock, T: Copy>(
        &self,
        machine: &Machine<L, T>,
        cpu: CpuId,
        now: Nanos,
        actions: &mut Actions,
    ) {
        self.renew_standalone(machine);
        if self.slot(cpu).is_some_and(|slot| !slot.is_standalone()) {
            self.deadline.arm(now, || machine.is_awake(cpu), actions);
        }
    }

    /// A CPU is offline: its owner, which [refuses kicks](super::Lane::refuse_kicks), leaves the slot. The
    /// world may then give it to another thread.
    pub fn handle_leave<L: RawLock, T: Copy>(&self, machine: &Machine<L, T>) {
        self.renew_standalone(machine);
    }

    /// Which CPUs are isolated was changed at `now`. Those that joined the tree are awake for all that is
    /// known, and others may count on them.
    pub fn handle_isolation<L: RawLock, T: Copy>(
        &self,
        machine: &Machine<L, T>,
        change: &IsolationReport,
        now: Nanos,
        actions: &mut Actions,
    ) {
        self.renew_standalone(machine);
        if !change.joined.is_empty() {
            self.deadline.expect_turn(now, actions);
        }
    }

    /// When the first of the lanes that sleep is up by itself. Without a lock.
    pub(super) fn first_told<L: RawLock, T: Copy>(&self, machine: &Machine<L, T>) -> Option<Nanos> {
        self.in_tree().filter_map(|slot| machine.sleeps_until(slot.cpu)).min()
    }

    /// When the first of the lanes that sleep should be up: for the tree, or by itself with something that
    /// others could run for it if it is not. Without a lock.
    pub(super) fn first_wakeup<L: RawLock, T: Copy>(&self, machine: &Machine<L, T>) -> Option<Nanos> {
        let of = |cpu| {
            let own = machine.sleeps_until(cpu).zip(machine.next_global(cpu));
            let own = own.map(|(until, global)| until.max(global));
            [machine.hierarchy().wakeup(cpu), own].into_iter().flatten().min()
        };
        self.in_tree().filter_map(|slot| of(slot.cpu)).min()
    }

    /// The end of the tick that `now` is in.
    #[inline]
    #[must_use]
    pub fn next_edge(&self, now: Nanos) -> Nanos {
        Nanos((now.0 / self.tick.0 + 1).saturating_mul(self.tick.0))
    }

    /// When a lane that goes on working must turn: the end of the tick that `now` is in, or what is due on
    /// its CPU before that.
    #[must_use]
    pub fn next_turn<L: RawLock, T: Copy>(&self, machine: &Machine<L, T>, cpu: CpuId, now: Nanos) -> Nanos {
        let edge = self.next_edge(now);
        machine.next_event(cpu).map_or(edge, |next| next.min(edge))
    }
}
