//! Why a machine was not started, and why a timer was not armed.

use core::fmt;
use core::time::Duration;
use quietcore_core::CpuId;
use quietcore_core::place::{HousekeepingError, Policy};
use std::io;

/// Why a machine was not started. Nothing is left behind.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// There is no CPU to use: the set is empty, or names none that this process may run on.
    NoCpu,
    /// A tick lasts between a microsecond and 584 years.
    Tick {
        /// What was asked for.
        tick: Duration,
    },
    /// Timers that are not pulled need lanes: no other thread would expire them.
    NeedsLanes {
        /// What was asked for.
        policy: Policy,
    },
    /// Lanes go by the time of the kernel: with
    /// [`virtual_time`](crate::MachineBuilder::virtual_time) there can be none.
    LanesInVirtualTime,
    /// Every CPU would be isolated.
    Housekeeping(HousekeepingError),
    /// The system refused.
    System {
        /// To do what.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCpu => out.write_str("none of the CPUs asked for may be used by this process"),
            Self::Tick { tick } => {
                write!(out, "a tick of {tick:?} is too short; 1 us is the least, 1 ms usual")
            }
            Self::NeedsLanes { policy } => {
                write!(out, "timers that stay where they are armed ({}) need lanes", policy.name())
            }
            Self::LanesInVirtualTime => out.write_str("a machine whose time can be paused has no lanes"),
            Self::Housekeeping(error) => fmt::Display::fmt(error, out),
            Self::System { what, error } => write!(out, "cannot {what}: {error}"),
        }
    }
}

impl core::error::Error for StartError {}

/// Why a timer was not armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArmError {
    /// The machine was shut down, or the timer was.
    ShutDown,
    /// This process is a child that was forked: it has the machine's memory and none of its threads.
    Forked,
    /// A pinned timer needs a lane that turns for its CPU.
    NoLane {
        /// The CPU.
        cpu: CpuId,
    },
}

impl fmt::Display for ArmError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ShutDown => out.write_str("the machine or the timer was shut down"),
            Self::Forked => {
                out.write_str("the machine belongs to the parent of this process; start another one")
            }
            Self::NoLane { cpu } => write!(out, "no lane turns for CPU {cpu}"),
        }
    }
}

impl core::error::Error for ArmError {}

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
