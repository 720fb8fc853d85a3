//! A lane goes idle, waits and wakes up; it blocks and returns.
//!
//! States, protocol and races: [README.md](README.md). Turns: `turn.rs`.

use super::idle_predictor::IdleEnd;
use super::outcome::IdleUntil;
use super::turn::{Lane, Role};
use super::waiting::{NextWatch, Told, Waiting};
use crate::probe;
use quietcore_core::{IdleDecision, Nanos};

impl Lane {
    /// Nothing to run: from now on kicks arrive, and the lane may wait.
    pub(super) fn enter_idle(&mut self) -> IdleUntil {
        let now = self.machine.clock.now();
        if self.machine.is_forked() {
            return IdleUntil::Stay { until: now };
        }
        self.refuse_kicks();
        self.parker().prepare();
        probe::lane_park(self.slot.cpu);
        let told = self.waiting.told();
        let has_items = self.has_items();
        if self.turn.has_more() || has_items || !self.machine.is_running() {
            // After the park word: the thread that shuts the machine down kicks after it has said so.
            return self.doze(now, now, told);
        }
        let takes_part = self.takes_part();
        let should_doze = self.predictor.begin(now);
        if takes_part && told != Told::Idle {
            let is_wary = self.machine.lanes.watch() && self.machine.core.watches_stalled(self.slot.cpu, now);
            self.next_watch = if is_wary { NextWatch::BeforeSleep } else { NextWatch::Usual };
            if is_wary {
                return self.doze(self.next_edge(now), now, told);
            }
            let is_stuck = |cpu| self.machine.core.is_marked(cpu);
            if self.role == Role::Spare && self.machine.lanes.has_waiting_lane(is_stuck) {
                return self.stand_down(now);
            }
            if should_doze {
                return self.doze(self.next_edge(now), now, told);
            }
        }
        self.sleep(now, takes_part)
    }

    /// Goes idle in the hierarchy as a CPU that wakes up for no other: the tree's alarm is asked for, and the
    /// CPU that it wakes is a lane's. Only a spare that no lane could relieve does what a lane does.
    fn stand_down(&mut self, now: Nanos) -> IdleUntil {
        let (core, cpu) = (&self.machine.core, self.slot.cpu);
        match self.machine.act(|actions| core.stand_down(cpu, now, actions)) {
            IdleDecision::Stay { next } => self.doze(next.min(self.next_edge(now)), now, Told::StaysActive),
            IdleDecision::Sleep { until } => {
                let until = self.also_exact(until);
                self.waiting = Waiting::Sleeping { until };
                self.leave_stall_deadline(now, until);
                IdleUntil::Sleep { until }
            }
        }
    }

    /// Waits without telling the hierarchy, until `until` or what is due before that.
    fn doze(&mut self, until: Nanos, now: Nanos, told: Told) -> IdleUntil {
        self.slot.doze.begin(until);
        // The second look: an arm that did not see `until` has left its timer here before.
        let core = &self.machine.core;
        let next = core.next_event(self.slot.cpu);
        // What was due for others and is still there could not be locked: again with the next tick.
        let remote = core.hierarchy().next_remote(self.slot.cpu).filter(|remote| *remote > self.turned);
        let until = [next, remote].into_iter().flatten().fold(until, Nanos::min).max(now);
        self.waiting = Waiting::Dozing { until, told };
        IdleUntil::Stay { until }
    }

    /// Goes idle in the hierarchy.
    fn sleep(&mut self, now: Nanos, takes_part: bool) -> IdleUntil {
        let (core, cpu) = (&self.machine.core, self.slot.cpu);
        let is_idle = self.waiting.told() == Told::Idle;
        match core.enter_idle_beside_others(cpu, now) {
            IdleDecision::Stay { next } if is_idle => {
                self.waiting = Waiting::Sleeping { until: Some(next) };
                IdleUntil::Sleep { until: Some(next) }
            }
            // Still active in the hierarchy, and so still looking after others, every tick.
            IdleDecision::Stay { next } => {
                let until = if takes_part { next.min(self.next_edge(now)) } else { next };
                self.doze(until, now, Told::StaysActive)
            }
            IdleDecision::Sleep { until } => {
                let until = self.also_exact(until);
                self.waiting = Waiting::Sleeping { until };
                if takes_part {
                    self.leave_stall_deadline(now, until);
                }
                IdleUntil::Sleep { until }
            }
        }
    }

    /// Other lanes look at what this one published with their ticks. A timer that is due between two ticks is
    /// an exact one, so the lane wakes up for that itself.
    fn also_exact(&self, until: Option<Nanos>) -> Option<Nanos> {
        let global = self.machine.core.next_global(self.slot.cpu);
        let exact = global.filter(|next| next.0 % self.machine.lanes.tick.0 != 0);
        [until, exact].into_iter().flatten().min()
    }

    /// Goes idle and waits, unless `has_work` finds some; the lane is awake again afterwards. For a lane that
    /// waits by a futex.
    pub(super) fn park(&mut self, has_work: impl FnOnce() -> bool) {
        let until = self.enter_idle().until();
        if has_work() {
            return self.exit_idle(self.machine.clock.now());
        }
        // It returns with the park word at rest.
        let _ = self.parker().wait(until.map(|until| self.machine.clock.to_kernel(until)));
        self.resume(self.machine.clock.now());
    }

    /// There is something to run, or the wait is over. Does nothing if the lane did not wait.
    #[inline]
    pub(super) fn exit_idle(&mut self, now: Nanos) {
        if !self.waiting.is_awake() {
            self.wake_up(now);
        }
    }

    fn wake_up(&mut self, now: Nanos) {
        self.refuse_kicks();
        self.resume(now);
    }

    /// The rest of waking up, when kicks are refused already.
    fn resume(&mut self, now: Nanos) {
        let waited = core::mem::replace(&mut self.waiting, Waiting::Awake);
        if self.machine.is_forked() {
            return;
        }
        probe::lane_unpark(self.slot.cpu);
        self.slot.doze.end();
        let end = match waited {
            Waiting::Dozing { until, .. } if now >= until => IdleEnd::Dozed,
            Waiting::Sleeping { until: Some(until) } if now >= until => IdleEnd::Slept,
            _ => IdleEnd::Early,
        };
        self.must_help = true;
        self.predictor.end(now, end);
        match waited.told() {
            Told::Nothing => {}
            Told::StaysActive => self.machine.core.keep_running(self.slot.cpu, now),
            Told::Idle => {
                self.machine.core.exit_idle(self.slot.cpu, now);
                if self.takes_part() {
                    self.machine.arm_stall_deadline(now);
                    self.look_around(now);
                }
            }
        }
    }

    /// Kicks are not wanted any more. In a forked child nothing: a descriptor is the parent's, too.
    pub(super) fn refuse_kicks(&self) {
        if self.machine.is_forked() {
            return;
        }
        self.slot.doze.end();
        if !self.waiting.is_awake() {
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
            self.leave_stall_deadline(now, None);
        }
    }

    /// The thread does not block any more. If the locks are not to be had now, the next turn tries again.
    pub(super) fn return_from_block(&mut self) {
        let now = self.machine.clock.now();
        let is_back = self.machine.core.return_from_absence(self.slot.cpu, now);
        if is_back && self.takes_part() {
            self.machine.arm_stall_deadline(now);
        }
    }

    /// This lane is not awake any more. If it was the last one, no lane holds the stall deadline.
    fn leave_stall_deadline(&self, now: Nanos, until: Option<Nanos>) {
        let machine = self.machine;
        let is_any_awake = || machine.core.hierarchy().is_active(self.slot.cpu);
        if is_any_awake() {
            return;
        }
        // A lane that went to sleep before may have to be awake sooner, and oversleep.
        let first = [until, machine.first_wakeup()].into_iter().flatten().min();
        let until = first.map(|until| machine.clock.to_kernel(until));
        let now = machine.clock.to_kernel(now);
        machine.lanes.stall_deadline.leave(&machine.alarm, now, until, is_any_awake);
    }
}
