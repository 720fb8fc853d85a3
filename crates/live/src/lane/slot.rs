//! A CPU's place for the lane that drives it: where the lane waits, and how other threads wake it.
//!
//! A machine has a slot for each CPU that can be claimed and for each spare, for its whole life; threads come
//! and go. So a kick needs no count and no lock.

use crate::run_queue::RunQueue;
use crate::softirq::Ksoftirqd;
use crate::words::lane::{DozeUntil, SlotOwner, StandaloneFlag, Waits};
use crate::words::park::{Notify, Parker};
use crate::words::run_queue::Doorbell;
use quietcore_core::softirq::Call;
use quietcore_core::{CpuId, Nanos};
use std::io;
use std::sync::OnceLock;

/// On cache lines of its own: its owner writes it at every park.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct LaneSlot {
    pub(super) cpu: CpuId,
    owner: SlotOwner,
    pub(super) doze: DozeUntil,
    /// Whether its CPU looks after its own timers only: it is isolated, or this machine pulls nothing.
    pub(super) standalone: StandaloneFlag,
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

impl LaneSlot {
    pub(super) fn new(cpu: CpuId) -> Self {
        Self {
            cpu,
            owner: SlotOwner::new(),
            doze: DozeUntil::new(),
            standalone: StandaloneFlag::new(),
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
        self.doze.end();
        self.owner.release();
    }

    /// Where the owner waits; `None` when no thread has the slot.
    #[inline]
    pub(super) fn parker(&self) -> Option<&Parker> {
        match self.owner.waits()? {
            Waits::Futex => Some(&self.futex),
            Waits::Event => self.event.get(),
        }
    }

    /// Wakes the owner if it waits; `None` when there is no owner.
    #[inline]
    pub(super) fn kick(&self) -> Option<Notify> {
        self.parker().map(Parker::unpark)
    }

    /// Something more precise than a tick was put on this CPU's base, for `at`: wakes the owner if it dozes
    /// beyond that. A CPU that sleeps in the hierarchy is kicked by the core's actions.
    #[inline]
    pub(super) fn interrupt_doze(&self, at: Nanos) {
        if self.doze.is_later_than(at) {
            let _ = self.kick();
        }
    }
}
