//! A lane's round of softirqs, and running handlers.

use super::handlers::{EndEarly, SoftirqRun};
use crate::machine::Machine;
use crate::run_queue::RunQueue;
use crate::stall::{Callback, RunningCode};
use crate::words::run_queue::Activity;
use quietcore_core::lane::Kick;
use quietcore_core::softirq::{Budget, Deferral, Passes, Raise, Runner, Step, VectorSet};
use quietcore_core::{CpuId, Nanos};
use std::thread;
use std::time::Duration;

/// The longest that a lane waits for its ksoftirqd, once a vector has been deferred for too long.
const DONATION: Nanos = Nanos(2_000_000);

/// Between two looks meanwhile.
const PAUSE: Duration = Duration::from_micros(100);

/// What a lane remembers from one round to the next.
#[derive(Debug)]
pub(crate) struct Softirqs {
    deferral: Deferral,
    /// Left to ksoftirqd, and not done by it yet: the lane takes them back only at the limit.
    given: VectorSet,
    /// Of those that ksoftirqd runs: the lane has waited for them.
    donated: VectorSet,
}

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

impl Softirqs {
    pub(crate) fn new(machine: &Machine) -> Self {
        Self {
            deferral: Deferral::new(machine.defer_limit),
            given: VectorSet::EMPTY,
            donated: VectorSet::EMPTY,
        }
    }

    /// Runs what is pending for `cpu`, by its lane; says how many vectors that were. What may not run now is
    /// left to ksoftirqd, or stays pending: then the lane has more to do.
    pub(crate) fn run(&mut self, machine: &'static Machine, cpu: CpuId, before: Before) -> u32 {
        let Some(queue) = machine.lanes.queue(cpu) else { return 0 };
        let mut ran = 0;
        if queue.claims.pending().is_empty() && queue.claims.active().is_empty() {
            self.given = VectorSet::EMPTY;
            self.deferral.release();
            return ran;
        }
        let mut now = machine.now();
        let mut passes = Passes::begin(Runner::Lane, Budget::default(), now);
        let until = Nanos(now.0.saturating_add(Budget::default().time.0));
        loop {
            let held = self.hold(machine, queue, before, now);
            match passes.next(queue.claims.pending(), held, now) {
                Step::Run(vectors) => {
                    let claimed = queue.claims.claim(Runner::Lane, vectors);
                    if claimed.is_empty() {
                        // ksoftirqd runs them, and looks again when it is done.
                        return ran;
                    }
                    queue.current.begin(Activity::Softirq);
                    ran += machine.run_vectors(
                        cpu,
                        claimed,
                        Round { runner: Runner::Lane, until, must_end_early: queue },
                    );
                    if machine.is_forked() {
                        // A child that a handler has forked: what is left is the parent's.
                        return ran;
                    }
                    queue.current.end();
                    self.deferral.ran(claimed);
                    let _ = queue.claims.finish(Runner::Lane);
                    now = machine.now();
                    if queue.must_end_early() {
                        passes.end_early();
                    }
                }
                Step::End { left } => {
                    self.leave(machine, queue, left, held);
                    return ran;
                }
            }
        }
    }

    /// What must not run now: it was given to ksoftirqd, or it is long, and a real-time task waits or was
    /// interrupted by it. At the limit it may.
    fn hold(&mut self, machine: &Machine, queue: &RunQueue, before: Before, now: Nanos) -> VectorSet {
        // What ksoftirqd has begun waits, too, until that is done.
        let begun = queue.claims.active();
        let waiting = queue.claims.pending().union(begun);
        self.given = self.given.intersection(waiting);
        let defers = machine.awareness.defers() && (before == Before::Realtime || queue.must_end_early());
        let long = if defers { waiting.intersection(VectorSet::LONG) } else { VectorSet::EMPTY };
        let held = self.deferral.hold(long.union(self.given), now);
        self.donated = self.donated.intersection(begun);
        let overdue = begun.intersection(long.union(self.given)).difference(held).difference(self.donated);
        if !overdue.is_empty() {
            donate(machine, queue, overdue, now);
            // Once for each run of theirs.
            self.donated = self.donated.union(overdue);
        }
        held
    }

    /// What is left of a round: to ksoftirqd what may go there; the rest the lane comes back to.
    fn leave(&mut self, machine: &Machine, queue: &RunQueue, left: VectorSet, held: VectorSet) {
        let movable = left.intersection(VectorSet::MOVABLE);
        let deferred = movable.intersection(held).difference(self.given).iter().count();
        machine.counts[queue.cpu().index()].deferred.add(deferred as u64);
        self.given = self.given.union(movable);
        // Also if it was asked before: since then it may have run these and gone to sleep.
        let is_asked = movable.is_empty() || machine.ask_ksoftirqd(queue.cpu());
        if !is_asked || left != movable {
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
            queue.doorbell.ring();
            let is_claimed = self.lanes.kick_lane(cpu) != Kick::Vacant;
            if !is_claimed {
                // Its lane does not come to it.
                let _ = self.ask_ksoftirqd(cpu);
            }
        }
    }
}
