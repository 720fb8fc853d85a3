//! Timers of other CPUs that an isolated CPU ran: from which side they came.

use quietcore_core::{CpuId, CpuSet};

/// Which CPU armed the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerSide {
    /// One that is not isolated.
    Foreign,
    /// Another isolated one.
    BetweenIsolated,
}

impl TimerSide {
    /// `None` of a CPU's own timer, and of any that ran on a CPU that is not isolated.
    #[must_use]
    pub fn of(isolated: &CpuSet, armed_on: CpuId, ran_on: CpuId) -> Option<Self> {
        let is_disturbed = armed_on != ran_on && isolated.contains(ran_on);
        let side = if isolated.contains(armed_on) { Self::BetweenIsolated } else { Self::Foreign };
        is_disturbed.then_some(side)
    }
}
