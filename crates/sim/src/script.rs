//! Playing exactly given steps instead of loads: which CPU arms or cancels which timer, and when.
//!
//! What comes of it is told timer by timer, so that another world that is given the same steps can be held
//! against this one. Invariant: every step and every run is told, in the order in which it happened.

use quietcore_core::{CpuId, Nanos};

/// What a CPU does to a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptVerb {
    /// Arms it, or moves it if it is pending.
    Arm {
        /// The moment for which it is armed.
        expires: Nanos,
    },
    /// Cancels it.
    Cancel,
}

/// One step of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptStep {
    /// When a task on the CPU is woken that does it.
    pub at: Nanos,
    /// Which CPU; one of the scenario's machine.
    pub cpu: CpuId,
    /// Which timer; they are numbered from 0.
    pub timer: u32,
    /// What.
    pub verb: ScriptVerb,
}

/// What happened to a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScriptEvent {
    /// A step armed it.
    Armed {
        /// This ended a pending period.
        was_pending: bool,
    },
    /// A step cancelled it.
    Cancelled {
        /// This ended a pending period.
        was_pending: bool,
    },
    /// It expired and ran.
    Ran,
}

/// When and where something happened to a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptOccurrence {
    /// Simulated time.
    pub at: Nanos,
    /// The CPU that armed, cancelled or ran it.
    pub cpu: CpuId,
    /// Which timer.
    pub timer: u32,
    /// What.
    pub what: ScriptEvent,
}
