//! What a turn did, and how long a lane with nothing to run may wait.

use core::time::Duration;
use quietcore_core::Nanos;

/// What a turn did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnStats {
    /// Timers that were run: callbacks and wakers.
    pub ran: u32,
    /// Tasks that were polled, and work that was run.
    pub items: u32,
    /// Handlers of softirqs that were run.
    pub softirqs: u32,
    /// Whether there is more: the turn's budget (256 timers, 64 items, 2 ms for either) was used up. Take
    /// another turn soon.
    pub has_more: bool,
}

/// How long a lane with nothing to run may wait. Whatever it says, a kick ends the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a lane that oversleeps is late for its timers"]
pub enum IdleUntil {
    /// For a tick at most; the machine counts on this lane as on one that is awake.
    Stay {
        /// The moment, on the machine's clock.
        until: Nanos,
    },
    /// The machine knows that this lane sleeps.
    Sleep {
        /// The moment, on the machine's clock; `None` until a kick.
        until: Option<Nanos>,
    },
}

impl IdleUntil {
    /// The moment at which the wait must end.
    #[must_use]
    pub const fn until(self) -> Option<Nanos> {
        match self {
            Self::Stay { until } => Some(until),
            Self::Sleep { until } => until,
        }
    }

    /// How long that is from `now` on: for calls that take a span. `None` is for ever.
    #[must_use]
    pub fn timeout(self, now: Nanos) -> Option<Duration> {
        self.until().map(|until| Duration::from_nanos(until.since(now).0))
    }
}

/// What a turn ran besides timers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TurnWork {
    /// Polls of tasks, and work.
    pub(super) items: u32,
    /// Handlers of softirqs.
    pub(super) softirqs: u32,
    /// Timers that were due in between.
    pub(super) timers: u32,
}
