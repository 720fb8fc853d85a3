//! Timers that a machine owns, for worlds without `unsafe`: a simulator, a test.
//!
//! A timer is named by a number and how often that number was given out, so that the name of a removed timer
//! names nothing. Memory grows by chunks and is kept; nothing is allocated but for that. A store stays with
//! the bases that link its timers ([`Bases`](super::Bases)); the references that reach them are never shown.

use super::options::TimerOptions;
use super::timer::{Arena, ExactTimer, Timer};
use core::fmt;

/// Names a timer of a machine's store.
///
/// ```
/// # use quietcore_core::{TimerOptions, TimerStore};
/// let mut store = TimerStore::new();
/// let one = store.add(TimerOptions::new(), 'a');
/// assert_ne!(one, store.add(TimerOptions::new(), 'a'));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId {
    pub(super) number: u32,
    pub(super) generation: u32,
}

/// Names an exact timer of a machine's store.
///
/// ```
/// # use quietcore_core::{TimerOptions, TimerStore};
/// let mut store = TimerStore::new();
/// let one = store.add_exact(TimerOptions::new(), 'a');
/// assert_ne!(one, store.add_exact(TimerOptions::new(), 'a'));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExactId {
    pub(super) number: u32,
    pub(super) generation: u32,
}

/// Why a timer of the store was not removed.
///
/// ```
/// assert_eq!(quietcore_core::RemoveError::Pending.to_string(), "the timer is pending");
/// ```
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
///
/// ```
/// use quietcore_core::{TimerOptions, TimerStore};
///
/// let mut store = TimerStore::new();
/// let id = store.add(TimerOptions::new(), 7_u32);
/// assert_eq!((store.payload(id), store.len()), (Some(7), 1));
/// ```
pub struct TimerStore<T> {
    pub(super) timers: Arena<Timer<T>>,
    pub(super) exact: Arena<ExactTimer<T>>,
}

impl<T> TimerStore<T> {
    /// No timers, no memory.
    ///
    /// ```
    /// assert!(quietcore_core::TimerStore::<u8>::new().is_empty());
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self { timers: Arena::new(), exact: Arena::new() }
    }

    /// How many timers there are, armed or idle.
    ///
    /// ```
    /// assert_eq!(quietcore_core::TimerStore::<u8>::new().len(), 0);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.timers.len() + self.exact.len()
    }

    /// Whether there are none.
    ///
    /// ```
    /// # use quietcore_core::{TimerOptions, TimerStore};
    /// let mut store = TimerStore::new();
    /// store.add(TimerOptions::new(), 'a');
    /// assert!(!store.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Copy> TimerStore<T> {
    /// Makes an idle timer. Cost: O(1), and an allocation for every 256th.
    ///
    /// # Panics
    /// When there are 2^32 timers.
    ///
    /// ```
    /// # use quietcore_core::{TimerOptions, TimerStore};
    /// let mut store = TimerStore::new();
    /// let id = store.add(TimerOptions::new().pinned(), "beat");
    /// assert_eq!(store.payload(id), Some("beat"));
    /// ```
    pub fn add(&mut self, options: TimerOptions, payload: T) -> TimerId {
        let (number, generation) = self.timers.add(|number| Timer::numbered(payload, options, number));
        TimerId { number, generation }
    }

    /// Makes an idle exact timer. Cost: O(1), and an allocation for every 256th.
    ///
    /// # Panics
    /// When there are 2^32 timers.
    ///
    /// ```
    /// # use quietcore_core::{TimerOptions, TimerStore};
    /// let mut store = TimerStore::new();
    /// let id = store.add_exact(TimerOptions::new(), "beat");
    /// assert_eq!(store.exact_payload(id), Some("beat"));
    /// ```
    pub fn add_exact(&mut self, options: TimerOptions, payload: T) -> ExactId {
        let (number, generation) = self.exact.add(|number| ExactTimer::numbered(payload, options, number));
        ExactId { number, generation }
    }

    /// What a timer was made with; `None` when it was removed.
    ///
    /// ```
    /// # use quietcore_core::{TimerOptions, TimerStore};
    /// # let mut store = TimerStore::new();
    /// let id = store.add(TimerOptions::new(), 'a');
    /// assert_eq!(store.payload(id), Some('a'));
    /// ```
    #[must_use]
    pub fn payload(&self, id: TimerId) -> Option<T> {
        self.timer(id).map(|timer| timer.shared().payload)
    }

    /// What an exact timer was made with; `None` when it was removed.
    ///
    /// ```
    /// # use quietcore_core::{TimerOptions, TimerStore};
    /// # let mut store = TimerStore::new();
    /// let id = store.add_exact(TimerOptions::new(), 'a');
    /// assert_eq!(store.exact_payload(id), Some('a'));
    /// ```
    #[must_use]
    pub fn exact_payload(&self, id: ExactId) -> Option<T> {
        self.exact(id).map(|timer| timer.shared().payload)
    }
}

impl<T> TimerStore<T> {
    /// The present name of a timer.
    #[inline]
    pub(super) fn id(&self, number: u32) -> TimerId {
        TimerId { number, generation: self.timers.generation(number).unwrap_or(0) }
    }

    #[inline]
    pub(super) fn exact_id(&self, number: u32) -> ExactId {
        ExactId { number, generation: self.exact.generation(number).unwrap_or(0) }
    }
}

impl<T> Default for TimerStore<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for TimerStore<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TimerStore").field("timers", &self.timers).field("exact", &self.exact).finish()
    }
}
