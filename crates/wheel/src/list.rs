//! Nodes that are linked to each other, and how they are reached: by address or by index.
//!
//! A node belongs to the caller; a queue only links it. [`Nodes`] says how a queue gets from a reference
//! to the node: [`Pinned`] nodes are reached by address and live wherever the caller put them; the
//! [`Slots`](crate::Slots) of the safe interface are reached by index. Queues are written once, for both.
//!
//! Invariants: the last node of a list has no next one; `previous` of the first node is the last node;
//! elsewhere `next` and `previous` of neighbours agree. All links are `Cell`s, so a node is only ever shared.
//!
//! This is the one file of the crate with `unsafe` in it: making a [`NodeRef`] and following it. Absent:
//! atomics and locks. One owner at a time uses a queue and its nodes, so no model of interleavings is
//! needed here; whoever shares a queue brings the lock.
#![allow(unsafe_code, reason = "a node reached by address has the validity that its owner promised")]

use crate::node::{Links, WheelNodes};
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// How a queue reaches the nodes that it links.
///
/// ```
/// use quietcore_wheel::{Node, NodeRef, Nodes, Pinned};
///
/// let node = Box::pin(Node::new(7));
/// // SAFETY: the node is pinned, and it is never linked here.
/// let reference = unsafe { NodeRef::new((&*node).into()) };
/// assert_eq!(Pinned::default().get(reference).value, 7);
/// ```
pub trait Nodes {
    /// What is linked.
    type Node;
    /// Names a node.
    type Ref: Copy + PartialEq + fmt::Debug;

    /// The node that `node` names.
    fn get(&self, node: Self::Ref) -> &Self::Node;
}

/// Nodes that are reached by address. Holds nothing.
///
/// ```
/// use quietcore_wheel::{Node, Pinned};
///
/// assert_eq!(size_of::<Pinned<Node<u8>>>(), 0);
/// ```
pub struct Pinned<N>(PhantomData<fn() -> N>);

impl<N> Nodes for Pinned<N> {
    type Node = N;
    type Ref = NodeRef<N>;

    #[inline]
    fn get(&self, node: NodeRef<N>) -> &N {
        // SAFETY: whoever made the `NodeRef` promised in `NodeRef::new` that the node stays valid for
        // shared access while a queue links it, during this call, and while the result is in use.
        unsafe { node.0.as_ref() }
    }
}

impl<N> Default for Pinned<N> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<N> fmt::Debug for Pinned<N> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Pinned")
    }
}

/// The address of a node that its owner keeps in place.
///
/// ```
/// use quietcore_wheel::{Node, NodeRef};
///
/// let node = Box::pin(Node::new("request 7"));
/// // SAFETY: the node is pinned, and it is never linked here.
/// let reference = unsafe { NodeRef::new((&*node).into()) };
/// assert_eq!(reference, reference);
/// ```
pub struct NodeRef<N>(NonNull<N>);

impl<N> NodeRef<N> {
    /// Names the node at `node`.
    ///
    /// # Safety
    /// From the moment that a queue links the node until it is idle again (cancelled, or handed out as
    /// expired), during each call that gets this reference or a copy, and as long as a `&N` that
    /// [`Nodes::get`] made of it is in use:
    ///
    /// - the node stays valid, at its address, and is only accessed through shared references;
    /// - at most one queue links it, and every reference to it, however made, goes to that queue alone, on
    ///   one thread at a time.
    ///
    /// If `N` is a type of your own, its `AsRef` for the links gives the same links each time, which belong
    /// to this node alone, and does not panic.
    ///
    /// The exception: a queue may be dropped while it links nodes. Such a node is never idle again; it must
    /// not be passed to any queue, only dropped.
    ///
    /// ```
    /// # use quietcore_wheel::{Node, NodeRef};
    /// let node = Box::pin(Node::new(7));
    /// // SAFETY: the node is pinned, and it is never linked here.
    /// let reference = unsafe { NodeRef::new((&*node).into()) };
    /// # let _: NodeRef<Node<i32>> = reference;
    /// ```
    #[inline]
    #[must_use]
    pub const unsafe fn new(node: NonNull<N>) -> Self {
        Self(node)
    }

    /// The address.
    ///
    /// ```
    /// # use quietcore_wheel::{Node, NodeRef};
    /// let node = Box::pin(Node::new(7));
    /// // SAFETY: the node is pinned, and it is never linked here.
    /// let reference = unsafe { NodeRef::new((&*node).into()) };
    /// assert_eq!(reference.as_ptr().as_ptr().cast_const(), &raw const *node);
    /// ```
    #[inline]
    #[must_use]
    pub const fn as_ptr(self) -> NonNull<N> {
        self.0
    }
}

impl<N> Copy for NodeRef<N> {}

impl<N> Clone for NodeRef<N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N> PartialEq for NodeRef<N> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<N> Eq for NodeRef<N> {}

impl<N> fmt::Debug for NodeRef<N> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "NodeRef({:p})", self.0)
    }
}

/// A list, known by its first node. Every operation costs O(1).
///
/// `previous` of the first node is the last one, so that two lists can be joined.
#[derive(Debug)]
pub(crate) struct List<R> {
    pub(crate) first: Option<R>,
}

impl<R: Copy + PartialEq> List<R> {
    pub(crate) const fn new() -> Self {
        Self { first: None }
    }

    /// Returns whether the list was empty.
    #[inline]
    pub(crate) fn push_front(&mut self, nodes: &impl WheelNodes<Ref = R>, node: R) -> bool {
        let links = nodes.links(node);
        links.next.set(self.first);
        let first = self.first.replace(node);
        match first {
            Some(first) => {
                let first = nodes.links(first);
                links.previous.set(first.previous.get());
                first.previous.set(Some(node));
            }
            None => links.previous.set(Some(node)),
        }
        first.is_none()
    }

    /// Moves all of `other` behind our last node.
    pub(crate) fn append(&mut self, nodes: &impl WheelNodes<Ref = R>, other: &mut Self) {
        let Some(theirs) = other.first.take() else { return };
        match self.first {
            Some(ours) => {
                let (ours, first) = (nodes.links(ours), nodes.links(theirs));
                let last = first.previous.get();
                first.previous.set(ours.previous.get());
                if let Some(our_last) = ours.previous.get() {
                    nodes.links(our_last).next.set(Some(theirs));
                }
                ours.previous.set(last);
            }
            None => self.first = Some(theirs),
        }
    }

    #[inline]
    pub(crate) fn pop_front(&mut self, nodes: &impl WheelNodes<Ref = R>) -> Option<R> {
        let node = self.first?;
        self.remove_first(nodes, nodes.links(node));
        Some(node)
    }

    #[inline]
    fn remove_first(&mut self, nodes: &impl WheelNodes<Ref = R>, links: &Links<R>) {
        self.first = links.next.get();
        if let Some(next) = self.first {
            nodes.links(next).previous.set(links.previous.get());
        }
    }

    /// Whether `node`, which is in a list, is this list's last.
    fn ends_with(&self, nodes: &impl WheelNodes<Ref = R>, node: R) -> bool {
        self.first.is_some_and(|first| nodes.links(first).previous.get() == Some(node))
    }
}

/// Takes `node` out of whichever of two lists it is in: a node does not know its list, but only the ends
/// of a list matter, and those can be compared. Returns whether that left `likely` empty.
#[inline]
pub(crate) fn unlink<R: Copy + PartialEq>(
    nodes: &impl WheelNodes<Ref = R>,
    node: R,
    likely: &mut List<R>,
    other: &mut List<R>,
) -> bool {
    let links = nodes.links(node);
    if likely.first == Some(node) {
        likely.remove_first(nodes, links);
        return likely.first.is_none();
    }
    if other.first == Some(node) {
        other.remove_first(nodes, links);
        return false;
    }
    // Neither list begins with it, so the node before it is a true predecessor.
    let previous = links.previous.get();
    let next = links.next.get();
    if let Some(previous) = previous {
        nodes.links(previous).next.set(next);
    }
    let after = match next {
        Some(next) => Some(next),
        None if likely.ends_with(nodes, node) => likely.first,
        None => other.first,
    };
    if let Some(after) = after {
        nodes.links(after).previous.set(previous);
    }
    false
}
