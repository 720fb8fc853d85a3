//! A lane's round of softirqs, and running handlers.

use super::handlers::{EndEarly, SoftirqRun};
use crate::machine::Machine;
use crate::run_queue::RunQueue;
use crate::stall::{Callback, RunningCode};
use quietcore_core::lane::Kick;
use quietcore_core::run_queue::{Activity, LaneQueue};
use quietcore_core::softirq::{Budget, LaneSoftirqs, LaneStep, Left, Raise, Runner, VectorSet};
use quietcore_core::{CpuId, Nanos};
use std::thread;
use std::time::Duration;

/// The longest that a lane waits for its ksoftirqd, once a vector has been deferred for too long.
const DONATION: Nanos = Nanos(2_000_000);

/// Between two looks meanwhile.
const PAUSE: Duration = Duration::from_micros(100);

/// What the lane did just before a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// It ran a real-time task: what was raised meanwhile has interrupted that.
    Realtime,
    /// Anything else.
    Other,
}

impl EndEarly for RunQueue {
    fn must_end_early(&self) -> bool {
        self.realtime_waiting().is_some()
    }
}

impl Machine {
    /// Runs what is pending for `cpu`, by its lane; says how many vectors that were. What may not run now is
    /// left to ksoftirqd, or stays pending: then the lane has more to do.
    pub(crate) fn run_softirqs(
        &'static self,
        softirqs: &mut LaneSoftirqs,
        cpu: CpuId,
        before: Before,
    ) -> u32 {
        let Some(queue) = self.lanes.queue(cpu) else { return 0 };
        let mut now = Nanos(0);
        let clock = || {
            now = self.now();
            now
        };
        let mut ran = 0;
        let Some(mut round) = softirqs.begin(&queue.claims, clock) else { return ran };
        let until = Nanos(now.0.saturating_add(Budget::default().time.0));
        loop {
            let defers = self.awareness.defers() && (before == Before::Realtime || queue.must_end_early());
            match round.next(defers, now) {
                LaneStep::Donate(vectors) => {
                    donate(self, queue, vectors, now);
                    // That may have used up the time of this round.
                    now = self.now();
                    continue;
                }
                LaneStep::Run(vectors) => {
                    queue.current.begin(Activity::Softirq);
                    let round = Round { runner: Runner::Lane, until, must_end_early: queue };
                    ran += self.run_vectors(cpu, vectors, round);
                }
                LaneStep::End(left) => {
                    self.leave_softirqs(queue, left);
                    return ran;
                }
            }
            if self.is_forked() {
                // A child that a handler has forked: what is left is the parent's.
                return ran;
            }
            queue.current.end();
            round.finish(queue.must_end_early());
            now = self.now();
        }
    }

    /// What is left of a round has to be looked at.
    fn leave_softirqs(&self, queue: &RunQueue, left: Left) {
        self.counts[queue.cpu().index()].deferred.add(u64::from(left.deferred));
        if left.to_ksoftirqd {
            self.ask_ksoftirqd(queue.cpu());
        }
        if left.to_lane {
            queue.doorbell.ring();
        }
    }
}

/// Lets ksoftirqd have the CPU until it is done with `vectors`, or for as long as is due to it.
fn donate(machine: &Machine, queue: &RunQueue, vectors: VectorSet, since: Nanos) {
    machine.counts[queue.cpu().index()].donations.add(1);
    while !queue.claims.active().intersection(vectors).is_empty()
        && machine.now().since(since) < DONATION
        && machine.is_running()
    {
        thread::sleep(PAUSE);
    }
}

/// What the handlers of a pass may know of it.
#[derive(Clone, Copy)]
pub(super) struct Round<'a> {
    pub(super) runner: Runner,
    /// When the round's time is used up.
    pub(super) until: Nanos,
    pub(super) must_end_early: &'a dyn EndEarly,
}

impl Machine {
    /// Runs the handlers of `vectors`, lowest first. By the runner that has claimed them. In a child that one
    /// of them has forked no other runs.
    pub(super) fn run_vectors(&'static self, cpu: CpuId, vectors: VectorSet, round: Round<'_>) -> u32 {
        let Round { runner, until, must_end_early } = round;
        let mut ran = 0;
        for vector in vectors.iter() {
            let Some(handler) = self.softirqs.get(vector) else { continue };
            ran += 1;
            let run = SoftirqRun { machine: self.reference(), cpu, vector, runner, until, must_end_early };
            let handle = || _ = self.guarded(cpu, || handler(&run));
            match runner {
                Runner::Lane => {
                    let running = RunningCode::of(&Callback::SOFTIRQ, vector.index(), None);
                    self.stalls.around(cpu, running, handle);
                }
                // The record is the lane's.
                Runner::Ksoftirqd => handle(),
            }
            let counts = &self.counts[cpu.index()];
            match runner {
                Runner::Lane => counts.softirqs.add(1),
                Runner::Ksoftirqd => counts.ksoftirqd_ran.add(1),
            }
            if self.is_forked() {
                break;
            }
        }
        ran
    }

    /// Makes vectors that have handlers pending.
    pub(crate) fn raise_known(&self, cpu: CpuId, vectors: VectorSet) {
        let Some(queue) = self.lanes.queue(cpu) else { return };
        self.counts[cpu.index()].raises.add(1);
        if queue.claims.raise(vectors) == Raise::News {
            let is_claimed = queue.doorbell.ring_then(|| self.lanes.kick_lane(cpu)) != Kick::Vacant;
            if !is_claimed {
                // Its lane does not come to it.
                self.ask_ksoftirqd(cpu);
            }
        }
    }
}
