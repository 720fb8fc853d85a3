//! What a machine is made with. Every claim has its "before", so each rule that this machine changes can be
//! set to what it was.

use crate::place::{ExactPolicy, Exclusion, Isolation, Policy};
use crate::{Nanos, TickLength};

/// Settings of a machine; they hold for its life, except `isolation`, which can be changed while it runs.
///
/// ```
/// use quietcore_core::{Nanos, Settings, TickLength, place::Policy};
///
/// let before = Settings { policy: Policy::Push, ..Settings::default() };
/// assert_eq!((before.tick, before.stall_after), (TickLength::default(), Nanos(2_000_000)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where an unpinned timer waits and who expires it.
    pub policy: Policy,
    /// The same for unpinned exact timers.
    pub exact_policy: ExactPolicy,
    /// Which isolated CPUs neither pull nor are pulled.
    pub exclusion: Exclusion,
    /// What is isolated from the start.
    pub isolation: Isolation,
    /// How long a tick lasts.
    pub tick: TickLength,
    /// How old a heartbeat may be before its CPU counts as stalled, in ns.
    pub stall_after: Nanos,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            exact_policy: ExactPolicy::default(),
            exclusion: Exclusion::default(),
            isolation: Isolation::default(),
            tick: TickLength::default(),
            stall_after: Nanos(2_000_000),
        }
    }
}
