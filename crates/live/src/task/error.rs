//! Why a task was not started, and why it has no result.

use crate::panic::Panic;
use core::fmt;
use quietcore_core::CpuId;

/// Why a task was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The machine has no lanes.
    #[error("this machine has no lanes that could run it: `MachineBuilder::lanes`")]
    NoLanes,
    /// The CPU is not one of the machine's lanes.
    #[error("CPU {cpu} is not one of this machine's lanes")]
    NotALane {
        /// The CPU.
        cpu: CpuId,
    },
    /// The machine was shut down, or is a forked parent's.
    #[error("the machine does not run in this process")]
    NotRunning,
    /// The system refused a thread to block on.
    #[error("cannot start a thread: {}", std::io::Error::from_raw_os_error(*.error))]
    NoThread {
        /// The system's error number.
        error: i32,
    },
}

/// Why a task has no result.
pub enum JoinError {
    /// It was aborted, or its machine or its lane's thread ended.
    Cancelled,
    /// It panicked; this is what with.
    Panicked(Panic),
}

impl JoinError {
    /// Whether the task panicked.
    #[must_use]
    pub const fn is_panic(&self) -> bool {
        matches!(self, Self::Panicked(_))
    }

    /// What it panicked with, to go on with that.
    #[must_use]
    pub fn into_panic(self) -> Option<Panic> {
        match self {
            Self::Cancelled => None,
            Self::Panicked(panic) => Some(panic),
        }
    }

    fn message(panic: &Panic) -> Option<&str> {
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref().map(String::as_str))
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => out.write_str("Cancelled"),
            Self::Panicked(panic) => out.debug_tuple("Panicked").field(&Self::message(panic)).finish(),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => out.write_str("the task was cancelled"),
            Self::Panicked(panic) => match Self::message(panic) {
                Some(message) => write!(out, "the task panicked: {message}"),
                None => out.write_str("the task panicked"),
            },
        }
    }
}

impl core::error::Error for JoinError {}
