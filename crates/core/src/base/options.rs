//! What is fixed when a timer is made.

use super::place::Place;
use quietcore_wheel::Precision;

/// What is fixed when a timer is made. Default: may run anywhere, wakes its CPU, coarse.
///
/// ```
/// use quietcore_core::{Precision, TimerOptions};
///
/// let options = TimerOptions::new().pinned().precision(Precision::Tick);
/// assert!(options.is_pinned() && !options.is_deferrable());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimerOptions {
    is_pinned: bool,
    is_deferrable: bool,
    pub(super) precision: Precision,
}

impl TimerOptions {
    /// The defaults.
    ///
    /// ```
    /// # use quietcore_core::TimerOptions;
    /// assert!(!TimerOptions::new().is_pinned());
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self { is_pinned: false, is_deferrable: false, precision: Precision::Coarse }
    }

    /// It runs on the CPU that it is armed on, and on no other.
    ///
    /// ```
    /// # use quietcore_core::TimerOptions;
    /// assert!(TimerOptions::new().pinned().is_pinned());
    /// ```
    #[must_use]
    pub const fn pinned(self) -> Self {
        Self { is_pinned: true, ..self }
    }

    /// It wakes no CPU: it runs when its CPU is busy anyway.
    ///
    /// ```
    /// # use quietcore_core::TimerOptions;
    /// assert!(TimerOptions::new().deferrable().is_deferrable());
    /// ```
    #[must_use]
    pub const fn deferrable(self) -> Self {
        Self { is_deferrable: true, ..self }
    }

    /// How exactly it is kept. Exact timers have no use for it.
    ///
    /// ```
    /// # use quietcore_core::{Precision, TimerOptions};
    /// let options = TimerOptions::new().precision(Precision::Tick);
    /// assert_ne!(options, TimerOptions::new());
    /// ```
    #[must_use]
    pub const fn precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// Whether it is pinned.
    ///
    /// ```
    /// assert!(!quietcore_core::TimerOptions::new().deferrable().is_pinned());
    /// ```
    #[must_use]
    pub const fn is_pinned(self) -> bool {
        self.is_pinned
    }

    /// Whether it wakes nobody.
    ///
    /// ```
    /// assert!(!quietcore_core::TimerOptions::new().pinned().is_deferrable());
    /// ```
    #[must_use]
    pub const fn is_deferrable(self) -> bool {
        self.is_deferrable
    }

    pub(super) fn place(self) -> Place {
        let place = if self.is_pinned { Place::PINNED } else { Place::NOWHERE };
        if self.is_deferrable { place.with(Place::DEFERRABLE) } else { place }
    }
}
