//! What threads keep of a CPU's place: where the lane waits, and what waits for it.
//!
//! A machine has a slot for each CPU that can be claimed and for each spare, for its whole life; threads come
//! and go. So a kick needs no count and no lock.

use crate::run_queue::RunQueue;
use crate::words::ksoftirqd::Ksoftirqd;
use crate::words::park::{Notify, Parker};
use crate::words::run_queue::Doorbell;
use crate::words::slot_owner::{SlotOwner, Waits};
use quietcore_core::CpuId;
use quietcore_core::lane::{Kick, Sleeper};
use quietcore_core::softirq::Call;
use std::io;
use std::sync::OnceLock;

/// A CPU's place.
pub(crate) type ThreadSlot = quietcore_core::lane::LaneSlot<LanePlace>;

/// What this world keeps in it.
#[derive(Debug)]
pub(crate) struct LanePlace {
    owner: SlotOwner,
    futex: Parker,
    /// Made for the first owner that waits for a descriptor, and kept.
    event: OnceLock<Parker>,
    pub(super) queue: RunQueue,
    pub(super) ksoftirqd: Ksoftirqd,
    /// From an arm by another thread until the lane has heard of it.
    pub(super) timer_call: Call,
    /// There is such a call.
    pub(super) called: Doorbell,
}

impl LanePlace {
    pub(super) fn new(cpu: CpuId) -> Self {
        Self {
            owner: SlotOwner::new(),
            futex: Parker::futex(),
            event: OnceLock::new(),
            queue: RunQueue::new(cpu),
            ksoftirqd: Ksoftirqd::new(),
            timer_call: Call::new(),
            called: Doorbell::new(),
        }
    }

    /// Takes the slot for the calling thread; says whether it was free.
    ///
    /// # Errors
    /// When there is no descriptor to be had.
    pub(super) fn claim(&self, waits: Waits) -> io::Result<bool> {
        if waits == Waits::Event && self.event.get().is_none() {
            // Two may come here at once; one of the descriptors is closed again.
            let _ = self.event.set(Parker::event_descriptor()?);
        }
        Ok(self.owner.claim(waits))
    }

    /// By the owner, which has left everything else.
    pub(super) fn release(&self) {
        self.owner.release();
    }

    /// Whether a thread has it.
    pub(crate) fn is_claimed(&self) -> bool {
        self.owner.waits().is_some()
    }

    /// Where the owner waits; `None` when no thread has the slot.
    #[inline]
    pub(super) fn parker(&self) -> Option<&Parker> {
        match self.owner.waits()? {
            Waits::Futex => Some(&self.futex),
            Waits::Event => self.event.get(),
        }
    }

    fn owners_parker(&self) -> &Parker {
        self.parker().expect("a lane has claimed its slot")
    }
}

impl Sleeper for LanePlace {
    fn prepare(&self) {
        self.owners_parker().prepare();
    }

    fn finish(&self) {
        let _ = self.owners_parker().finish();
    }

    #[inline]
    fn kick(&self) -> Kick {
        match self.parker().map(Parker::unpark) {
            Some(Notify::Woke) => Kick::Woke,
            Some(Notify::NotNeeded) => Kick::NotNeeded,
            None => Kick::Vacant,
        }
    }

    fn kick_to_help(&self) -> Kick {
        self.queue.doorbell.ring_then(|| self.kick())
    }

    fn is_waiting(&self) -> bool {
        self.parker().is_some_and(Parker::is_waiting)
    }
}
