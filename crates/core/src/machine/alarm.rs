//! Which CPU wakes up when no CPU is awake, or none that is awake turns.
//!
//! A tree in which no CPU is awake asks its world for an alarm; a world with a sentinel tells of a silence.
//! Both times the answer is a kick of the lowest parked CPU that is not at work in its own locks, which then
//! pulls, watches and marks. Which of the parked ones it is makes no difference to the timers; the lowest is
//! one that every CPU finds.
//!
//! Source: docs/design/PROTOCOL.md, section 4; the kernel needs neither, as its idle CPUs program their own
//! timers and its busy ones have interrupts.

use super::Machine;
use crate::tmigr::CpuState;
use crate::{Actions, CpuId, Nanos, RawLock};

/// Which CPU can look after the events of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waker {
    /// A CPU is awake and will.
    Awake,
    /// This CPU, if it is kicked; the lowest of those.
    Parked(CpuId),
    Nobody,
}

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// A CPU must be awake at `first`, and none in the hierarchy will be.
    pub(super) fn ask_for_alarm(&self, first: Option<Nanos>, actions: &mut Actions) {
        let Some(first) = first else { return };
        self.alarm.ask_for(first);
        actions.set_alarm(first);
    }

    /// The alarm that an action asked for went off: if no CPU is awake, the lowest parked one is kicked.
    ///
    /// Once it is awake it looks after everything that is due. When every CPU is absent it asks for another
    /// alarm a tick later. Cost: one look at each CPU.
    pub fn handle_alarm(&self, now: Nanos, actions: &mut Actions) {
        if self.alarm.get().is_none_or(|alarm| now < alarm) {
            return;
        }
        self.alarm.forget();
        match self.waker() {
            Waker::Awake => {}
            Waker::Parked(cpu) => actions.kick(cpu),
            // Every CPU is stalled: one may return, or a spare lane be started.
            Waker::Nobody => self.ask_again(now, actions),
        }
    }

    /// A world's sentinel found that no CPU has turned for longer than is allowed, though timers wait, and
    /// that it was not stopped itself: each CPU that is awake in the hierarchy and stalled is marked absent,
    /// and the lowest parked CPU is kicked, whatever the hierarchy says of the others, and takes over. Says
    /// whether it was true: not if a CPU is awake and turns, only late to say so; then no CPU is kicked.
    ///
    /// When no CPU is parked it asks for an alarm a tick later: one may return, or a spare one be started. By
    /// any thread. Waits for no lock: a CPU that was stopped inside its record's lock is no help anyway.
    /// Cost: one look at each CPU.
    pub fn handle_silence(&self, now: Nanos, actions: &mut Actions) -> bool {
        // Where no CPU pulls, none can take over.
        if !self.is_pulling() {
            return true;
        }
        // A CPU that missed its own wake-up is no help.
        self.mark_missed_wakeups(now, actions);
        if self.mark_all_stalled(now, actions) {
            return false;
        }
        let is_parked = |cpu: &CpuId| self.hierarchy.try_cpu_state(*cpu) == Some(CpuState::Parked);
        match self.to_be_kicked((0..self.bases.cpu_count()).map(CpuId).filter(is_parked)) {
            Some(cpu) => actions.kick(cpu),
            None => self.ask_again(now, actions),
        }
        true
    }

    /// No CPU can be kicked now: again a tick later.
    fn ask_again(&self, now: Nanos, actions: &mut Actions) {
        self.ask_for_alarm(Some(self.in_a_tick(now)), actions);
    }

    /// A tick from `now`.
    pub(super) fn in_a_tick(&self, now: Nanos) -> Nanos {
        Nanos(now.0.saturating_add(self.settings.tick.nanos().0))
    }

    /// The last CPU that was awake has left: an available CPU must wake up and look at the events.
    pub(super) fn wake_somebody(&self, first: Option<Nanos>, actions: &mut Actions) {
        if first.is_none() {
            return;
        }
        match self.waker() {
            Waker::Awake => {}
            Waker::Parked(cpu) => actions.kick(cpu),
            Waker::Nobody => self.ask_for_alarm(first, actions),
        }
    }

    /// Waits for no lock: a CPU that was stopped inside its record's lock is no help.
    fn waker(&self) -> Waker {
        let cpus = || (0..self.bases.cpu_count()).map(CpuId);
        let is = |state| move |cpu: &CpuId| self.hierarchy.try_cpu_state(*cpu) == Some(state);
        if cpus().any(|cpu| is(CpuState::Awake)(&cpu)) {
            return Waker::Awake;
        }
        self.to_be_kicked(cpus().filter(is(CpuState::Parked))).map_or(Waker::Nobody, Waker::Parked)
    }

    /// Which of those that are `parked` wakes up: one that was stopped on its way there, inside the locks of
    /// its bases, only if there is no other.
    fn to_be_kicked(&self, parked: impl Iterator<Item = CpuId>) -> Option<CpuId> {
        let mut first = None;
        for cpu in parked {
            if self.try_lock_bases(cpu).is_some() {
                return Some(cpu);
            }
            first = first.or(Some(cpu));
        }
        first
    }
}
