//! Many deadlines of one task: a queue of values, each handed out when its own deadline has come.
//!
//! The values are in an exact queue of one owner ([`ExactTimers`]), in the order of their deadlines; one
//! [`Sleep`] waits for the first. So a queue of any size is one timer for the machine. The sleep is set anew
//! at a poll only: a call that makes another deadline the first one wakes the task that polls. One that was
//! for a value that is gone wakes it once for nothing.
//!
//! Invariants: `moved` has exactly the keys that are older than `epoch` and not stale. Source: tokio-util
//! 0.7.20, `tokio_util::time::DelayQueue` (names, behaviour). Deviations: deadlines are not rounded; values
//! of one deadline come in the order of their insertion; a key that was used up is never taken for another
//! value's.

use super::{Duration, Instant, Sleep, sleep_until};
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker, ready};
use futures_core::Stream;
use quietcore_core::{Expiry, Nanos};
use quietcore_wheel::{ExactLinks, ExactTimers, Index, Slot, SlotKey};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Names a value in a [`DelayQueue`], until it is handed out or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    place: SlotKey,
    /// How often the queue had been compacted when the key was made.
    epoch: u32,
}

/// A value that left a [`DelayQueue`].
#[derive(Debug)]
pub struct Expired<T> {
    value: T,
    deadline: Instant,
    key: Key,
}

impl<T> Expired<T> {
    /// The value.
    #[must_use]
    pub const fn get_ref(&self) -> &T {
        &self.value
    }

    /// The value, to be changed.
    #[must_use]
    pub const fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// The value alone.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.value
    }

    /// When it was due.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// What it was known by. The key is stale.
    #[must_use]
    pub const fn key(&self) -> Key {
        self.key
    }
}

/// A value in its slot.
#[derive(Debug)]
struct Item<T> {
    value: T,
    /// As it was given out, if that was in an earlier epoch.
    older: Option<Key>,
}

type Memory<T> = Vec<Slot<Item<T>, ExactLinks<Index>>>;

type Timers<T> = ExactTimers<Item<T>, Memory<T>>;

/// Values with a deadline each, taken out as their deadlines come. For one task; other threads may look at
/// it (`Sync`) if its values may go to them.
///
/// Take values out with [`poll_expired`](Self::poll_expired), or as a [`Stream`]; both end with `None` when
/// the queue is empty, and go on when something is inserted. Inserting and resetting wake the task that
/// polled last when another deadline becomes the first. It belongs to the machine that is current when a task
/// first waits for it, until it is empty.
///
/// Cost: to insert O(1), to remove and to take out O(log n); no lock but for the first deadline's timer.
///
/// ```
/// use quietcore::Machine;
/// use quietcore::time::{DelayQueue, Duration};
/// use std::future::poll_fn;
///
/// let machine = Machine::start()?;
/// let _entered = machine.enter();
/// let mut queue = DelayQueue::new();
/// queue.insert("second", Duration::from_millis(3));
/// queue.insert("first", Duration::from_millis(1));
/// let removed = queue.insert("never", Duration::from_millis(2));
/// queue.remove(&removed);
/// futures_executor::block_on(async {
///     for expected in ["first", "second"] {
///         let expired = poll_fn(|context| queue.poll_expired(context)).await.expect("not empty");
///         assert_eq!(expired.into_inner(), expected);
///     }
///     assert!(poll_fn(|context| queue.poll_expired(context)).await.is_none());
/// });
/// # machine.shutdown();
/// # Ok::<(), quietcore::StartError>(())
/// ```
pub struct DelayQueue<T> {
    /// A lock for those that look at it through shared references: the links of the queue are cells.
    timers: Mutex<Timers<T>>,
    /// Where the values of older keys are now.
    moved: HashMap<Key, SlotKey>,
    epoch: u32,
    /// For a deadline that was the first one at a poll.
    delay: Option<Pin<Box<Sleep>>>,
    /// Of the task that polled last, unless it was woken since.
    waker: Option<Waker>,
}

/// Nothing in it is pinned but the sleep, which has a place of its own.
impl<T> Unpin for DelayQueue<T> {}

impl<T> Default for DelayQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for DelayQueue<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("DelayQueue")
            .field("len", &self.len())
            .field("delay", &self.delay)
            .finish_non_exhaustive()
    }
}

const STALE: &str = "the key of a value that was handed out or removed before";

impl<T> DelayQueue<T> {
    /// An empty queue. Allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// An empty queue with room for `capacity` values.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            timers: Mutex::new(timers_for(capacity)),
            moved: HashMap::new(),
            epoch: 0,
            delay: None,
            waker: None,
        }
    }

    /// Puts `value` in, to be taken out at `deadline`, or at the next poll if that is over. Wakes the task
    /// that polled last if it comes first now.
    ///
    /// # Panics
    /// With 2^32 - 1 values in the queue.
    #[track_caller]
    pub fn insert_at(&mut self, value: T, deadline: Instant) -> Key {
        let timers = self.timers_mut();
        let before = timers.next_expiry();
        let place = timers.arm_growing(at(deadline), Item { value, older: None });
        if timers.next_expiry() != before {
            self.wake();
        }
        Key { place, epoch: self.epoch }
    }

    /// The same, `timeout` from now. One that does not fit ends in about 30 years.
    ///
    /// # Panics
    /// With 2^32 - 1 values in the queue.
    #[track_caller]
    pub fn insert(&mut self, value: T, timeout: Duration) -> Key {
        self.insert_at(value, self.now().after(timeout))
    }

    /// Ready with the first value whose deadline has come, or with `None` when the queue is empty. Else the
    /// task is woken when there is one.
    ///
    /// # Panics
    /// When there is no current machine, or it was shut down.
    pub fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            self.waker = Some(context.waker().clone());
        }
        loop {
            let Some(key) = self.peek() else {
                self.delay = None;
                return Poll::Ready(None);
            };
            let now = Nanos::from(self.now()).0;
            if let Some(due) = self.timers_mut().next_expired(now) {
                return Poll::Ready(Some(self.taken(key, due.value, due.expiry)));
            }
            let first = self.deadline(&key);
            let delay = self.delay.get_or_insert_with(|| Box::pin(sleep_until(first)));
            if delay.deadline() != first {
                delay.as_mut().reset(first);
            }
            ready!(delay.as_mut().poll(context));
        }
    }

    /// Takes the value of `key` out.
    ///
    /// # Panics
    /// When it was handed out or removed before.
    #[track_caller]
    pub fn remove(&mut self, key: &Key) -> Expired<T> {
        self.try_remove(key).expect(STALE)
    }

    /// The same; `None` when it was handed out or removed before.
    pub fn try_remove(&mut self, key: &Key) -> Option<Expired<T>> {
        let place = self.place(key)?;
        let timers = self.timers_mut();
        let expiry = timers.expiry(place)?;
        let item = timers.cancel(place).ok()?;
        if self.is_empty() {
            self.wake();
        }
        Some(self.taken(*key, item, expiry))
    }

    /// Gives the value of `key` another deadline.
    ///
    /// # Panics
    /// When it was handed out or removed before.
    #[track_caller]
    pub fn reset_at(&mut self, key: &Key, deadline: Instant) {
        let place = self.place(key).expect(STALE);
        let timers = self.timers_mut();
        let before = timers.next_expiry();
        timers.re_arm(place, at(deadline)).expect(STALE);
        if timers.next_expiry() != before {
            self.wake();
        }
    }

    /// The same, `timeout` from now.
    ///
    /// # Panics
    /// When it was handed out or removed before.
    #[track_caller]
    pub fn reset(&mut self, key: &Key, timeout: Duration) {
        self.reset_at(key, self.now().after(timeout));
    }

    /// When the value of `key` is due.
    ///
    /// # Panics
    /// When it was handed out or removed before.
    #[must_use]
    #[track_caller]
    pub fn deadline(&self, key: &Key) -> Instant {
        let expiry = self.place(key).and_then(|place| self.timers().expiry(place));
        Nanos(expiry.expect(STALE).soft).into()
    }

    /// The key of the value that comes out next.
    #[must_use]
    pub fn peek(&self) -> Option<Key> {
        let timers = self.timers();
        let place = timers.first()?;
        let older = timers.get(place).and_then(|item| item.older);
        Some(older.unwrap_or(Key { place, epoch: self.epoch }))
    }

    /// Drops all values; their keys are stale. Keeps the memory.
    pub fn clear(&mut self) {
        if self.is_empty() {
            return;
        }
        // First: the destructor of a value may panic, and then the others stay, with keys and a sleep.
        while self.timers_mut().next_expired(u64::MAX).is_some() {}
        self.moved.clear();
        self.delay = None;
        self.wake();
    }

    /// How many values fit without another allocation.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.timers().capacity()
    }

    /// How many values there are, due or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.timers().len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.timers().is_empty()
    }

    /// Makes room for `additional` values more than there are.
    pub fn reserve(&mut self, additional: usize) {
        let free = self.capacity() - self.len();
        self.timers_mut().reserve(additional.saturating_sub(free));
    }

    /// Gives back the memory of values that are gone, by moving the others. Keys stay what they are. Cost:
    /// O(n log n); later uses of the keys that live now cost a look-up in a map.
    pub fn compact(&mut self) {
        let mut timers = timers_for(self.len());
        let mut moved = HashMap::with_capacity(self.len());
        // In their order, so that those of one deadline keep theirs.
        while let Some(key) = self.peek()
            && let Some(due) = self.timers_mut().next_expired(u64::MAX)
        {
            let item = Item { older: Some(key), ..due.value };
            moved.insert(key, timers.arm_growing(due.expiry, item));
        }
        (*self.timers_mut(), self.moved) = (timers, moved);
        self.epoch = self.epoch.checked_add(1).expect("a queue is compacted fewer than 2^32 times");
    }

    /// The same as [`compact`](Self::compact).
    pub fn shrink_to_fit(&mut self) {
        self.compact();
    }

    /// No user code runs while it is locked, so nothing is left half done.
    fn timers(&self) -> MutexGuard<'_, Timers<T>> {
        self.timers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn timers_mut(&mut self) -> &mut Timers<T> {
        self.timers.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, key: &Key) -> Option<SlotKey> {
        if key.epoch == self.epoch { Some(key.place) } else { self.moved.get(key).copied() }
    }

    /// What left the queue.
    fn taken(&mut self, key: Key, item: Item<T>, expiry: Expiry) -> Expired<T> {
        if key.epoch != self.epoch {
            self.moved.remove(&key);
        }
        Expired { value: item.value, deadline: Nanos(expiry.soft).into(), key }
    }

    /// The task has to look again.
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// On the clock that its sleep goes by.
    fn now(&self) -> Instant {
        self.delay.as_ref().map_or_else(Instant::now, |delay| delay.now())
    }
}

/// Empty, with room for `capacity`.
fn timers_for<T>(capacity: usize) -> Timers<T> {
    ExactTimers::new((0..capacity).map(|_| Slot::exact()).collect())
}

fn at(deadline: Instant) -> Expiry {
    Expiry::at(Nanos::from(deadline).0)
}

/// As [`poll_expired`](DelayQueue::poll_expired).
impl<T> Stream for DelayQueue<T> {
    type Item = Expired<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        self.get_mut().poll_expired(context)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::DelayQueue;
    use crate::time::{Duration, Instant};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Goal: a key of an earlier epoch is looked up as long as its value is there, and no longer: nothing is
    /// kept of it. Method: after a compaction of three values one is removed, and the others are cleared.
    #[test]
    fn nothing_is_kept_of_keys_that_are_stale() {
        let mut queue = DelayQueue::new();
        let [first, ..] =
            [1, 2, 3].map(|value| queue.insert_at(value, Instant::now() + Duration::from_secs(60)));
        queue.compact();
        assert_eq!(queue.moved.len(), 3);
        queue.remove(&first);
        assert_eq!(queue.moved.len(), 2);
        queue.clear();
        assert!(queue.moved.is_empty());
    }

    /// Panics when it is dropped, if it is to.
    #[derive(Debug)]
    struct Value(bool);

    impl Drop for Value {
        fn drop(&mut self) {
            assert!(!self.0, "on purpose");
        }
    }

    /// Goal: when the destructor of a value panics what was not dropped yet is there still, by its key.
    /// Method: the first of three values of an earlier epoch does, in a queue that is cleared; then it is
    /// cleared again.
    #[test]
    fn a_destructor_that_panics_takes_no_other_along() {
        let mut queue = DelayQueue::new();
        let start = Instant::now();
        let [first, second, last] = [1, 2, 3].map(|number| {
            let deadline = start + Duration::from_secs(60 * number);
            (queue.insert_at(Value(number == 1), deadline), deadline)
        });
        queue.compact();
        let cleared = catch_unwind(AssertUnwindSafe(|| queue.clear()));
        assert!(cleared.is_err());
        assert_eq!(
            (queue.len(), queue.peek(), queue.try_remove(&first.0).is_none()),
            (2, Some(second.0), true)
        );
        assert_eq!([second, last].map(|(key, _)| queue.deadline(&key)), [second.1, last.1]);
        queue.clear();
        assert!(queue.is_empty() && queue.moved.is_empty() && queue.try_remove(&last.0).is_none());
    }
}
