//! A thin heap whose roots are kept consolidated: cheap arm and cancel, and no operation is long.
//!
//! A forest of heap-ordered trees, at most one of each rank. Arm counts in binary: two trees of the
//! same rank become one of the next, so the linking that a pairing heap leaves to the next pop is
//! done as timers come. Cancel leaves a gap among the ranks, which is filled or passed on.
//! Invariants:
//! - A node is before all of its children by (`hard`, `seq`).
//! - The children of a node have the ranks m-1, m-2, ..., 0, in this order. The node's own rank is m
//!   (then it is *full*) or m+1 (then it is *thin*: it lost its first child). Roots are full. So a
//!   node of rank r has at least Fibonacci(r + 1) nodes below and including itself.
//! - `roots[r]` is the tree of rank r; bit r of `occupied` says whether there is one.
//! - `first` is the first of all, hence a root. `prev` is the left sibling, of a first child its
//!   parent, of a root `NIL`, and `IDLE` when the node is not armed.
//!
//! Cost, with r <= 1.44 log2 n the highest rank: arm 1 link on average, r at most. Cancel looks at
//! the neighbours and the children, of which there is one on average; at worst the gap is passed on r
//! times, as it only ever moves to a sibling or parent of a higher rank, and 2r trees come loose. Pop
//! adds the children of the first, at most r, and looks at all roots, at most r + 1.
//! Source: Kaplan, Tarjan: Thin heaps, thick heaps (2008). Deviation: the roots are consolidated at
//! once and not by the next pop, which bounds every operation and not only the average.

use super::{Arena, IDLE, NIL, Probe, Queue, Times};

/// Fibonacci(64) nodes do not fit into any memory.
const RANKS: usize = 64;

#[derive(Clone, Debug)]
struct Node {
    soft: u64,
    hard: u64,
    /// Arms so far when this one happened: decides between equal expiries.
    seq: u64,
    child: u32,
    next: u32,
    prev: u32,
    rank: u8,
}

#[derive(Debug)]
pub(crate) struct Thin<P> {
    arena: Arena<Node, P>,
    roots: [u32; RANKS],
    occupied: u64,
    first: u32,
    arms: u64,
}

impl<P: Probe> Thin<P> {
    fn before(&self, one: u32, two: u32) -> bool {
        let (one, two) = (&self.arena[one], &self.arena[two]);
        (one.hard, one.seq) < (two.hard, two.seq)
    }

    /// The rank that `id` has if it is full: the number of its children.
    fn full_rank(&self, id: u32) -> u8 {
        match self.arena[id].child {
            NIL => 0,
            child => self.arena[child].rank + 1,
        }
    }

    /// Makes the later of two roots of the same rank the first child of the earlier, which is returned.
    fn link(&mut self, one: u32, two: u32) -> u32 {
        let (top, low) = if self.before(two, one) { (two, one) } else { (one, two) };
        let node = &mut self.arena[top];
        node.rank += 1;
        let child = std::mem::replace(&mut node.child, low);
        let node = &mut self.arena[low];
        (node.next, node.prev) = (child, top);
        if child != NIL {
            self.arena[child].prev = low;
        }
        top
    }

    /// Puts a full tree that hangs nowhere into the forest.
    fn add(&mut self, mut tree: u32) {
        loop {
            let rank = self.arena[tree].rank as usize;
            let bit = 1 << rank;
            if self.occupied & bit == 0 {
                self.occupied |= bit;
                self.roots[rank] = tree;
                break;
            }
            self.occupied &= !bit;
            tree = self.link(self.roots[rank], tree);
        }
        let node = &mut self.arena[tree];
        (node.next, node.prev) = (NIL, NIL);
    }

    /// Puts a list of trees into the forest.
    fn add_all(&mut self, mut tree: u32) {
        while tree != NIL {
            let next = self.arena[tree].next;
            self.arena[tree].rank = self.full_rank(tree);
            self.add(tree);
            tree = next;
        }
    }

    fn search(&self) -> u32 {
        let (mut rest, mut least) = (self.occupied, NIL);
        while rest != 0 {
            let root = self.roots[rest.trailing_zeros() as usize];
            if least == NIL || self.before(root, least) {
                least = root;
            }
            rest &= rest - 1;
        }
        least
    }

    /// Takes `id`, not a root, out of its list of siblings; whether its `prev` was its parent.
    fn unlink(&mut self, id: u32) -> Neighbour {
        let (next, prev) = (self.arena[id].next, self.arena[id].prev);
        if next != NIL {
            self.arena[next].prev = prev;
        }
        let before = &mut self.arena[prev];
        if before.child == id {
            before.child = next;
            return Neighbour::Parent(prev);
        }
        before.next = next;
        Neighbour::Sibling(prev)
    }

    fn neighbour(&self, id: u32) -> Neighbour {
        let prev = self.arena[id].prev;
        if self.arena[prev].child == id { Neighbour::Parent(prev) } else { Neighbour::Sibling(prev) }
    }

    /// Deals with a rank that is missing after `gap`; a list of trees that came loose from theirs.
    fn close(&mut self, mut gap: Neighbour) -> u32 {
        let mut loose = NIL;
        loop {
            match gap {
                Neighbour::Sibling(id) if self.full_rank(id) == self.arena[id].rank => {
                    self.lend_first_child(id);
                    return loose;
                }
                Neighbour::Sibling(id) => {
                    // Thin, so with a rank less it is full, and it is its own rank that is missing.
                    self.arena[id].rank -= 1;
                    gap = self.neighbour(id);
                }
                Neighbour::Parent(id) if self.arena[id].prev == NIL => {
                    let rank = self.arena[id].rank;
                    self.occupied &= !(1 << rank);
                    self.arena[id].rank = rank - 1;
                    self.add(id);
                    return loose;
                }
                Neighbour::Parent(id) if self.arena[id].rank - self.full_rank(id) == 1 => return loose,
                Neighbour::Parent(id) => {
                    // It was thin before. Not into the forest yet: that might change what is above.
                    gap = self.unlink(id);
                    self.arena[id].next = loose;
                    loose = id;
                }
            }
        }
    }

    /// Moves the first child of `id` to its right, where a tree of this very rank is missing.
    fn lend_first_child(&mut self, id: u32) {
        // The missing rank is at least 0, the rank of `id` one more, and it is full: it has a child.
        let (child, next) = (self.arena[id].child, self.arena[id].next);
        let second = self.arena[child].next;
        let node = &mut self.arena[id];
        (node.child, node.next) = (second, child);
        if second != NIL {
            self.arena[second].prev = id;
        }
        self.arena[child].next = next;
        if next != NIL {
            self.arena[next].prev = child;
        }
    }

    fn detach(&mut self, id: u32) {
        let (child, prev, rank) = (self.arena[id].child, self.arena[id].prev, self.arena[id].rank);
        if prev == NIL {
            self.occupied &= !(1 << rank);
        } else {
            let gap = self.unlink(id);
            let loose = self.close(gap);
            self.add_all(loose);
        }
        self.arena[id].prev = IDLE;
        self.add_all(child);
        if self.first == id {
            self.first = self.search();
        }
    }
}

/// What `prev` leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Neighbour {
    Parent(u32),
    Sibling(u32),
}

impl<P: Probe> Queue for Thin<P> {
    type Probe = P;
    const NODE_BYTES: usize = size_of::<Node>();
    // The rank needs six bits: it fits below `seq`, where it does not disturb the order.
    const POINTER_NODE_BYTES: usize = 24 + 3 * 8;
    const OUTSIDE_BYTES: usize = 0;

    fn with_nodes(count: usize) -> Self {
        let idle = Node { soft: 0, hard: 0, seq: 0, child: NIL, next: NIL, prev: IDLE, rank: 0 };
        Self { arena: Arena::new(count, idle), roots: [NIL; RANKS], occupied: 0, first: NIL, arms: 0 }
    }

    fn probe(&self) -> &P {
        self.arena.probe()
    }

    fn arm(&mut self, id: u32, times: Times) {
        self.cancel(id);
        self.arms += 1;
        let (soft, hard, seq) = (times.soft, times.hard, self.arms);
        self.arena[id] = Node { soft, hard, seq, child: NIL, next: NIL, prev: NIL, rank: 0 };
        self.add(id);
        if self.first == NIL || hard < self.arena[self.first].hard {
            self.first = id;
        }
    }

    fn cancel(&mut self, id: u32) -> bool {
        let armed = self.arena[id].prev != IDLE;
        if armed {
            self.detach(id);
        }
        armed
    }

    fn first(&self) -> Option<u32> {
        (self.first != NIL).then_some(self.first)
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
        let (mut todo, mut count) = (Vec::new(), 0);
        for rank in (0..RANKS).filter(|rank| self.occupied >> rank & 1 == 1) {
            let root = self.roots[rank];
            let node = &self.arena[root];
            assert_eq!((node.rank as usize, node.prev, node.next), (rank, NIL, NIL), "root {root}");
            assert_eq!(node.rank, self.full_rank(root), "root {root} is full");
            todo.push(root);
        }
        assert_eq!(self.first, self.search(), "first");
        while let Some(parent) = todo.pop() {
            count += 1;
            let (mut prev, mut child, mut rank) = (parent, self.arena[parent].child, self.full_rank(parent));
            assert!(self.arena[parent].rank - rank <= 1, "{parent} is full or thin");
            while child != NIL {
                let node = &self.arena[child];
                assert_eq!(node.prev, prev, "child {child} of {parent}");
                assert_eq!(node.rank + 1, rank, "ranks of the children of {parent} at {child}");
                assert!(self.before(parent, child), "{parent} is before its child {child}");
                todo.push(child);
                (prev, child, rank) = (child, node.next, node.rank);
            }
            assert_eq!(rank, 0, "the last child of {parent}");
        }
        let (mut least, mut more) = (1, 1);
        for rank in 0..64 - self.occupied.leading_zeros() {
            assert!(least <= count, "a tree of rank {rank} among {count} timers");
            (least, more) = (more, least + more);
        }
        count
    }
}
