//! Why time was not paused, resumed or moved.

use core::fmt;

/// Why time was not paused, resumed or moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeError {
    /// The machine was not started with
    /// [`MachineBuilder::virtual_time`](crate::MachineBuilder::virtual_time), or was shut down.
    Refused,
    /// Time is paused already.
    Paused,
    /// Time is not paused.
    NotPaused,
    /// The moment does not fit into 64 bits of nanoseconds.
    TooFar,
}

impl fmt::Display for TimeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Refused => {
                "time can be paused only on a machine that was started with `MachineBuilder::virtual_time`"
            }
            Self::Paused => "time is paused already",
            Self::NotPaused => "time is not paused",
            Self::TooFar => "time cannot be advanced that far",
        })
    }
}

impl core::error::Error for TimeError {}
