//! `std`: `BinaryHeap` with lazy deletion, the usual way to cancel in a heap.
//!
//! A cancelled timer stays in the heap until it comes to the top, or until there are more dead entries than
//! live ones and all dead ones are removed at once (as Python's asyncio does it). An entry is alive if its
//! generation is that of its timer.

use crate::peers::peer::{Answer, Peer};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Below this many dead entries the heap is left alone.
const DEAD_MIN: usize = 64;

/// An entry: expiry, generation, timer.
type Entry = Reverse<(u64, u32, u32)>;

/// Adapter of `std::collections::BinaryHeap`.
pub struct LazyHeap {
    heap: BinaryHeap<Entry>,
    /// Per timer; one more with every arm and every cancel, so that it is odd while the timer is pending.
    generations: Vec<u32>,
    pending: usize,
}

impl LazyHeap {
    fn purge(&mut self) {
        let dead = self.heap.len() - self.pending;
        if dead > self.pending.max(DEAD_MIN) {
            let generations = &self.generations;
            self.heap.retain(|&Reverse((_, generation, id))| generations[id as usize] == generation);
        }
    }

    /// The first live entry; dead ones above it are removed.
    fn first(&mut self) -> Option<(u64, u32)> {
        while let Some(&Reverse((expires, generation, id))) = self.heap.peek() {
            if self.generations[id as usize] == generation {
                return Some((expires, id));
            }
            self.heap.pop();
        }
        None
    }
}

impl Peer for LazyHeap {
    const NAME: &'static str = "std BinaryHeap";
    const NOTE: &'static str = "lazy deletion with a generation per timer; purged when more entries are dead \
        than alive; equal expiries in no particular order";
    const ANSWER: Answer = Answer::Exact;

    type When = u64;
    type Now = u64;
    type Handle = ();

    fn new(capacity: usize) -> Self {
        // Twice the room: up to one dead entry for each live one.
        let heap = BinaryHeap::with_capacity(2 * capacity + DEAD_MIN + 1);
        Self { heap, generations: vec![0; capacity], pending: 0 }
    }

    fn when(&self, now: u64, delay: u64) -> u64 {
        now + delay
    }

    fn now(&self, tick: u64) -> u64 {
        tick
    }

    fn tick(&self, now: u64) -> u64 {
        now
    }

    #[inline]
    fn arm(&mut self, id: u32, when: u64) {
        let generation = &mut self.generations[id as usize];
        *generation = generation.wrapping_add(1);
        self.heap.push(Reverse((when, *generation, id)));
        self.pending += 1;
    }

    #[inline]
    fn cancel(&mut self, id: u32, _handle: &mut ()) -> bool {
        let generation = &mut self.generations[id as usize];
        if generation.is_multiple_of(2) {
            return false;
        }
        *generation = generation.wrapping_add(1);
        self.pending -= 1;
        self.purge();
        true
    }

    #[inline]
    fn advance(&mut self, now: u64, expired: &mut Vec<u32>) {
        while let Some((expires, id)) = self.first()
            && expires <= now
        {
            self.heap.pop();
            self.generations[id as usize] = self.generations[id as usize].wrapping_add(1);
            self.pending -= 1;
            expired.push(id);
        }
    }

    #[inline]
    fn next_expiry(&mut self) -> Option<u64> {
        self.first().map(|(expires, _)| expires)
    }

    fn pending(&self) -> usize {
        self.pending
    }
}
