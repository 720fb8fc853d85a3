//! `pfifo` and `bfifo`: first in, first out, up to a limit of packets or of bytes.
//!
//! What does not fit is dropped on arrival. Source: Linux net/sched/sch_fifo.c, by behaviour.

pub(crate) mod tc;

use crate::packet::WHOLE_ONES_MIN;
use crate::{Dequeued, Enqueued, Packet, PacketSize, Qdisc, Statistics, WHOLE_BYTES_MAX, WHOLE_PACKETS_MAX};
use alloc::collections::VecDeque;
use quietcore_core::Nanos;

/// Packets of a `pfifo` without a limit.
const PFIFO_LIMIT: u32 = 1_000;

/// What a [`Fifo`] holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FifoLimit {
    /// `pfifo`: packets.
    Packets(u32),
    /// `bfifo`: bytes.
    Bytes(u64),
}

/// First in, first out.
#[derive(Debug)]
pub struct Fifo<P> {
    limit: FifoLimit,
    packets: VecDeque<P>,
    statistics: Statistics,
}

impl<P: Packet> Fifo<P> {
    /// An empty one.
    #[must_use]
    pub fn new(limit: FifoLimit) -> Self {
        Self { limit, packets: VecDeque::new(), statistics: Statistics::default() }
    }

    /// A `pfifo` of 1,000 packets: what a class has inside to begin with, as the kernel takes it from a
    /// device's queue length.
    #[must_use]
    pub fn first() -> Self {
        Self::new(FifoLimit::Packets(PFIFO_LIMIT))
    }

    /// What it holds at most.
    #[must_use]
    pub const fn limit(&self) -> FifoLimit {
        self.limit
    }

    /// Another limit for what comes; what is queued stays.
    pub const fn set_limit(&mut self, limit: FifoLimit) {
        self.limit = limit;
    }

    fn has_room(&self, size: PacketSize) -> bool {
        match self.limit {
            FifoLimit::Packets(limit) => self.statistics.qlen + u64::from(size.packets) <= u64::from(limit),
            FifoLimit::Bytes(limit) => self.statistics.backlog + u64::from(size.bytes) <= limit,
        }
    }
}

impl<P: Packet + core::fmt::Debug + Send + 'static> Qdisc<P> for Fifo<P> {
    fn kind(&self) -> &'static str {
        match self.limit {
            FifoLimit::Packets(_) => "pfifo",
            FifoLimit::Bytes(_) => "bfifo",
        }
    }

    fn enqueue(&mut self, _: Nanos, packet: P) -> Enqueued {
        let size = packet.size();
        if !self.has_room(size) {
            self.statistics.dropped += u64::from(size.packets);
            return Enqueued::Dropped;
        }
        self.statistics.arrived(size);
        self.packets.push_back(packet);
        Enqueued::Queued
    }

    fn head(&self) -> Option<u32> {
        self.packets.front().map(Packet::len)
    }

    fn dequeue(&mut self, _: Nanos) -> Dequeued<P> {
        let Some(packet) = self.packets.pop_front() else { return Dequeued::Empty };
        self.statistics.sent(packet.size());
        Dequeued::Packet(packet)
    }

    fn reset(&mut self, _: Nanos) {
        self.packets.clear();
        self.statistics.emptied();
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// A queue that is long enough for some.
    fn keeps_whole(&self) -> bool {
        match self.limit {
            FifoLimit::Packets(limit) => limit >= WHOLE_ONES_MIN * WHOLE_PACKETS_MAX,
            FifoLimit::Bytes(limit) => limit >= u64::from(WHOLE_ONES_MIN * WHOLE_BYTES_MAX),
        }
    }

    fn is_empty(&self) -> bool {
        self.statistics.qlen == 0
    }
}
