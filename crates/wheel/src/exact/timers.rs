//! Exact timers with values and keys: the safe interface to the exact queue for one owner.

use super::{ExactLinks, ExactNodes, ExactQueue, Expiry};
use crate::slots::{Full, Index, Slot, SlotKey, Slots, StaleKey};
use core::fmt;

/// An exact timer that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactExpired<T> {
    /// What it was armed for.
    pub expiry: Expiry,
    /// What was armed.
    pub value: T,
}

/// Pending values of one owner, each with the nanosecond it is due at.
///
/// The counterpart of [`Timers`](crate::Timers), with the same kind of memory and keys.
///
/// ```
/// use quietcore_wheel::{ExactTimers, Expiry};
///
/// let mut timers = ExactTimers::new(Vec::new());
/// let sample = timers.arm_growing(Expiry::at(2_000_000), "sample");
/// timers.arm_growing(Expiry::with_slack(1_900_000, 500_000), "report");
/// assert_eq!(timers.next_expiry(), Some(2_000_000));
///
/// // One wake-up serves both: the report's soft expiry has come.
/// assert_eq!(timers.next_expired(2_000_000).map(|due| due.value), Some("sample"));
/// assert_eq!(timers.next_expired(2_000_000).map(|due| due.value), Some("report"));
/// assert!(timers.cancel(sample).is_err()); // its key is stale
/// ```
pub struct ExactTimers<T, S>
where
    S: AsRef<[Slot<T, ExactLinks<Index>>]>,
{
    queue: ExactQueue<Slots<T, S, ExactLinks<Index>>>,
}

impl<T, S: AsRef<[Slot<T, ExactLinks<Index>>]>> fmt::Debug for ExactTimers<T, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ExactTimers").field("slots", &self.queue.nodes).finish_non_exhaustive()
    }
}

impl<T> Slot<T, ExactLinks<Index>> {
    /// An empty slot of an [`ExactTimers`].
    #[must_use]
    pub const fn exact() -> Self {
        Self::with_links(ExactLinks::new())
    }
}

impl<T, S> ExactTimers<T, S>
where
    S: AsRef<[Slot<T, ExactLinks<Index>>]> + AsMut<[Slot<T, ExactLinks<Index>>]>,
{
    /// No timers. What `storage` holds from an earlier owner is forgotten.
    #[must_use]
    pub const fn new(storage: S) -> Self {
        Self { queue: ExactQueue::with_nodes(Slots::new(storage)) }
    }

    /// Arms `value`. Cost: O(1) on average, O(log n) at most.
    ///
    /// # Errors
    /// [`Full`] gives the value back when no slot is free.
    #[inline]
    pub fn arm(&mut self, expiry: Expiry, value: T) -> Result<SlotKey, Full<T>> {
        let (key, index) = self.queue.nodes.take(value)?;
        let _ = self.queue.arm(index, expiry);
        Ok(key)
    }

    /// Moves a pending timer. Cost: O(log n).
    ///
    /// # Errors
    /// [`StaleKey`] when it was handed out or cancelled.
    #[inline]
    pub fn re_arm(&mut self, key: SlotKey, expiry: Expiry) -> Result<(), StaleKey> {
        let index = self.queue.nodes.find(key)?;
        let _ = self.queue.arm(index, expiry);
        Ok(())
    }

    /// Takes a pending timer out and gives its value back. Cost: O(log n).
    ///
    /// # Errors
    /// [`StaleKey`] when it was handed out or cancelled.
    #[inline]
    pub fn cancel(&mut self, key: SlotKey) -> Result<T, StaleKey> {
        let index = self.queue.nodes.find(key)?;
        self.queue.cancel(index);
        self.queue.nodes.release(index).ok_or(StaleKey)
    }

    /// The first timer, if its soft expiry has come by `now`; see [`ExactQueue::pop_expired`].
    #[inline]
    pub fn next_expired(&mut self, now: u64) -> Option<ExactExpired<T>> {
        let index = self.queue.pop_expired(now)?;
        let expiry = self.queue.nodes.exact_links(index).expiry();
        let value = self.queue.nodes.release(index)?;
        Some(ExactExpired { expiry, value })
    }

    /// When to wake up at the latest, in ns; `None` when nothing is pending. Cost: two loads.
    #[inline]
    #[must_use]
    pub fn next_expiry(&self) -> Option<u64> {
        self.queue.next_expiry()
    }

    /// The timer that comes out next: the one with the earliest hard expiry, of equal ones the one armed
    /// first. Cost: a load.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<SlotKey> {
        self.queue.first().map(|index| self.queue.nodes.key(index))
    }

    /// What a pending timer was armed for.
    #[must_use]
    pub fn expiry(&self, key: SlotKey) -> Option<Expiry> {
        Some(self.queue.nodes.exact_links(self.queue.nodes.find(key).ok()?).expiry())
    }

    /// The value of a pending timer.
    #[must_use]
    pub fn get(&self, key: SlotKey) -> Option<&T> {
        self.queue.nodes.value(self.queue.nodes.find(key).ok()?)
    }

    /// The same, to be changed.
    #[must_use]
    pub fn get_mut(&mut self, key: SlotKey) -> Option<&mut T> {
        let index = self.queue.nodes.find(key).ok()?;
        self.queue.nodes.value_mut(index)
    }

    /// How many timers are pending.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.nodes.taken()
    }

    /// Whether none is.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many slots there are.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.queue.nodes.capacity()
    }

    /// Asserts the queue's invariants; see [`ExactQueue::check`].
    ///
    /// # Panics
    /// When one does not hold, which is a bug of this crate.
    pub fn check(&self) {
        assert_eq!(self.queue.check(), self.len(), "every value is in the queue");
    }
}

impl<T, S> ExactTimers<T, S>
where
    S: AsRef<[Slot<T, ExactLinks<Index>>]>
        + AsMut<[Slot<T, ExactLinks<Index>>]>
        + Extend<Slot<T, ExactLinks<Index>>>,
{
    /// [`arm`](Self::arm) that makes room when there is none: the storage is doubled.
    ///
    /// # Panics
    /// When the storage does not grow, or has 2^32 - 1 slots.
    #[inline]
    pub fn arm_growing(&mut self, expiry: Expiry, value: T) -> SlotKey {
        match self.arm(expiry, value) {
            Ok(key) => key,
            Err(Full(value)) => {
                self.reserve(self.capacity().max(16));
                self.arm(expiry, value).expect("the storage has grown by at least one slot")
            }
        }
    }

    /// Adds `count` slots, so that as many more timers fit. For a `Vec` this moves all of them.
    pub fn reserve(&mut self, count: usize) {
        self.queue.nodes.extend(core::iter::repeat_with(Slot::exact).take(count));
    }
}
