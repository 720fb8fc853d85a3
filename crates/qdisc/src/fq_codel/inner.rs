//! The classes of an [`FqCodel`]: its queues that take turns, `major:1` the first of all; they have nothing
//! inside.

use super::FqCodel;
use super::tc::describe_flow;
use crate::classful::{ClassListing, Classful, TcDescription};
use crate::{ClassId, Enqueued, Packet, Statistics};
use alloc::vec::Vec;
use core::fmt::Debug;
use quietcore_core::Nanos;

impl<P: Packet + Debug + Send> Classful<P> for FqCodel<P> {
    /// The last ones of 65536 have no number of their own, as in the kernel.
    fn classes(&self) -> Vec<ClassId> {
        let minors = self.flows.listed().map(|flow| (flow + 1) as u16);
        minors.map(|minor| ClassId::new(self.settings.major, minor)).collect()
    }

    fn slots(&self) -> Vec<ClassId> {
        Vec::new()
    }

    fn enqueue_filtered(&mut self, now: Nanos, class: ClassId, packet: P) -> Enqueued {
        let named = self.named_flow(&packet).or_else(|| self.flow_of(class));
        if let Some(flow) = named {
            return self.put(now, flow, packet);
        }
        self.flows.statistics.dropped += 1;
        Enqueued::Lost
    }

    fn has_filters(&self) -> bool {
        true
    }

    fn class_statistics(&self, class: ClassId) -> Option<Statistics> {
        self.flow(class).map(|flow| flow.statistics)
    }

    fn describe_class(&self, class: ClassId) -> TcDescription {
        self.flow(class).map_or_else(TcDescription::default, |flow| describe_flow(&flow))
    }

    fn listing(&self) -> ClassListing {
        ClassListing::Queued
    }
}
