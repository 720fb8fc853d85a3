//! Lists of nodes that are linked to each other.
//!
//! Invariants: the last node of a list has no next one; `previous` of the first node is the last node;
//! elsewhere `next` and `previous` of neighbours agree.

use crate::node::{Links, WheelNodes};

/// How far behind a node the one is that it has a hint of: as many as are taken out while memory is waited
/// for. A node that is put in front looks through that many, which were used a moment ago.
const AHEAD: usize = 6;

/// How many are asked for at a time. A processor that has to look up where an address leads waits for that
/// before it goes far; these are looked up together. The hints are in nodes that were asked for before.
pub(crate) const TOGETHER: u32 = 4;

const _: () = assert!(TOGETHER as usize <= AHEAD);

/// A list, known by its first node. Every operation costs O(1).
///
/// `previous` of the first node is the last one, so that two lists can be joined.
#[derive(Debug)]
pub(crate) struct NodeList<R> {
    pub(crate) first: Option<R>,
}

impl<R: Copy + PartialEq> NodeList<R> {
    pub(crate) const fn new() -> Self {
        Self { first: None }
    }

    /// Returns whether the list was empty.
    #[inline]
    pub(crate) fn push_front(&mut self, nodes: &impl WheelNodes<Ref = R>, node: R) -> bool {
        let links = nodes.links(node);
        links.next.set(self.first);
        let Some(first) = self.first.replace(node) else {
            links.previous.set(Some(node));
            links.ahead.set(0);
            return true;
        };
        let first = nodes.links(first);
        let ahead = || (2..AHEAD).try_fold(first, |links, _| links.next.get().map(|node| nodes.links(node)));
        links.ahead.set(nodes.hint(|| ahead()?.next.get()));
        links.previous.set(first.previous.get());
        first.previous.set(Some(node));
        false
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

    /// Asks for the memory of the [`TOGETHER`] nodes of which the first ones have hints. A long list of
    /// timers is one cache miss after the other: each was last used when it was armed, and says where the
    /// next one is. A node that has left the list since makes a hint useless, no more.
    #[inline(never)]
    pub(crate) fn prefetch(&self, nodes: &impl WheelNodes<Ref = R>) {
        let mut next = self.first;
        for _ in 0..TOGETHER {
            let Some(node) = next else { return };
            let links = nodes.links(node);
            nodes.prefetch(node, links.ahead.get());
            next = links.next.get();
        }
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
    likely: &mut NodeList<R>,
    other: &mut NodeList<R>,
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
