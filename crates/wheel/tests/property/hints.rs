//! The memory of timers that are due soon is asked for, and that of the neighbours of those that move.

use quietcore_wheel::{Links, Nodes, Tick, Wheel};
use std::cell::RefCell;

struct Node(Links<usize>);

impl AsRef<Links<usize>> for Node {
    fn as_ref(&self) -> &Links<usize> {
        &self.0
    }
}

/// Nodes by number. The hint of each is its number, and one more.
struct Numbered([Node; COUNT]);

const COUNT: usize = 20;

impl Default for Numbered {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Node(Links::default())))
    }
}

thread_local! {
    static ASKED_FOR: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    static LINKS_ASKED_FOR: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

impl Nodes for Numbered {
    type Node = Node;
    type Ref = usize;

    fn get(&self, node: usize) -> &Node {
        &self.0[node]
    }

    fn hint(&self, find: impl FnOnce() -> Option<usize>) -> u32 {
        find().map_or(0, |node| node as u32 + 1)
    }

    fn prefetch(&self, _other: usize, hint: u32) {
        ASKED_FOR.with_borrow_mut(|asked_for| asked_for.push(hint));
    }

    fn prefetch_links(&self, node: usize) {
        LINKS_ASKED_FOR.with_borrow_mut(|asked_for| asked_for.push(node));
    }
}

/// Goal: with every fourth timer that is taken out four are asked for, those that come seven to ten later,
/// as far as there are so many. Method: twenty timers in one bucket, three times, the hints in the order in
/// which they are given.
#[test]
fn what_comes_next_is_asked_for() {
    let mut wheel = Wheel::<Numbered>::with_shape(Tick(0));
    for now in [10, 20, 30].map(Tick) {
        for node in 0..COUNT {
            let _ = wheel.arm(node, now);
        }
        assert!(wheel.collect(now.plus(1)), "they are due");
        for node in (0..COUNT).rev() {
            assert_eq!(wheel.pop_collected(), Some(node), "the last armed first");
            // With 16, the seventh behind it: that is 9, and its hint 10.
            let expected: &[u32] = match node {
                16 => &[10, 9, 8, 7],
                12 => &[6, 5, 4, 3],
                8 => &[2, 1, 0, 0],
                4 => &[0; 4],
                _ => &[],
            };
            assert_eq!(ASKED_FOR.take(), expected, "with {node}");
        }
    }
}

/// Goal: before a timer moves both of its neighbours can be asked for, and of an idle one nothing is read.
/// Method: three timers in one bucket; the one in the middle, the first, and one that was taken out.
#[test]
fn neighbours_are_asked_for() {
    let mut wheel = Wheel::<Numbered>::with_shape(Tick(0));
    for node in 0..3 {
        let _ = wheel.arm(node, Tick(10));
    }
    wheel.prefetch_neighbours(1);
    assert_eq!(LINKS_ASKED_FOR.take(), [2, 0]);
    // The one before the first is the last.
    wheel.prefetch_neighbours(2);
    assert_eq!(LINKS_ASKED_FOR.take(), [0, 1]);
    assert!(wheel.cancel(1));
    wheel.prefetch_neighbours(1);
    assert_eq!(LINKS_ASKED_FOR.take(), []);
}
