//! Why time was not paused, resumed or moved.

/// Why time was not paused, resumed or moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimeError {
    /// The machine was not started with
    /// [`MachineBuilder::virtual_time`](crate::MachineBuilder::virtual_time), or was shut down, or
    /// is a forked parent's.
    #[error("time can be paused only on a machine that was started with `MachineBuilder::virtual_time`")]
    Refused,
    /// Time is paused already.
    #[error("time is paused already")]
    Paused,
    /// Time is not paused.
    #[error("time is not paused")]
    NotPaused,
    /// The moment does not fit into 64 bits of nanoseconds.
    #[error("time cannot be advanced that far")]
    TooFar,
}
