//! Why a task was not started, and why it has no result.

use crate::panic::Panic;
use core::any::Any;
use core::fmt;
use quietcore_core::CpuId;
use std::sync::{Mutex, PoisonError};

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

/// Why a task has no result: it was cancelled, or it panicked.
pub struct JoinError(Option<Mutex<Panic>>);

impl JoinError {
    pub(super) const CANCELLED: Self = Self(None);

    pub(super) const fn panicked(panic: Panic) -> Self {
        Self(Some(Mutex::new(panic)))
    }

    /// Whether the task was aborted, or its machine or its lane's thread ended.
    #[must_use]
    pub const fn is_cancelled(&self) -> bool {
        self.0.is_none()
    }

    /// Whether the task panicked.
    #[must_use]
    pub const fn is_panic(&self) -> bool {
        self.0.is_some()
    }

    /// What the task panicked with, to go on with that.
    ///
    /// # Errors
    /// The error as it was, when the task did not panic.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send + 'static>, Self> {
        let panic = self.0.ok_or(Self::CANCELLED)?;
        Ok(panic.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// What it panicked with, if that is a text.
    fn message(panic: &Mutex<Panic>) -> Option<String> {
        let panic = panic.lock().unwrap_or_else(PoisonError::into_inner);
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref().cloned())
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => out.write_str("Cancelled"),
            Some(panic) => out.debug_tuple("Panicked").field(&Self::message(panic)).finish(),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_ref().map(Self::message) {
            None => out.write_str("the task was cancelled"),
            Some(Some(message)) => write!(out, "the task panicked: {message}"),
            Some(None) => out.write_str("the task panicked"),
        }
    }
}

impl core::error::Error for JoinError {}
