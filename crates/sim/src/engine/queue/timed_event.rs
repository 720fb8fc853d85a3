//! An event and when it happens.

use core::cmp::Ordering;

/// The greatest is the one that happens first, as a `BinaryHeap` has its greatest on top.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedEvent<E> {
    pub(super) at: u64,
    /// Random above, arrival below: a shuffle of equal times that the seed decides. No two are equal.
    pub(super) order: u64,
    pub(super) event: E,
}

impl<E> TimedEvent<E> {
    /// In one number, so that two are compared without a branch.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.at) << 64 | u128::from(self.order)
    }
}

impl<E> Ord for TimedEvent<E> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<E> PartialOrd for TimedEvent<E> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    #[inline]
    fn le(&self, other: &Self) -> bool {
        other.key() <= self.key()
    }
}

impl<E> PartialEq for TimedEvent<E> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for TimedEvent<E> {}
