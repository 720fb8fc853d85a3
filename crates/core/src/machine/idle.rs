//! Going idle and coming back: what a CPU publishes, and when it must wake up.
//!
//! A CPU that goes idle looks at its pinned and its global timers under their locks. If a pinned one comes first it
//! will be awake anyway and publishes nothing; otherwise the hierarchy learns its first global expiry, and says
//! whether the CPU must wake up for others. All that happens in one section, in which `is_idle` is written too:
//! whoever arms a timer either is seen here or sees the flag and publishes.
//!
//! Deferrable timers never count. Under `Push` and `Stay` every timer is the CPU's own.
//! Source: Linux 6.12, kernel/time/timer.c, `timer_base_try_to_set_idle`. Deviation: coming back takes the base
//! locks, too, since here others may mark a CPU absent at the same moment.

use super::Machine;
use crate::base::BaseKind;
use crate::{Actions, CpuId, Nanos, RawLock};

/// What a CPU with nothing to do should do.
///
/// ```
/// use quietcore_core::{Idle, Nanos};
///
/// assert_ne!(Idle::Sleep { until: None }, Idle::Stay { next: Nanos(4) });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a CPU that oversleeps is late for its timers"]
pub enum Idle {
    /// The next expiry is at most a tick away: keep the tick, or spin.
    Stay {
        /// When it is.
        next: Nanos,
    },
    /// Stop the tick and sleep; the books say that this CPU is idle.
    Sleep {
        /// Until then at the latest; `None` until somebody kicks.
        until: Option<Nanos>,
    },
}

/// The earlier of two moments that may never come.
pub(super) fn earlier(one: Option<Nanos>, other: Option<Nanos>) -> Option<Nanos> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
