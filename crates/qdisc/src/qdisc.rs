//! What all disciplines are to whoever drives them.

use crate::{Packet, Statistics};
use core::fmt;
use quietcore_core::Nanos;

/// What became of a packet.
///
/// ```
/// use quietcore_qdisc::Verdict;
/// assert!(Verdict::Lost.is_accepted() && !Verdict::Dropped.is_accepted());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It is in the queue.
    Queued,
    /// It was dropped, as the link it plays would have lost it: its sender is to notice by itself.
    Lost,
    /// It was dropped for want of room, which its sender may be told.
    Dropped,
}

impl Verdict {
    /// Whether the sender is told that all is well.
    ///
    /// ```
    /// assert!(quietcore_qdisc::Verdict::Queued.is_accepted());
    /// ```
    #[must_use]
    pub const fn is_accepted(self) -> bool {
        !matches!(self, Self::Dropped)
    }
}

/// What a queue has now.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::Dequeued;
/// assert_eq!(Dequeued::Packet(7).packet(), Some(7));
/// assert_eq!(Dequeued::<u32>::Throttled(Nanos(5)).packet(), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Dequeued<P> {
    /// This packet leaves.
    Packet(P),
    /// None before that moment, unless one is enqueued: when the watchdog is due.
    Throttled(Nanos),
    /// Nothing is queued.
    Empty,
}

impl<P> Dequeued<P> {
    /// The packet, if there is one.
    ///
    /// ```
    /// assert_eq!(quietcore_qdisc::Dequeued::<u32>::Empty.packet(), None);
    /// ```
    pub fn packet(self) -> Option<P> {
        match self {
            Self::Packet(packet) => Some(packet),
            Self::Throttled(_) | Self::Empty => None,
        }
    }
}

/// A queueing discipline. All calls come from one thread at a time, and `now` never goes back.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{Dequeued, Fifo, Limit, Packet, Qdisc};
///
/// /// Sends what may be sent; says when there is more.
/// fn drain<P: Packet>(queue: &mut dyn Qdisc<P>, now: Nanos, mut send: impl FnMut(P)) -> Option<Nanos> {
///     loop {
///         match queue.dequeue(now) {
///             Dequeued::Packet(packet) => send(packet),
///             Dequeued::Throttled(until) => return Some(until),
///             Dequeued::Empty => return None,
///         }
///     }
/// }
/// let mut queue = Fifo::new(Limit::Packets(10));
/// assert!(queue.enqueue(Nanos(0), vec![1; 100]).is_accepted());
/// assert_eq!(drain(&mut queue, Nanos(0), |packet| assert_eq!(packet.len(), 100)), None);
/// ```
pub trait Qdisc<P: Packet>: fmt::Debug + Send {
    /// The name that it has in `tc`.
    ///
    /// ```
    /// use quietcore_qdisc::{Fifo, Limit, Qdisc};
    /// assert_eq!(Qdisc::<Vec<u8>>::kind(&Fifo::new(Limit::Packets(1))), "pfifo");
    /// ```
    fn kind(&self) -> &'static str;

    /// Takes a packet that arrives at `now`.
    fn enqueue(&mut self, now: Nanos, packet: P) -> Verdict;

    /// How long the packet is that [`dequeue`](Self::dequeue) gives next, if that is known without taking it
    /// out.
    ///
    /// ```
    /// # use quietcore_core::Nanos;
    /// # use quietcore_qdisc::{Fifo, Limit, Qdisc};
    /// let mut queue = Fifo::new(Limit::Packets(10));
    /// assert!(queue.enqueue(Nanos(0), vec![0_u8; 60]).is_accepted());
    /// assert_eq!(queue.head(), Some(60));
    /// ```
    fn head(&self) -> Option<u32> {
        None
    }

    /// What may leave at `now`.
    fn dequeue(&mut self, now: Nanos) -> Dequeued<P>;

    /// Drops what is queued, without counting it as dropped, and begins anew at `now`; statistics of what
    /// was sent stay.
    fn reset(&mut self, now: Nanos);

    /// What it has done, and what it holds.
    fn statistics(&self) -> Statistics;
}
