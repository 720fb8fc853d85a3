//! How ready-made lane threads are run, and what could not be done of it.

use core::fmt;
use quietcore_core::CpuId;
use std::io;

/// Whether a lane's thread stays on its CPU of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pinning {
    /// If no other control group shares this process's CPUs (an exclusive cpuset).
    #[default]
    IfExclusive,
    /// Yes.
    Always,
    /// No: the kernel moves it as it moves any thread.
    Never,
}

impl Pinning {
    pub(super) fn is_wanted(self, is_exclusive: impl FnOnce() -> bool) -> bool {
        match self {
            Self::IfExclusive => is_exclusive(),
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// How ready-made lane threads are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneThreads {
    pub(super) pinning: Pinning,
    pub(super) fifo: Option<u8>,
}

impl LaneThreads {
    /// The default: pinned if the CPUs are exclusive, no real-time priority.
    #[must_use]
    pub const fn new() -> Self {
        Self { pinning: Pinning::IfExclusive, fifo: None }
    }

    /// Whether they stay on their CPUs.
    #[must_use]
    pub const fn pinning(self, pinning: Pinning) -> Self {
        Self { pinning, ..self }
    }

    /// A real-time priority, 1 to 98: the threads run under `SCHED_FIFO`, and the sentinel and the spares
    /// one above them. Where that is not allowed they run as they are, and
    /// [`Machine::notes`](crate::Machine::notes) says so. Lanes that run at such a priority all the time
    /// are stopped by the kernel for 50 ms per second unless that was switched off
    /// (`kernel.sched_rt_runtime_us`).
    #[must_use]
    pub fn fifo(self, priority: u8) -> Self {
        Self { fifo: Some(priority.clamp(1, 98)), ..self }
    }

    /// Of the machine's own threads.
    pub(crate) fn own_priority(self) -> Option<u8> {
        self.fifo.map(|priority| priority + 1)
    }
}

/// Something that a machine was asked for and could not do. It works without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartNote {
    /// The lane's thread was not pinned to its CPU.
    NotPinned {
        /// The CPU.
        cpu: CpuId,
        /// The system's error number.
        error: i32,
    },
    /// A thread did not get its real-time priority.
    NoPriority {
        /// The priority.
        priority: u8,
        /// The system's error number.
        error: i32,
    },
}

impl fmt::Display for StartNote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPinned { cpu, error } => {
                write!(out, "lane {cpu} is not pinned: {}", io::Error::from_raw_os_error(*error))
            }
            Self::NoPriority { priority, error } => {
                let error = io::Error::from_raw_os_error(*error);
                write!(out, "a thread runs without its real-time priority {priority}: {error}")
            }
        }
    }
}
