//! The queue of events beside a sorted map.

use super::EventQueue;
use crate::engine::SimRandom;
use quietcore_core::Nanos;
use std::collections::BTreeMap;

/// Goal: events leave in order of time, and equal ones in one order, wherever they wait meanwhile; none is
/// lost. Method: random pushes and pops beside a sorted map that is told the same order; few and many events,
/// up to the end of time, distances from none to beyond the ring.
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
