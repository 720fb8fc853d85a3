//! Which vectors of a CPU are pending, and who runs which: one word.
//!
//! Any thread raises; the lane and its ksoftirqd claim. A claim takes a vector out of what is pending and
//! says who runs it, in one step; a vector that one of them runs cannot be claimed by the other, so no
//! handler runs twice at a time on a CPU, and it stays pending for who finishes. What was raised while its
//! handler ran is pending when the handler returns, so it is run again: a raise is never lost.
//!
//! Models: `models`. Absent: which thread to wake ([`Raise`] says whether one), budgets (`pass.rs`). Source:
//! Linux 6.12, kernel/softirq.c. Deviation: the kernel has one thread at a time on a CPU and needs no claims.

use super::{Runner, VectorSet};
use crate::sync::{AtomicU64, Ordering};

/// What a raise came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "news has to reach the CPU"]
pub enum Raise {
    /// Some of it was not pending: the CPU has to be told, if it is not the caller.
    News,
    /// All of it was pending already, so a runner was told.
    Known,
}

/// The word of a CPU.
#[derive(Debug, Default)]
pub struct Claims(AtomicU64);

/// Bits 0 to 15: pending; from here on 16 each: run by the lane, run by ksoftirqd.
const LANE: u32 = 16;
const KSOFTIRQD: u32 = 32;

const fn shift(runner: Runner) -> u32 {
    match runner {
        Runner::Lane => LANE,
        Runner::Ksoftirqd => KSOFTIRQD,
    }
}

const fn field(word: u64, shift: u32) -> VectorSet {
    VectorSet::from_bits((word >> shift) as u16)
}

impl Claims {
    /// Nothing is pending, nothing runs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// `vectors` are pending from now on. From any thread, after what their handlers are to find was written.
    /// Cost: a read-modify-write.
    pub fn raise(&self, vectors: VectorSet) -> Raise {
        // Release: pairs with Acquire in `claim`: the handler finds what was written before.
        let before = self.0.fetch_or(u64::from(vectors.bits()), Ordering::Release);
        if vectors.difference(field(before, 0)).is_empty() { Raise::Known } else { Raise::News }
    }

    /// Takes what of `wanted` is pending and not being run, for `runner`, which has nothing claimed;
    /// ksoftirqd gets only what [may move](VectorSet::MOVABLE). Nothing ends a round: it is run by the other
    /// one, who finds what is pending. By that runner's thread. Cost: a load if there is nothing; else a
    /// compare-and-swap.
    #[must_use = "what is claimed has to be run"]
    pub fn claim(&self, runner: Runner, wanted: VectorSet) -> VectorSet {
        let wanted = match runner {
            Runner::Lane => wanted,
            Runner::Ksoftirqd => wanted.intersection(VectorSet::MOVABLE),
        };
        // Relaxed: acted upon only by the compare-and-swap.
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            debug_assert!(field(seen, shift(runner)).is_empty(), "a runner finishes before it claims again");
            let busy = field(seen, LANE).union(field(seen, KSOFTIRQD));
            let claimed = field(seen, 0).intersection(wanted).difference(busy);
            if claimed.is_empty() {
                return claimed;
            }
            let bits = u64::from(claimed.bits());
            let next = seen & !bits | bits << shift(runner);
            // Acquire: pairs with Release in `raise`, and in `finish`: what the last run of a handler did on
            // the other thread is seen by this one. Relaxed: tried again.
            match self.0.compare_exchange_weak(seen, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return claimed,
                Err(now) => seen = now,
            }
        }
    }

    /// The handlers of what `runner` had claimed have returned. Returns what is pending now. By that runner's
    /// thread. Cost: a read-modify-write.
    #[must_use = "what is pending may have waited for this"]
    pub fn finish(&self, runner: Runner) -> VectorSet {
        let own = u64::from(u16::MAX) << shift(runner);
        // Release: pairs with Acquire in `claim`.
        field(self.0.fetch_and(!own, Ordering::Release), 0)
    }

    /// What is pending; a hint for all but who acts on it by [`claim`](Self::claim).
    #[must_use]
    pub fn pending(&self) -> VectorSet {
        // Relaxed: a hint.
        field(self.0.load(Ordering::Relaxed), 0)
    }

    /// What runs, on either thread; a hint.
    #[must_use]
    pub fn active(&self) -> VectorSet {
        // Relaxed: a hint.
        let word = self.0.load(Ordering::Relaxed);
        field(word, LANE).union(field(word, KSOFTIRQD))
    }
}

#[cfg(all(test, loom))]
mod models;
