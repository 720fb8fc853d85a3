//! The classes of a [`Cake`]: its queues that are in a list, `major:1` the first one of the first tin; they
//! have nothing inside. A filter's class names a queue by its second number, and a host by its first.

use super::tc::describe_flow;
use super::{Cake, NamedPlace, QUEUES};
use crate::classful::{ClassListing, Classful, TcDescription};
use crate::{ClassId, Enqueued, Packet, Statistics};
use alloc::vec::Vec;
use core::fmt::Debug;
use quietcore_core::Nanos;

impl<P: Packet + Debug + Send, R: FnMut() -> u32 + Send + 'static> Classful<P> for Cake<P, R> {
    fn classes(&self) -> Vec<ClassId> {
        self.listed().collect()
    }

    fn slots(&self) -> Vec<ClassId> {
        Vec::new()
    }

    fn enqueue_filtered(&mut self, now: Nanos, class: ClassId, packet: P) -> Enqueued {
        let named = |number: u16| u32::from(number).checked_sub(1).filter(|number| *number < QUEUES as u32);
        let named = NamedPlace { queue: named(class.minor()), host: named(class.major()) };
        self.put(now, named, packet)
    }

    fn has_filters(&self) -> bool {
        true
    }

    fn class_statistics(&self, class: ClassId) -> Option<Statistics> {
        self.flow(self.now, class).map(|flow| flow.statistics)
    }

    fn describe_class(&self, class: ClassId) -> TcDescription {
        self.flow(self.now, class).map_or_else(TcDescription::default, |flow| describe_flow(&flow))
    }

    fn listing(&self) -> ClassListing {
        ClassListing::Queued
    }
}
