//! Why a machine was not started, and why a timer was not armed.

use core::time::Duration;
use quietcore_core::CpuId;
use quietcore_core::place::{HousekeepingError, Policy};
use std::io;

/// Why a machine was not started. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no CPU to use: the set is empty, or names none that this process may run on.
    #[error("none of the CPUs asked for may be used by this process")]
    NoCpu,
    /// A tick lasts between a microsecond and 584 years.
    #[error("a tick of {tick:?} cannot be kept: 1 us is the least, 584 years the most, 1 ms usual")]
    Tick {
        /// What was asked for.
        tick: Duration,
    },
    /// Timers that are not pulled need lanes: no other thread would expire them.
    #[error("timers that stay where they are armed ({}) need lanes", .policy.name())]
    NeedsLanes {
        /// What was asked for.
        policy: Policy,
    },
    /// Lanes go by the time of the kernel: with
    /// [`virtual_time`](crate::MachineBuilder::virtual_time) there can be none.
    #[error("a machine whose time can be paused has no lanes")]
    LanesInVirtualTime,
    /// The lists of [`nodes`](crate::MachineBuilder::nodes) make no topology.
    #[error("these nodes cannot be: {0}")]
    Nodes(quietcore_core::topology::BuildError),
    /// Every CPU would be isolated.
    #[error("{0}")]
    Housekeeping(HousekeepingError),
    /// The system refused.
    #[error("cannot {what}: {error}")]
    System {
        /// To do what.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
}

/// Why a timer was not armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArmError {
    /// The machine was shut down, or the timer was.
    #[error("the machine or the timer was shut down")]
    ShutDown,
    /// This process is a child that was forked: it has the machine's memory and none of its threads.
    #[error("the machine belongs to the parent of this process; start another one")]
    Forked,
    /// The machine's helper thread died of a bug of this library, so timers would not run. Its message is on
    /// standard error.
    #[error("the machine broke down, by a bug of quietcore whose message is on standard error")]
    Broken,
    /// A pinned timer needs a lane that turns for its CPU.
    #[error("no lane turns for CPU {cpu}")]
    NoLane {
        /// The CPU.
        cpu: CpuId,
    },
    /// The timer was to go on with its last periods, and never had any.
    #[error("the timer never had periods to go on with: arm it for some first")]
    NoPeriod,
}

impl From<quietcore_core::ArmRefusal> for ArmError {
    fn from(error: quietcore_core::ArmRefusal) -> Self {
        match error {
            quietcore_core::ArmRefusal::NoSuchCpu { cpu } => Self::NoLane { cpu },
            quietcore_core::ArmRefusal::ShutDown => Self::ShutDown,
            quietcore_core::ArmRefusal::UnknownTimer => {
                unreachable!("timers of this world are reached by address")
            }
        }
    }
}
