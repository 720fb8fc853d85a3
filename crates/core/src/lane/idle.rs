//! A lane goes idle, waits and wakes up; it blocks and returns.
//!
//! States, protocol and races: [README.md](README.md).

use super::idle_predictor::IdleEnd;
use super::slots::{LaneSlot, Sleeper};
use super::stall_deadline::LaneWakeups;
use super::state::{Lane, LaneContext, LaneLook, Role, takes_part};
use super::until::IdleUntil;
use super::waiting::{NextWatch, Told, Waiting};
use crate::{Actions, IdleDecision, Nanos, RawLock};

impl Lane {
    /// Nothing to run at `now`: from now on kicks arrive, and the lane may wait for as long as this says.
    /// `has_more` is asked when they already do: whether something was left for it, or the machine has ended.
    #[inline]
    pub fn handle_idle<L: RawLock, T: Copy, S: Sleeper>(
        &mut self,
        at: LaneContext<'_, L, T, S>,
        now: Nanos,
        has_more: impl FnOnce() -> bool,
        actions: &mut Actions,
    ) -> IdleUntil {
        self.refuse_kicks(at.slot);
        at.slot.world.prepare();
        let told = self.waiting.told();
        // After the park word: the thread that leaves something kicks after it has left it.
        if has_more() || self.turn.has_more() {
            return self.doze(at, now, now, told);
        }
        let takes_part = takes_part(at.slot);
        let should_doze = self.predictor.begin(now);
        if takes_part && told != Told::Idle {
            let (cpu, edge) = (at.slot.cpu(), at.lanes.next_edge(now));
            let is_watched = at.lanes.watch() || at.machine.has_repairs();
            let is_wary = is_watched && at.machine.watches_stalled(cpu, now);
            self.next_watch = if is_wary { NextWatch::BeforeSleep } else { NextWatch::Usual };
            if is_wary {
                return self.doze(at, edge, now, told);
            }
            if self.role == Role::Spare && at.lanes.has_waiting_lane(|cpu| at.machine.is_marked(cpu)) {
                return self.stand_down(at, now, actions);
            }
            if should_doze {
                return self.doze(at, edge, now, told);
            }
        }
        self.sleep(at, now, actions)
    }

    /// Goes idle in the hierarchy as a CPU that wakes up for no other: the tree's alarm is asked for, and the
    /// CPU that it wakes is a lane's. Only a spare that no lane could relieve does what a lane does.
    fn stand_down<L: RawLock, T: Copy, S: Sleeper>(
        &mut self,
        at: LaneContext<'_, L, T, S>,
        now: Nanos,
        actions: &mut Actions,
    ) -> IdleUntil {
        match at.machine.stand_down(&self.turn, now, actions) {
            IdleDecision::Stay { next } => self.stay(at, next, now, actions),
            IdleDecision::Sleep { until } => {
                self.waiting = Waiting::Sleeping { until };
                if let Some(first) = actions.take_alarm() {
                    at.lanes.request_alarm(first, actions);
                }
                leave_stall_deadline(at, now, until, actions);
                IdleUntil::Sleep { until }
            }
        }
    }

    /// Was about to go idle in the hierarchy, and is active there after all: it looks after others, every
    /// tick. A lane that went idle meanwhile may have found no other awake, and left the stall deadline.
    fn stay<L: RawLock, T: Copy, S: Sleeper>(
        &mut self,
        at: LaneContext<'_, L, T, S>,
        next: Nanos,
        now: Nanos,
        actions: &mut Actions,
    ) -> IdleUntil {
        at.lanes.deadline.expect_turn(now, actions);
        self.doze(at, next.min(at.lanes.next_edge(now)), now, Told::StaysActive)
    }

    /// Waits without telling the hierarchy, until `until` or what is due before that.
    #[inline]
    fn doze<L: RawLock, T: Copy, S: Sleeper>(
        &mut self,
        at: LaneContext<'_, L, T, S>,
        until: Nanos,
        now: Nanos,
        told: Told,
    ) -> IdleUntil {
        at.slot.doze.begin(until);
        // The second look: an arm that did not see `until` has left its timer here before.
        let next = at.machine.next_event(at.slot.cpu());
        let until = next.map_or(until, |next| next.min(until)).max(now);
        self.waiting = Waiting::Dozing { until, told };
        IdleUntil::Stay { until }
    }

    /// Goes idle in the hierarchy.
    fn sleep<L: RawLock, T: Copy, S: Sleeper>(
        &mut self,
        at: LaneContext<'_, L, T, S>,
        now: Nanos,
        actions: &mut Actions,
    ) -> IdleUntil {
        let (cpu, takes_part) = (at.slot.cpu(), takes_part(at.slot));
        // One that was marked in its sleep is awake for the hierarchy when that lets it stay.
        let is_idle = self.waiting.told() == Told::Idle && !at.machine.is_marked(cpu);
        match at.machine.enter_idle_beside_others(cpu, now) {
            IdleDecision::Stay { next } if is_idle => {
                self.waiting = Waiting::Sleeping { until: Some(next) };
                IdleUntil::Sleep { until: Some(next) }
            }
            IdleDecision::Stay { next } if takes_part => self.stay(at, next, now, actions),
            IdleDecision::Stay { next } => self.doze(at, next, now, Told::StaysActive),
            IdleDecision::Sleep { until } => {
                self.waiting = Waiting::Sleeping { until };
                if takes_part {
                    leave_stall_deadline(at, now, until, actions);
                }
                IdleUntil::Sleep { until }
            }
        }
    }

    /// There is something to run, or the wait is over, for whatever reason. Not while it is awake. What is
    /// due is the next [turn's](Self::handle_turn).
    #[inline]
    pub fn handle_wake<L: RawLock, T: Copy, S: Sleeper>(
        &mut self,
        at: LaneContext<'_, L, T, S>,
        now: Nanos,
        actions: &mut Actions,
    ) -> LaneLook {
        self.refuse_kicks(at.slot);
        let mut look = LaneLook::default();
        let waited = core::mem::replace(&mut self.waiting, Waiting::Awake);
        let end = match waited {
            Waiting::Dozing { until, .. } if now >= until => IdleEnd::Dozed,
            Waiting::Sleeping { until: Some(until) } if now >= until => IdleEnd::Slept,
            _ => IdleEnd::Early,
        };
        self.must_help = true;
        self.predictor.end(now, end);
        match waited.told() {
            Told::Nothing => {}
            Told::StaysActive => at.machine.keep_running(at.slot.cpu(), now),
            Told::Idle => {
                at.machine.exit_idle(at.slot.cpu(), now);
                if takes_part(at.slot) {
                    at.lanes.deadline.arm(now, || at.machine.is_awake(at.slot.cpu()), actions);
                    look = self.look_around(at, now, actions);
                }
            }
        }
        look
    }

    /// Kicks are not wanted any more, whatever becomes of the lane.
    #[inline]
    pub fn refuse_kicks<S: Sleeper>(&self, slot: &LaneSlot<S>) {
        slot.doze.end();
        if !self.waiting.is_awake() {
            slot.world.finish();
        }
    }

    /// In a forked child: the lane is gone, and nothing of it may be touched.
    pub const fn abandon(&mut self) {
        self.waiting = Waiting::Awake;
    }

    /// The thread is about to block in user code: others take over what they can. The world offers what else
    /// waits for the lane.
    pub fn handle_block<L: RawLock, T: Copy, S: Sleeper>(
        &mut self,
        at: LaneContext<'_, L, T, S>,
        now: Nanos,
        actions: &mut Actions,
    ) -> LaneLook {
        let look = if self.is_awake() { LaneLook::default() } else { self.handle_wake(at, now, actions) };
        at.machine.go_absent(at.slot.cpu(), now, actions);
        if takes_part(at.slot) {
            if let Some(first) = actions.take_alarm() {
                at.lanes.request_alarm(first, actions);
            }
            leave_stall_deadline(at, now, None, actions);
        }
        look
    }

    /// The lane turns again after it has blocked or was marked. If the locks are not to be had now, it goes
    /// on as an absent one, and its next turn tries again.
    pub fn handle_return<L: RawLock, T: Copy, S: Sleeper>(
        &mut self,
        at: LaneContext<'_, L, T, S>,
        now: Nanos,
        actions: &mut Actions,
    ) {
        // A spare that was woken for what waits leaves it to this lane from now on.
        self.must_help = true;
        let is_back = at.machine.return_from_absence(at.slot.cpu(), now);
        if is_back && takes_part(at.slot) {
            at.lanes.deadline.arm(now, || at.machine.is_awake(at.slot.cpu()), actions);
        }
    }
}

/// This lane is not awake any more. If it was the last one, no lane holds the stall deadline.
fn leave_stall_deadline<L: RawLock, T: Copy, S: Sleeper>(
    at: LaneContext<'_, L, T, S>,
    now: Nanos,
    until: Option<Nanos>,
    actions: &mut Actions,
) {
    let is_any_awake = || at.machine.hierarchy().is_active(at.slot.cpu());
    // A lane that went to sleep before may have to be awake sooner, and oversleep.
    let first_of = |other: Option<Nanos>| [until, other].into_iter().flatten().min();
    let wakeups = || LaneWakeups {
        first: first_of(at.lanes.first_wakeup(at.machine)),
        told: first_of(at.lanes.first_told(at.machine)),
    };
    at.lanes.deadline.leave(now, wakeups, is_any_awake, actions);
}
