//! The classes of an [`Hfsc`], and what is inside of them.

use super::tc::figures;
use super::{Hfsc, HfscError};
use crate::classful::{Classful, TcDescription};
use crate::refusal::TcRefusal;
use crate::tc::TcProperties;
use crate::{ClassId, Enqueued, Fifo, InnerQdisc, Packet, Qdisc, Statistics};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;
use quietcore_core::Nanos;

impl<P: Packet + Debug + Send> Classful<P> for Hfsc<P> {
    fn classes(&self) -> Vec<ClassId> {
        self.names.keys().collect()
    }

    /// Leaves.
    fn slots(&self) -> Vec<ClassId> {
        let leaves = self.names.iter().filter(|(_, key)| self.tree.class(**key).leaf.is_some());
        leaves.map(|(name, _)| name).collect()
    }

    fn inner(&self, class: ClassId) -> Option<&InnerQdisc<P>> {
        let key = self.key(class).ok()?;
        self.tree.class(key).leaf.as_ref().map(|leaf| &leaf.child)
    }

    fn change_inner(&mut self, now: Nanos, class: ClassId, change: &mut dyn FnMut(&mut InnerQdisc<P>)) {
        let Ok(key) = self.key(class) else { return };
        let Some(leaf) = &mut self.tree.class_mut(key).leaf else { return };
        change(&mut leaf.child);
        // A packet that was looked at is held; only a leaf that waits may have one earlier than it said.
        if leaf.head.is_none() {
            self.refresh(key, now);
        }
    }

    fn graft_inner(&mut self, now: Nanos, class: ClassId, inner: Option<Box<dyn Qdisc<P>>>) -> bool {
        let inner = inner.unwrap_or_else(|| Box::new(Fifo::first()));
        self.set_leaf(now, class, inner).is_ok()
    }

    /// Where the class is no leaf, for the default class.
    fn enqueue_filtered(&mut self, now: Nanos, class: ClassId, packet: P) -> Enqueued {
        match self.leaf_of(class).or_else(|| self.leaf_of(self.default?)) {
            Some(key) => self.enqueue_leaf(now, key, packet),
            None => self.refuse(),
        }
    }

    fn has_filters(&self) -> bool {
        true
    }

    fn hands_on(&self, class: ClassId) -> bool {
        self.inner(class).is_none()
    }

    fn describe_root_class(&self) -> Option<TcDescription> {
        let options = TcProperties::default();
        Some(TcDescription { options, figures: figures(&self.root_statistics()) })
    }

    /// Of leaves: of what is below a class `tc` shows the work, and nothing as sent or dropped by itself.
    fn class_statistics(&self, class: ClassId) -> Option<Statistics> {
        let told = Self::class_statistics(self, class)?.queue;
        Some(if self.inner(class).is_some() { told } else { Statistics::default() })
    }

    fn remove_class(&mut self, class: ClassId) -> Result<(), TcRefusal> {
        Self::remove_class(self, class).map_err(HfscError::into)
    }
}
