//! `noqueue`: packets go to the device at once; nothing is delayed, reordered or dropped.
//!
//! What comes while the device takes nothing waits for it, in order, without a limit but the device's memory.
//! Only a device's root can be one. Source: Linux 6.12 net/sched/sch_generic.c, net/core/dev.c, by behaviour.
//! Deviations: what passes is counted, where the kernel shows zeros for ever; packets that a device does not
//! take at once wait, where the kernel drops them.

pub(crate) mod tc;

use crate::classful::Classful;
use crate::{Dequeued, Enqueued, Fifo, FifoLimit, Packet, Qdisc, Statistics};
use core::fmt::Debug;
use quietcore_core::Nanos;

/// No queue: straight to the device.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{Noqueue, Qdisc};
///
/// let mut queue = Noqueue::new();
/// assert!(queue.enqueue(Nanos(0), vec![0; 60]).is_accepted());
/// assert_eq!(queue.dequeue(Nanos(0)).packet(), Some(vec![0; 60]));
/// ```
#[derive(Debug)]
pub struct Noqueue<P>(Fifo<P>);

impl<P: Packet + Debug + Send> Noqueue<P> {
    /// One that holds nothing.
    #[must_use]
    pub fn new() -> Self {
        Self(Fifo::new(FifoLimit::Bytes(u64::MAX)))
    }
}

impl<P: Packet + Debug + Send> Default for Noqueue<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Packet + Debug + Send> Qdisc<P> for Noqueue<P> {
    fn kind(&self) -> &'static str {
        "noqueue"
    }

    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        self.0.enqueue(now, packet)
    }

    fn head(&self) -> Option<u32> {
        self.0.head()
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        self.0.dequeue(now)
    }

    fn reset(&mut self, now: Nanos) {
        self.0.reset(now);
    }

    fn keeps_whole(&self) -> bool {
        self.0.keeps_whole()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn statistics(&self) -> Statistics {
        self.0.statistics()
    }
}

impl<P: Packet + Debug + Send> Classful<P> for Noqueue<P> {}
