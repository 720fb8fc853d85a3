//! Asserts every invariant of an exact queue, for tests. Needs no memory: it walks the links.

use super::ExactQueue;
use super::forest::Forest;
use super::node::ExactNodes;

impl<N: ExactNodes> ExactQueue<N> {
    /// Asserts the invariants that the module names, and returns how many timers are pending. For tests:
    /// cost O(n).
    ///
    /// # Panics
    /// When one does not hold, which is a bug of this crate (or a broken promise of
    /// [`NodeRef::new`](crate::NodeRef::new)).
    pub fn check(&self) -> usize {
        let mut count = 0;
        for rank in 0..u64::BITS {
            if self.forest.occupied >> rank & 1 == 0 {
                continue;
            }
            let root = self.forest.roots[rank as usize].expect("the bit of this rank is set");
            let links = self.nodes.exact_links(root);
            assert!(links.previous.get().is_none() && links.next.get().is_none(), "a root hangs nowhere");
            assert_eq!(links.rank(), rank, "a root is at its rank");
            assert_eq!(Forest::full_rank(&self.nodes, root), rank, "a root is full");
            count += self.check_tree(root);
        }
        assert_eq!(self.first, self.forest.search(&self.nodes), "the first timer");
        count
    }

    /// Depth is at most the rank, so recursion is shallow. Returns how many nodes the tree has.
    fn check_tree(&self, parent: N::Ref) -> usize {
        let above = self.nodes.exact_links(parent);
        assert!(above.is_pending(), "{parent:?} is idle");
        let mut rank = Forest::full_rank(&self.nodes, parent);
        assert!(above.rank() - rank <= 1, "{parent:?} is full or thin");
        let (mut previous, mut child, mut count) = (parent, above.child.get(), 1);
        while let Some(node) = child {
            let links = self.nodes.exact_links(node);
            assert_eq!(links.previous.get(), Some(previous), "the way back from {node:?}");
            assert_eq!(links.rank() + 1, rank, "ranks of the children of {parent:?} at {node:?}");
            assert!(above.key() < links.key(), "{parent:?} comes before its child {node:?}");
            count += self.check_tree(node);
            (previous, child, rank) = (node, links.next.get(), links.rank());
        }
        assert_eq!(rank, 0, "the last child of {parent:?}");
        assert!(
            count >= fibonacci(above.rank() + 1),
            "{parent:?} has rank {} and {count} nodes",
            above.rank()
        );
        count
    }
}

fn fibonacci(index: u32) -> usize {
    let (mut this, mut next) = (0, 1);
    for _ in 0..index {
        (this, next) = (next, this + next);
    }
    this
}
