//! What a machine is made with. Every claim has its "before", so each rule that this machine changes can be
//! set to what it was.

use super::stall::policy::StallPolicy;
use crate::place::{ExactPolicy, Exclusion, Isolation, Policy};
use crate::{Nanos, TickLength};

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
    /// How much one turn runs.
    pub turn: TurnBudget,
}

/// How much one turn runs; the rest waits for the next one, which comes at once, after everything else that
/// the CPU's thread has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnBudget {
    timers: u32,
    time: Nanos,
}

impl TurnBudget {
    /// `timers` at most, and none is begun `time` after the turn was; of either at least 1, so that a turn
    /// runs one timer whatever is asked for.
    #[must_use]
    pub const fn new(timers: u32, time: Nanos) -> Self {
        Self { timers: if timers == 0 { 1 } else { timers }, time: if time.0 == 0 { Nanos(1) } else { time } }
    }

    /// The most timers.
    #[must_use]
    pub const fn timers(self) -> u32 {
        self.timers
    }

    /// For how long timers are begun.
    #[must_use]
    pub const fn time(self) -> Nanos {
        self.time
    }
}

impl Default for TurnBudget {
    /// 256 timers, 2 ms.
    fn default() -> Self {
        Self::new(256, Nanos(2_000_000))
    }
}

impl Settings {
    /// The stall policy in force: where no CPU pulls, none can take over from one that is stalled.
    #[must_use]
    pub fn stall_in_force(&self) -> StallPolicy {
        if self.policy == Policy::Pull { self.stall } else { StallPolicy::NEVER }
    }
}
