//! What a machine is made with. Every claim has its "before", so each rule that this machine changes can be
//! set to what it was.

use super::stall::policy::StallPolicy;
use crate::TickLength;
use crate::place::{ExactPolicy, Exclusion, Isolation, Policy};

/// Settings of a machine; they hold for its life, except `isolation`, which can be changed while it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// When a CPU that does not turn counts as stalled.
    pub stall: StallPolicy,
}

impl Settings {
    /// The stall policy in force: where no CPU pulls, none can take over from one that is stalled.
    #[must_use]
    pub fn stall_in_force(&self) -> StallPolicy {
        if self.policy == Policy::Pull { self.stall } else { StallPolicy::NEVER }
    }
}
