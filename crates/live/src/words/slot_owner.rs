//! Who has a slot: which kind of thread drives its CPU, and how it waits. Claimed by a compare-and-swap.
//!
//! Models: `models.rs`. What else threads read of a lane without a lock is in the core (`lane`).

use crate::words::sync::{AtomicU8, Ordering};

/// How the owner of a slot waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    Futex,
    Event,
}

const FREE: u8 = 0;
const FUTEX: u8 = 1;
const EVENT: u8 = 2;

/// Who has a slot.
#[derive(Debug)]
pub(crate) struct SlotOwner(AtomicU8);

impl SlotOwner {
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(FREE))
    }

    /// Takes a free slot; says whether it was free.
    #[must_use]
    pub(crate) fn claim(&self, waits: Waits) -> bool {
        let word = match waits {
            Waits::Futex => FUTEX,
            Waits::Event => EVENT,
        };
        // AcqRel: pairs with Release in `release`: the last owner has left; and with Acquire in `waits`: the
        // descriptor is there. Relaxed: nothing was taken.
        self.0.compare_exchange(FREE, word, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// By the owner, when nothing of it is left in the slot.
    pub(crate) fn release(&self) {
        // Release: pairs with Acquire in `claim`.
        self.0.store(FREE, Ordering::Release);
    }

    /// Whom to wake. A look: an owner that comes later takes its CPU's locks before it sleeps, and so sees
    /// whatever was left there before this look.
    #[inline]
    pub(crate) fn waits(&self) -> Option<Waits> {
        // Acquire: pairs with AcqRel in `claim`.
        match self.0.load(Ordering::Acquire) {
            FUTEX => Some(Waits::Futex),
            EVENT => Some(Waits::Event),
            _ => None,
        }
    }
}

#[cfg(all(test, loom))]
mod models;
