//! What is inside a [`Tbf`]: what holds the packets until there are tokens.

use super::Tbf;
use crate::classful::{ClassListing, Classful};
use crate::{ClassId, Fifo, FifoLimit, InnerQdisc, Packet, Qdisc};
use alloc::boxed::Box;
use core::fmt::Debug;
use quietcore_core::Nanos;

impl<P: Packet + Debug + Send> Classful<P> for Tbf<P> {
    fn wraps_one(&self) -> bool {
        true
    }

    fn listing(&self) -> ClassListing {
        ClassListing::Named
    }

    fn inner(&self, _: ClassId) -> Option<&InnerQdisc<P>> {
        Some(&self.inner)
    }

    fn change_inner(&mut self, _: Nanos, _: ClassId, change: &mut dyn FnMut(&mut InnerQdisc<P>)) {
        change(&mut self.inner);
    }

    fn graft_inner(&mut self, _: Nanos, _: ClassId, inner: Option<Box<dyn Qdisc<P>>>) -> bool {
        self.set_inner(inner.map(InnerQdisc::boxed));
        true
    }
}

impl<P: Packet + Debug + Send> Tbf<P> {
    /// The same before another discipline, whose own limit holds.
    #[must_use]
    pub fn with_inner(mut self, inner: InnerQdisc<P>) -> Self {
        self.set_inner(Some(inner));
        self
    }

    /// Another discipline inside, or a `bfifo` of its limit; what the one before held is dropped.
    pub fn set_inner(&mut self, inner: Option<InnerQdisc<P>>) {
        let before = self.inner.statistics();
        self.own.dropped += before.dropped + before.qlen;
        let limit = self.settings.limit_bytes();
        self.inner = inner.unwrap_or_else(|| InnerQdisc::new(Fifo::new(FifoLimit::Bytes(limit))));
    }
}
