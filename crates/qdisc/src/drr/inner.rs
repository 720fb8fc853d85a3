//! The classes of a [`Drr`], and what is inside of them.

use super::{Drr, DrrError};
use crate::classful::Classful;
use crate::refusal::TcRefusal;
use crate::{ClassId, Enqueued, InnerQdisc, Packet, Qdisc, Statistics};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;
use quietcore_core::Nanos;

impl<P: Packet + Debug + Send> Classful<P> for Drr<P> {
    fn classes(&self) -> Vec<ClassId> {
        self.classes.keys().collect()
    }

    fn inner(&self, class: ClassId) -> Option<&InnerQdisc<P>> {
        self.classes.get(class).map(|told| &told.queue)
    }

    fn change_inner(&mut self, _: Nanos, class: ClassId, change: &mut dyn FnMut(&mut InnerQdisc<P>)) {
        let Some(told) = self.classes.get_mut(class) else { return };
        change(&mut told.queue);
        match (told.queue.is_empty(), self.round.contains(class)) {
            (true, _) => self.round.remove(class),
            (false, false) => self.round.wake(class, told.quantum),
            (false, true) => {}
        }
    }

    fn graft_inner(&mut self, _: Nanos, class: ClassId, inner: Option<Box<dyn Qdisc<P>>>) -> bool {
        self.set_inner(class, inner.map_or_else(InnerQdisc::first, InnerQdisc::boxed)).is_ok()
    }

    /// Where the packet's priority names a class of this discipline that is there, that is meant, as in the
    /// kernel.
    fn enqueue_filtered(&mut self, now: Nanos, class: ClassId, packet: P) -> Enqueued {
        let named = self.named_class(packet.priority()).filter(|named| self.classes.contains_key(*named));
        self.enqueue_to(now, named.unwrap_or(class), packet)
    }

    fn has_filters(&self) -> bool {
        true
    }

    fn classes_have_filters(&self) -> bool {
        false
    }

    fn class_statistics(&self, class: ClassId) -> Option<Statistics> {
        let told = self.classes.get(class)?;
        let Statistics { sent_bytes, sent_packets, .. } = told.sent;
        Some(Statistics { sent_bytes, sent_packets, ..told.queue.statistics() })
    }

    fn top_is_root(&self) -> bool {
        true
    }

    fn remove_class(&mut self, class: ClassId) -> Result<(), TcRefusal> {
        Self::remove_class(self, class).map_err(DrrError::into)
    }
}
