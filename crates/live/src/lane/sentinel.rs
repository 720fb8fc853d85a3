//! The sentinel: what the helper thread is on a machine with lanes. It runs no user code.
//!
//! It waits on the deadline word's timer (`switch.rs`) and asks two questions when that goes off. Is the
//! moment over that the tree asked for while nobody was awake? Then the core says whom to kick. If not: has
//! nobody turned for longer than is allowed, though somebody should? It believes that only if nobody moved the
//! word for another tick: after a stop of the whole process everybody looks stuck. Then it kicks the lowest CPU
//! that sleeps, which takes over from the others; if nobody moves the word after that either, all of them.
//!
//! Invariant: after every look the word is at a moment at which the answer may be another; it is at none if
//! nobody is awake, nobody has anything to wake up for, and nothing was asked. Source: PROTOCOL section 4.

use crate::machine::Machine;
use quietcore_core::Nanos;

/// What the sentinel believes, and to which moment it moved the word because of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Belief {
    Quiet,
    /// Nobody held the switch in time.
    Suspects(Nanos),
    /// Nobody did for a tick after that; whoever was kicked has not done it yet either.
    Silence(Nanos),
}

impl Belief {
    /// What is left of it when the word is found at `deadline`.
    fn after(self, deadline: Option<Nanos>) -> Self {
        match self {
            Self::Suspects(set) | Self::Silence(set) if deadline == Some(set) => self,
            // Somebody moved it.
            _ => Self::Quiet,
        }
    }
}

impl Machine {
    pub(crate) fn stand_sentinel(&self) {
        let mut belief = Belief::Quiet;
        loop {
            self.alarm.wait();
            if self.is_over() {
                return;
            }
            let deadline = self.alarm.take();
            let now = self.clock.now();
            belief = self.judge(belief.after(deadline), deadline, now);
            if let Some(asked) = self.lanes.asked().before(None) {
                self.alarm.pull(asked);
            }
        }
    }

    /// One look, after the timer went off.
    fn judge(&self, belief: Belief, deadline: Option<Nanos>, now: Nanos) -> Belief {
        let kernel_now = self.clock.to_kernel(now);
        if self.lanes.asked().take_due(kernel_now) {
            self.act(|actions| self.core.handle_alarm(now, actions));
            // Whoever was kicked must turn.
            self.arm_switch(now);
            return Belief::Quiet;
        }
        match deadline {
            Some(at) if at <= kernel_now => self.judge_silence(belief, now),
            Some(later) => {
                // Somebody held the switch while this thread woke up.
                self.alarm.pull(later);
                Belief::Quiet
            }
            None => Belief::Quiet,
        }
    }

    /// Nobody held the switch.
    fn judge_silence(&self, belief: Belief, now: Nanos) -> Belief {
        let lanes = &self.lanes;
        let Some(stall_after) = lanes.stall_after else { return Belief::Quiet };
        if !self.is_anybody_awake() {
            let overslept = |wakeup: Nanos| now.since(wakeup) >= stall_after;
            match lanes.all().filter_map(|slot| self.core.hierarchy().wakeup(slot.cpu)).min() {
                None => return Belief::Quiet,
                Some(first) if !overslept(first) => {
                    self.alarm.pull(self.clock.to_kernel(Nanos(first.0.saturating_add(stall_after.0))));
                    return Belief::Quiet;
                }
                Some(_) => {}
            }
        }
        let kernel_now = self.clock.to_kernel(now);
        let (belief, next) = match belief {
            Belief::Quiet => {
                let next = Nanos(kernel_now.0.saturating_add(lanes.tick.0));
                (Belief::Suspects(next), next)
            }
            Belief::Suspects(_) => {
                self.act(|actions| self.core.handle_silence(now, actions));
                let next = lanes.fires_at(kernel_now, stall_after);
                (Belief::Silence(next), next)
            }
            Belief::Silence(_) => {
                lanes.wake_all();
                let next = lanes.fires_at(kernel_now, stall_after);
                (Belief::Silence(next), next)
            }
        };
        self.alarm.pull(next);
        belief
    }

    fn is_anybody_awake(&self) -> bool {
        let spare = self.lanes.spares.first();
        spare.is_some_and(|spare| self.core.hierarchy().is_active(spare))
    }
}
