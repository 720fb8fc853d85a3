//! What is fixed when a callback timer is made: how exactly it is kept, and where it may run.

use core::time::Duration;
use quietcore_core::TimerOptions as CoreOptions;

/// How exactly a timer is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Precision {
    /// Late by up to an eighth of its delay, and at least by the rest of a tick: for timeouts, which are
    /// nearly always cancelled. Nothing ever moves, so it is the cheapest.
    #[default]
    Coarse,
    /// At the first tick that is not before its moment: for sleeps and periods.
    Tick,
    /// In nanoseconds: as late as the kernel wakes a thread up.
    Exact,
}

/// What is fixed when a timer is made. Default: coarse, may run anywhere, wakes the lane that has to run it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimerOptions {
    pub(super) precision: Precision,
    pub(super) slack: Duration,
    pub(super) is_pinned: bool,
    pub(super) is_deferrable: bool,
}

impl TimerOptions {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self { precision: Precision::Coarse, slack: Duration::ZERO, is_pinned: false, is_deferrable: false }
    }

    /// How exactly it is kept.
    #[must_use]
    pub const fn precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// How much later an exact timer may run, so that one wake-up serves several. Other timers have no use
    /// for it. Default: none.
    #[must_use]
    pub const fn slack(self, slack: Duration) -> Self {
        Self { slack, ..self }
    }

    /// It runs on the lane that arms it, and on no other thread, even when that lane is stuck. A thread that
    /// is no lane arms it on the lane nearest to it. Without lanes it cannot be armed.
    #[must_use]
    pub const fn pinned(self) -> Self {
        Self { is_pinned: true, ..self }
    }

    /// It wakes no lane: it runs when its lane is awake anyway. Exact timers cannot be deferred.
    #[must_use]
    pub const fn deferrable(self) -> Self {
        Self { is_deferrable: true, ..self }
    }

    pub(super) fn is_exact(self) -> bool {
        self.precision == Precision::Exact
    }

    /// In the core's words.
    pub(super) fn core(self) -> CoreOptions {
        let options = CoreOptions::new();
        let options = if self.is_pinned { options.pinned() } else { options };
        let options = if self.is_deferrable && !self.is_exact() { options.deferrable() } else { options };
        options.precision(match self.precision {
            Precision::Coarse => quietcore_core::Precision::Coarse,
            Precision::Tick | Precision::Exact => quietcore_core::Precision::Tick,
        })
    }
}
