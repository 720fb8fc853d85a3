//! Running what is due: one turn of a CPU, with user code between the locks.
//!
//! What a run needs is taken out of its timer under the lock (`job.rs`); actions are carried out before it; a
//! panic is caught after it. Source: docs/design/PROTOCOL.md, sections 2 and 8.

use super::{Machine, OnPanic};
use crate::job::Job;
use crate::panic::contain;
use crate::payload::{Payload, PayloadKind};
use crate::probe;
use crate::stall::RunningCode;
use crate::timer::{RunKind, RunScope};
use core::cell::Cell;
use core::task::Waker;
use quietcore_core::run_queue::LaneQueue;
use quietcore_core::{Actions, At, BaseId, CpuId, Nanos, Turn};

/// Wakers that are taken together with one. They save locks and looks at the clock; and they wait for this
/// thread if it loses its CPU between two of them, whichever thread could have woken them.
const MORE_WAKERS: usize = 7;

impl Machine {
    /// One turn of `turn`'s CPU: runs what is due, up to the budget of a turn, and says how many timers that
    /// were. By the thread that drives it.
    pub(crate) fn take_turn(&self, turn: &mut Turn) -> u32 {
        let mut actions = Actions::new(self.cpu_limit);
        let mut now = self.clock.now();
        self.counts[turn.cpu().index()].turns.add_alone(1);
        self.core.collect_due(turn, now);
        self.turns_again(turn.cpu(), now);
        let take = Job::take;
        let at = At { now, actions: &mut actions };
        let mut next = self.core.next_expired_with(turn, at, take);
        let mut ran = 0;
        while let Some((expired, job)) = next {
            ran += 1;
            if !actions.is_empty() {
                self.carry_out(&mut actions);
            }
            debug_assert!(actions.is_empty(), "others wait for a callback that may be long");
            let (base, runner) = (expired.base(), expired.runner());
            let late = now.since(expired.expires());
            self.count(base, runner, late);
            probe::timer_expire_entry(runner, base.cpu, late.0);
            let call = match job {
                Job::Call(call) => {
                    let planned = Cell::new(call.plan(expired.expires(), self));
                    self.stalls.around(runner, call.running(), || {
                        self.guarded(runner, || call.run(&planned, now, runner));
                    });
                    Some((call, planned.get()))
                }
                Job::Wake(waker) => {
                    let at = At { now, actions: &mut actions };
                    ran += self.wake_some(waker, turn, at, base);
                    None
                }
            };
            if self.is_forked() {
                // A child that the run has forked: locks are as they were at that moment, and what else is
                // due is the parent's. What keeps the timer is left as it is.
                core::mem::forget(call);
                return ran;
            }
            probe::timer_expire_exit(runner, base.cpu, late.0);
            now = self.clock.now();
            if self.lanes.queue(turn.cpu()).is_some_and(|queue| queue.realtime_waiting().is_some()) {
                turn.end_early();
            }
            if let Some((call, planned)) = &call {
                call.follow(*planned, now);
            }
            let at = At { now, actions: &mut actions };
            next = self.core.finish_and_next_with(turn, expired, at, take);
            if let Some((call, _)) = call {
                for waker in self.run_ends.finished() {
                    self.guarded(runner, || waker.wake());
                }
                self.guarded(runner, || drop(call));
                if self.is_forked() {
                    return ran;
                }
            }
        }
        if !actions.is_empty() {
            self.carry_out(&mut actions);
        }
        ran
    }

    #[inline]
    fn count(&self, base: BaseId, runner: CpuId, late: Nanos) {
        let counts = &self.counts[runner.index()];
        let ran = if base.cpu == runner { &counts.ran_own } else { &counts.ran_for_others };
        ran.add_alone(1);
        counts.was_late(late.0);
    }

    /// Wakes `first`, and some more of the same base that are due; returns how many more.
    fn wake_some(&self, first: Option<Waker>, turn: &mut Turn, at: At<'_>, base: BaseId) -> u32 {
        let At { now, actions } = at;
        let runner = turn.cpu();
        let mut wakers = [const { None }; MORE_WAKERS];
        let mut rest = wakers.iter_mut();
        let at = At { now, actions: &mut *actions };
        let more = self.core.take_more_detached(turn, MORE_WAKERS as u32, at, |payload, name, expires| {
            let Job::Wake(waker) = Job::take(payload, name) else { unreachable!("only wakers are detached") };
            *rest.next().expect("no more than there is room for") = waker;
            self.count(base, runner, now.since(expires));
        });
        if !actions.is_empty() {
            self.carry_out(actions);
        }
        self.stalls.around(runner, RunningCode::WAKERS, || {
            self.guarded(runner, || first.map(Waker::wake));
            for waker in wakers.into_iter().flatten() {
                if self.is_forked() {
                    // The parent's.
                    core::mem::forget(waker);
                    continue;
                }
                self.guarded(runner, || waker.wake());
            }
        });
        more
    }

    /// Ends what is pending without a run, after the core was closed. A future is woken: the time that it
    /// waits for will not come, and its poll says so.
    pub(super) fn end_waits(&self) {
        let waker = |payload: Payload, name| match payload.kind() {
            PayloadKind::Wake => Some(Job::take(payload, name)),
            PayloadKind::Raw | PayloadKind::Counted => None,
        };
        self.core.end_pending(waker, |job| {
            if let Some(Job::Wake(Some(waker))) = job {
                self.guarded(self.spare, || waker.wake());
            }
            // In a child that a waker has forked locks are as they were at that moment.
            !self.is_forked()
        });
    }

    /// For those who wait for the end of something: a run is over, or will not come. None waits in a forked
    /// child.
    pub(crate) fn tell_of_end(&self) {
        if self.is_forked() {
            return;
        }
        for waker in self.run_ends.finished() {
            // Not this machine's CPU in particular.
            self.guarded(self.spare, || waker.wake());
        }
    }

    /// A task has panicked: it has ended, and nothing else.
    pub(crate) fn count_task_panic(&self) {
        let cpu = self.current_cpu().map_or(self.spare, |(cpu, _)| cpu);
        self.counts[cpu.index()].panics.add(1);
    }

    /// Calls user code that must not block.
    #[inline]
    pub(crate) fn guarded<R>(&self, runner: CpuId, code: impl FnOnce() -> R) -> Option<R> {
        self.guarded_as(RunKind::Callback, runner, code)
    }

    /// Calls user code.
    #[inline]
    pub(crate) fn guarded_as<R>(&self, kind: RunKind, runner: CpuId, code: impl FnOnce() -> R) -> Option<R> {
        let _in_run = RunScope::begin(kind);
        let result = contain(code);
        if result.is_none() {
            self.after_panic(runner);
        }
        result
    }

    #[cold]
    fn after_panic(&self, cpu: CpuId) {
        match self.on_panic {
            // The message and the place were printed by the panic hook.
            OnPanic::Abort => std::process::abort(),
            OnPanic::Continue => {
                self.counts[cpu.index()].panics.add(1);
                self.events.panicked(cpu);
            }
        }
    }
}
