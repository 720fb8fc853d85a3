//! The memory of timers that a machine keeps: slots and their names.

use super::{Arena, CHUNK};
use alloc::vec::Vec;

/// Goal: slots stay where they are and are used again under other names. Method: three chunks; every
/// other slot removed and filled again.
#[test]
fn slots_stay_and_are_used_again() {
    let mut arena = Arena::new();
    let names: Vec<_> = (0..3 * CHUNK).map(|_| arena.add(|number| number)).collect();
    let places: Vec<_> = names.iter().map(|(number, generation)| arena.find(*number, *generation)).collect();
    for (number, generation) in names.iter().step_by(2) {
        assert!(arena.remove(*number, *generation) && !arena.remove(*number, *generation));
    }
    assert_eq!((arena.len(), arena.capacity() as usize), (3 * CHUNK / 2, 3 * CHUNK));
    for _ in 0..3 * CHUNK / 2 {
        let (number, generation) = arena.add(|number| number);
        assert_eq!((number % 2, generation), (0, 3));
        assert_eq!(arena.find(number, generation), places[number as usize]);
        assert_eq!((arena.find(number, 1), arena.find(number, 2)), (None, None));
    }
    for ((number, generation), word) in names.iter().zip(&places).skip(1).step_by(2) {
        assert_eq!(arena.find(*number, *generation), *word);
    }
    assert_eq!(arena.find(3 * CHUNK as u32, 1), None);
}
