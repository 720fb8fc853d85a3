//! The lists in which the queues of a tin take turns: each queue is in one of them, or in none.
//!
//! Links are numbers of queues; behind those of the queues stand the ends of the lists, so that a queue is
//! put in or taken out from anywhere at once.

use super::spread::QUEUES;
use alloc::vec::Vec;

/// A list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnList {
    /// Queues that have had little, before all others.
    New,
    /// Those that have more than a turn.
    Old,
    /// Those that are empty, but not yet at rest.
    Decaying,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u16,
    behind: u16,
}

/// All lists of a tin.
#[derive(Debug)]
pub(super) struct Rotation(Vec<Link>);

impl Rotation {
    pub(super) fn new() -> Self {
        // One that is in no list is alone in a ring.
        let alone = |at| Link { before: at, behind: at };
        Self((0..QUEUES as u16 + 3).map(alone).collect())
    }

    const fn end(list: TurnList) -> usize {
        QUEUES + list as usize
    }

    pub(super) fn first(&self, list: TurnList) -> Option<usize> {
        let first = usize::from(self.0[Self::end(list)].behind);
        (first < QUEUES).then_some(first)
    }

    pub(super) fn is_listed(&self, queue: usize) -> bool {
        usize::from(self.0[queue].behind) != queue
    }

    /// Takes a queue out of its list, if it is in one.
    pub(super) fn remove(&mut self, queue: usize) {
        let Link { before, behind } = self.0[queue];
        self.0[usize::from(before)].behind = behind;
        self.0[usize::from(behind)].before = before;
        self.0[queue] = Link { before: queue as u16, behind: queue as u16 };
    }

    /// Makes a queue the last one of a list.
    pub(super) fn put_last(&mut self, queue: usize, list: TurnList) {
        self.remove(queue);
        let end = Self::end(list);
        let last = self.0[end].before;
        self.0[queue] = Link { before: last, behind: end as u16 };
        self.0[usize::from(last)].behind = queue as u16;
        self.0[end].before = queue as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::{Rotation, TurnList};
    use std::collections::VecDeque;

    /// Goal: lists keep order whatever is moved. Method: queues moved between lists by a fixed sequence,
    /// beside three plain lists.
    #[test]
    fn lists_keep_their_order() {
        let (mut rotation, mut plain) = (Rotation::new(), [const { VecDeque::<usize>::new() }; 3]);
        let lists = [TurnList::New, TurnList::Old, TurnList::Decaying];
        let mut seed = 5_usize;
        for _ in 0..2_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (queue, to) = ((seed >> 40) % 9, (seed >> 50) % 4);
            plain.iter_mut().for_each(|list| list.retain(|one| *one != queue));
            match lists.get(to) {
                Some(list) => {
                    rotation.put_last(queue, *list);
                    plain[to].push_back(queue);
                }
                None => rotation.remove(queue),
            }
            assert_eq!(rotation.is_listed(queue), to < 3);
            for (list, plain) in lists.iter().zip(&plain) {
                assert_eq!(rotation.first(*list), plain.front().copied());
            }
        }
    }
}
