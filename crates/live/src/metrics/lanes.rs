//! What there is to say of a CPU that a thread can drive as a lane: a state, not a count.

use crate::Machine;
use core::fmt;
use quietcore_core::tmigr::CpuState;
use quietcore_core::{CpuId, CpuSet};

/// What a hierarchy says of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LaneState {
    /// It turns, or dozes for a tick at most; it looks after others.
    Awake,
    /// It waits, and others may wake it.
    Parked,
    /// It does not turn, though it should: others look after what it has.
    Absent,
    /// It takes no part: isolated, or no thread drives it.
    Unavailable,
}

impl LaneState {
    /// All of them, for tables.
    pub const ALL: [Self; 4] = [Self::Awake, Self::Parked, Self::Absent, Self::Unavailable];

    /// In lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Awake => "awake",
            Self::Parked => "parked",
            Self::Absent => "absent",
            Self::Unavailable => "unavailable",
        }
    }
}

impl fmt::Display for LaneState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A lane, at the moment of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneMetrics {
    /// What the hierarchy says.
    pub state: LaneState,
    /// Whether its CPU is isolated, since the machine started or at run time.
    pub is_isolated: bool,
    /// Whether a thread drives it.
    pub is_claimed: bool,
}

impl Machine {
    /// `None` for a CPU that no thread can drive as a lane.
    pub(super) fn lane_metrics(&self, cpu: CpuId, isolated: &CpuSet) -> Option<LaneMetrics> {
        let is_lane = self.lane_set.contains(cpu) || self.lanes.exist() && !self.cpus.contains(cpu);
        is_lane.then(|| LaneMetrics {
            state: match self.core.hierarchy().cpu_state(cpu) {
                CpuState::Awake => LaneState::Awake,
                CpuState::Parked => LaneState::Parked,
                CpuState::Absent => LaneState::Absent,
                CpuState::Unavailable => LaneState::Unavailable,
            },
            is_isolated: isolated.contains(cpu),
            is_claimed: self.stalls.record(cpu).thread().is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::LaneState;

    /// Goal: a state is shown by its own name. Method: all of them, written down.
    #[test]
    fn each_state_has_its_own_name() {
        assert_eq!(LaneState::ALL.map(LaneState::name), ["awake", "parked", "absent", "unavailable"]);
    }
}
