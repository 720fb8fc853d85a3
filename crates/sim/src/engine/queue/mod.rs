//! The queue of events: what comes first in a heap, what comes later in buckets that are not sorted.
//!
//! An event is a time, an order among equals and a small copy of what happens. One heap of everything would
//! move an event of a large machine half a dozen times before it happens; so it waits in a bucket until its
//! bucket is the next. While few events are near, others join them in the heap: no width of buckets matters
//! to a small machine.
//!
//! Invariants: the heap of what is near has the first event of all; what waits in the ring or later is not
//! before the ring's beginning, and what waits later is behind the ring's end.

mod entry;
mod ring;

use super::SimRandom;
use entry::Entry;
use quietcore_core::Nanos;
use ring::Ring;
use std::collections::BinaryHeap;

/// So many events are few: sorting them costs less than putting them aside.
const FEW: usize = 16;

/// Events by time; equal times in an order that the seed shuffles. `push` and `pop` are O(log n) and allocate
/// only while the queue grows.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    near: BinaryHeap<Entry<E>>,
    ring: Ring<E>,
    later: BinaryHeap<Entry<E>>,
    random: SimRandom,
    arrival: u32,
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let random = SimRandom::new(seed, 0);
        Self { near: BinaryHeap::new(), ring: Ring::new(), later: BinaryHeap::new(), random, arrival: 0 }
    }

    /// `event` happens at `at`.
    #[inline]
    pub fn push(&mut self, at: Nanos, event: E) {
        let order = u64::from(self.random.word()) << 32 | u64::from(self.arrival);
        self.arrival = self.arrival.wrapping_add(1);
        let entry = Entry { at: at.0, order, event };
        if at.0 < self.ring.begin() || self.near.len() < FEW {
            return self.near.push(entry);
        }
        self.put_aside(entry);
        self.bring_near();
    }

    /// Takes the first event out.
    #[inline]
    pub fn pop(&mut self) -> Option<(Nanos, E)> {
        let first = self.near.pop()?;
        self.bring_near();
        Some((Nanos(first.at), first.event))
    }

    #[inline]
    fn put_aside(&mut self, entry: Entry<E>) {
        if self.ring.covers(entry.at) { self.ring.push(entry) } else { self.later.push(entry) }
    }

    /// Makes sure that the first event of all is near.
    #[inline]
    fn bring_near(&mut self) {
        let begin = self.ring.begin();
        if self.near.peek().is_none_or(|first| first.at >= begin) {
            self.empty_buckets();
        }
    }

    fn empty_buckets(&mut self) {
        while self.near.peek().is_none_or(|first| first.at >= self.ring.begin()) {
            if self.ring.len() > 0 {
                self.ring.empty_first(|entry| self.near.push(entry));
            } else if let Some(first) = self.later.peek() {
                self.ring.begin_at(first.at);
            } else {
                return;
            }
            while let Some(next) = self.later.peek()
                && self.ring.covers(next.at)
            {
                self.later.pop().into_iter().for_each(|entry| self.ring.push(entry));
            }
        }
    }

    /// When the first event happens.
    #[inline]
    #[must_use]
    pub fn next_at(&self) -> Option<Nanos> {
        self.near.peek().map(|entry| Nanos(entry.at))
    }

    /// How many events are ahead.
    #[must_use]
    pub fn len(&self) -> usize {
        self.near.len() + self.ring.len() + self.later.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.near.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::EventQueue;
    use crate::engine::SimRandom;
    use quietcore_core::Nanos;
    use std::collections::BTreeMap;

    /// Goal: events leave in order of time, and equal ones in one order, wherever they wait meanwhile; none is
    /// lost. Method: random pushes and pops beside a sorted map that is told the same order; few and many
    /// events, up to near ends and ends of time, distances from none to beyond the ring, and sudden jumps.
    #[test]
    fn leaves_in_order_of_time() {
        for (seed, percent, origin) in
            [(1, 51, 0), (2, 55, 0), (3, 80, 7), (4, 55, u64::MAX - (1 << 40)), (5, 99, u64::MAX - (1 << 30))]
        {
            let mut random = SimRandom::new(seed, 9);
            let mut queue = EventQueue::new(seed);
            // What the queue draws.
            let mut orders = SimRandom::new(seed, 0);
            let mut oracle = BTreeMap::new();
            let mut now = origin;
            for number in 0..20_000_u32 {
                if random.chance(percent) {
                    let span = [1, 3_000, 100_000, 30_000_000, 1 << 29][random.below(5) as usize];
                    let at = now.saturating_add(random.below(span));
                    queue.push(Nanos(at), number);
                    oracle.insert((at, u64::from(orders.word()) << 32 | u64::from(number)), number);
                } else if let Some((at, event)) = queue.pop() {
                    let ((least, _), expected) = oracle.pop_first().expect("the oracle has as many");
                    assert_eq!((at.0, event), (least, expected), "event {number} of {seed}");
                    now = at.0;
                }
                assert_eq!(queue.len(), oracle.len());
                assert_eq!(queue.is_empty(), oracle.is_empty());
                assert_eq!(queue.next_at(), oracle.first_key_value().map(|((at, _), _)| Nanos(*at)));
            }
            while let Some((at, event)) = queue.pop() {
                let ((least, _), expected) = oracle.pop_first().expect("the oracle has as many");
                assert_eq!((at.0, event), (least, expected), "of {seed}");
            }
            assert!(oracle.is_empty(), "of {seed}: {oracle:?}");
        }
    }

    /// Goal: equal times are shuffled by the seed, and by nothing else. Method: ten events, several seeds.
    #[test]
    fn equal_times_are_shuffled_by_the_seed() {
        let order = |seed| {
            let mut queue = EventQueue::new(seed);
            (0..10).for_each(|event| queue.push(Nanos(4), event));
            std::iter::from_fn(move || queue.pop().map(|(_, event)| event)).collect::<Vec<u8>>()
        };
        assert_eq!(order(1), order(1));
        assert!((2..6).any(|seed| order(seed) != order(1)));
        let mut sorted = order(1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..10).collect::<Vec<u8>>());
    }
}
