//! The turn of the first spare, for the thread that drives it.

use quietcore_core::{CpuId, Turn};

/// Plays the first spare. One thread at a time.
#[derive(Debug)]
pub(super) struct SpareTurn {
    pub(super) turn: Turn,
    /// What the hierarchy says.
    pub(super) is_awake: bool,
}

impl SpareTurn {
    pub(super) const fn new(spare: CpuId) -> Self {
        Self { turn: Turn::new(spare), is_awake: false }
    }
}
