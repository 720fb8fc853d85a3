//! What turns real time into a machine's: a moment at which it stands, or an offset.
//!
//! Written by one thread at a time (who holds the role that moves time), read by all.

use crate::words::sync::{AtomicU64, Ordering};
use quietcore_core::Nanos;

/// In `frozen`: time goes on.
const RUNNING: u64 = u64::MAX;

#[derive(Debug)]
pub(super) struct Warp {
    frozen: AtomicU64,
    /// What is added to real time, modulo 2^64.
    offset: AtomicU64,
}

impl Default for Warp {
    fn default() -> Self {
        Self { frozen: AtomicU64::new(RUNNING), offset: AtomicU64::new(0) }
    }
}

impl Warp {
    #[inline]
    pub(super) fn apply(&self, real: impl FnOnce() -> Nanos) -> Nanos {
        // Acquire: pairs with Release in `thaw`, so that who sees that time goes on sees from where.
        let frozen = self.frozen.load(Ordering::Acquire);
        if frozen != RUNNING {
            return Nanos(frozen);
        }
        // Relaxed: see above.
        Nanos(real().0.wrapping_add(self.offset.load(Ordering::Relaxed)))
    }

    #[inline]
    pub(super) fn is_frozen(&self) -> bool {
        // Relaxed: a look; who acts on it holds the role that moves time.
        self.frozen.load(Ordering::Relaxed) != RUNNING
    }

    pub(super) fn freeze(&self, at: Nanos) {
        // Release: pairs with Acquire in `apply`; what happened before the clock moved is seen by who sees
        // it.
        self.frozen.store(at.0, Ordering::Release);
    }

    pub(super) fn thaw(&self, real: Nanos) {
        // Relaxed, both: the only writer reads its own words, and `frozen` below publishes the offset.
        let frozen = self.frozen.load(Ordering::Relaxed);
        if frozen == RUNNING {
            return;
        }
        self.offset.store(frozen.wrapping_sub(real.0), Ordering::Relaxed);
        // Release: pairs with Acquire in `apply`.
        self.frozen.store(RUNNING, Ordering::Release);
    }

    pub(super) fn undo(&self, moment: Nanos) -> Nanos {
        // Relaxed: written by who holds the role that also sets kernel timers.
        Nanos(moment.0.wrapping_sub(self.offset.load(Ordering::Relaxed)))
    }
}
