//! Many random runtimes, on as many real threads as there are: each thread plays runs of its own.

use super::plan::RuntimePlan;
use super::run::run_runtime;
use super::world::RuntimeCounts;
use serde::Serialize;
use std::ops::Range;
use std::sync::Mutex;
use std::thread;

/// What many runs came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RuntimesOutcome {
    /// Runs that came to their end.
    pub runs: u64,
    /// Their events.
    pub events: u64,
    /// What happened in them.
    pub counts: RuntimeCounts,
    /// The lowest seed whose run broke a property, of those that were played.
    pub failed: Option<u64>,
}

impl RuntimesOutcome {
    fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.events += other.events;
        self.counts.add(&other.counts);
        self.failed = [self.failed, other.failed].into_iter().flatten().min();
    }
}

/// Plays the plans of `seeds`, on `threads` threads (at least one). Ends early after a failure, and when
/// `goes_on`, which is told how many runs were begun, says no. Whether no property was broken does not depend
/// on the threads; which seed is found first may.
pub fn run_runtimes(
    seeds: Range<u64>,
    threads: usize,
    goes_on: impl Fn(u64) -> bool + Sync,
) -> RuntimesOutcome {
    let shared = Mutex::new((seeds.start, RuntimesOutcome::default()));
    let lock = || shared.lock().expect("no thread panics with it");
    let play = || {
        loop {
            let seed = {
                let mut shared = lock();
                let (next, total) = &mut *shared;
                if *next >= seeds.end || total.failed.is_some() || !goes_on(*next - seeds.start) {
                    return;
                }
                *next += 1;
                *next - 1
            };
            let run = run_runtime(&RuntimePlan::draw(seed));
            let failed = run.violation.is_some().then_some(seed);
            lock().1.add(&RuntimesOutcome { runs: 1, events: run.events, counts: run.counts, failed });
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            let _ = scope.spawn(play);
        }
        play();
    });
    shared.into_inner().expect("no thread panics with it").1
}
