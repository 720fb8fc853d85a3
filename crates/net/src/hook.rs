//! What is asked of packets before a device's queues, and where they come in at one: the places of `clsact`
//! and `ingress`.
//!
//! ```text
//!   program -> [egress] -> queues, disciplines -> driver ->(link)-> [ingress] of the device at the other end
//! ```
//!
//! Nothing is there until a line puts it there; until then a place costs a load for each packet or batch.

use super::sync::{DropCount, ToldPresence};
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
    /// Whether there is something.
    is_set: ToldPresence,
    hook: Mutex<Option<Arc<dyn PacketHook<P>>>>,
    /// Packets that were dropped here, whatever was asked then.
    dropped: DropCount,
}

impl<P> Default for HookPoint<P> {
    fn default() -> Self {
        Self { is_set: ToldPresence::default(), hook: Mutex::new(None), dropped: DropCount::default() }
    }
}

impl<P: Packet> HookPoint<P> {
    /// From now on this is asked, or nothing.
    pub(crate) fn set(&self, hook: Option<Arc<dyn PacketHook<P>>>) {
        let mut place = self.hook.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_set.tell(hook.is_some());
        let before = core::mem::replace(&mut *place, hook);
        drop(place);
        drop(before);
    }

    /// Whether something is asked; that may be about to change.
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.get()
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
            self.dropped.add(packets.into());
        }
        became
    }

    /// Packets that were dropped here.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.get()
    }
}
