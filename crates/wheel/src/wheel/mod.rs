//! The wheel: which timers are due when, for one owner.
//!
//! A timer lies in one bucket until it is due or cancelled; it never moves to a finer level (but see
//! [`Precision::Tick`](crate::Precision::Tick)). One bit per bucket says whether anything is in it.
//!
//! Invariants ([`Wheel::check`] asserts them; the numbers are those of the property tests):
//! - W1: `next_expiry` is the first tick at which a bucket in use is due, unless `is_stale`; then it is
//!   that tick or an earlier one.
//! - W2: a tick's buckets are collected together, and nothing else with them.
//! - W3: a timer is late by 1 tick to one granule of its level.
//! - W4: the clock never goes back and never passes `next_expiry`.
//! - W5: a timer is in one list at most, and knows whether it is in one.
//! - W6, never again after a shutdown, is not the wheel's: it has none, and arms only what it is given.
//! - A bit is set exactly when its bucket's list is not empty.
//!
//! Not here: clocks, callbacks, allocation, locks. Source: Linux 6.12, kernel/time/timer.c. Deviations: a
//! bucket is a doubly ended list, so that due buckets can be collected without touching their timers;
//! an empty wheel is a flag, not an expiry 2^30 ticks ahead; re-arming a timer that was collected but
//! not handed out always moves it (in the kernel it can run 63 ticks early: its new bucket may have the
//! number of the one it was collected from, which counts as "same bucket, nothing to do").

mod check;
mod expire;
mod walk;

use crate::list::{NodeList, unlink};
use crate::node::WheelNodes;
use crate::node_ref::Pinned;
use crate::{Node, Nodes, Placement, Precision, Shape, Tick};
use core::fmt;

/// What [`Wheel::arm`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "when the timer became the first, a thread that waits for the wheel must look again"]
pub struct QueueArm {
    /// The timer was pending before, for another tick or the same.
    pub was_pending: bool,
    /// The wheel's next expiry became earlier.
    pub is_first: bool,
}

/// Timers of one owner, kept in `LEVELS` levels of `BUCKETS` buckets.
///
/// `N` is how nodes are reached: [`Pinned`]`<`[`Node`]`<T>>` by address, caller-owned (see
/// [`IntrusiveWheel`]); [`Timers`](crate::Timers) is the safe interface on top. The default shape is the
/// kernel's with ticks below 10 ms; `Wheel<_, 8>` is the kernel's with longer ones.
///
/// All methods are for the one thread that owns the wheel at that moment; none allocates, blocks or
/// reads a clock.
///
/// ```
/// use quietcore_wheel::{IntrusiveWheel, Node, NodeRef, Tick};
///
/// let node = Box::pin(Node::new("request 7"));
/// // SAFETY: the node is pinned and outlives the wheel, which alone gets the reference.
/// let request = unsafe { NodeRef::new((&*node).into()) };
/// let mut wheel: IntrusiveWheel<&str> = IntrusiveWheel::new(Tick(0));
/// let _ = wheel.arm(request, Tick(30));
/// assert!(wheel.cancel(request));
/// assert_eq!(wheel.next_expired(Tick(1_000)), None);
/// ```
pub struct Wheel<N: Nodes, const LEVELS: usize = 9, const BUCKETS: usize = 64> {
    pub(crate) nodes: N,
    clock: Tick,
    /// Far ahead while nothing is pending.
    next_expiry: Tick,
    is_pending: bool,
    /// A cancel emptied a bucket: `next_expiry` may be too early.
    is_stale: bool,
    /// Per level one bit for each bucket in use.
    occupied: [u64; LEVELS],
    buckets: [[NodeList<N::Ref>; BUCKETS]; LEVELS],
    /// Collected, not yet handed out, in the order of running.
    expired: NodeList<N::Ref>,
    /// How many were taken out of `expired`, modulo 2^32.
    popped: u32,
}

impl<N: Nodes, const LEVELS: usize, const BUCKETS: usize> fmt::Debug for Wheel<N, LEVELS, BUCKETS> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Wheel")
            .field("clock", &self.clock)
            .field("next_expiry", &self.is_pending.then_some(self.next_expiry))
            .field("is_stale", &self.is_stale)
            .field("occupied", &self.occupied)
            .finish_non_exhaustive()
    }
}

/// A wheel of caller-owned nodes that are reached by address.
pub type IntrusiveWheel<T, const LEVELS: usize = 9, const BUCKETS: usize = 64> =
    Wheel<Pinned<Node<T>>, LEVELS, BUCKETS>;

impl<N: WheelNodes + Default> Wheel<N> {
    /// An empty wheel of the default shape whose clock shows `clock`.
    #[must_use]
    pub fn new(clock: Tick) -> Self {
        Self::with_nodes(clock, N::default())
    }
}

impl<N: WheelNodes, const LEVELS: usize, const BUCKETS: usize> Wheel<N, LEVELS, BUCKETS> {
    /// An empty wheel of any shape whose clock shows `clock`.
    #[must_use]
    pub fn with_shape(clock: Tick) -> Self
    where
        N: Default,
    {
        Self::with_nodes(clock, N::default())
    }

    pub(crate) fn with_nodes(clock: Tick, nodes: N) -> Self {
        Self {
            nodes,
            clock,
            next_expiry: Self::far(clock),
            is_pending: false,
            is_stale: false,
            occupied: [0; LEVELS],
            buckets: [const { [const { NodeList::new() }; BUCKETS] }; LEVELS],
            expired: NodeList::new(),
            popped: 0,
        }
    }

    /// Later than any expiry a timer can get.
    const fn far(clock: Tick) -> Tick {
        clock.plus(1 << 62)
    }

    /// The wheel's own clock, in ticks: everything due before it was collected.
    ///
    /// It lags behind the caller's time until [`forward`](Self::forward), and is one ahead of it right
    /// after a [`collect`](Self::collect).
    #[inline]
    #[must_use]
    pub fn clock(&self) -> Tick {
        self.clock
    }

    /// Where a timer for `expires` would be put now.
    #[inline]
    #[must_use]
    pub fn place(&self, expires: Tick, precision: Precision) -> Placement {
        Shape::<LEVELS, BUCKETS>::place(self.clock, expires, precision)
    }

    /// Arms `node` for the tick `expires`, or moves it there if it is pending.
    ///
    /// The timer is handed out after that tick, by as much as its precision allows, counted from the
    /// wheel's [`clock`](Self::clock): call [`forward`](Self::forward) once per turn before arming. An
    /// expiry in the past is due at once, and one 2^63 ticks ahead or more counts as past: there is no
    /// "never". A delay of [`Shape::CUTOFF`] and more is clipped.
    ///
    /// Re-arming into the bucket that the timer is in costs two comparisons; it keeps the lateness of
    /// its present level. Cost: O(1).
    #[inline]
    pub fn arm(&mut self, node: N::Ref, expires: Tick) -> QueueArm {
        let links = self.nodes.links(node);
        if !links.is_pending() {
            let place = self.place(expires, links.precision());
            return QueueArm { was_pending: false, is_first: self.insert(node, expires, place) };
        }
        self.arm_pending(node, expires)
    }

    fn arm_pending(&mut self, node: N::Ref, expires: Tick) -> QueueArm {
        let links = self.nodes.links(node);
        if links.expires() == expires {
            return QueueArm { was_pending: true, is_first: false };
        }
        let place = self.place(expires, links.precision());
        // The bucket's number says where the timer is only if it was not collected from there.
        if place.bucket == links.bucket() && self.expired.first.is_none() {
            links.set_expires(expires);
            return QueueArm { was_pending: true, is_first: false };
        }
        self.detach(node);
        QueueArm { was_pending: true, is_first: self.insert(node, expires, place) }
    }

    /// Arms `node` unless it is pending for `expires` or an earlier tick. Cost: O(1).
    #[inline]
    pub fn reduce(&mut self, node: N::Ref, expires: Tick) -> QueueArm {
        let links = self.nodes.links(node);
        if links.is_pending() && !expires.is_before(links.expires()) {
            return QueueArm { was_pending: true, is_first: false };
        }
        self.arm(node, expires)
    }

    /// Moves `node` to the tick `expires` if it is pending; `None` if it is idle, and it stays so.
    /// Cost: O(1).
    #[inline]
    pub fn mod_pending(&mut self, node: N::Ref, expires: Tick) -> Option<QueueArm> {
        self.nodes.links(node).is_pending().then(|| self.arm(node, expires))
    }

    /// Whether `node` is pending and [`arm`](Self::arm) for `expires` would leave it in its bucket: then it
    /// needs no other wheel, either. Cost: O(1).
    #[inline]
    #[must_use]
    pub fn stays(&self, node: N::Ref, expires: Tick) -> bool {
        let links = self.nodes.links(node);
        links.is_pending()
            && (links.expires() == expires
                || self.expired.first.is_none()
                    && links.bucket() == self.place(expires, links.precision()).bucket)
    }

    /// Asks for the memory that moving `node` or taking it out writes to: its neighbours. For callers that do
    /// so to many, each a little before its turn. Nothing if it is idle. Cost: as a load from `node`.
    #[inline]
    pub fn prefetch_neighbours(&self, node: N::Ref) {
        let links = self.nodes.links(node);
        if links.is_pending() {
            let neighbours = [links.previous.get(), links.next.get()];
            neighbours.into_iter().flatten().for_each(|node| self.nodes.prefetch_links(node));
        }
    }

    /// Takes `node` out; returns whether it was pending. Its memory is free at once. Cost: O(1).
    #[inline]
    pub fn cancel(&mut self, node: N::Ref) -> bool {
        let was_pending = self.detach(node);
        self.nodes.links(node).set_idle();
        was_pending
    }

    /// Puts a node that is in no list at its place; returns whether it is the first to be due now.
    #[inline]
    fn insert(&mut self, node: N::Ref, expires: Tick, place: Placement) -> bool {
        let links = self.nodes.links(node);
        links.set_expires(expires);
        links.set_bucket(place.bucket);
        let bucket = usize::from(place.bucket);
        if self.buckets.as_flattened_mut()[bucket].push_front(&self.nodes, node) {
            self.occupied[bucket / BUCKETS] |= 1 << (bucket % BUCKETS);
        }
        let is_first = place.expiry.is_before(self.next_expiry);
        if is_first {
            self.next_expiry = place.expiry;
            self.is_pending = true;
            self.is_stale = false;
        }
        is_first
    }

    /// Takes a node out of its list, if it is in one; returns whether it was.
    #[inline]
    fn detach(&mut self, node: N::Ref) -> bool {
        let number = usize::from(self.nodes.links(node).bucket());
        // The number of an idle node is beyond all buckets.
        let Some(bucket) = self.buckets.as_flattened_mut().get_mut(number) else { return false };
        if unlink(&self.nodes, node, bucket, &mut self.expired) {
            self.occupied[number / BUCKETS] ^= 1 << (number % BUCKETS);
            self.is_stale = true;
        }
        true
    }
}
