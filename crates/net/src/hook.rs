//! What is asked of packets before a device's queues, and where they come in at one: the places of `clsact`
//! and `ingress`.
//!
//! ```text
//!   program -> [egress] -> queues, disciplines -> driver ->(link)-> [ingress] of the device at the other end
//! ```
//!
//! Nothing is there until a line puts it there; until then a place costs a load for each packet or batch.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use quietcore_qdisc::Packet;
use std::sync::{Arc, Mutex, PoisonError};

/// What became of a packet.
pub(crate) enum Hooked<P> {
    /// It goes on.
    On(P),
    /// It was dropped and counted.
    Dropped,
    /// It went elsewhere.
    Taken,
}

/// What is asked of each packet; by several threads at a time.
pub(crate) trait PacketHook<P>: Send + Sync {
    /// Without the lock of any queue: it may send packets.
    fn pass(&self, packet: P) -> Hooked<P>;
}

/// A place at which something may be asked.
pub(crate) struct HookPoint<P> {
    /// Whether there is something, as of the last change.
    is_set: AtomicBool,
    hook: Mutex<Option<Arc<dyn PacketHook<P>>>>,
    /// Packets that were dropped here, whatever was asked then.
    dropped: AtomicU64,
}

impl<P> Default for HookPoint<P> {
    fn default() -> Self {
        Self { is_set: AtomicBool::new(false), hook: Mutex::new(None), dropped: AtomicU64::new(0) }
    }
}

impl<P: Packet> HookPoint<P> {
    /// From now on this is asked, or nothing.
    pub(crate) fn set(&self, hook: Option<Arc<dyn PacketHook<P>>>) {
        let mut place = self.hook.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_set.store(hook.is_some(), Ordering::Relaxed);
        let before = core::mem::replace(&mut *place, hook);
        drop(place);
        drop(before);
    }

    /// Whether something is asked; that may be about to change.
    pub(crate) fn is_set(&self) -> bool {
        // Paired with nothing: who finds it set takes the lock, and who does not is early.
        self.is_set.load(Ordering::Relaxed)
    }

    /// Asks what is there.
    pub(crate) fn pass(&self, packet: P) -> Hooked<P> {
        if !self.is_set() {
            return Hooked::On(packet);
        }
        let hook = self.hook.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(hook) = hook else { return Hooked::On(packet) };
        let packets = packet.packets();
        let became = hook.pass(packet);
        if matches!(became, Hooked::Dropped) {
            // A count of its own.
            self.dropped.fetch_add(packets.into(), Ordering::Relaxed);
        }
        became
    }

    /// Packets that were dropped here.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}
