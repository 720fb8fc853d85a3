//! The sentinel: what the helper thread does on a machine with lanes. It runs no user code.
//!
//! It waits on the deadline word's timer. When that goes off, either a requested alarm is due, or no lane has
//! turned in time: [README.md](README.md), "The sentinel".
//!
//! Invariant: after every look the word is at a moment at which the answer may be another; it is at none if
//! no lane is awake, none has anything to wake up for, and no alarm is requested. Deviation from
//! docs/design/PROTOCOL.md, section 4, which looks twice in any case: that is a tick in which every timer of
//! a stuck lane would wait.

use super::slots::{LaneTable, Sleeper};
use crate::{Actions, Machine, Nanos, RawLock};

/// What the sentinel believes, and to which moment it moved the word because of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Belief {
    #[default]
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

/// The sentinel's memory, from one look to the next.
#[derive(Debug, Default)]
pub struct Sentinel {
    belief: Belief,
}

/// What a look of the sentinel came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SentinelLook {
    /// Nothing that the world has to look at.
    Quiet,
    /// Lanes may have been marked absent: the world reports that. A lane was kicked, and takes over.
    Marked,
    /// The same, but a lane that is awake is to take over. It may be about to sleep, and not have seen that:
    /// the world tells of what waits there ([`RunQueues::handle_silence`](crate::run_queue::RunQueues)).
    MarkedBesideAwake,
}

/// The timer behind the deadline word went off.
#[derive(Clone, Copy, Debug)]
pub struct SentinelCall {
    /// What the word was when it was [taken](super::Deadline::take).
    pub deadline: Option<Nanos>,
    /// The moment, read after that.
    pub now: Nanos,
}

impl Sentinel {
    /// The sentinel is up. The actions are carried out at once.
    pub fn handle_timer<L: RawLock, T: Copy, S: Sleeper>(
        &mut self,
        machine: &Machine<L, T>,
        lanes: &LaneTable<S>,
        SentinelCall { deadline, now }: SentinelCall,
        actions: &mut Actions,
    ) -> SentinelLook {
        let mut look = Look { machine, lanes, now, outcome: SentinelLook::Quiet };
        self.belief = look.judge(self.belief.after(deadline), deadline, actions);
        lanes.deadline.resume(actions);
        look.outcome
    }
}

/// One look, after the timer went off.
struct Look<'a, L: RawLock, T: Copy, S> {
    machine: &'a Machine<L, T>,
    lanes: &'a LaneTable<S>,
    now: Nanos,
    outcome: SentinelLook,
}

impl<L: RawLock, T: Copy, S: Sleeper> Look<'_, L, T, S> {
    fn judge(&mut self, belief: Belief, deadline: Option<Nanos>, actions: &mut Actions) -> Belief {
        let (now, stall_deadline) = (self.now, &self.lanes.deadline);
        if stall_deadline.take_due(now) {
            self.machine.handle_alarm(now, actions);
            let is_kicked = !actions.is_empty();
            stall_deadline.expect_turn(now, actions);
            // The lane that was kicked must turn, and moves the word then.
            let latest = stall_deadline.fires_at(now).filter(|_| is_kicked);
            return latest.map_or(Belief::Quiet, Belief::Suspects);
        }
        match deadline {
            Some(at) if at <= now => self.judge_silence(belief, at, actions),
            Some(later) => {
                // A lane held the deadline while this thread woke up.
                stall_deadline.pull(later, actions);
                Belief::Quiet
            }
            None => Belief::Quiet,
        }
    }

    /// No lane held the deadline until `deadline`.
    fn judge_silence(&mut self, belief: Belief, deadline: Nanos, actions: &mut Actions) -> Belief {
        let (now, stall_deadline) = (self.now, &self.lanes.deadline);
        let Some(next) = stall_deadline.fires_at(now) else { return Belief::Quiet };
        if belief == Belief::Quiet
            && let AllAsleep::Until(until) = self.all_asleep()
        {
            until.into_iter().for_each(|until| stall_deadline.pull(until, actions));
            return Belief::Quiet;
        }
        // Who was stopped together with the lanes is late, too.
        let in_a_tick = Nanos(now.0.saturating_add(self.lanes.tick.0));
        let is_late = !stall_deadline.policy().sentinel_may_judge(now.since(deadline), self.lanes.tick);
        let belief = match belief {
            Belief::Quiet if is_late => Belief::Suspects(in_a_tick),
            Belief::Quiet | Belief::Suspects(_) => {
                let is_true = self.machine.handle_silence(now, actions);
                self.outcome = if is_true { SentinelLook::Marked } else { SentinelLook::MarkedBesideAwake };
                if is_true { Belief::Silence(next) } else { Belief::Suspects(in_a_tick) }
            }
            Belief::Silence(_) => {
                self.lanes.wake_tree();
                Belief::Silence(next)
            }
        };
        if let Belief::Suspects(at) | Belief::Silence(at) = belief {
            stall_deadline.pull(at, actions);
        }
        belief
    }

    /// Whether all lanes sleep, as they may.
    fn all_asleep(&self) -> AllAsleep {
        let policy = self.lanes.deadline.policy();
        let is_active = |spare| self.machine.hierarchy().is_active(spare);
        let is_any_active = self.lanes.spares.first().is_some_and(is_active);
        if is_any_active || self.machine.is_any_stopped_in_record(self.now) {
            return AllAsleep::Over;
        }
        let first = self.lanes.first_wakeup(self.machine);
        let latest = first.and_then(|first| policy.deadline(first));
        if latest.is_some_and(|latest| latest <= self.now) {
            AllAsleep::Over
        } else {
            AllAsleep::Until(latest)
        }
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
