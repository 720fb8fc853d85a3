//! A timer of the wheel: its links and what the wheel remembers of it.
//!
//! Who writes what: the wheel that links a node writes all of [`Links`]; the caller owns the value beside
//! them. `bucket` is [`IDLE`] exactly while the timer is not pending; a collected timer that was not yet
//! handed out is still pending and keeps its bucket.

use crate::{NodeRef, Nodes, Precision, Tick};
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomPinned;

/// Stands for "in no bucket"; beyond every bucket's number.
const IDLE: u16 = u16::MAX;

/// What a wheel keeps in each timer. `R` names a timer: an address or an index.
pub struct Links<R> {
    /// Written by `list.rs`; say nothing while the timer is idle.
    pub(crate) next: Cell<Option<R>>,
    pub(crate) previous: Cell<Option<R>>,
    /// As asked for, in ticks. Says nothing while the timer is idle.
    expires: Cell<Tick>,
    /// Where the sixth node behind this one was when this one was linked: a [hint](Nodes::hint).
    pub(crate) ahead: Cell<u32>,
    bucket: Cell<u16>,
    precision: Cell<Precision>,
}

impl<R> Links<R> {
    /// Of an idle timer.
    pub(crate) const fn new(precision: Precision) -> Self {
        Self {
            next: Cell::new(None),
            previous: Cell::new(None),
            expires: Cell::new(Tick(0)),
            ahead: Cell::new(0),
            bucket: Cell::new(IDLE),
            precision: Cell::new(precision),
        }
    }

    #[inline]
    pub(crate) fn expires(&self) -> Tick {
        self.expires.get()
    }

    #[inline]
    pub(crate) fn set_expires(&self, expires: Tick) {
        self.expires.set(expires);
    }

    #[inline]
    pub(crate) fn bucket(&self) -> u16 {
        self.bucket.get()
    }

    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        self.bucket.get() != IDLE
    }

    #[inline]
    pub(crate) fn set_bucket(&self, bucket: u16) {
        self.bucket.set(bucket);
    }

    #[inline]
    pub(crate) fn set_idle(&self) {
        self.bucket.set(IDLE);
    }

    #[inline]
    pub(crate) fn precision(&self) -> Precision {
        self.precision.get()
    }

    #[inline]
    pub(crate) fn set_precision(&self, precision: Precision) {
        self.precision.set(precision);
    }
}

impl<R> fmt::Debug for Links<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expires = self.is_pending().then(|| self.expires());
        out.debug_struct("Links").field("expires", &expires).field("precision", &self.precision()).finish()
    }
}

/// Of an idle timer of [`Precision::Coarse`].
impl<R> Default for Links<R> {
    fn default() -> Self {
        Self::new(Precision::Coarse)
    }
}

/// Nodes that a [`Wheel`](crate::Wheel) can link.
pub trait WheelNodes: Nodes {
    /// The links of the node that `node` names.
    fn links(&self, node: Self::Ref) -> &Links<Self::Ref>;
}

impl<N: Nodes<Node: AsRef<Links<N::Ref>>>> WheelNodes for N {
    #[inline]
    fn links(&self, node: N::Ref) -> &Links<N::Ref> {
        self.get(node).as_ref()
    }
}

/// A caller-owned timer, reached by address, with a value of the caller's beside the links.
///
/// 32 bytes and the value; with three words of value it is the 56 bytes that this crate promises.
#[derive(Debug)]
pub struct Node<T> {
    links: Links<NodeRef<Self>>,
    /// A pinned node stays where it is.
    _pinned: PhantomPinned,
    /// The caller's. While the timer is pending it is only read through shared references.
    pub value: T,
}

const _: () = assert!(size_of::<Node<()>>() == 32 || size_of::<usize>() != 8);
const _: () = assert!(size_of::<Node<[usize; 3]>>() <= 56);

impl<T> Node<T> {
    /// An idle timer of [`Precision::Coarse`].
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self { links: Links::new(Precision::Coarse), _pinned: PhantomPinned, value }
    }

    /// The same with another precision, which holds for every later arm.
    ///
    /// # Panics
    /// While the timer is pending.
    #[must_use]
    pub fn with_precision(self, precision: Precision) -> Self {
        assert!(!self.is_pending(), "the precision of a pending timer cannot change");
        self.links.set_precision(precision);
        self
    }

    /// How exactly it is kept.
    #[must_use]
    pub fn precision(&self) -> Precision {
        self.links.precision()
    }

    /// Whether it is armed and was not handed out yet.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.links.is_pending()
    }

    /// The tick that it was last armed for; `None` while it is idle.
    #[must_use]
    pub fn expires(&self) -> Option<Tick> {
        self.is_pending().then(|| self.links.expires())
    }

    /// The tick that it was last armed for, also after it was handed out or cancelled; `Tick(0)` before its
    /// first arm. For its runner, to say how late it is.
    #[inline]
    #[must_use]
    pub fn last_expires(&self) -> Tick {
        self.links.expires()
    }
}

impl<T> AsRef<Links<NodeRef<Self>>> for Node<T> {
    #[inline]
    fn as_ref(&self) -> &Links<NodeRef<Self>> {
        &self.links
    }
}
