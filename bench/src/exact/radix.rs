//! Lists by the highest bit in which an expiry differs from the last one: arm and cancel in O(1).
//!
//! `last` never goes back and is never after an armed timer, unless that one was armed late.
//! Invariants:
//! - Timer t with `hard` > `last` is in list 1 + (highest bit set in `hard` ^ `last`), at the end of
//!   which it was put; equal expiries share a list at all times, so arm order needs no field.
//! - Timers with `hard` <= `last` are in list 0, sorted. `occupied` has a bit per list.
//! - `first` is the first timer of the lowest occupied list that no other one of it precedes.
//!
//! When `last` moves, its highest changed bit names one list; that one is dealt out again, and those
//! below it are empty. A timer moves down only, at most 64 times: O(1) amortised per timer and bit.
//!
//! Cost: `first` must be known at all times, and inside of a list nothing is sorted. Arm compares
//! once (except late, when it looks for its place in list 0), and cancel of any other timer unlinks;
//! but whenever the first one goes, the lowest list is searched, and that may hold all n timers.
//! Popping in order amortises this, since the next pop deals that list out; cancelling the first one
//! again and again does not: each one costs O(n).
//! Source: Ahuja, Mehlhorn, Orlin, Tarjan: Faster algorithms for the shortest path problem (1990).
//! Deviation: cancel, late arms, and an order among equal expiries.

use super::{Arena, IDLE, NIL, Probe, Queue, Times};

const LISTS: usize = 65;

#[derive(Clone, Debug)]
struct Node {
    soft: u64,
    hard: u64,
    next: u32,
    prev: u32,
    list: u8,
}

/// First and last node of a list; both are `NIL` when it is empty.
#[derive(Clone, Copy, Debug)]
struct Ends {
    head: u32,
    tail: u32,
}

const EMPTY: Ends = Ends { head: NIL, tail: NIL };

#[derive(Debug)]
pub(crate) struct Radix<P> {
    arena: Arena<Node, P>,
    lists: [Ends; LISTS],
    /// Bit n: list n is not empty.
    occupied: u128,
    last: u64,
    first: u32,
}

impl<P: Probe> Radix<P> {
    fn list_of(&self, hard: u64) -> usize {
        if hard <= self.last { 0 } else { (u64::BITS - (hard ^ self.last).leading_zeros()) as usize }
    }

    /// Puts `id` into its list: behind `after`, which is of that list, or `NIL` to be its head.
    fn insert(&mut self, list: usize, after: u32, id: u32) {
        let ends = &mut self.lists[list];
        let next = if after == NIL { ends.head } else { self.arena[after].next };
        if after == NIL {
            ends.head = id;
        } else {
            self.arena[after].next = id;
        }
        if next == NIL {
            ends.tail = id;
        } else {
            self.arena[next].prev = id;
        }
        let node = &mut self.arena[id];
        (node.next, node.prev, node.list) = (next, after, list as u8);
        self.occupied |= 1 << list;
    }

    fn attach(&mut self, id: u32) {
        let hard = self.arena[id].hard;
        let list = self.list_of(hard);
        let mut after = self.lists[list].tail;
        while list == 0 && after != NIL && self.arena[after].hard > hard {
            after = self.arena[after].prev;
        }
        self.insert(list, after, id);
    }

    fn detach(&mut self, id: u32) {
        let node = &mut self.arena[id];
        let (next, prev, list) = (node.next, node.prev, node.list as usize);
        node.prev = IDLE;
        let ends = &mut self.lists[list];
        if prev == NIL {
            ends.head = next;
        } else {
            self.arena[prev].next = next;
        }
        if next == NIL {
            ends.tail = prev;
        } else {
            self.arena[next].prev = prev;
        }
        if ends.head == NIL {
            self.occupied &= !(1 << list);
        }
        if self.first == id {
            self.first = self.search();
        }
    }

    /// The first timer: the head of list 0, or what a look at the whole lowest list finds.
    fn search(&self) -> u32 {
        if self.occupied == 0 {
            return NIL;
        }
        let list = self.occupied.trailing_zeros() as usize;
        let head = self.lists[list].head;
        if list == 0 {
            return head;
        }
        let (mut least, mut at, mut hard) = (head, head, self.arena[head].hard);
        while at != NIL {
            let node = &self.arena[at];
            if node.hard < hard {
                (least, hard) = (at, node.hard);
            }
            at = node.next;
        }
        least
    }

    /// Moves `last` to `to`, which is not after any armed timer.
    fn advance(&mut self, to: u64) {
        if to <= self.last {
            return;
        }
        let changed = self.list_of(to);
        self.last = to;
        let mut at = std::mem::replace(&mut self.lists[changed], EMPTY).head;
        self.occupied &= !(1 << changed);
        while at != NIL {
            let next = self.arena[at].next;
            // Dealt in order and to the ends: equal expiries stay in arm order.
            let list = self.list_of(self.arena[at].hard);
            self.insert(list, self.lists[list].tail, at);
            at = next;
        }
    }
}

impl<P: Probe> Queue for Radix<P> {
    type Probe = P;
    const NODE_BYTES: usize = size_of::<Node>();
    const POINTER_NODE_BYTES: usize = 16 + 2 * 8 + 8;
    const OUTSIDE_BYTES: usize = 0;

    fn with_nodes(count: usize) -> Self {
        let idle = Node { soft: 0, hard: 0, next: NIL, prev: IDLE, list: 0 };
        Self { arena: Arena::new(count, idle), lists: [EMPTY; LISTS], occupied: 0, last: 0, first: NIL }
    }

    fn probe(&self) -> &P {
        self.arena.probe()
    }

    fn arm(&mut self, id: u32, times: Times) {
        self.cancel(id);
        let node = &mut self.arena[id];
        (node.soft, node.hard) = (times.soft, times.hard);
        self.attach(id);
        if self.first == NIL || times.hard < self.arena[self.first].hard {
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
        let (soft, hard) = (self.arena[id].soft, self.arena[id].hard);
        if soft > now {
            return None;
        }
        // Not to `hard` when that is later: timers armed before it from now on would all count as late.
        self.advance(now.min(hard));
        self.detach(id);
        Some(id)
    }

    #[cfg(test)]
    fn check(&self) -> usize {
        let mut count = 0;
        for (list, ends) in self.lists.iter().enumerate() {
            assert_eq!(self.occupied >> list & 1 == 1, ends.head != NIL, "bit of list {list}");
            let (mut prev, mut at) = (NIL, ends.head);
            while at != NIL {
                count += 1;
                let node = &self.arena[at];
                assert_eq!((node.prev, node.list as usize), (prev, list), "links of {at}");
                assert_eq!(self.list_of(node.hard), list, "list of {at}");
                let ordered = list > 0 || prev == NIL || self.arena[prev].hard <= node.hard;
                assert!(ordered, "list 0 is sorted at {at}");
                (prev, at) = (at, node.next);
            }
            assert_eq!(ends.tail, prev, "tail of list {list}");
        }
        assert_eq!(self.first, self.search(), "first");
        count
    }
}
