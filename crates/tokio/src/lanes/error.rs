//! What can go wrong with lanes that host runtimes.

use core::fmt;
use quietcore_live::{CpuId, lane::ClaimError};
use std::io;

/// Why lanes were not started. None of them runs.
#[derive(Debug)]
#[non_exhaustive]
pub enum LanesStartError {
    /// None of the CPUs that were asked for is a lane of the machine.
    NoLanes,
    /// A CPU was not to be had.
    Claim(ClaimError),
    /// The system refused.
    System {
        /// For which CPU.
        cpu: CpuId,
        /// To do what.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
}

impl fmt::Display for LanesStartError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLanes => out.write_str("no CPU that was asked for is a lane of this machine"),
            Self::Claim(error) => fmt::Display::fmt(error, out),
            Self::System { cpu, what, error } => write!(out, "cannot {what} for CPU {cpu}: {error}"),
        }
    }
}

impl core::error::Error for LanesStartError {}

impl From<ClaimError> for LanesStartError {
    fn from(error: ClaimError) -> Self {
        Self::Claim(error)
    }
}

/// Why a task was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaneSpawnError {
    /// The CPU hosts no runtime of these.
    NotALane {
        /// The CPU.
        cpu: CpuId,
    },
    /// Every lane is isolated: those get only what names them.
    AllIsolated,
    /// The lanes were shut down.
    ShutDown,
}

impl fmt::Display for LaneSpawnError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotALane { cpu } => write!(out, "CPU {cpu} is no lane with a runtime"),
            Self::AllIsolated => out.write_str("every lane is isolated, and none was named"),
            Self::ShutDown => out.write_str("the lanes were shut down"),
        }
    }
}

impl core::error::Error for LaneSpawnError {}
