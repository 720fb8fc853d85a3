//! What a queue tells without its lock.

use std::sync::atomic::{AtomicU8, Ordering};

/// Whether a queue takes several packets of a stream as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wholeness {
    /// No.
    Cut,
    /// Yes.
    Whole,
    /// As the device's first queue does, to which its packets go.
    AsFirst,
}

/// The same, as of the last change of the queue. Relaxed everywhere: a reader may miss a change that is being
/// made anyway, and nothing else is read because of it.
#[derive(Debug)]
pub(super) struct ToldWholeness(AtomicU8);

impl ToldWholeness {
    pub(super) fn new(wholeness: Wholeness) -> Self {
        Self(AtomicU8::new(wholeness as u8))
    }

    pub(super) fn tell(&self, wholeness: Wholeness) {
        self.0.store(wholeness as u8, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Wholeness {
        let told = self.0.load(Ordering::Relaxed);
        let all = [Wholeness::Whole, Wholeness::AsFirst];
        all.into_iter().find(|one| *one as u8 == told).unwrap_or(Wholeness::Cut)
    }
}
