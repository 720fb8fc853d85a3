//! ksoftirqd: a thread of normal priority beside each lane, for softirqs that the lane leaves.
//!
//! It takes rounds of its own until nothing is pending that may leave the lane, then waits to be asked. What
//! arms timers in it arms as a foreign thread does. When the lane is isolated it keeps off that CPU like all
//! of the machine's own threads (the kernel's does not leave: ours). There is one only if some vector with a
//! handler may leave its lane.

use super::handlers::EndEarly;
use super::round::Round;
use crate::machine::{Machine, StartError};
use crate::run_queue::RunQueue;
use crate::words::ksoftirqd::Ksoftirqd;
use quietcore_core::softirq::{Budget, KsoftirqdRound, KsoftirqdStep, Runner, VectorSet};
use quietcore_core::{CpuId, Nanos};
use std::thread;

/// Nothing waits for a thread of normal priority.
#[derive(Debug)]
struct Patient;

impl EndEarly for Patient {
    fn must_end_early(&self) -> bool {
        false
    }
}

impl Machine {
    /// A thread for each lane, if there is anything for them to run.
    pub(crate) fn start_ksoftirqds(&'static self) -> Result<(), StartError> {
        if self.softirqs.vectors().intersection(VectorSet::MOVABLE).is_empty() {
            return Ok(());
        }
        self.lane_set.iter().try_for_each(|cpu| {
            self.start_thread(format!("quietcore-k{cpu}"), move || self.run_ksoftirqd(cpu))
        })
    }

    /// Leaves to the ksoftirqd of `cpu`, a lane's, what is pending there.
    pub(crate) fn ask_ksoftirqd(&self, cpu: CpuId) {
        self.lanes.ksoftirqd(cpu).into_iter().for_each(Ksoftirqd::ask);
    }

    fn run_ksoftirqd(&'static self, cpu: CpuId) {
        let _entered = self.enter();
        let _own = self.join_own_threads();
        let ksoftirqd = self.lanes.ksoftirqd(cpu).expect("a lane has one");
        let queue = self.lanes.queue(cpu).expect("a lane has one");
        while ksoftirqd.wait(|| self.is_running()) {
            self.counts[cpu.index()].ksoftirqd_wakeups.add(1);
            while self.is_running() && self.ksoftirqd_round(cpu, queue) {
                // Its time is up: what waits for the CPU goes first.
                thread::yield_now();
            }
        }
    }

    /// One round; says whether there is more that the lane does not just run.
    fn ksoftirqd_round(&'static self, cpu: CpuId, queue: &RunQueue) -> bool {
        let now = self.now();
        let until = Nanos(now.0.saturating_add(Budget::default().time.0));
        let mut round = KsoftirqdRound::begin(&queue.claims, Budget::default(), now);
        loop {
            match round.next(self.now()) {
                KsoftirqdStep::Run(vectors) => {
                    let pass = Round { runner: Runner::Ksoftirqd, until, must_end_early: &Patient };
                    self.run_vectors(cpu, vectors, pass);
                    if self.is_forked() {
                        return false;
                    }
                    round.finish();
                }
                KsoftirqdStep::Again => return true,
                KsoftirqdStep::Wait => return false,
            }
        }
    }
}
