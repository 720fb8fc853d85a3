//! Timers with values and keys: the safe interface to the wheel for one owner.
//!
//! The wheel is the one of [`Wheel`], its nodes live in a storage that the caller hands over and are
//! reached by index. No `unsafe` is needed, here or in the caller. `inspect.rs` has what only looks.

mod inspect;

use crate::slots::{Full, Index, Slot, SlotKey, Slots, StaleKey};
use crate::{Links, Precision, Tick, Wheel, WheelNodes};
use core::fmt;

/// A timer that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WheelExpired<T> {
    /// The tick it was armed for.
    pub expires: Tick,
    /// What was armed.
    pub value: T,
}

/// Pending values of one owner, each with the tick it is due after.
///
/// `S` is the memory: an array, a slice, a `Vec` of [`Slot`]s. A `Vec` grows on
/// [`arm_growing`](Self::arm_growing); with all others [`arm`](Self::arm) says when they are full. A slot
/// takes 32 bytes and the value (and its `Option` tag, where it needs one).
///
/// Time is an argument: call [`forward`](Self::forward) with the present tick once per turn, arm and
/// cancel, take out what [`next_expired`](Self::next_expired) returns until it returns `None`, and sleep
/// until [`next_expiry`](Self::next_expiry).
///
/// ```
/// use quietcore_wheel::{Tick, Timers};
///
/// let mut timers = Timers::new(Tick(0), Vec::new());
/// let answered = timers.arm_growing(Tick(30), "request 7");
/// timers.arm_growing(Tick(40), "request 8");
/// assert_eq!(timers.cancel(answered)?, "request 7");
///
/// assert_eq!(timers.next_expiry(), Some(Tick(41)));
/// assert_eq!(timers.next_expired(Tick(40)), None); // never early
/// let late = timers.next_expired(Tick(41)).expect("request 8 is due");
/// assert_eq!((late.expires, late.value), (Tick(40), "request 8"));
/// # Ok::<(), quietcore_wheel::StaleKey>(())
/// ```
pub struct Timers<T, S, const LEVELS: usize = 9, const BUCKETS: usize = 64>
where
    S: AsRef<[Slot<T>]>,
{
    wheel: Wheel<Slots<T, S>, LEVELS, BUCKETS>,
}

impl<T, S: AsRef<[Slot<T>]>, const LEVELS: usize, const BUCKETS: usize> fmt::Debug
    for Timers<T, S, LEVELS, BUCKETS>
{
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Timers").field("slots", &self.wheel.nodes).field("wheel", &self.wheel).finish()
    }
}

impl<T> Slot<T, Links<Index>> {
    /// An empty slot.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_links(Links::new(Precision::Coarse))
    }
}

impl<T> Default for Slot<T, Links<Index>> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, S: AsRef<[Slot<T>]> + AsMut<[Slot<T>]>> Timers<T, S> {
    /// No timers, in a wheel of the default shape whose clock shows `clock`. What `storage` holds from an
    /// earlier owner is forgotten. Cost: O(1).
    #[must_use]
    pub fn new(clock: Tick, storage: S) -> Self {
        Self::with_shape(clock, storage)
    }
}

impl<T, S: AsRef<[Slot<T>]> + AsMut<[Slot<T>]>, const LEVELS: usize, const BUCKETS: usize>
    Timers<T, S, LEVELS, BUCKETS>
{
    /// The same in a wheel of any shape.
    #[must_use]
    pub fn with_shape(clock: Tick, storage: S) -> Self {
        Self { wheel: Wheel::with_nodes(clock, Slots::new(storage)) }
    }

    /// Arms `value` for the tick `expires`, to be handed out after it. Cost: O(1).
    ///
    /// # Errors
    /// [`Full`] gives the value back when no slot is free.
    #[inline]
    pub fn arm(&mut self, expires: Tick, value: T) -> Result<SlotKey, Full<T>> {
        self.arm_with(expires, Precision::Coarse, value)
    }

    /// The same with a choice of [`Precision`], which later re-arms keep.
    ///
    /// # Errors
    /// [`Full`] gives the value back when no slot is free.
    #[inline]
    pub fn arm_with(&mut self, expires: Tick, precision: Precision, value: T) -> Result<SlotKey, Full<T>> {
        let (key, index) = self.wheel.nodes.take(value)?;
        self.wheel.nodes.links(index).set_precision(precision);
        let _ = self.wheel.arm(index, expires);
        Ok(key)
    }

    /// Moves a pending timer to the tick `expires`, earlier or later. Cost: O(1).
    ///
    /// # Errors
    /// [`StaleKey`] when it was handed out or cancelled.
    #[inline]
    pub fn re_arm(&mut self, key: SlotKey, expires: Tick) -> Result<(), StaleKey> {
        let index = self.wheel.nodes.find(key)?;
        let _ = self.wheel.arm(index, expires);
        Ok(())
    }

    /// Moves a pending timer to the tick `expires` if that is earlier. Cost: O(1).
    ///
    /// # Errors
    /// [`StaleKey`] when it was handed out or cancelled.
    #[inline]
    pub fn reduce(&mut self, key: SlotKey, expires: Tick) -> Result<(), StaleKey> {
        let index = self.wheel.nodes.find(key)?;
        let _ = self.wheel.reduce(index, expires);
        Ok(())
    }

    /// Takes a pending timer out and gives its value back. Cost: O(1).
    ///
    /// # Errors
    /// [`StaleKey`] when it was handed out or cancelled.
    #[inline]
    pub fn cancel(&mut self, key: SlotKey) -> Result<T, StaleKey> {
        let index = self.wheel.nodes.find(key)?;
        self.wheel.cancel(index);
        self.wheel.nodes.release(index).ok_or(StaleKey)
    }

    /// The next timer that is due by `now`; `None` when there is none left.
    ///
    /// One at a time, so that whatever it causes may arm and cancel others in between: one that is
    /// cancelled then will not be handed out. Cost: O(1) per timer.
    #[inline]
    pub fn next_expired(&mut self, now: Tick) -> Option<WheelExpired<T>> {
        let index = self.wheel.next_expired(now)?;
        self.end(index)
    }

    /// Collects one tick that is due by `now`; see [`Wheel::collect`].
    pub fn collect(&mut self, now: Tick) -> bool {
        self.wheel.collect(now)
    }

    /// The next timer of those that were collected; see [`Wheel::pop_collected`].
    pub fn pop_collected(&mut self) -> Option<WheelExpired<T>> {
        let index = self.wheel.pop_collected()?;
        self.end(index)
    }

    #[inline]
    fn end(&mut self, index: Index) -> Option<WheelExpired<T>> {
        let expires = self.wheel.nodes.links(index).expires();
        let value = self.wheel.nodes.release(index)?;
        Some(WheelExpired { expires, value })
    }

    /// When to ask [`next_expired`](Self::next_expired) again: the tick at which the first timer is due, or
    /// with [`Precision::Tick`] moves on; `None` when nothing is pending.
    #[inline]
    pub fn next_expiry(&mut self) -> Option<Tick> {
        self.wheel.next_expiry()
    }

    /// Takes the clock to `now`; see [`Wheel::forward`].
    #[inline]
    pub fn forward(&mut self, now: Tick) {
        self.wheel.forward(now);
    }
}

impl<T, S, const LEVELS: usize, const BUCKETS: usize> Timers<T, S, LEVELS, BUCKETS>
where
    S: AsRef<[Slot<T>]> + AsMut<[Slot<T>]> + Extend<Slot<T>>,
{
    /// [`arm`](Self::arm) that makes room when there is none: the storage is doubled.
    ///
    /// # Panics
    /// When the storage does not grow, or has 2^32 - 1 slots.
    #[inline]
    pub fn arm_growing(&mut self, expires: Tick, value: T) -> SlotKey {
        match self.arm(expires, value) {
            Ok(key) => key,
            Err(Full(value)) => {
                self.reserve(self.capacity().max(16));
                self.arm(expires, value).expect("the storage has grown by at least one slot")
            }
        }
    }

    /// Adds `count` slots, so that as many more timers fit. For a `Vec` this moves all of them.
    pub fn reserve(&mut self, count: usize) {
        self.wheel.nodes.extend(core::iter::repeat_with(Slot::new).take(count));
    }
}
