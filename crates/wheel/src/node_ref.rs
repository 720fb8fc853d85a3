//! How nodes are reached: by address or by index.
//!
//! A node belongs to the caller; a queue only links it. [`Nodes`] says how a queue gets from a reference
//! to the node: [`Pinned`] nodes are reached by address and live wherever the caller put them; the
//! [`Slots`](crate::Slots) of the safe interface are reached by index. Queues are written once, for both. All
//! links are `Cell`s, so a node is only ever shared.
//!
//! This is the one file of the crate with `unsafe` in it: making a [`NodeRef`], following it, and asking the
//! processor for the memory of one. One owner at a time uses a queue and its nodes; a caller that shares a
//! queue brings the lock.
#![allow(unsafe_code, reason = "a node reached by address has the validity that its owner promised")]

use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// How a queue reaches the nodes that it links.
pub trait Nodes {
    /// What is linked.
    type Node;
    /// Names a node.
    type Ref: Copy + PartialEq + fmt::Debug;

    /// The node that `node` names.
    fn get(&self, node: Self::Ref) -> &Self::Node;

    /// Where the node is that `find` finds, for [`prefetch`](Self::prefetch); 0 if there is none. It may
    /// outlive the node, so it is never followed. As it comes this is 0 for every node, and none is looked
    /// for.
    #[inline]
    fn hint(&self, find: impl FnOnce() -> Option<Self::Ref>) -> u32 {
        let _ = find;
        0
    }

    /// The node that gave `hint` will be needed soon, if it is still there; `other` is one of the same kind.
    #[inline]
    fn prefetch(&self, other: Self::Ref, hint: u32) {
        let _ = (other, hint);
    }

    /// The links of `node` will be needed soon.
    #[inline]
    fn prefetch_links(&self, node: Self::Ref) {
        let _ = node;
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes in front of a node, where an owner may count references.
const IN_FRONT: usize = 16;

/// Lines of these bytes, of a node, and of what its owner keeps behind it for the time when it is due.
const PREFETCHED: usize = 4;

/// Asks for the memory of what is at `address`, whatever is there: it will be needed soon. For callers that
/// arm or cancel many timers, each a little before its turn. Cost: an instruction per 64 bytes.
#[inline]
pub fn prefetch<T>(address: *const T) {
    let (first, end) = (address.addr() / LINE * LINE, address.addr().saturating_add(size_of::<T>()));
    (first..end).step_by(LINE).for_each(prefetch_line);
}

/// Asks the processor to load the line at `address`, whatever is there. Nothing where the compiler offers no
/// such instruction.
#[inline]
fn prefetch_line(address: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction accesses no memory as far as the program can tell, and faults at no
        // address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::without_provenance(address)) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// Nodes that are reached by address. Holds nothing.
pub struct Pinned<N>(PhantomData<fn() -> N>);

impl<N> Nodes for Pinned<N> {
    type Node = N;
    type Ref = NodeRef<N>;

    #[inline]
    fn get(&self, node: NodeRef<N>) -> &N {
        // SAFETY: the maker of the `NodeRef` promised in `NodeRef::new` that the node stays valid for
        // shared access while a queue links it, during this call, and while the result is in use.
        unsafe { node.0.as_ref() }
    }

    /// The first cache line, without what all of a heap's lines have in common.
    #[inline]
    fn hint(&self, find: impl FnOnce() -> Option<NodeRef<N>>) -> u32 {
        find().map_or(0, |node| (node.0.as_ptr().addr().saturating_sub(IN_FRONT) / LINE) as u32)
    }

    #[inline]
    fn prefetch(&self, other: NodeRef<N>, hint: u32) {
        if hint == 0 {
            return;
        }
        let high = (other.0.as_ptr().addr() / LINE) & !(u32::MAX as usize);
        let first = (high | hint as usize) * LINE;
        for line in 0..PREFETCHED {
            prefetch_line(first.wrapping_add(line * LINE));
        }
    }

    #[inline]
    fn prefetch_links(&self, node: NodeRef<N>) {
        prefetch_line(node.0.as_ptr().addr());
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
    #[inline]
    #[must_use]
    pub const unsafe fn new(node: NonNull<N>) -> Self {
        Self(node)
    }

    /// The address.
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
