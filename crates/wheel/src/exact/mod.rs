//! The exact queue: timers by the nanosecond, for one owner.
//!
//! Ordered by hard expiry; equal ones in the order in which they were armed. Looking at the first costs a
//! load, and no operation is long: arming costs one link on average and one per rank at most, cancelling and
//! handing out O(log n). The structure, a thin heap, was chosen by measurement among seven; the numbers are
//! in `docs/results/exact-queue.md`.
//!
//! Invariants ([`ExactQueue::check`] asserts them): those of `forest.rs`, and `first` is the earliest of all.
//!
//! Soft and hard expiry are the kernel's (Linux 6.12, kernel/time/hrtimer.c, `hrtimer_start_range_ns` and
//! `__hrtimer_run_queues`): one wakes up for the hard expiry of the first timer, and then hands out timers by
//! hard expiry as long as the soft expiry of the first has come. Deviation: the kernel's queue is a red-black
//! tree. Not here: clocks, allocation, locks.

mod check;
mod forest;
mod node;
mod timers;

pub use node::{ExactLinks, ExactNode, ExactNodes, Expiry};
pub use timers::{ExactExpired, ExactTimers};

use crate::{Nodes, Pinned, QueueArm};
use core::fmt;
use forest::Forest;

/// Timers of one owner, ordered to the nanosecond.
///
/// `N` is how nodes are reached: [`Pinned`]`<`[`ExactNode`]`<T>>` by address, caller-owned (see
/// [`IntrusiveExactQueue`]); [`ExactTimers`] is the safe interface on top. All methods are for the one thread
/// that owns the queue at that moment; none allocates, blocks or reads a clock.
///
/// ```
/// use quietcore_wheel::{ExactNode, Expiry, IntrusiveExactQueue, NodeRef};
///
/// let node = Box::pin(ExactNode::new("beat"));
/// // SAFETY: the node is pinned and outlives the queue, which alone gets the reference.
/// let beat = unsafe { NodeRef::new((&*node).into()) };
/// let mut queue: IntrusiveExactQueue<&str> = IntrusiveExactQueue::new();
/// let _ = queue.arm(beat, Expiry::at(1_000));
/// assert_eq!(queue.pop_expired(1_000), Some(beat));
/// ```
pub struct ExactQueue<N: Nodes> {
    pub(crate) nodes: N,
    forest: Forest<N::Ref>,
    first: Option<N::Ref>,
    /// Arms so far. 58 bits: nine years at one per nanosecond.
    sequence: u64,
}

/// An exact queue of caller-owned nodes that are reached by address.
pub type IntrusiveExactQueue<T> = ExactQueue<Pinned<ExactNode<T>>>;

impl<N: Nodes> fmt::Debug for ExactQueue<N> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ExactQueue").field("first", &self.first).finish_non_exhaustive()
    }
}

impl<N: ExactNodes + Default> Default for ExactQueue<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<N: ExactNodes> ExactQueue<N> {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self
    where
        N: Default,
    {
        Self::with_nodes(N::default())
    }

    pub(crate) const fn with_nodes(nodes: N) -> Self {
        Self { nodes, forest: Forest::new(), first: None, sequence: 0 }
    }

    /// Arms `node`, or moves it if it is pending: then it comes behind those that are equal.
    ///
    /// A hard expiry before the soft one counts as the soft one. Cost: one link on average, O(log n) at most.
    #[inline]
    pub fn arm(&mut self, node: N::Ref, expiry: Expiry) -> QueueArm {
        let before = self.next_expiry();
        let was_pending = self.cancel(node);
        self.sequence += 1;
        let hard = expiry.hard.max(expiry.soft);
        let links = self.nodes.exact_links(node);
        links.set_pending(Expiry { soft: expiry.soft, hard }, self.sequence);
        self.forest.add(&self.nodes, node);
        if self.next_expiry().is_none_or(|first| hard < first) {
            self.first = Some(node);
        }
        QueueArm { was_pending, is_first: before.is_none_or(|before| hard < before) }
    }

    /// Takes `node` out; returns whether it was pending. Its memory is free at once. Cost: O(log n).
    #[inline]
    pub fn cancel(&mut self, node: N::Ref) -> bool {
        let links = self.nodes.exact_links(node);
        if !links.is_pending() {
            return false;
        }
        self.forest.remove(&self.nodes, node);
        self.nodes.exact_links(node).set_idle();
        if self.first == Some(node) {
            self.first = self.forest.search(&self.nodes);
        }
        true
    }

    /// The first timer: the one with the earliest hard expiry, of equal ones the one armed first.
    ///
    /// Cost: a load.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<N::Ref> {
        self.first
    }

    /// When to wake up at the latest, in ns: the hard expiry of the first timer. Cost: two loads.
    #[inline]
    #[must_use]
    pub fn next_expiry(&self) -> Option<u64> {
        self.first.map(|first| self.nodes.exact_links(first).expiry().hard)
    }

    /// Calls `each` with every pending timer, in no order that means anything. For debugging and counts.
    /// Cost: a step per timer; the walk goes as deep as the queue's trees, which is O(log n).
    pub fn for_each_pending(&self, mut each: impl FnMut(N::Ref)) {
        for root in self.forest.roots_in_use() {
            self.walk_tree(root, &mut each);
        }
    }

    fn walk_tree(&self, parent: N::Ref, each: &mut impl FnMut(N::Ref)) {
        each(parent);
        let mut child = self.nodes.exact_links(parent).child.get();
        while let Some(node) = child {
            child = self.nodes.exact_links(node).next.get();
            self.walk_tree(node, each);
        }
    }

    /// Takes the first timer out if its soft expiry has come by `now`; `None` otherwise, even if a later
    /// timer's has: it waits for its turn. Cost: O(log n).
    #[inline]
    pub fn pop_expired(&mut self, now: u64) -> Option<N::Ref> {
        let node = self.first?;
        if now < self.nodes.exact_links(node).expiry().soft {
            return None;
        }
        self.cancel(node);
        Some(node)
    }
}
