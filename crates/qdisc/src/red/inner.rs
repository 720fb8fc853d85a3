//! What is inside a [`Red`]: what holds the packets.

use super::Red;
use crate::classful::{ClassListing, Classful};
use crate::{ClassId, InnerQdisc, Packet, Qdisc};
use alloc::boxed::Box;
use core::fmt::Debug;
use quietcore_core::Nanos;

impl<P: Packet + Debug + Send, R: FnMut() -> u32 + Send + 'static> Classful<P> for Red<P, R> {
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
