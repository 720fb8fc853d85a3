//! Running what is due: one turn of a CPU, with user code between the locks.
//!
//! What a run needs is taken out of its timer under the lock ([`Payload::take`]); actions are carried out
//! before it; a panic is caught after it. Source: PROTOCOL sections 2 and 8.
#![allow(unsafe_code, reason = "a raw timer's function is called with the argument it was made with")]

use super::{Machine, OnPanic};
use crate::payload::{Job, Payload};
use quietcore_core::{Actions, At, CpuId, Expired, Nanos, Turn};
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Machine {
    /// One turn of `turn`'s CPU: runs what is due, up to the budget of a turn. By the thread that plays it.
    pub(crate) fn take_turn(&self, turn: &mut Turn) {
        let mut actions = Actions::new(self.cpu_limit);
        let mut now = self.clock.now();
        self.counts[turn.cpu().index()].turns.add(1);
        self.core.begin_turn(turn, now);
        let take = |payload: Payload, name| payload.take(name);
        let at = At { now, actions: &mut actions };
        let mut next = self.core.next_expired_with(turn, at, take);
        while let Some((expired, job)) = next {
            if !actions.is_empty() {
                self.carry_out(&mut actions);
            }
            self.count(&expired, now);
            if self.run(job) == Outcome::Panicked {
                self.after_panic(turn.cpu());
            }
            now = self.clock.now();
            let at = At { now, actions: &mut actions };
            next = self.core.finish_and_next_with(turn, expired, at, take);
        }
        if !actions.is_empty() {
            self.carry_out(&mut actions);
        }
    }

    #[inline]
    fn count(&self, expired: &Expired<Payload>, now: Nanos) {
        let counts = &self.counts[expired.runner().index()];
        let is_own = expired.base().cpu == expired.runner();
        let ran = if is_own { &counts.ran_own } else { &counts.ran_for_others };
        ran.add(1);
        counts.was_late(now.since(expired.expires()).0);
    }

    fn run(&self, job: Job) -> Outcome {
        let run = AssertUnwindSafe(|| match job {
            Job::Wake(Some(waker)) => waker.wake(),
            Job::Wake(None) => {}
            // SAFETY: whoever made the timer promised that its function may be called with its argument from
            // any thread, until the timer is cancelled and no run of it is left.
            Job::Raw(run, argument) => unsafe { run(argument) },
        });
        if catch_unwind(run).is_ok() { Outcome::Returned } else { Outcome::Panicked }
    }

    #[cold]
    fn after_panic(&self, cpu: CpuId) {
        match self.on_panic {
            // The message and the place were printed by the panic hook.
            OnPanic::Abort => std::process::abort(),
            OnPanic::Continue => self.counts[cpu.index()].panics.add(1),
        }
    }
}

/// How user code ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Returned,
    Panicked,
}
