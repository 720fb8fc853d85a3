//! Packets by the moment at which they may leave; at the same moment in the order in which they came.
//!
//! Most come in order: those are a list, and only what overtakes is in a calendar. Each of those leaves
//! before the last of the list, so there is none when the list is empty. Source: Linux net/sched/sch_netem.c
//! (`tfifo`), by behaviour.

use super::calendar::{Calendar, DueKey};
use alloc::collections::VecDeque;
use quietcore_core::Nanos;

#[derive(Debug)]
pub(super) struct TimeQueue<P> {
    /// Keys do not fall.
    list: VecDeque<(DueKey, P)>,
    overtaking: Calendar<P>,
    arrived: u64,
    now: Nanos,
}

impl<P> TimeQueue<P> {
    pub(super) const fn new() -> Self {
        Self { list: VecDeque::new(), overtaking: Calendar::new(), arrived: 0, now: Nanos(0) }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len() + self.overtaking.len()
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.overtaking.clear();
    }

    /// It is `now`.
    pub(super) const fn pass(&mut self, now: Nanos) {
        self.now = now;
    }

    #[inline]
    pub(super) fn push(&mut self, at: Nanos, packet: P) {
        let key = (at, self.arrived);
        self.arrived += 1;
        if self.list.back().is_none_or(|(last, _)| *last < key) {
            self.list.push_back((key, packet));
        } else {
            self.overtaking.pass(self.now);
            self.overtaking.push(key, packet);
        }
    }

    /// When the first may leave.
    #[inline]
    pub(super) fn first(&self) -> Option<Nanos> {
        let (list, _) = self.list.front()?;
        match self.overtaking.first() {
            Some(first) if first < *list => Some(first.0),
            _ => Some(list.0),
        }
    }

    /// When the last may leave.
    pub(super) fn last(&self) -> Option<Nanos> {
        self.list.back().map(|(key, _)| key.0)
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<P> {
        let (list, _) = self.list.front()?;
        if self.overtaking.first().is_some_and(|first| first < *list) {
            return self.overtaking.pop();
        }
        self.list.pop_front().map(|(_, packet)| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::TimeQueue;
    use alloc::vec::Vec;
    use quietcore_core::Nanos;

    /// Goal: the packet that may leave first leaves, of those of one moment the one that came first, and the
    /// queue knows how many wait, and until when. Method: packets at moments out of a small range, in no
    /// order, in and out, beside a sorted list; then all that are left, one by one.
    #[test]
    fn packets_leave_in_order() {
        let (mut queue, mut sorted) = (TimeQueue::new(), Vec::<(Nanos, u32)>::new());
        let mut state = 1_u32;
        for number in 0..2_000_u32 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Later and later, with much that overtakes.
            let at = Nanos(u64::from(number / 8 + (state >> 16) % 50));
            queue.push(at, number);
            sorted.push((at, number));
            sorted.sort_unstable();
            if number % 3 > 0 {
                assert_eq!(queue.pop(), Some(sorted.remove(0).1));
            }
            assert_eq!(queue.first(), sorted.first().map(|first| first.0));
            assert_eq!(queue.last(), sorted.last().map(|last| last.0));
            assert_eq!(queue.len(), sorted.len());
        }
        let (left, half): (Vec<_>, _) =
            (sorted.iter().map(|(_, number)| *number).collect(), sorted.len() / 2);
        let leaves: Vec<_> = (0..half).filter_map(|_| queue.pop()).collect();
        assert_eq!(leaves, left[..half]);
        queue.clear();
        assert_eq!((queue.len(), queue.first(), queue.last(), queue.pop()), (0, None, None, None));
    }
}
