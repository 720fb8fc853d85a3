//! The classes of an [`Htb`], and what is inside of them.

use super::{Htb, HtbError};
use crate::classful::Classful;
use crate::refusal::TcRefusal;
use crate::{ClassId, Enqueued, InnerQdisc, Packet, Qdisc, Statistics};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;
use quietcore_core::Nanos;

impl<P: Packet + Debug + Send> Classful<P> for Htb<P> {
    fn classes(&self) -> Vec<ClassId> {
        self.tree.classes.keys().collect()
    }

    /// Leaves.
    fn slots(&self) -> Vec<ClassId> {
        let leaves = self.tree.classes.iter().filter(|(_, node)| node.queue.is_some());
        leaves.map(|(class, _)| class).collect()
    }

    fn inner(&self, class: ClassId) -> Option<&InnerQdisc<P>> {
        self.tree.classes.get(class)?.queue.as_ref()
    }

    fn change_inner(&mut self, _: Nanos, class: ClassId, change: &mut dyn FnMut(&mut InnerQdisc<P>)) {
        let Some(node) = self.tree.classes.get_mut(class) else { return };
        let Some(queue) = &mut node.queue else { return };
        change(queue);
        let is_empty = node.is_empty();
        // It may give a packet earlier than it said.
        self.tree.deactivate(class);
        if !is_empty {
            self.tree.activate(class);
        }
    }

    fn graft_inner(&mut self, _: Nanos, class: ClassId, inner: Option<Box<dyn Qdisc<P>>>) -> bool {
        self.set_inner(class, inner.map_or_else(InnerQdisc::first, InnerQdisc::boxed)).is_ok()
    }

    fn enqueue_filtered(&mut self, now: Nanos, class: ClassId, packet: P) -> Enqueued {
        self.enqueue_to(now, class, packet)
    }

    fn has_filters(&self) -> bool {
        true
    }

    fn hands_on(&self, class: ClassId) -> bool {
        self.inner(class).is_none()
    }

    fn class_statistics(&self, class: ClassId) -> Option<Statistics> {
        self.class(class).map(|told| told.queue)
    }

    fn top_is_root(&self) -> bool {
        true
    }

    fn remove_class(&mut self, class: ClassId) -> Result<(), TcRefusal> {
        Self::remove_class(self, class).map_err(HtbError::into)
    }
}
