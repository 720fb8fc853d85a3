//! A timer of the exact queue: its links and what the queue remembers of it.
//!
//! Who writes what: the queue that links a node writes all of [`ExactLinks`]; the caller owns the value
//! beside them. `order` is 0 exactly while the timer is not pending.

use crate::{NodeRef, Nodes};
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomPinned;

/// When a timer may and when it must run, in nanoseconds of the caller's clock.
///
/// Between `soft` and `hard` the timer may run together with a neighbour, so that one interrupt or wake-up
/// serves both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Expiry {
    /// Not before this.
    pub soft: u64,
    /// When to wake up for it at the latest; not before `soft`.
    pub hard: u64,
}

impl Expiry {
    /// Exactly at `ns`.
    #[must_use]
    pub const fn at(ns: u64) -> Self {
        Self { soft: ns, hard: ns }
    }

    /// At `ns` or up to `slack` nanoseconds later; ends at the end of time.
    #[must_use]
    pub const fn with_slack(ns: u64, slack: u64) -> Self {
        Self { soft: ns, hard: ns.saturating_add(slack) }
    }
}

/// What an exact queue keeps in each timer. `R` names a timer: an address or an index.
pub struct ExactLinks<R> {
    /// The child of the highest rank.
    pub(super) child: Cell<Option<R>>,
    /// The sibling with the next lower rank.
    pub(super) next: Cell<Option<R>>,
    /// The sibling before; of a first child its parent; of a root nothing.
    pub(super) previous: Cell<Option<R>>,
    soft: Cell<u64>,
    hard: Cell<u64>,
    /// Arms so far when this one happened, from 1 on, and below it [`RANK_BITS`] bits of rank.
    order: Cell<u64>,
}

/// Ranks are below 64: a tree of rank 63 would have more nodes than memory has bytes.
pub(super) const RANK_BITS: u32 = 6;
const RANK_MASK: u64 = (1 << RANK_BITS) - 1;

impl<R> Default for ExactLinks<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> ExactLinks<R> {
    /// Of an idle timer.
    pub(crate) const fn new() -> Self {
        Self {
            child: Cell::new(None),
            next: Cell::new(None),
            previous: Cell::new(None),
            soft: Cell::new(0),
            hard: Cell::new(0),
            order: Cell::new(0),
        }
    }

    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        self.order.get() != 0
    }

    #[inline]
    pub(super) fn set_idle(&self) {
        self.order.set(0);
    }

    #[inline]
    pub(crate) fn expiry(&self) -> Expiry {
        Expiry { soft: self.soft.get(), hard: self.hard.get() }
    }

    /// As a tree of one node. `sequence` is at least 1 and larger than all before.
    #[inline]
    pub(super) fn set_pending(&self, expiry: Expiry, sequence: u64) {
        self.child.set(None);
        self.soft.set(expiry.soft);
        self.hard.set(expiry.hard);
        self.order.set(sequence << RANK_BITS);
    }

    /// No two pending timers have the same. The rank is below a sequence that differs, so it says nothing.
    #[inline]
    pub(super) fn key(&self) -> (u64, u64) {
        (self.hard.get(), self.order.get())
    }

    #[inline]
    pub(super) fn rank(&self) -> u32 {
        (self.order.get() & RANK_MASK) as u32
    }

    #[inline]
    pub(super) fn set_rank(&self, rank: u32) {
        self.order.set(self.order.get() & !RANK_MASK | u64::from(rank));
    }
}

impl<R> fmt::Debug for ExactLinks<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expiry = self.is_pending().then(|| self.expiry());
        out.debug_struct("ExactLinks").field("expiry", &expiry).finish_non_exhaustive()
    }
}

/// Nodes that an [`ExactQueue`](crate::ExactQueue) can link.
pub trait ExactNodes: Nodes {
    /// The links of the node that `node` names.
    fn exact_links(&self, node: Self::Ref) -> &ExactLinks<Self::Ref>;
}

impl<N: Nodes<Node: AsRef<ExactLinks<N::Ref>>>> ExactNodes for N {
    #[inline]
    fn exact_links(&self, node: N::Ref) -> &ExactLinks<N::Ref> {
        self.get(node).as_ref()
    }
}

/// A caller-owned exact timer, reached by address, with a value of the caller's beside the links.
///
/// 48 bytes and the value; with one word of value it is 56 bytes.
#[derive(Debug)]
pub struct ExactNode<T> {
    links: ExactLinks<NodeRef<Self>>,
    /// A pinned node stays where it is.
    _pinned: PhantomPinned,
    /// The caller's. While the timer is pending it is only read through shared references.
    pub value: T,
}

const _: () = assert!(size_of::<ExactNode<usize>>() <= 56);

impl<T> ExactNode<T> {
    /// An idle timer.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self { links: ExactLinks::new(), _pinned: PhantomPinned, value }
    }

    /// Whether it is armed and was not handed out yet.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.links.is_pending()
    }

    /// What it was last armed for; `None` while it is idle.
    #[must_use]
    pub fn expiry(&self) -> Option<Expiry> {
        self.is_pending().then(|| self.links.expiry())
    }
}

impl<T> AsRef<ExactLinks<NodeRef<Self>>> for ExactNode<T> {
    #[inline]
    fn as_ref(&self) -> &ExactLinks<NodeRef<Self>> {
        &self.links
    }
}
