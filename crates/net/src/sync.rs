//! What a queue and a hook tell without their locks.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

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

/// Whether something is there, as of the last change. Relaxed: a reader that finds it there takes the lock to
/// see what it is, and one that does not is early.
#[derive(Debug, Default)]
pub(super) struct ToldPresence(AtomicBool);

impl ToldPresence {
    pub(super) fn tell(&self, is_there: bool) {
        self.0.store(is_there, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A count that nothing else rests on, and so relaxed.
#[derive(Debug, Default)]
pub(super) struct DropCount(AtomicU64);

impl DropCount {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
