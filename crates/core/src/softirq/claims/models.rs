//! Claims against each other, and against a raise.

use super::Claims;
use crate::softirq::{Runner, Vector, VectorSet};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

const NET_RX: VectorSet = VectorSet::from_bits(1 << 3);

/// What a handler works on, in loads and stores that no atomic step holds together: runs that overlap, or do
/// not see each other, lose counts.
struct Cpu {
    claims: Claims,
    runs: AtomicU32,
    counted: AtomicU32,
    handled: AtomicU32,
    posted: AtomicU32,
}

impl Cpu {
    fn new() -> Arc<Self> {
        assert!(NET_RX.contains(Vector::NET_RX));
        let zero = || AtomicU32::new(0);
        let (claims, runs, counted) = (Claims::new(), zero(), zero());
        Arc::new(Self { claims, runs, counted, handled: zero(), posted: zero() })
    }

    /// Something for the handler, and the raise.
    fn post(&self) {
        // Relaxed: the raise publishes it.
        self.posted.fetch_add(1, Ordering::Relaxed);
        let _ = self.claims.raise(NET_RX);
    }

    /// Runs what is to be had, until nothing is.
    fn run(&self, runner: Runner) {
        while !self.claims.claim(runner, NET_RX).is_empty() {
            self.runs.fetch_add(1, Ordering::Relaxed);
            let counted = self.counted.load(Ordering::Relaxed);
            self.handled.store(self.posted.load(Ordering::Relaxed), Ordering::Relaxed);
            self.counted.store(counted + 1, Ordering::Relaxed);
            if self.claims.finish(runner).is_empty() {
                return;
            }
        }
    }
}

/// Goal: a handler runs on one thread at a time, sees what the last run did, and what was raised before it;
/// no raise is lost. Method: the lane and ksoftirqd run while a third thread posts twice.
#[test]
fn one_at_a_time_and_none_lost() {
    loom::model(|| {
        let cpu = Cpu::new();
        cpu.post();
        let companion = Arc::clone(&cpu);
        let ksoftirqd = thread::spawn(move || companion.run(Runner::Ksoftirqd));
        let stranger = Arc::clone(&cpu);
        let poster = thread::spawn(move || stranger.post());
        cpu.run(Runner::Lane);
        poster.join().expect("no panic");
        ksoftirqd.join().expect("no panic");
        // The runner that was told of the last raise comes once more.
        cpu.run(Runner::Lane);
        assert!(cpu.claims.pending().is_empty() && cpu.claims.active().is_empty());
        let load = |word: &AtomicU32| word.load(Ordering::Relaxed);
        assert_eq!(load(&cpu.handled), 2, "the last run saw what was posted last");
        assert_eq!(load(&cpu.counted), load(&cpu.runs), "each run saw the one before");
    });
}
