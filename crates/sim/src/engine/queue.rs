//! The queue of events: a heap with four children per node.
//!
//! An event is a time, an order among equals and a small copy of what happens, side by side in one `Vec`. A
//! heap and not a calendar: simulated machines have a few thousand events ahead, mostly of similar distance,
//! and the whole heap stays in the cache; there is no width of days to tune.

use super::SimRandom;
use quietcore_core::Nanos;

/// Children of a node.
const WIDTH: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    at: u64,
    /// Random above, arrival below: a shuffle of equal times that the seed decides.
    order: u64,
    event: E,
}

impl<E> Entry<E> {
    #[inline]
    fn is_before(&self, other: &Self) -> bool {
        (self.at, self.order) < (other.at, other.order)
    }
}

/// Events by time; equal times in an order that the seed shuffles. `push` and `pop` are O(log n) and allocate
/// only while the queue grows.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    heap: Vec<Entry<E>>,
    random: SimRandom,
    arrival: u32,
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { heap: Vec::new(), random: SimRandom::new(seed, 0), arrival: 0 }
    }

    /// `event` happens at `at`.
    #[inline]
    pub fn push(&mut self, at: Nanos, event: E) {
        let order = u64::from(self.random.word()) << 32 | u64::from(self.arrival);
        self.arrival = self.arrival.wrapping_add(1);
        let entry = Entry { at: at.0, order, event };
        self.heap.push(entry);
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let parent = (at - 1) / WIDTH;
            if !entry.is_before(&self.heap[parent]) {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }

    /// Takes the first event out.
    #[inline]
    pub fn pop(&mut self) -> Option<(Nanos, E)> {
        let last = self.heap.pop()?;
        let Some(&first) = self.heap.first() else { return Some((Nanos(last.at), last.event)) };
        self.sink(last);
        Some((Nanos(first.at), first.event))
    }

    /// Puts `entry` where it belongs, with the first place free.
    #[inline]
    fn sink(&mut self, entry: Entry<E>) {
        let heap = self.heap.as_mut_slice();
        let mut at = 0;
        loop {
            let first = at * WIDTH + 1;
            let children = heap.get(first..heap.len().min(first + WIDTH)).unwrap_or_default();
            let mut least: Option<(usize, &Entry<E>)> = None;
            for (place, child) in children.iter().enumerate() {
                if least.is_none_or(|(_, least)| child.is_before(least)) {
                    least = Some((place, child));
                }
            }
            let Some((place, child)) = least.filter(|(_, child)| child.is_before(&entry)) else { break };
            heap[at] = *child;
            at = first + place;
        }
        heap[at] = entry;
    }

    /// When the first event happens.
    #[inline]
    #[must_use]
    pub fn next_at(&self) -> Option<Nanos> {
        self.heap.first().map(|entry| Nanos(entry.at))
    }

    /// How many events are ahead.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::EventQueue;
    use crate::engine::SimRandom;
    use quietcore_core::Nanos;

    /// Goal: events leave in order of time, none lost. Method: random pushes and pops beside a sorted list.
    #[test]
    fn leaves_in_order_of_time() {
        let mut random = SimRandom::new(3, 9);
        let mut queue = EventQueue::new(5);
        let mut oracle: Vec<(u64, u32)> = Vec::new();
        for number in 0..20_000_u32 {
            if random.chance(55) {
                let at = random.below(500);
                queue.push(Nanos(at), number);
                oracle.push((at, number));
            } else if let Some((at, event)) = queue.pop() {
                let least = oracle.iter().map(|(at, _)| *at).min().expect("the oracle has as many");
                assert_eq!(at.0, least, "event {event}");
                let place = oracle.iter().position(|other| *other == (at.0, event));
                oracle.swap_remove(place.expect("it was pushed and not popped before"));
            }
            assert_eq!(queue.len(), oracle.len());
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
