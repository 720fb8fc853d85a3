//! A packet that knows its class, and a queue that may be throttled.
#![allow(dead_code, reason = "each test takes what it needs")]

pub(crate) mod round;

use quietcore_core::Nanos;
use quietcore_qdisc::{ClassId, Dequeued, Enqueued, Fifo, FifoLimit, Packet, Qdisc, Rate, Statistics};

/// A packet without bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parcel {
    pub(crate) number: u32,
    pub(crate) class: ClassId,
    pub(crate) bytes: u32,
}

impl Packet for Parcel {
    fn len(&self) -> u32 {
        self.bytes
    }

    fn priority(&self) -> u32 {
        self.class.0
    }
}

pub(crate) const fn id(minor: u16) -> ClassId {
    ClassId::new(1, minor)
}

pub(crate) fn rate(bytes: u64) -> Rate {
    Rate::bytes_per_second(bytes).expect("a test's rate is not 0")
}

/// The moment of a throttled queue.
pub(crate) fn throttled(dequeued: Dequeued<Parcel>) -> Nanos {
    match dequeued {
        Dequeued::Throttled(until) => until,
        other => panic!("not throttled: {other:?}"),
    }
}

/// Gives a packet every so many nanoseconds.
#[derive(Debug)]
pub(crate) struct Gate {
    inner: Fifo<Parcel>,
    every: u64,
    next: Nanos,
    /// By how much it is wrong about when that is.
    early: u64,
}

impl Gate {
    /// One that gives nothing before `next`.
    pub(crate) fn new(next: Nanos, every: u64, early: u64) -> Self {
        Self { inner: Fifo::new(FifoLimit::Packets(10)), every, next, early }
    }
}

impl Qdisc<Parcel> for Gate {
    fn kind(&self) -> &'static str {
        "gate"
    }

    fn enqueue(&mut self, now: Nanos, packet: Parcel) -> Enqueued {
        self.inner.enqueue(now, packet)
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<Parcel> {
        if self.inner.statistics().qlen > 0 && now < self.next {
            return Dequeued::Throttled(Nanos(self.next.0 - self.early));
        }
        if self.inner.statistics().qlen > 0 {
            self.next = Nanos(now.0.saturating_add(self.every));
        }
        self.inner.dequeue(now)
    }

    fn reset(&mut self, now: Nanos) {
        self.inner.reset(now);
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }
}
