//! Telling a CPU that a timer was armed on it: one call under way at a time.
//!
//! A CPU that raises TIMER only when it sees something pending may look just before a timer becomes visible
//! (question 4). So the CPU that arms on it calls it afterwards, and the handler raises. Calls are coalesced
//! by a flag: a caller that finds it set relies on a handler that is still to come. Hence the handler clears
//! the flag *before* it looks: an arm that finds the flag set came before the look. Cleared after the look,
//! an arm could come in between and be missed. Model: `models`, `no_arm_is_missed`.
//!
//! Source: docs/design/KERNEL.md 7.2 and 7.3. Deviation: coalescing; the original had one call per CPU, and
//! waited for it.

use crate::sync::{AtomicU32, Ordering};

/// The flag of a CPU.
#[derive(Debug, Default)]
pub struct Call(AtomicU32);

const IDLE: u32 = 0;
const UNDER_WAY: u32 = 1;

impl Call {
    /// None is under way.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// By who has armed a timer on the CPU, after that is visible. Says whether a call has to be sent. Cost:
    /// a read-modify-write.
    #[must_use = "a call that nobody sends is under way for ever"]
    pub fn begin(&self) -> bool {
        // Release: pairs with Acquire in `arrive`: the look that follows sees the timer.
        self.0.swap(UNDER_WAY, Ordering::Release) == IDLE
    }

    /// By the CPU that was called, before it looks what is pending.
    pub fn arrive(&self) {
        // Acquire: pairs with Release in `begin`, of everyone whose swap came before this one.
        self.0.swap(IDLE, Ordering::Acquire);
    }
}

#[cfg(all(test, loom))]
mod models;
