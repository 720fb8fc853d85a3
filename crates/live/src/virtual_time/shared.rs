//! What a machine keeps of its paused time.

use super::state::TimeState;
use quietcore_core::Nanos;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A machine's part of it.
#[derive(Debug)]
pub(crate) struct VirtualTime {
    pub(super) is_allowed: bool,
    /// Length of a tick, in ns; not 0, which no builder starts with.
    pub(super) tick: u64,
    state: Mutex<TimeState>,
    /// No thread runs timers any more.
    pub(super) done: Condvar,
}

impl VirtualTime {
    /// For a machine whose tick lasts `tick`.
    pub(crate) fn new(allowed: Allowed, tick: Nanos) -> Self {
        let is_allowed = allowed == Allowed::Yes;
        Self { is_allowed, tick: tick.0, state: Mutex::default(), done: Condvar::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, TimeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no thread holds that lock.
    #[cfg(test)]
    pub(super) fn is_free(&self) -> bool {
        self.state.try_lock().is_ok()
    }
}

/// Whether a machine's time may be paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Allowed {
    #[default]
    No,
    Yes,
}
