//! The classes of an [`Sfq`]: the buckets of flows that hold packets; they have nothing inside.

use super::Sfq;
use super::flows::NONE;
use super::tc::describe_flow;
use crate::classful::{ClassListing, Classful, TcDescription};
use crate::{ClassId, Enqueued, Packet, Statistics};
use alloc::vec::Vec;
use core::fmt::Debug;
use quietcore_core::Nanos;

impl<P: Packet + Debug + Send, R: FnMut() -> u32 + Send + 'static> Classful<P> for Sfq<P, R> {
    /// The last one of 65536 buckets has no number of its own, as in the kernel.
    fn classes(&self) -> Vec<ClassId> {
        let used = (0_u32..).zip(&self.buckets).filter(|(_, flow)| **flow != NONE);
        used.map(|(bucket, _)| ClassId::new(self.settings.major, (bucket + 1) as u16)).collect()
    }

    fn slots(&self) -> Vec<ClassId> {
        Vec::new()
    }

    fn enqueue_filtered(&mut self, now: Nanos, class: ClassId, packet: P) -> Enqueued {
        self.perturb(now);
        let named = self.named_bucket(&packet).or_else(|| self.bucket_of(class));
        if let Some(bucket) = named {
            return self.put(now, bucket, packet);
        }
        self.statistics.dropped += 1;
        Enqueued::Lost
    }

    fn has_filters(&self) -> bool {
        true
    }

    fn class_statistics(&self, class: ClassId) -> Option<Statistics> {
        let flow = self.flow(class)?;
        let mut statistics = Statistics::default();
        (statistics.backlog, statistics.qlen) = (flow.backlog, flow.packets.len().into());
        Some(statistics)
    }

    fn describe_class(&self, class: ClassId) -> TcDescription {
        self.flow(class).map_or_else(TcDescription::default, |flow| describe_flow(flow.allot))
    }

    fn listing(&self) -> ClassListing {
        ClassListing::Queued
    }
}
