//! The queue of events: what comes first in a heap, what comes later in buckets that are not sorted.
//!
//! An event is a time, an order among equals and a small copy of what happens. One heap of everything would
//! move an event of a large machine half a dozen times before it happens; so it waits in a bucket until its
//! bucket is the next. While few events are near, others join them in the heap: no width of buckets matters
//! to a small machine.
//!
//! Invariants: the heap of what is near has the first event of all; what waits in the ring or later is not
//! before the ring's beginning, and what waits later is behind the ring's end.

mod ring;
mod timed_event;

use super::SimRandom;
use quietcore_core::Nanos;
use ring::Ring;
use std::collections::BinaryHeap;
use timed_event::TimedEvent;

/// So many events are few: sorting them costs less than putting them aside.
const FEW: usize = 16;

/// Events by time; equal times in an order that the seed shuffles. `push` and `pop` are O(log n) and allocate
/// only while the queue grows.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    near: BinaryHeap<TimedEvent<E>>,
    ring: Ring<E>,
    later: BinaryHeap<TimedEvent<E>>,
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
        let entry = TimedEvent { at: at.0, order, event };
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
    fn put_aside(&mut self, entry: TimedEvent<E>) {
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
mod tests;
