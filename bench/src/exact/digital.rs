//! A binary digital tree: a timer is found by the bits of its key, so nothing is ever rebalanced.
//!
//! The key is (`hard`, arms so far), 128 bits that no two timers share and whose order is the order
//! of expiry. A node is two things at once: a *leaf*, for as long as it is armed, and possibly a
//! *fork*, a place where the keys below go apart. n leaves need n - 1 forks, so all but one armed
//! node lend their fork. A link says in its lowest bit which of the two it leads to.
//! Invariants:
//! - All keys below a fork agree above its `bit` and differ in it: 0 to the left, 1 to the right.
//!   Bits get lower on the way down.
//! - A node's fork, while it is used, is above the node's own leaf; so the key of the node is an
//!   example of what the keys below its fork agree in. An unused fork has `bit` = `UNUSED`.
//! - `first` is the leftmost leaf. `leaf_parent` is `NIL` for an only leaf, `IDLE` when not armed.
//!
//! Cost: cancel O(1): the sibling moves up, and the fork that this frees takes the place of the
//! cancelled node's own. Arm goes down once, and removing the first goes down to the next one: as
//! many steps as there are bits in which neighbours differ, at most one per bit of the longest
//! delay plus log2 of the number of equal expiries; about log2 n when delays are spread evenly.
//! Source: Morrison: PATRICIA (1968); Sedgewick, Algorithms, chapter on radix searching.

use super::Side::{Left, Right};
use super::{Arena, IDLE, NIL, Probe, Queue, Side, Times};

const UNUSED: u8 = u8::MAX;

#[derive(Clone, Debug)]
struct Node {
    soft: u64,
    hard: u64,
    /// Arms so far when this one happened: the lower half of the key.
    seq: u64,
    /// The node whose fork is above this leaf.
    leaf_parent: u32,
    /// The node whose fork is above this fork.
    fork_parent: u32,
    links: [u32; 2],
    bit: u8,
}

impl Node {
    fn key(&self) -> u128 {
        u128::from(self.hard) << 64 | u128::from(self.seq)
    }
}

fn leaf(id: u32) -> u32 {
    id << 1
}

fn fork(id: u32) -> u32 {
    id << 1 | 1
}

fn is_fork(link: u32) -> bool {
    link & 1 == 1
}

fn owner(link: u32) -> u32 {
    link >> 1
}

fn side_at(key: u128, bit: u8) -> Side {
    if key >> bit & 1 == 0 { Left } else { Right }
}

#[derive(Debug)]
pub(crate) struct Digital<P> {
    arena: Arena<Node, P>,
    root: u32,
    first: u32,
    arms: u64,
}

impl<P: Probe> Digital<P> {
    /// Hangs what `link` leads to below the fork of `parent`, or makes it the root.
    fn hang(&mut self, parent: u32, side: Side, link: u32) {
        if parent == NIL {
            self.root = link;
        } else {
            self.arena[parent].links[side as usize] = link;
        }
        let node = &mut self.arena[owner(link)];
        if is_fork(link) {
            node.fork_parent = parent;
        } else {
            node.leaf_parent = parent;
        }
    }

    fn leftmost(&self, mut link: u32) -> u32 {
        while is_fork(link) {
            link = self.arena[owner(link)].links[Left as usize];
        }
        owner(link)
    }

    /// On which side of the fork of `parent` this link is.
    fn side_of(&self, link: u32, parent: u32) -> Side {
        if parent == NIL || self.arena[parent].links[Left as usize] == link { Left } else { Right }
    }

    fn attach(&mut self, id: u32) {
        let key = self.arena[id].key();
        if self.root == NIL {
            self.arena[id].bit = UNUSED;
            self.first = id;
            return self.hang(NIL, Left, leaf(id));
        }
        let (mut parent, mut side, mut link, mut is_first) = (NIL, Left, self.root, true);
        let bit = loop {
            let node = &self.arena[owner(link)];
            // Keys are never equal, so there is a highest bit in which they differ.
            let differing = (127 - (key ^ node.key()).leading_zeros()) as u8;
            if !is_fork(link) || differing > node.bit {
                break differing;
            }
            (parent, side) = (owner(link), side_at(key, node.bit));
            is_first &= side == Left;
            link = node.links[side as usize];
        };
        let own = side_at(key, bit);
        self.arena[id].bit = bit;
        self.hang(parent, side, fork(id));
        self.hang(id, own, leaf(id));
        self.hang(id, own.other(), link);
        if is_first && own == Left {
            self.first = id;
        }
    }

    fn detach(&mut self, id: u32) {
        let parent = std::mem::replace(&mut self.arena[id].leaf_parent, IDLE);
        if parent == NIL {
            (self.root, self.first) = (NIL, NIL);
            return;
        }
        let side = self.side_of(leaf(id), parent);
        let above = self.arena[parent].fork_parent;
        let sibling = self.arena[parent].links[side.other() as usize];
        if self.first == id {
            self.first = self.leftmost(sibling);
        }
        let fork_side = self.side_of(fork(parent), above);
        self.hang(above, fork_side, sibling);
        let node = &self.arena[id];
        let (bit, [left, right], fork_parent) = (node.bit, node.links, node.fork_parent);
        if parent == id || bit == UNUSED {
            self.arena[parent].bit = UNUSED;
            return;
        }
        // The fork of `id` stays, and `parent`, whose leaf is below it, lends its own for it.
        let side = self.side_of(fork(id), fork_parent);
        self.arena[parent].bit = bit;
        self.hang(fork_parent, side, fork(parent));
        self.hang(parent, Left, left);
        self.hang(parent, Right, right);
    }
}

impl<P: Probe> Queue for Digital<P> {
    type Probe = P;
    const NODE_BYTES: usize = size_of::<Node>();
    // The bit needs seven bits: it fits below `seq`, whose remaining 57 bits last for centuries.
    const POINTER_NODE_BYTES: usize = 24 + 4 * 8;
    const OUTSIDE_BYTES: usize = 0;

    fn with_nodes(count: usize) -> Self {
        let idle = Node {
            soft: 0,
            hard: 0,
            seq: 0,
            leaf_parent: IDLE,
            fork_parent: NIL,
            links: [NIL; 2],
            bit: UNUSED,
        };
        Self { arena: Arena::new(count, idle), root: NIL, first: NIL, arms: 0 }
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
        let armed = self.arena[id].leaf_parent != IDLE;
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
        if self.root == NIL {
            assert_eq!(self.first, NIL, "first of an empty tree");
            return 0;
        }
        assert_eq!(self.first, self.leftmost(self.root), "first");
        // Per link still to visit: its parent, and which bits of its keys are settled, and how.
        let (mut todo, mut count, mut forks) = (vec![(NIL, self.root, 0u128, 0u128)], 0, 0);
        while let Some((parent, link, settled, value)) = todo.pop() {
            let node = &self.arena[owner(link)];
            assert_eq!(node.key() & settled, value, "key of {}", owner(link));
            if !is_fork(link) {
                count += 1;
                assert_eq!(node.leaf_parent, parent, "parent of leaf {}", owner(link));
                continue;
            }
            forks += 1;
            assert_eq!(node.fork_parent, parent, "parent of fork {}", owner(link));
            assert!(node.leaf_parent != IDLE, "the owner of fork {} is armed", owner(link));
            let bit = 1u128 << node.bit;
            assert_eq!(settled & bit, 0, "bits get lower below {}", owner(link));
            let settled = !(bit - 1);
            let above = node.key() & settled & !bit;
            todo.push((owner(link), node.links[Left as usize], settled, above));
            todo.push((owner(link), node.links[Right as usize], settled, above | bit));
        }
        assert_eq!(forks + 1, count, "all but one armed node lend their fork");
        count
    }
}
