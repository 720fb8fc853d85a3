//! A red-black tree that keeps its first node: what the kernel's own timer queue is.
//!
//! Invariants:
//! - In order, the nodes are sorted by `hard`; an equal one goes to the right of those armed before
//!   it, so arm order needs no field of its own.
//! - The root is black, a red node has no red child, and every way down from the root to a missing
//!   child passes the same number of black nodes. So the height is at most 2 log2(n + 1).
//! - `first` is the leftmost node. `parent` is `NIL` for the root and `IDLE` when not armed.
//!
//! Cost: arm goes down the height; mending after arm and cancel is O(log n) in the worst case and
//! O(1) amortised; cancel and pop do not search.
//! Source: Cormen, Leiserson, Rivest, Stein: Introduction to Algorithms, chapter on red-black trees.

use super::Side::{Left, Right};
use super::{Arena, IDLE, NIL, Probe, Queue, Side, Times};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    Red,
    Black,
}
use Colour::{Black, Red};

#[derive(Clone, Debug)]
struct Node {
    soft: u64,
    hard: u64,
    links: [u32; 2],
    parent: u32,
    colour: Colour,
}

#[derive(Debug)]
pub(crate) struct RedBlack<P> {
    arena: Arena<Node, P>,
    root: u32,
    first: u32,
}

impl<P: Probe> RedBlack<P> {
    fn child(&self, id: u32, side: Side) -> u32 {
        self.arena[id].links[side as usize]
    }

    fn set_child(&mut self, id: u32, side: Side, child: u32) {
        self.arena[id].links[side as usize] = child;
    }

    fn is_red(&self, id: u32) -> bool {
        id != NIL && self.arena[id].colour == Red
    }

    fn side_of(&self, id: u32, parent: u32) -> Side {
        if self.child(parent, Left) == id { Left } else { Right }
    }

    /// Hangs `new`, which may be missing, where `old` was.
    fn replace(&mut self, parent: u32, old: u32, new: u32) {
        if parent == NIL {
            self.root = new;
        } else {
            let side = self.side_of(old, parent);
            self.set_child(parent, side, new);
        }
        if new != NIL {
            self.arena[new].parent = parent;
        }
    }

    /// Moves `id` down towards `side`; its child on the other side takes its place.
    fn rotate(&mut self, id: u32, side: Side) {
        let riser = self.child(id, side.other());
        let inner = self.child(riser, side);
        let parent = self.arena[id].parent;
        self.replace(parent, id, riser);
        self.set_child(id, side.other(), inner);
        if inner != NIL {
            self.arena[inner].parent = id;
        }
        self.set_child(riser, side, id);
        self.arena[id].parent = riser;
    }

    fn leftmost(&self, mut id: u32) -> u32 {
        loop {
            match self.child(id, Left) {
                NIL => return id,
                left => id = left,
            }
        }
    }

    fn attach(&mut self, id: u32) {
        let hard = self.arena[id].hard;
        let (mut parent, mut at, mut side, mut is_first) = (NIL, self.root, Left, true);
        while at != NIL {
            let node = &self.arena[at];
            side = if hard < node.hard { Left } else { Right };
            is_first &= side == Left;
            (parent, at) = (at, node.links[side as usize]);
        }
        let node = &mut self.arena[id];
        (node.links, node.parent, node.colour) = ([NIL; 2], parent, Red);
        if parent == NIL {
            self.root = id;
        } else {
            self.set_child(parent, side, id);
        }
        if is_first {
            self.first = id;
        }
        self.mend_after_attach(id);
    }

    /// `id` is red, and may be the root or the child of a red node; nothing else is wrong.
    fn mend_after_attach(&mut self, mut id: u32) {
        loop {
            let mut parent = self.arena[id].parent;
            if !self.is_red(parent) {
                break;
            }
            // A red node is not the root: there is a grandparent.
            let grandparent = self.arena[parent].parent;
            let side = self.side_of(parent, grandparent);
            let uncle = self.child(grandparent, side.other());
            if self.is_red(uncle) {
                self.arena[parent].colour = Black;
                self.arena[uncle].colour = Black;
                self.arena[grandparent].colour = Red;
                id = grandparent;
                continue;
            }
            if self.child(parent, side) != id {
                self.rotate(parent, side);
                parent = id;
            }
            self.arena[parent].colour = Black;
            self.arena[grandparent].colour = Red;
            self.rotate(grandparent, side.other());
            break;
        }
        let root = self.root;
        self.arena[root].colour = Black;
    }

    fn detach(&mut self, id: u32) {
        let node = &mut self.arena[id];
        let ([left, right], parent, colour) = (node.links, node.parent, node.colour);
        node.parent = IDLE;
        if self.first == id {
            // Nothing is to the left: the next one is in the right subtree, or else the parent.
            self.first = if right == NIL { parent } else { self.leftmost(right) };
        }
        if left == NIL || right == NIL {
            let heir = if left == NIL { right } else { left };
            self.replace(parent, id, heir);
            return if colour == Black {
                self.mend_after_detach(heir, parent)
            };
        }
        // Two children: the next node in order, which has no left child, takes place and colour.
        let heir = self.leftmost(right);
        let (moved, gap) = (self.child(heir, Right), self.arena[heir].parent);
        let lost = std::mem::replace(&mut self.arena[heir].colour, colour);
        let gap = if gap == id {
            heir
        } else {
            self.replace(gap, heir, moved);
            self.set_child(heir, Right, right);
            self.arena[right].parent = heir;
            gap
        };
        self.set_child(heir, Left, left);
        self.arena[left].parent = heir;
        self.replace(parent, id, heir);
        if lost == Black {
            self.mend_after_detach(moved, gap);
        }
    }

    /// Every way through `id`, a child of `parent` that may be missing, lacks one black node.
    fn mend_after_detach(&mut self, mut id: u32, mut parent: u32) {
        while parent != NIL && !self.is_red(id) {
            // The sibling's side has a black node more, so the sibling is not missing.
            let side = self.side_of(id, parent);
            let mut sibling = self.child(parent, side.other());
            if self.is_red(sibling) {
                self.arena[sibling].colour = Black;
                self.arena[parent].colour = Red;
                self.rotate(parent, side);
                sibling = self.child(parent, side.other());
            }
            let (near, far) = (self.child(sibling, side), self.child(sibling, side.other()));
            if !self.is_red(near) && !self.is_red(far) {
                self.arena[sibling].colour = Red;
                (id, parent) = (parent, self.arena[parent].parent);
                continue;
            }
            if !self.is_red(far) {
                self.arena[near].colour = Black;
                self.arena[sibling].colour = Red;
                self.rotate(sibling, side.other());
                sibling = near;
            }
            self.arena[sibling].colour = self.arena[parent].colour;
            self.arena[parent].colour = Black;
            let far = self.child(sibling, side.other());
            self.arena[far].colour = Black;
            self.rotate(parent, side);
            return;
        }
        if id != NIL {
            self.arena[id].colour = Black;
        }
    }
}

impl<P: Probe> Queue for RedBlack<P> {
    type Probe = P;
    const NODE_BYTES: usize = size_of::<Node>();
    const POINTER_NODE_BYTES: usize = 16 + 3 * 8;
    const OUTSIDE_BYTES: usize = 0;

    fn with_nodes(count: usize) -> Self {
        let idle = Node { soft: 0, hard: 0, links: [NIL; 2], parent: IDLE, colour: Red };
        Self { arena: Arena::new(count, idle), root: NIL, first: NIL }
    }

    fn probe(&self) -> &P {
        self.arena.probe()
    }

    fn arm(&mut self, id: u32, times: Times) {
        self.cancel(id);
        let node = &mut self.arena[id];
        (node.soft, node.hard) = (times.soft, times.hard);
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
        assert!(!self.is_red(self.root), "the root is black");
        let leftmost = if self.root == NIL { NIL } else { self.leftmost(self.root) };
        assert_eq!(self.first, leftmost, "first");
        let (mut todo, mut count, mut blacks_below) = (vec![(NIL, self.root, 0)], 0, None);
        while let Some((parent, id, blacks)) = todo.pop() {
            if id == NIL {
                assert_eq!(*blacks_below.get_or_insert(blacks), blacks, "black nodes above {parent}");
                continue;
            }
            count += 1;
            let node = &self.arena[id];
            assert_eq!(node.parent, parent, "parent of {id}");
            assert!(node.colour == Black || !self.is_red(parent), "red {id} below red {parent}");
            let ([left, right], blacks) = (node.links, blacks + u32::from(node.colour == Black));
            assert!(left == NIL || self.arena[left].hard <= node.hard, "left of {id}");
            assert!(right == NIL || self.arena[right].hard >= node.hard, "right of {id}");
            todo.extend([(id, left, blacks), (id, right, blacks)]);
        }
        count
    }
}
