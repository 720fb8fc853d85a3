//! Running what is due: one turn of a CPU, with user code between the locks.
//!
//! What a run needs is taken out of its timer under the lock ([`Payload::take`]); actions are carried out
//! before it; a panic is caught after it. Source: PROTOCOL sections 2 and 8.

use super::{Machine, OnPanic};
use crate::payload::{Job, Payload};
use crate::timer::{Call, InRun, Planned};
use core::cell::Cell;
use core::task::Waker;
use quietcore_core::{Actions, At, CpuId, Expired, Nanos, Turn};
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Machine {
    /// One turn of `turn`'s CPU: runs what is due, up to the budget of a turn, and says how many timers that
    /// were. By the thread that plays it.
    pub(crate) fn take_turn(&self, turn: &mut Turn) -> u32 {
        let mut actions = Actions::new(self.cpu_limit);
        let mut now = self.clock.now();
        self.counts[turn.cpu().index()].turns.add(1);
        self.core.begin_turn(turn, now);
        let take = |payload: Payload, name| payload.take(name);
        let at = At { now, actions: &mut actions };
        let mut next = self.core.next_expired_with(turn, at, take);
        let mut ran = 0;
        while let Some((expired, job)) = next {
            ran += 1;
            if !actions.is_empty() {
                self.carry_out(&mut actions);
            }
            self.count(&expired, now);
            let call = self.run(job, &expired, now);
            now = self.clock.now();
            let next_run = call.as_ref().and_then(|(call, planned)| call.follow(*planned, now));
            let (base, runner) = (expired.base(), expired.runner());
            let at = At { now, actions: &mut actions };
            next = self.core.finish_and_next_with(turn, expired, at, take);
            if let Some(at) = next_run.filter(|_| base.cpu != runner) {
                self.interrupt_doze(base, at);
            }
            if let Some((call, _)) = call {
                for waker in self.run_ends.finished() {
                    self.guarded(runner, || waker.wake());
                }
                self.guarded(runner, || drop(call));
            }
        }
        if !actions.is_empty() {
            self.carry_out(&mut actions);
        }
        ran
    }

    #[inline]
    fn count(&self, expired: &Expired<Payload>, now: Nanos) {
        let counts = &self.counts[expired.runner().index()];
        let is_own = expired.base().cpu == expired.runner();
        let ran = if is_own { &counts.ran_own } else { &counts.ran_for_others };
        ran.add(1);
        counts.was_late(now.since(expired.expires()).0);
    }

    /// Wakes or calls. What it returns has to be followed, and dropped when the run is over.
    #[inline]
    fn run(&self, job: Job, expired: &Expired<Payload>, now: Nanos) -> Option<(Call, Planned)> {
        let runner = expired.runner();
        match job {
            Job::Wake(waker) => {
                self.guarded(runner, || waker.map(Waker::wake));
                None
            }
            Job::Call(call) => {
                let planned = Cell::new(call.plan(expired.expires(), now, self));
                self.guarded(runner, || call.run(&planned, now, runner));
                Some((call, planned.get()))
            }
        }
    }

    /// Calls user code.
    #[inline]
    fn guarded<R>(&self, runner: CpuId, code: impl FnOnce() -> R) {
        let _in_run = InRun::begin();
        if catch_unwind(AssertUnwindSafe(code)).is_err() {
            self.after_panic(runner);
        }
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
