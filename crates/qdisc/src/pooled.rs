//! Queues that share one allocation: so many may be empty that each of its own would waste memory, and none
//! asks for any once they have held as much together.
//!
//! Invariant: every place is in one queue, or free.

use alloc::vec::Vec;

/// No place.
const NOWHERE: u32 = u32::MAX;

#[derive(Debug)]
struct PooledPlace<T> {
    /// Nothing in a free place.
    item: Option<T>,
    /// Towards the last one; of a free place the next free one.
    behind: u32,
    /// Towards the first one.
    before: u32,
}

/// What queues hold, all of them.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    places: Vec<PooledPlace<T>>,
    free: u32,
}

/// A queue of a [`Pool`]: it is emptied by the pool alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PooledQueue {
    first: u32,
    last: u32,
    len: u32,
}

impl PooledQueue {
    /// An empty one.
    pub(crate) const fn new() -> Self {
        Self { first: NOWHERE, last: NOWHERE, len: 0 }
    }

    pub(crate) const fn len(&self) -> u32 {
        self.len
    }
}

impl<T> Pool<T> {
    /// One without memory.
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), free: NOWHERE }
    }

    /// Forgets what all queues hold; the queues have to be replaced by empty ones.
    pub(crate) fn clear(&mut self) {
        self.places.clear();
        self.free = NOWHERE;
    }

    /// Puts `item` behind the last one of `queue`.
    ///
    /// # Panics
    /// With 2^32 - 1 items: they do not fit in memory.
    pub(crate) fn push(&mut self, queue: &mut PooledQueue, item: T) {
        let (item, before) = (Some(item), queue.last);
        let place = PooledPlace { item, behind: NOWHERE, before };
        let at = self.free;
        let at = if at == NOWHERE {
            let at = u32::try_from(self.places.len()).ok().filter(|at| *at != NOWHERE);
            self.places.push(place);
            at.expect("memory is too small for so many")
        } else {
            self.free = core::mem::replace(&mut self.places[at as usize], place).behind;
            at
        };
        match self.places.get_mut(before as usize) {
            Some(last) => last.behind = at,
            None => queue.first = at,
        }
        (queue.last, queue.len) = (at, queue.len + 1);
    }

    /// Takes the first one of `queue`.
    pub(crate) fn pop_first(&mut self, queue: &mut PooledQueue) -> Option<T> {
        let at = queue.first;
        let behind = self.places.get(at as usize)?.behind;
        queue.first = behind;
        match self.places.get_mut(behind as usize) {
            Some(next) => next.before = NOWHERE,
            None => queue.last = NOWHERE,
        }
        queue.len -= 1;
        self.release(at)
    }

    /// Takes the last one of `queue`.
    pub(crate) fn pop_last(&mut self, queue: &mut PooledQueue) -> Option<T> {
        let at = queue.last;
        let before = self.places.get(at as usize)?.before;
        queue.last = before;
        match self.places.get_mut(before as usize) {
            Some(next) => next.behind = NOWHERE,
            None => queue.first = NOWHERE,
        }
        queue.len -= 1;
        self.release(at)
    }

    /// The first one of `queue`, to be changed.
    pub(crate) fn first_mut(&mut self, queue: &PooledQueue) -> Option<&mut T> {
        self.places.get_mut(queue.first as usize)?.item.as_mut()
    }

    /// Those of `queue` in order, each with its place.
    pub(crate) fn iter(&self, queue: &PooledQueue) -> impl Iterator<Item = (u32, &T)> {
        let mut next = queue.first;
        core::iter::from_fn(move || {
            let at = next;
            let place = self.places.get(at as usize)?;
            next = place.behind;
            place.item.as_ref().map(|item| (at, item))
        })
    }

    /// The last one of `queue`, and the place before it.
    pub(crate) fn last(&self, queue: &PooledQueue) -> Option<(u32, &T)> {
        let place = self.places.get(queue.last as usize)?;
        place.item.as_ref().map(|item| (place.before, item))
    }

    /// Takes the one at a place of `queue`.
    pub(crate) fn remove(&mut self, queue: &mut PooledQueue, at: u32) -> Option<T> {
        if at == queue.first {
            return self.pop_first(queue);
        }
        if at == queue.last {
            return self.pop_last(queue);
        }
        let PooledPlace { behind, before, .. } = *self.places.get(at as usize)?;
        self.places[before as usize].behind = behind;
        self.places[behind as usize].before = before;
        queue.len -= 1;
        self.release(at)
    }

    fn release(&mut self, at: u32) -> Option<T> {
        let place = &mut self.places[at as usize];
        place.behind = core::mem::replace(&mut self.free, at);
        place.item.take()
    }
}

#[cfg(test)]
mod tests {
    use super::{Pool, PooledQueue};
    use std::collections::VecDeque;
    use std::vec;
    use std::vec::Vec;

    /// Goal: each queue is as one of its own, and places are used again. Method: five queues and a list for
    /// each, numbers that look random, all told after each step; places are as many as were ever used at
    /// once.
    #[test]
    fn queues_do_not_mix() {
        let (mut pool, mut queues) = (Pool::new(), [PooledQueue::new(); 5]);
        let mut lists: Vec<VecDeque<u32>> = vec![VecDeque::new(); 5];
        let (mut random, mut most) = (77_u32, 0);
        for number in 0..5_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (which, step) = ((random >> 8) as usize % 5, random >> 28);
            let (queue, list) = (&mut queues[which], &mut lists[which]);
            match step {
                0..8 => {
                    pool.push(queue, number);
                    list.push_back(number);
                }
                8..12 => assert_eq!(pool.pop_first(queue), list.pop_front()),
                _ => assert_eq!(pool.pop_last(queue), list.pop_back()),
            }
            assert_eq!((queue.len() as usize, pool.first_mut(queue)), (list.len(), list.front_mut()));
            most = most.max(lists.iter().map(VecDeque::len).sum());
        }
        assert_eq!(pool.places.len(), most);
        pool.clear();
        queues[0] = PooledQueue::new();
        assert_eq!(pool.pop_first(&mut queues[0]), None);
    }

    /// Goal: one is taken from anywhere, and the others stay in order. Method: the first, a middle one, the
    /// last, and what is behind each place, told by the list.
    #[test]
    fn one_is_taken_from_anywhere() {
        let (mut pool, mut queue) = (Pool::new(), PooledQueue::new());
        (0..6).for_each(|number| pool.push(&mut queue, number));
        let mut list: Vec<u32> = (0..6).collect();
        for at in [0, 2, 3, 1, 0, 0] {
            let (place, number) =
                pool.iter(&queue).nth(at).map(|(at, number)| (at, *number)).expect("it is there");
            assert_eq!(pool.remove(&mut queue, place), Some(number));
            assert_eq!(number, list.remove(at));
            let left: Vec<u32> = pool.iter(&queue).map(|(_, number)| *number).collect();
            assert_eq!((&left, queue.len() as usize), (&list, list.len()));
            let last = pool.last(&queue).map(|(before, number)| (before, *number));
            assert_eq!(last.map(|(_, number)| number), list.last().copied());
            let before =
                left.len().checked_sub(2).and_then(|at| pool.iter(&queue).nth(at)).map(|(place, _)| place);
            assert!(before.is_none_or(|place| last.is_some_and(|(before, _)| before == place)));
        }
        assert!(pool.last(&queue).is_none());
    }
}
