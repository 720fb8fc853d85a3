//! What all disciplines are to the caller that drives them.

use crate::{Packet, Statistics};
use core::any::Any;
use core::fmt;
use quietcore_core::Nanos;

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Enqueued {
    /// It is in the queue.
    Queued,
    /// It was dropped, as the link it plays would have lost it: its sender is to notice by itself.
    Lost,
    /// It was dropped for want of room, which its sender may be told.
    Dropped,
}

impl Enqueued {
    /// Whether the sender is told that all is well.
    #[must_use]
    pub const fn is_accepted(self) -> bool {
        !matches!(self, Self::Dropped)
    }
}

/// What a queue has now.
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
    pub fn packet(self) -> Option<P> {
        match self {
            Self::Packet(packet) => Some(packet),
            Self::Throttled(_) | Self::Empty => None,
        }
    }
}

/// What a discipline has of a second timer, besides the moment that [`Dequeued::Throttled`] names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DelayTimer {
    /// As it is told now, it needs none.
    #[default]
    Absent,
    /// It needs one, which is not armed now.
    Idle,
    /// It is for this moment.
    Until(Nanos),
}

impl DelayTimer {
    /// One timer for both: the earlier moment.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Until(one), Self::Until(another)) => Self::Until(one.min(another)),
            (Self::Until(one), _) | (_, Self::Until(one)) => Self::Until(one),
            (Self::Idle, _) | (_, Self::Idle) => Self::Idle,
            (Self::Absent, Self::Absent) => Self::Absent,
        }
    }

    /// The moment, if there is one.
    #[must_use]
    pub const fn until(self) -> Option<Nanos> {
        match self {
            Self::Until(moment) => Some(moment),
            Self::Absent | Self::Idle => None,
        }
    }
}

/// A queueing discipline. All calls come from one thread at a time, and `now` never goes back.
///
/// One that is running is changed as what it is: a `&mut dyn Qdisc` is a `&mut dyn Any`, too.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{Dequeued, Fifo, FifoLimit, Packet, Qdisc};
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
/// let mut queue = Fifo::new(FifoLimit::Packets(10));
/// assert!(queue.enqueue(Nanos(0), vec![1; 100]).is_accepted());
/// assert_eq!(drain(&mut queue, Nanos(0), |packet| assert_eq!(packet.len(), 100)), None);
///
/// let running: &mut dyn Qdisc<Vec<u8>> = &mut queue;
/// let running: &mut dyn core::any::Any = running;
/// assert!(running.downcast_mut::<Fifo<Vec<u8>>>().is_some());
/// ```
pub trait Qdisc<P: Packet>: Any + fmt::Debug + Send {
    /// The name that it has in `tc`.
    fn kind(&self) -> &'static str;

    /// Takes a packet that arrives at `now`.
    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued;

    /// How long the packet is that [`dequeue`](Self::dequeue) gives next, if that is known without taking it
    /// out.
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

    /// Whether it holds nothing: asked with every packet where it is inside of another one, so a discipline
    /// that can tell without adding up all of its [`statistics`](Self::statistics) should.
    fn is_empty(&self) -> bool {
        self.statistics().qlen == 0
    }

    /// Whether it may be given several packets of a stream as [one](Packet::packets): it decides nothing for
    /// each of them, as it is told now, and nor does what is inside.
    ///
    /// Changes only when it, or something inside, is told something else. Where it changes while such a
    /// packet is queued, that one passes as it is. Costs as much as what is inside.
    fn keeps_whole(&self) -> bool {
        false
    }

    /// The second timer, of those that have one: `cbq`, and what has a `cbq` inside.
    ///
    /// Whether it needs one changes only when it, or something inside, is told something else. Costs as much
    /// as what is inside.
    fn delays(&self) -> DelayTimer {
        DelayTimer::Absent
    }

    /// Does what is due at `now` of what the second timer is for.
    fn end_delays(&mut self, now: Nanos) {
        let _ = now;
    }
}
