//! What is inside a [`Netem`]: through which packets leave when their moment has come.

use super::Netem;
use crate::classful::{ClassListing, Classful};
use crate::{ClassId, InnerQdisc, Packet, Qdisc};
use alloc::boxed::Box;
use core::fmt::Debug;
use quietcore_core::Nanos;

impl<P: Packet + Debug + Send, R: FnMut() -> u32 + Send + 'static> Classful<P> for Netem<P, R> {
    fn wraps_one(&self) -> bool {
        true
    }

    fn listing(&self) -> ClassListing {
        if self.inner.is_some() { ClassListing::Named } else { ClassListing::Hidden }
    }

    fn inner(&self, _: ClassId) -> Option<&InnerQdisc<P>> {
        self.inner.as_ref()
    }

    fn change_inner(&mut self, _: Nanos, _: ClassId, change: &mut dyn FnMut(&mut InnerQdisc<P>)) {
        self.inner.iter_mut().for_each(change);
    }

    /// Without one, packets leave straight.
    fn graft_inner(&mut self, _: Nanos, _: ClassId, inner: Option<Box<dyn Qdisc<P>>>) -> bool {
        self.set_inner(inner.map(InnerQdisc::boxed));
        true
    }
}

impl<P: Packet + Debug + Send, R: FnMut() -> u32 + Send> Netem<P, R> {
    /// Packets whose moment has come leave through `inner`.
    #[must_use]
    pub fn with_inner(mut self, inner: InnerQdisc<P>) -> Self {
        self.set_inner(Some(inner));
        self
    }

    /// From now on packets leave through `inner`, or straight; what the one before held is dropped.
    pub fn set_inner(&mut self, inner: Option<InnerQdisc<P>>) {
        if let Some(before) = core::mem::replace(&mut self.inner, inner) {
            let before = before.statistics();
            self.statistics.dropped += before.dropped + before.qlen;
        }
    }
}
