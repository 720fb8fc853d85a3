//! A discipline inside another one, of which the outer one may look at the next packet first.
//!
//! Where the inner one cannot tell, looking takes the packet out and holds it here until it is taken; it
//! still counts as queued, and as not yet sent, but the inner discipline has room for one more. Source:
//! Linux `qdisc_peek_dequeued` (include/net/sch_generic.h), by behaviour.

use crate::{DelayTimer, Dequeued, Enqueued, Fifo, Packet, Qdisc, Statistics};
use alloc::boxed::Box;
use core::fmt::Debug;
use quietcore_core::Nanos;

/// A discipline that belongs to another one.
#[derive(Debug)]
pub struct InnerQdisc<P> {
    qdisc: Box<dyn Qdisc<P>>,
    held: Option<P>,
    /// Held when it was reset, bytes and packets: the inner one has counted them as sent.
    withdrawn: (u64, u64),
}

impl<P: Packet + Debug> InnerQdisc<P> {
    /// Puts `qdisc` into another one.
    #[must_use]
    pub fn new(qdisc: impl Qdisc<P> + 'static) -> Self {
        Self::boxed(Box::new(qdisc))
    }

    /// What a class has inside to begin with: a `pfifo` of 1,000 packets.
    #[must_use]
    pub fn first() -> Self
    where
        P: Send,
    {
        Self::new(Fifo::first())
    }

    /// The same for one whose type is not known.
    #[must_use]
    pub fn boxed(qdisc: Box<dyn Qdisc<P>>) -> Self {
        Self { qdisc, held: None, withdrawn: (0, 0) }
    }

    /// Puts another in its place, or what a class begins with; returns how many packets are dropped with it:
    /// those that it held, and those that it had dropped itself and the discipline around it counts from now
    /// on.
    pub(crate) fn graft(&mut self, inner: Option<Box<dyn Qdisc<P>>>) -> u64
    where
        P: Send,
    {
        let before = core::mem::replace(self, inner.map_or_else(Self::first, Self::boxed)).statistics();
        before.dropped + before.qlen
    }

    /// Its name in `tc`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.qdisc.kind()
    }

    /// The discipline itself, to look at.
    #[must_use]
    pub fn qdisc(&self) -> &dyn Qdisc<P> {
        &*self.qdisc
    }

    /// The discipline itself, to change. What was looked at already stays what leaves next.
    pub fn qdisc_mut(&mut self) -> &mut dyn Qdisc<P> {
        &mut *self.qdisc
    }

    /// Whether several packets of a stream may come to it as one.
    #[must_use]
    pub fn keeps_whole(&self) -> bool {
        self.qdisc.keeps_whole()
    }

    /// Its second timer.
    #[must_use]
    pub fn delays(&self) -> DelayTimer {
        self.qdisc.delays()
    }

    /// Does what its second timer is for.
    pub fn end_delays(&mut self, now: Nanos) {
        self.qdisc.end_delays(now);
    }

    /// Gives it a packet.
    pub fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        self.qdisc.enqueue(now, packet)
    }

    /// How long the packet is that [`dequeue`](Self::dequeue) would give now.
    pub fn peek(&mut self, now: Nanos) -> Dequeued<u32> {
        if self.held.is_none() {
            if let Some(bytes) = self.qdisc.head() {
                return Dequeued::Packet(bytes);
            }
            match self.qdisc.dequeue(now) {
                Dequeued::Packet(packet) => self.held = Some(packet),
                Dequeued::Throttled(until) => return Dequeued::Throttled(until),
                Dequeued::Empty => return Dequeued::Empty,
            }
        }
        self.held.as_ref().map_or(Dequeued::Empty, |packet| Dequeued::Packet(packet.len()))
    }

    /// Takes its next packet.
    pub fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        self.held.take().map_or_else(|| self.qdisc.dequeue(now), Dequeued::Packet)
    }

    /// Whether it holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_none() && self.qdisc.is_empty()
    }

    /// Empties it.
    pub fn reset(&mut self, now: Nanos) {
        if let Some(held) = self.held.take() {
            self.withdrawn.0 += u64::from(held.len());
            self.withdrawn.1 += u64::from(held.packets());
        }
        self.qdisc.reset(now);
    }

    /// Its statistics; a packet that was looked at has not left.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.qdisc.statistics();
        statistics.sent_bytes -= self.withdrawn.0;
        statistics.sent_packets -= self.withdrawn.1;
        if let Some(held) = &self.held {
            statistics.sent_bytes -= u64::from(held.len());
            statistics.sent_packets -= u64::from(held.packets());
            statistics.arrived(held.size());
        }
        statistics
    }
}

#[cfg(test)]
mod tests {
    use super::InnerQdisc;
    use crate::{Dequeued, Fifo, FifoLimit, Fq, FqSettings, Statistics};
    use alloc::vec;
    use alloc::vec::Vec;
    use quietcore_core::Nanos;

    /// Goal: what was only looked at is neither sent nor gone. Method: two packets, a look before each step;
    /// a discipline that tells how long its next packet is, and one out of which that is taken.
    #[test]
    fn a_look_changes_no_statistics() {
        check(InnerQdisc::new(Fifo::new(FifoLimit::Packets(10))), "pfifo");
        check(InnerQdisc::new(Fq::new(FqSettings::default()).expect("defaults")), "fq");
    }

    fn check(mut child: InnerQdisc<Vec<u8>>, kind: &str) {
        assert_eq!(child.kind(), kind);
        for bytes in [60, 100] {
            assert!(child.enqueue(Nanos(0), vec![0_u8; bytes]).is_accepted());
        }
        let before = child.statistics();
        assert_eq!(child.peek(Nanos(0)), Dequeued::Packet(60));
        assert_eq!(child.peek(Nanos(0)), Dequeued::Packet(60));
        assert_eq!(child.statistics(), before);
        assert_eq!(child.dequeue(Nanos(0)), Dequeued::Packet(vec![0; 60]));
        assert_eq!((child.statistics().sent_bytes, child.statistics().backlog), (60, 100));
        assert_eq!(child.peek(Nanos(0)), Dequeued::Packet(100));
        assert_eq!((child.statistics().sent_bytes, child.statistics().qlen), (60, 1));
        child.reset(Nanos(0));
        let sent = Statistics { sent_bytes: 60, sent_packets: 1, ..Statistics::default() };
        assert_eq!((child.statistics(), child.is_empty()), (sent, true));
    }
}
