//! What can go wrong with lanes that host runtimes.

use quietcore_live::{CpuId, lane::ClaimError};
use std::io;

/// Why lanes were not started. None of them runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LanesStartError {
    /// None of the CPUs that were asked for is a lane of the machine.
    #[error("no CPU that was asked for is a lane of this machine")]
    NoLanes,
    /// A CPU was not to be had.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// The system refused.
    #[error("cannot {what} for CPU {cpu}: {error}")]
    System {
        /// For which CPU.
        cpu: CpuId,
        /// To do what.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
}

/// Why a task was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaneSpawnError {
    /// The CPU hosts no runtime of these.
    #[error("CPU {cpu} is no lane with a runtime")]
    NotALane {
        /// The CPU.
        cpu: CpuId,
    },
    /// Every lane is isolated: those get only what names them.
    #[error("every lane is isolated, and none was named")]
    AllIsolated,
    /// The lanes were shut down.
    #[error("the lanes were shut down")]
    ShutDown,
}
