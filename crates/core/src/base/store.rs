//! Timers that a machine owns, for worlds without `unsafe`: a simulator, a test.
//!
//! A timer is named by a number and how often that number was given out, so that the name of a removed timer
//! names nothing. Memory grows by chunks and is kept. A store stays with the bases that link its timers
//! ([`Bases`](super::Bases)); the references that reach them are never shown.

use super::arena::Arena;
use super::options::TimerOptions;
use super::timer::{ExactKind, ExactTimer, TickKind, Timer, TimerKind, TimerRef};
use core::fmt;
use core::marker::PhantomData;

/// Names a timer of a machine's store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId<K = TickKind> {
    number: u32,
    generation: u32,
    kind: PhantomData<K>,
}

/// Names an exact timer of a machine's store.
pub type ExactId = TimerId<ExactKind>;

/// Why a timer of the store was not removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoveError {
    /// It was removed before.
    Unknown,
    /// It is armed.
    Pending,
    /// Its run has not ended.
    Running,
}

impl fmt::Display for RemoveError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Unknown => "the timer was removed before",
            Self::Pending => "the timer is pending",
            Self::Running => "the timer is running",
        })
    }
}

impl core::error::Error for RemoveError {}

/// Memory for timers that are named by number.
#[derive(Debug)]
pub struct TimerStore<T> {
    timers: Arena<Timer<T>>,
    exact: Arena<ExactTimer<T>>,
}

/// Where a store keeps the timers of a kind.
pub trait Stored: TimerKind {
    fn arena<T>(store: &TimerStore<T>) -> &Arena<Timer<T, Self>>;
    fn arena_mut<T>(store: &mut TimerStore<T>) -> &mut Arena<Timer<T, Self>>;
}

impl Stored for TickKind {
    #[inline]
    fn arena<T>(store: &TimerStore<T>) -> &Arena<Timer<T>> {
        &store.timers
    }

    fn arena_mut<T>(store: &mut TimerStore<T>) -> &mut Arena<Timer<T>> {
        &mut store.timers
    }
}

impl Stored for ExactKind {
    #[inline]
    fn arena<T>(store: &TimerStore<T>) -> &Arena<ExactTimer<T>> {
        &store.exact
    }

    fn arena_mut<T>(store: &mut TimerStore<T>) -> &mut Arena<ExactTimer<T>> {
        &mut store.exact
    }
}

impl<T> TimerStore<T> {
    /// No timers, no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { timers: Arena::new(), exact: Arena::new() }
    }

    /// How many timers there are, armed or idle.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn len(&self) -> usize {
        self.timers.len() + self.exact.len()
    }
}

impl<T: Copy> TimerStore<T> {
    /// Makes an idle timer. Cost: O(1), and an allocation for every 256th.
    ///
    /// # Panics
    /// When there are 2^32 timers.
    pub fn add(&mut self, options: TimerOptions, payload: T) -> TimerId {
        self.add_of_kind(options, payload)
    }

    /// Makes an idle exact timer. Cost: O(1), and an allocation for every 256th.
    ///
    /// # Panics
    /// When there are 2^32 timers.
    pub fn add_exact(&mut self, options: TimerOptions, payload: T) -> ExactId {
        self.add_of_kind(options, payload)
    }

    fn add_of_kind<K: Stored>(&mut self, options: TimerOptions, payload: T) -> TimerId<K> {
        let make = |number| Timer::numbered(payload, options, number);
        let (number, generation) = K::arena_mut(self).add(make);
        TimerId { number, generation, kind: PhantomData }
    }

    /// What a timer was made with; `None` when it was removed.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn payload<K: Stored>(&self, id: TimerId<K>) -> Option<T> {
        self.timer(id).map(|timer| timer.shared().payload)
    }
}

impl<T> TimerStore<T> {
    /// A reference to a timer: for calls of the bases beside this store, and must not leave the crate.
    #[inline]
    pub(crate) fn timer<K: Stored>(&self, id: TimerId<K>) -> Option<TimerRef<T, K>> {
        K::arena(self).reference(id.number, id.generation)
    }

    /// The present name of a timer.
    #[inline]
    pub(super) fn id<K: Stored>(&self, number: u32) -> TimerId<K> {
        let generation = K::arena(self).generation(number).unwrap_or(0);
        TimerId { number, generation, kind: PhantomData }
    }

    /// One more than the highest number of this kind in use.
    pub(super) fn capacity<K: Stored>(&self) -> u32 {
        K::arena(self).capacity()
    }

    /// Frees the slot of a timer that is in no queue and on no record.
    pub(super) fn remove<K: Stored>(&mut self, id: TimerId<K>) {
        K::arena_mut(self).remove(id.number, id.generation);
    }
}
