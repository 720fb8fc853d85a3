//! The sentinel: what the helper thread does on a machine with lanes. It runs no user code.
//!
//! It waits on the deadline word's timer. When that goes off, either a requested alarm is due, or no lane has
//! turned in time: [README.md](README.md), "The sentinel".
//!
//! Invariant: after every look the word is at a moment at which the answer may be another; it is at none if
//! no lane is awake, none has anything to wake up for, and no alarm is requested. Deviation from
//! docs/design/PROTOCOL.md, section 4, which looks twice in any case: that is a tick in which every timer of
//! a stuck lane would wait.

use crate::machine::Machine;
use quietcore_core::Nanos;

/// What the sentinel believes, and to which moment it moved the word because of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Belief {
    Quiet,
    /// No lane held the deadline in time, or a thread was kicked for the alarm, and has not turned yet.
    Suspects(Nanos),
    /// No lane did for a tick after that; the lane that was kicked has not done it yet either.
    Silence(Nanos),
}

impl Belief {
    /// What is left of it when the word is found at `deadline`.
    fn after(self, deadline: Option<Nanos>) -> Self {
        match self {
            Self::Suspects(set) | Self::Silence(set) if deadline == Some(set) => self,
            // A thread moved it.
            _ => Self::Quiet,
        }
    }
}

impl Machine {
    pub(crate) fn stand_sentinel(&self) {
        // Behind a thread of the same CPU that has such a priority it would stand in the queue for as long as
        // the lanes that it is to look after. The lowest will do: it is moved to another CPU then.
        self.raise_priority(Some(self.lanes.own_priority.unwrap_or(1)));
        let mut belief = Belief::Quiet;
        loop {
            self.alarm.wait();
            // First: a pull for the end may have found the same moment there, and programmed nothing.
            let deadline = self.alarm.take();
            if self.is_over() {
                return;
            }
            let now = self.clock.now();
            belief = self.judge(belief.after(deadline), deadline, now);
            self.lanes.stall_deadline.resume(&self.alarm);
        }
    }

    /// One look, after the timer went off.
    fn judge(&self, belief: Belief, deadline: Option<Nanos>, now: Nanos) -> Belief {
        let kernel_now = self.clock.to_kernel(now);
        if self.lanes.stall_deadline.take_due(kernel_now) {
            let is_kicked = self.act(|actions| {
                self.core.handle_alarm(now, actions);
                !actions.is_empty()
            });
            self.lanes.stall_deadline.expect_turn(&self.alarm, kernel_now);
            // The lane that was kicked must turn, and moves the word then.
            let latest = self.lanes.stall_deadline.fires_at(kernel_now).filter(|_| is_kicked);
            return latest.map_or(Belief::Quiet, Belief::Suspects);
        }
        match deadline {
            Some(at) if at <= kernel_now => self.judge_silence(belief, at, now),
            Some(later) => {
                // A lane held the deadline while this thread woke up.
                self.alarm.pull(later);
                Belief::Quiet
            }
            None => Belief::Quiet,
        }
    }

    /// No lane held the deadline until `deadline`.
    fn judge_silence(&self, belief: Belief, deadline: Nanos, now: Nanos) -> Belief {
        let kernel_now = self.clock.to_kernel(now);
        let Some(next) = self.lanes.stall_deadline.fires_at(kernel_now) else { return Belief::Quiet };
        if belief == Belief::Quiet
            && let AllAsleep::Until(until) = self.all_asleep(now)
        {
            until.into_iter().for_each(|until| self.alarm.pull(self.clock.to_kernel(until)));
            return Belief::Quiet;
        }
        // Who was stopped together with the lanes is late, too.
        let in_a_tick = Nanos(kernel_now.0.saturating_add(self.lanes.tick.0));
        let policy = self.lanes.stall_deadline.policy();
        let is_late = !policy.sentinel_may_judge(kernel_now.since(deadline), self.lanes.tick);
        let belief = match belief {
            Belief::Quiet if is_late => Belief::Suspects(in_a_tick),
            Belief::Quiet | Belief::Suspects(_) => {
                let is_true = self.act(|actions| self.core.handle_silence(now, actions));
                self.report_stalls(now);
                if is_true { Belief::Silence(next) } else { Belief::Suspects(in_a_tick) }
            }
            Belief::Silence(_) => {
                self.lanes.wake_tree();
                Belief::Silence(next)
            }
        };
        if let Belief::Suspects(at) | Belief::Silence(at) = belief {
            self.alarm.pull(at);
        }
        belief
    }

    /// When the first of the lanes that sleep must be up: for the tree, or by itself with something that
    /// others could run for it if it is not. Without a lock.
    pub(super) fn first_wakeup(&self) -> Option<Nanos> {
        let of = |cpu| {
            let own = self.core.sleeps_until(cpu).zip(self.core.next_global(cpu));
            let own = own.map(|(until, global)| until.max(global));
            [self.core.hierarchy().wakeup(cpu), own].into_iter().flatten().min()
        };
        self.lanes.all().filter(|slot| !slot.standalone.is_set()).filter_map(|slot| of(slot.cpu)).min()
    }

    /// Whether all lanes sleep, as they may.
    fn all_asleep(&self, now: Nanos) -> AllAsleep {
        let policy = self.lanes.stall_deadline.policy();
        if policy.is_never() {
            return AllAsleep::Until(None);
        }
        if self.lanes.spares.first().is_some_and(|spare| self.core.hierarchy().is_active(spare)) {
            return AllAsleep::Over;
        }
        let latest = self.first_wakeup().and_then(|first| policy.deadline(first));
        if latest.is_some_and(|latest| latest <= now) { AllAsleep::Over } else { AllAsleep::Until(latest) }
    }
}

/// What the sentinel finds when no lane held the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AllAsleep {
    /// No lane is awake. A lane that is to wake up for the tree must have done so by then.
    Until(Option<Nanos>),
    /// A lane is active in the hierarchy, or should have woken up.
    Over,
}
