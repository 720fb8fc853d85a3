//! The memory of timers that are due soon is asked for.

use quietcore_wheel::{Links, Nodes, Tick, Wheel};
use std::cell::RefCell;

struct Node(Links<usize>);

impl AsRef<Links<usize>> for Node {
    fn as_ref(&self) -> &Links<usize> {
        &self.0
    }
}

/// Nodes by number. The hint of each is its number, and one more.
struct Numbered([Node; 9]);

impl Default for Numbered {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Node(Links::default())))
    }
}

thread_local! {
    static ASKED_FOR: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
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
}

/// Goal: with each timer that is taken out the one is asked for that comes six later, while there is one.
/// Method: nine timers in one bucket, three times, the hints in the order in which they are given.
#[test]
fn what_comes_next_is_asked_for() {
    let mut wheel = Wheel::<Numbered>::with_shape(Tick(0));
    for now in [10, 20, 30].map(Tick) {
        for node in 0..9 {
            let _ = wheel.arm(node, now);
        }
        assert!(wheel.collect(now.plus(1)), "they are due");
        let taken: Vec<_> = std::iter::from_fn(|| wheel.pop_collected()).collect();
        assert_eq!(taken, [8, 7, 6, 5, 4, 3, 2, 1, 0], "the last armed first");
        // With 8, the sixth behind it: that is 2, and its hint 3.
        assert_eq!(ASKED_FOR.take(), [3, 2, 1, 0, 0, 0, 0, 0]);
    }
}
