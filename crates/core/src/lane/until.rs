//! How long a lane with nothing to run may wait.

use crate::Nanos;
use core::time::Duration;

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
