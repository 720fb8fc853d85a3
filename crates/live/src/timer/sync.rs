//! The words of a callback timer that are read without a lock: for which moment it was armed, and whether a
//! run of it leads to another one.
//!
//! None of them guards anything. An arm writes the moment before it takes the lock of a base, so a run may
//! find the moment of an arm that is still under way; the run compares it with the base's
//! ([`rearm`](super::rearm)).

use crate::words::sync::{AtomicU8, AtomicU64, Ordering};
use quietcore_core::Nanos;

/// For which moment a timer was last armed.
#[derive(Debug)]
pub(super) struct ArmedFor(AtomicU64);

impl ArmedFor {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(super) fn load(&self) -> Nanos {
        // Relaxed: compared with what the base says before it is used.
        Nanos(self.0.load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn store(&self, at: Nanos) {
        // Relaxed: see `load`.
        self.0.store(at.0, Ordering::Relaxed);
    }
}

/// Whether a run is followed by another one. Written under the lock of the timer's
/// [`Rearm`](super::rearm::Rearm).
#[derive(Debug)]
pub(super) struct Follows(AtomicU8);

const NEVER_DID: u8 = 0b00;
/// Periods follow.
const REPEATS: u8 = 0b01;
/// No longer, but a run that was handed out before that may be under way.
const DID: u8 = 0b10;
/// Once: a wait that is longer than the wheel reaches goes on.
const WAITS: u8 = 0b11;
/// The bit of those in which something follows.
const FOLLOWS: u8 = 0b01;

impl Follows {
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(NEVER_DID))
    }

    #[inline]
    pub(super) fn load(&self) -> bool {
        // Relaxed: after a yes the caller looks again under that lock. After a no, a cancel looks again when
        // it is done: if another thread's periodic arm was ordered before that cancel by the lock of the
        // timer's base, the second look sees what that arm wrote before.
        self.0.load(Ordering::Relaxed) & FOLLOWS != 0
    }

    /// Whether periods follow. Under that lock.
    pub(super) fn repeats(&self) -> bool {
        // Relaxed: written under the same lock.
        self.0.load(Ordering::Relaxed) == REPEATS
    }

    /// Whether one is, or was.
    #[inline]
    pub(super) fn ever(&self) -> bool {
        // Relaxed: a runner sees what was written before the arm whose base lock it took after it.
        self.0.load(Ordering::Relaxed) != NEVER_DID
    }

    /// From now on periods follow.
    pub(super) fn repeat(&self) {
        // Relaxed: see `load`.
        self.0.store(REPEATS, Ordering::Relaxed);
    }

    /// From now on the rest of a long wait follows, and then nothing.
    pub(super) fn wait(&self) {
        // Relaxed: see `load`.
        self.0.store(WAITS, Ordering::Relaxed);
    }

    /// Nothing follows from now on.
    pub(super) fn end(&self) {
        // Relaxed: see `load`.
        self.0.store(DID, Ordering::Relaxed);
    }
}
