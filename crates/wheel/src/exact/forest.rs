//! The forest of an exact queue: a thin heap whose roots are consolidated at once.
//!
//! Heap-ordered trees, at most one of each rank. Adding counts in binary: two trees of the same rank
//! become one of the next. Taking a node out leaves a gap among the ranks of its siblings, which is
//! filled by a neighbour's child or passed on to a neighbour or the parent, at most once per rank.
//!
//! Invariants (asserted by `check`):
//! - A node comes before all of its children by hard expiry, then by order of arming.
//! - Children have the ranks m-1, m-2, ..., 0. Their parent's own rank is m (it is *full*) or m+1 (it is
//!   *thin*: it lost its first child). Roots are full. So a node of rank r has at least Fibonacci(r + 1)
//!   nodes below it and itself, and ranks stay below 1.44 log2 n.
//! - `roots[r]` is the tree of rank r; bit r of `occupied` says whether there is one.
//!
//! Source: Kaplan, Tarjan: Thin heaps, thick heaps (ACM Transactions on Algorithms, 2008). Deviation: roots
//! are consolidated by every operation, not by the next removal of the first: no single operation is long.

use super::node::ExactNodes;

/// As many as ranks fit into a node.
const RANKS: usize = 1 << super::node::RANK_BITS;

/// What lies before a node among its siblings.
#[derive(Clone, Copy, Debug)]
enum Neighbour<R> {
    Parent(R),
    Sibling(R),
}

/// The trees.
#[derive(Debug)]
pub(super) struct Forest<R> {
    pub(super) roots: [Option<R>; RANKS],
    pub(super) occupied: u64,
}

impl<R: Copy + PartialEq> Forest<R> {
    pub(super) const fn new() -> Self {
        Self { roots: [const { None }; RANKS], occupied: 0 }
    }

    /// The trees that there are.
    pub(super) fn roots_in_use(&self) -> impl Iterator<Item = R> {
        let is_used = |(rank, _): &(usize, &Option<R>)| self.occupied >> rank & 1 != 0;
        self.roots.iter().enumerate().filter(is_used).filter_map(|(_, root)| *root)
    }

    /// The number of children, which is the rank of a full node.
    pub(super) fn full_rank(nodes: &impl ExactNodes<Ref = R>, node: R) -> u32 {
        nodes.exact_links(node).child.get().map_or(0, |child| nodes.exact_links(child).rank() + 1)
    }

    /// Puts a full tree that hangs nowhere into the forest. Cost: one link per rank that is taken.
    pub(super) fn add(&mut self, nodes: &impl ExactNodes<Ref = R>, mut tree: R) {
        loop {
            let rank = nodes.exact_links(tree).rank() as usize;
            let bit = 1 << rank;
            self.occupied ^= bit;
            if self.occupied & bit != 0 {
                self.roots[rank] = Some(tree);
                break;
            }
            if let Some(other) = self.roots[rank] {
                tree = Self::link(nodes, other, tree);
            }
        }
        let links = nodes.exact_links(tree);
        links.next.set(None);
        links.previous.set(None);
    }

    /// Makes the later of two roots of the same rank the first child of the earlier, which is returned.
    fn link(nodes: &impl ExactNodes<Ref = R>, one: R, two: R) -> R {
        let is_second = nodes.exact_links(two).key() < nodes.exact_links(one).key();
        let (top, low) = if is_second { (two, one) } else { (one, two) };
        let (above, below) = (nodes.exact_links(top), nodes.exact_links(low));
        above.set_rank(above.rank() + 1);
        let child = above.child.replace(Some(low));
        below.next.set(child);
        below.previous.set(Some(top));
        if let Some(child) = child {
            nodes.exact_links(child).previous.set(Some(low));
        }
        top
    }

    /// Puts a list of siblings into the forest, thin ones as full trees of a rank less.
    fn add_all(&mut self, nodes: &impl ExactNodes<Ref = R>, mut tree: Option<R>) {
        while let Some(node) = tree {
            tree = nodes.exact_links(node).next.get();
            nodes.exact_links(node).set_rank(Self::full_rank(nodes, node));
            self.add(nodes, node);
        }
    }

    /// The earliest of all. Cost: a look at each root.
    pub(super) fn search(&self, nodes: &impl ExactNodes<Ref = R>) -> Option<R> {
        let (mut rest, mut least) = (self.occupied, None);
        while rest != 0 {
            let root = self.roots[rest.trailing_zeros() as usize];
            let key = |node: Option<R>| node.map(|node| nodes.exact_links(node).key());
            if least.is_none() || key(root) < key(least) {
                least = root;
            }
            rest &= rest - 1;
        }
        least
    }

    /// Takes `node` out, whose children become trees of their own.
    pub(super) fn remove(&mut self, nodes: &impl ExactNodes<Ref = R>, node: R) {
        let links = nodes.exact_links(node);
        let child = links.child.take();
        match links.previous.get() {
            None => self.occupied &= !(1 << links.rank()),
            Some(previous) => {
                let gap = Self::unlink(nodes, node, previous);
                // Loosened trees wait until the gap is closed: one that is added earlier could take the
                // tree that is being mended as its child, or become one of it.
                let loose = self.close(nodes, gap);
                self.add_all(nodes, loose);
            }
        }
        self.add_all(nodes, child);
    }

    /// Takes `node` out of the list of its siblings.
    fn unlink(nodes: &impl ExactNodes<Ref = R>, node: R, previous: R) -> Neighbour<R> {
        let next = nodes.exact_links(node).next.get();
        if let Some(next) = next {
            nodes.exact_links(next).previous.set(Some(previous));
        }
        let before = nodes.exact_links(previous);
        if before.child.get() == Some(node) {
            before.child.set(next);
            return Neighbour::Parent(previous);
        }
        before.next.set(next);
        Neighbour::Sibling(previous)
    }

    /// Deals with the rank that is missing after `gap`; returns a list of trees that came loose.
    fn close(&mut self, nodes: &impl ExactNodes<Ref = R>, mut gap: Neighbour<R>) -> Option<R> {
        let mut loose = None;
        loop {
            match gap {
                Neighbour::Sibling(sibling) => {
                    let links = nodes.exact_links(sibling);
                    if Self::full_rank(nodes, sibling) == links.rank() {
                        Self::lend_first_child(nodes, sibling);
                        return loose;
                    }
                    // It is thin: with a rank less it is full, and it is its own rank that is missing.
                    links.set_rank(links.rank() - 1);
                    let Some(previous) = links.previous.get() else { return loose };
                    let is_first = nodes.exact_links(previous).child.get() == Some(sibling);
                    gap = if is_first { Neighbour::Parent(previous) } else { Neighbour::Sibling(previous) };
                }
                Neighbour::Parent(parent) => {
                    let links = nodes.exact_links(parent);
                    let Some(previous) = links.previous.get() else {
                        // A root has to stay full, so its rank falls.
                        self.occupied &= !(1 << links.rank());
                        links.set_rank(links.rank() - 1);
                        self.add(nodes, parent);
                        return loose;
                    };
                    if links.rank() - Self::full_rank(nodes, parent) == 1 {
                        return loose; // thin from now on
                    }
                    // It was thin before: it leaves its own siblings.
                    gap = Self::unlink(nodes, parent, previous);
                    links.next.set(loose);
                    loose = Some(parent);
                }
            }
        }
    }

    /// Moves the first child of a full node to its right, where a tree of that very rank is missing.
    fn lend_first_child(nodes: &impl ExactNodes<Ref = R>, node: R) {
        let links = nodes.exact_links(node);
        let Some(child) = links.child.get() else { return };
        let (lent, next) = (nodes.exact_links(child), links.next.get());
        let second = lent.next.get();
        links.child.set(second);
        links.next.set(Some(child));
        lent.previous.set(Some(node));
        lent.next.set(next);
        if let Some(second) = second {
            nodes.exact_links(second).previous.set(Some(node));
        }
        if let Some(next) = next {
            nodes.exact_links(next).previous.set(Some(child));
        }
    }
}
