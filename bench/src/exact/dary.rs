//! A heap in an array with `D` children per entry; the node knows the position of its entry.
//!
//! Keys are copied into the array, so that the children of one entry lie side by side and comparing
//! them follows no link. Invariants: an entry is before its children by (`hard`, `seq`), and the
//! node of the entry at position p says p.
//!
//! Cost: every operation O(log n) in the worst case, with n known in advance. Here the array has
//! room for all nodes from the beginning; a queue that does not know how many timers its callers own
//! must let it grow, that is, allocate in arm, under the lock. That disqualifies it for the shipped
//! queue; it is here as the yardstick that has the least cache misses.

use super::{Arena, Probe, Queue, Times};

/// The position of a node that is not armed.
const NOWHERE: u32 = super::IDLE;

#[derive(Clone, Debug)]
struct Node {
    soft: u64,
    hard: u64,
    position: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hard: u64,
    /// Arms so far when this one happened: decides between equal expiries.
    seq: u64,
    id: u32,
}

impl Entry {
    fn before(&self, other: &Self) -> bool {
        (self.hard, self.seq) < (other.hard, other.seq)
    }
}

#[derive(Debug)]
pub(crate) struct Dary<P, const D: usize> {
    arena: Arena<Node, P>,
    heap: Vec<Entry>,
    arms: u64,
}

impl<P: Probe, const D: usize> Dary<P, D> {
    fn entry(&self, position: usize) -> Entry {
        self.arena.probe().touch(2 * position + 1);
        self.heap[position]
    }

    /// Writes an entry, and its position into its node.
    fn put(&mut self, position: usize, entry: Entry) {
        self.arena.probe().touch(2 * position + 1);
        self.heap[position] = entry;
        self.arena[entry.id].position = position as u32;
    }

    /// Moves the hole at `position` up to where `entry` belongs; the position it ends at.
    fn rise(&mut self, mut position: usize, entry: &Entry) -> usize {
        while position > 0 {
            let above = (position - 1) / D;
            let parent = self.entry(above);
            if !entry.before(&parent) {
                break;
            }
            self.put(position, parent);
            position = above;
        }
        position
    }

    /// Moves the hole at `position` down to where `entry` belongs; the position it ends at.
    fn sink(&mut self, mut position: usize, entry: &Entry) -> usize {
        loop {
            let start = position * D + 1;
            let end = (start + D).min(self.heap.len());
            if start >= end {
                return position;
            }
            let (mut least, mut at) = (self.entry(start), start);
            for child in start + 1..end {
                let other = self.entry(child);
                if other.before(&least) {
                    (least, at) = (other, child);
                }
            }
            if !least.before(entry) {
                return position;
            }
            self.put(position, least);
            position = at;
        }
    }

    /// Puts `entry` where it belongs, given a hole anywhere.
    fn settle(&mut self, hole: usize, entry: Entry) {
        let mut position = self.rise(hole, &entry);
        if position == hole {
            position = self.sink(hole, &entry);
        }
        self.put(position, entry);
    }

    fn detach(&mut self, id: u32) {
        let hole = std::mem::replace(&mut self.arena[id].position, NOWHERE) as usize;
        let Some(last) = self.heap.pop() else { return };
        if last.id != id {
            self.settle(hole, last);
        }
    }
}

impl<P: Probe, const D: usize> Queue for Dary<P, D> {
    type Probe = P;
    const NODE_BYTES: usize = size_of::<Node>();
    const POINTER_NODE_BYTES: usize = 16 + 8;
    const OUTSIDE_BYTES: usize = size_of::<Entry>();

    fn with_nodes(count: usize) -> Self {
        let idle = Node { soft: 0, hard: 0, position: NOWHERE };
        // Written once, so that no arm is the first to touch a page of it.
        let mut heap = vec![Entry { hard: 1, seq: 1, id: 1 }; count];
        heap.clear();
        Self { arena: Arena::new(count, idle), heap, arms: 0 }
    }

    fn probe(&self) -> &P {
        self.arena.probe()
    }

    fn arm(&mut self, id: u32, times: Times) {
        self.arms += 1;
        let entry = Entry { hard: times.hard, seq: self.arms, id };
        let node = &mut self.arena[id];
        (node.soft, node.hard) = (times.soft, times.hard);
        let position = node.position;
        if position == NOWHERE {
            self.heap.push(entry);
            let position = self.rise(self.heap.len() - 1, &entry);
            self.put(position, entry);
        } else {
            self.settle(position as usize, entry);
        }
    }

    fn cancel(&mut self, id: u32) -> bool {
        let armed = self.arena[id].position != NOWHERE;
        if armed {
            self.detach(id);
        }
        armed
    }

    fn first(&self) -> Option<u32> {
        self.heap.first().map(|entry| entry.id)
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
        for (position, entry) in self.heap.iter().enumerate() {
            let node = &self.arena[entry.id];
            assert_eq!((node.position as usize, node.hard), (position, entry.hard), "timer {}", entry.id);
            let above = &self.heap[position.saturating_sub(1) / D];
            assert!(position == 0 || above.before(entry), "order at {position}");
        }
        let armed = (0..self.arena.len() as u32).filter(|&id| self.arena[id].position != NOWHERE).count();
        assert_eq!(armed, self.heap.len(), "positions that are no longer in the heap");
        self.heap.len()
    }
}
