//! A pairing heap: arm is one comparison, and the work that arm saved is done by the next pop.
//!
//! Invariants:
//! - A node is before all of its children by (`hard`, `seq`).
//! - `prev` is the left sibling, of a first child its parent, of the root `NIL`, and `IDLE` when the
//!   node is not armed.
//!
//! Cost: arm O(1); pop and cancel O(log n) amortised, but O(n) for one operation: after n arms in a
//! row the root may have n-1 children, all of which the next pop (or cancel of the root) visits.
//! Source: Fredman, Sedgewick, Sleator, Tarjan: The pairing heap (1986), the two-pass variant.

use super::{Arena, IDLE, NIL, Probe, Queue, Times};

#[derive(Clone, Debug)]
struct Node {
    soft: u64,
    hard: u64,
    /// Arms so far when this one happened: decides between equal expiries.
    seq: u64,
    child: u32,
    next: u32,
    prev: u32,
}

#[derive(Debug)]
pub(crate) struct Pairing<P> {
    arena: Arena<Node, P>,
    root: u32,
    arms: u64,
}

impl<P: Probe> Pairing<P> {
    fn before(&self, one: u32, two: u32) -> bool {
        let (one, two) = (&self.arena[one], &self.arena[two]);
        (one.hard, one.seq) < (two.hard, two.seq)
    }

    /// Makes the later root the first child of the earlier one, which is returned.
    fn link(&mut self, one: u32, two: u32) -> u32 {
        let (top, low) = if self.before(two, one) { (two, one) } else { (one, two) };
        let child = std::mem::replace(&mut self.arena[top].child, low);
        let node = &mut self.arena[low];
        (node.next, node.prev) = (child, top);
        if child != NIL {
            self.arena[child].prev = low;
        }
        top
    }

    /// Makes one tree of a list of siblings; the links of its root are the caller's to set.
    fn combine(&mut self, first: u32) -> u32 {
        let (mut rest, mut paired) = (first, NIL);
        while rest != NIL {
            let one = rest;
            let two = self.arena[one].next;
            let winner = if two == NIL {
                rest = NIL;
                one
            } else {
                rest = self.arena[two].next;
                self.link(one, two)
            };
            // The winners become a list in reverse, so that the second pass goes from right to left.
            self.arena[winner].next = paired;
            paired = winner;
        }
        if paired == NIL {
            return NIL;
        }
        let (mut root, mut rest) = (paired, self.arena[paired].next);
        while rest != NIL {
            let next = self.arena[rest].next;
            root = self.link(root, rest);
            rest = next;
        }
        root
    }

    fn set_root(&mut self, root: u32) {
        self.root = root;
        if root != NIL {
            let node = &mut self.arena[root];
            (node.next, node.prev) = (NIL, NIL);
        }
    }

    fn detach(&mut self, id: u32) {
        let node = &mut self.arena[id];
        let (next, prev, child) = (node.next, node.prev, node.child);
        node.prev = IDLE;
        if prev == NIL {
            let root = self.combine(child);
            return self.set_root(root);
        }
        let left = &mut self.arena[prev];
        if left.child == id {
            left.child = next;
        } else {
            left.next = next;
        }
        if next != NIL {
            self.arena[next].prev = prev;
        }
        if child != NIL {
            let orphan = self.combine(child);
            let root = self.link(self.root, orphan);
            self.set_root(root);
        }
    }
}

impl<P: Probe> Queue for Pairing<P> {
    type Probe = P;
    const NODE_BYTES: usize = size_of::<Node>();
    const POINTER_NODE_BYTES: usize = 24 + 3 * 8;
    const OUTSIDE_BYTES: usize = 0;

    fn with_nodes(count: usize) -> Self {
        let idle = Node { soft: 0, hard: 0, seq: 0, child: NIL, next: NIL, prev: IDLE };
        Self { arena: Arena::new(count, idle), root: NIL, arms: 0 }
    }

    fn probe(&self) -> &P {
        self.arena.probe()
    }

    fn arm(&mut self, id: u32, times: Times) {
        self.cancel(id);
        self.arms += 1;
        let (soft, hard, seq) = (times.soft, times.hard, self.arms);
        self.arena[id] = Node { soft, hard, seq, child: NIL, next: NIL, prev: NIL };
        if self.root == NIL {
            self.root = id;
        } else {
            let root = self.link(self.root, id);
            self.set_root(root);
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
        let mut todo: Vec<u32> = self.first().into_iter().collect();
        if let Some(root) = self.first() {
            assert_eq!((self.arena[root].prev, self.arena[root].next), (NIL, NIL), "root {root}");
        }
        let mut count = 0;
        while let Some(parent) = todo.pop() {
            count += 1;
            let (mut prev, mut child) = (parent, self.arena[parent].child);
            while child != NIL {
                assert_eq!(self.arena[child].prev, prev, "child {child} of {parent}");
                assert!(self.before(parent, child), "{parent} is before its child {child}");
                todo.push(child);
                (prev, child) = (child, self.arena[child].next);
            }
        }
        count
    }
}
