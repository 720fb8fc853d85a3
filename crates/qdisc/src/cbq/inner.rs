//! The classes of a [`Cbq`], and what is inside of them.

use super::tc::{class_figures, link_options};
use super::{Cbq, CbqError};
use crate::classful::{Classful, TcDescription};
use crate::refusal::TcRefusal;
use crate::{ClassId, Enqueued, InnerQdisc, Packet, Qdisc, Statistics};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;
use quietcore_core::Nanos;

impl<P: Packet + Debug + Send> Classful<P> for Cbq<P> {
    /// The link is the first.
    fn classes(&self) -> Vec<ClassId> {
        self.classes.keys().copied().collect()
    }

    fn inner(&self, class: ClassId) -> Option<&InnerQdisc<P>> {
        self.classes.get(&class).map(|node| &node.queue)
    }

    fn change_inner(&mut self, _: Nanos, class: ClassId, change: &mut dyn FnMut(&mut InnerQdisc<P>)) {
        let Some(node) = self.classes.get_mut(&class) else { return };
        change(&mut node.queue);
        // It may give a packet earlier than it said.
        self.throttled.retain(|&(_, one)| one != class);
        self.activate(class);
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

    fn class_statistics(&self, class: ClassId) -> Option<Statistics> {
        self.class(class).map(|told| told.queue)
    }

    fn describe_class(&self, class: ClassId) -> TcDescription {
        TcDescription { options: link_options(&self.settings), figures: class_figures(self, class) }
    }

    fn remove_class(&mut self, class: ClassId) -> Result<(), TcRefusal> {
        Self::remove_class(self, class).map_err(CbqError::into)
    }
}
