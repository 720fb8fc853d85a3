//! A leftist heap with links to the parents: the heap whose every operation is short.
//!
//! The `rank` of a node is the number of nodes on the shortest way down from it to a missing child.
//! Invariants:
//! - A node is before both of its children by (`hard`, `seq`).
//! - A left child's rank is at least the right one's (a missing child has rank 0), and a node's rank
//!   is its right child's plus one. So a node of rank r has at least 2^r - 1 nodes below and
//!   including itself, and a way along right children has at most log2(n + 1) nodes.
//! - `parent` is `NIL` for the root and `IDLE` for a node that is not armed.
//!
//! Cost: no operation is amortised. Arm goes down the root's right children and up again, merging
//! goes down two such ways, and mending ranks after a removal stops within log2(n + 1) steps: a rank
//! that fell makes the ancestors' ranks count up from it, and a rank that rose is seen only by an
//! ancestor that is reached through right children alone. The depth may be n; nothing walks it.
//! Source: Crane: Linear lists and priority queues as balanced binary trees (1972); Knuth, The Art
//! of Computer Programming 3, 5.2.3. Deviation: parents, for cancel; loops instead of recursion.

use super::{Arena, IDLE, NIL, Probe, Queue, Times};

#[derive(Clone, Debug)]
struct Node {
    soft: u64,
    hard: u64,
    /// Arms so far when this one happened: decides between equal expiries.
    seq: u64,
    left: u32,
    right: u32,
    parent: u32,
    rank: u8,
}

#[derive(Debug)]
pub(crate) struct Leftist<P> {
    arena: Arena<Node, P>,
    root: u32,
    arms: u64,
}

impl<P: Probe> Leftist<P> {
    fn before(&self, one: u32, two: u32) -> bool {
        let (one, two) = (&self.arena[one], &self.arena[two]);
        (one.hard, one.seq) < (two.hard, two.seq)
    }

    fn rank(&self, id: u32) -> u8 {
        if id == NIL { 0 } else { self.arena[id].rank }
    }

    /// Puts the children of `id` in order of rank; its new rank and the one it had before.
    fn mend(&mut self, id: u32) -> (u8, u8) {
        let (left, right) = (self.arena[id].left, self.arena[id].right);
        let (left_rank, right_rank) = (self.rank(left), self.rank(right));
        let rank = left_rank.min(right_rank) + 1;
        let node = &mut self.arena[id];
        if left_rank < right_rank {
            (node.left, node.right) = (right, left);
        }
        (rank, std::mem::replace(&mut node.rank, rank))
    }

    /// Mends the ancestors of something that changed its rank, as far as it makes a difference.
    fn mend_upwards(&mut self, mut id: u32) {
        while id != NIL {
            let (rank, previous) = self.mend(id);
            if rank == previous {
                return;
            }
            id = self.arena[id].parent;
        }
    }

    /// Merges two heaps, neither of them empty, below `parent`, which is not told; the new root.
    fn merge(&mut self, one: u32, two: u32, parent: u32) -> u32 {
        let (mut top, mut low) = if self.before(two, one) { (two, one) } else { (one, two) };
        let root = top;
        self.arena[root].parent = parent;
        loop {
            // `top` is in place and before `low`: what was its right child is merged with `low`.
            let right = self.arena[top].right;
            let winner = if right == NIL || self.before(low, right) { low } else { right };
            let loser = if winner == low { right } else { low };
            self.arena[top].right = winner;
            self.arena[winner].parent = top;
            if loser == NIL {
                break;
            }
            (top, low) = (winner, loser);
        }
        // From the last node whose children changed up to the root, every rank may be out of date.
        loop {
            self.mend(top);
            if top == root {
                return root;
            }
            top = self.arena[top].parent;
        }
    }

    fn replace(&mut self, parent: u32, old: u32, new: u32) {
        if parent == NIL {
            self.root = new;
        } else if self.arena[parent].left == old {
            self.arena[parent].left = new;
        } else {
            self.arena[parent].right = new;
        }
    }

    fn attach(&mut self, id: u32) {
        let hard = self.arena[id].hard;
        let (mut parent, mut at) = (NIL, self.root);
        // Nothing armed earlier is after `id` at the same expiry: `seq` need not be looked at.
        while at != NIL && self.arena[at].hard <= hard {
            (parent, at) = (at, self.arena[at].right);
        }
        let node = &mut self.arena[id];
        (node.left, node.right, node.parent, node.rank) = (at, NIL, parent, 1);
        if at != NIL {
            self.arena[at].parent = id;
        }
        if parent == NIL {
            self.root = id;
        } else {
            self.arena[parent].right = id;
            self.mend_upwards(parent);
        }
    }

    fn detach(&mut self, id: u32) {
        let node = &mut self.arena[id];
        let (left, right, rank) = (node.left, node.right, node.rank);
        let parent = std::mem::replace(&mut node.parent, IDLE);
        let heir = if right != NIL {
            self.merge(left, right, parent)
        } else {
            // A right child is never alone: without one, the left child (if any) moves up.
            if left != NIL {
                self.arena[left].parent = parent;
            }
            left
        };
        self.replace(parent, id, heir);
        if self.rank(heir) != rank {
            self.mend_upwards(parent);
        }
    }
}

impl<P: Probe> Queue for Leftist<P> {
    type Probe = P;
    const NODE_BYTES: usize = size_of::<Node>();
    // The rank needs six bits: it fits below `seq`, where it does not disturb the order.
    const POINTER_NODE_BYTES: usize = 24 + 3 * 8;
    const OUTSIDE_BYTES: usize = 0;

    fn with_nodes(count: usize) -> Self {
        let idle = Node { soft: 0, hard: 0, seq: 0, left: NIL, right: NIL, parent: IDLE, rank: 0 };
        Self { arena: Arena::new(count, idle), root: NIL, arms: 0 }
    }

    fn probe(&self) -> &P {
        self.arena.probe()
    }

    fn arm(&mut self, id: u32, times: Times) {
        self.cancel(id);
        self.arms += 1;
        let node = &mut self.arena[id];
        (node.soft, node.hard, node.seq) = (times.soft, times.hard, self.arms);
        self.attach(id);
    }

    fn cancel(&mut self, id: u32) -> bool {
        let armed = self.arena[id].parent != IDLE;
        if armed {
            self.detach(id);
        }
        armed
    }

    fn first(&self) -> Option<u32> {
        (self.root != NIL).then_some(self.root)
    }

    fn times(&self, id: u32) -> Times {
        Times { soft: self.arena[id].soft, hard: self.arena[id].hard }
    }

    fn pop_expired(&mut self, now: u64) -> Option<u32> {
        let id = self.first()?;
        if self.arena[id].soft > now {
            return None;
        }
        self.detach(id);
        Some(id)
    }

    #[cfg(test)]
    fn check(&self) -> usize {
        let mut todo: Vec<(u32, u32)> = self.first().map(|root| (NIL, root)).into_iter().collect();
        let mut count = 0;
        while let Some((parent, id)) = todo.pop() {
            count += 1;
            let node = &self.arena[id];
            assert_eq!(node.parent, parent, "parent of {id}");
            assert!(parent == NIL || self.before(parent, id), "{parent} is before its child {id}");
            assert!(self.rank(node.left) >= self.rank(node.right), "children of {id}");
            assert_eq!(node.rank, self.rank(node.right) + 1, "rank of {id}");
            todo.extend(
                [node.left, node.right].into_iter().filter(|&child| child != NIL).map(|child| (id, child)),
            );
        }
        count
    }
}
