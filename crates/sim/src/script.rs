//! Playing exactly given steps instead of loads: which CPU arms or cancels which timer, and when.
//!
//! What comes of it is told timer by timer, so that another world that is given the same steps can be held
//! against this one. Invariant: every step and every run is told, in the order in which it happened.

use quietcore_core::{CpuId, Nanos};

/// What a CPU does to a timer.
///
/// ```
/// use quietcore_sim::Verb;
///
/// assert_ne!(Verb::Cancel, Verb::Arm { expires: quietcore_core::Nanos(7) });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Arms it, or moves it if it is pending.
    Arm {
        /// The moment for which it is armed.
        expires: Nanos,
    },
    /// Cancels it.
    Cancel,
}

/// One step of a script.
///
/// ```
/// use quietcore_core::{CpuId, Nanos};
/// use quietcore_sim::{Step, Verb};
///
/// let step = Step { at: Nanos(5), cpu: CpuId::default(), timer: 0, verb: Verb::Cancel };
/// assert_eq!(step.timer, 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When a task on the CPU is woken that does it.
    pub at: Nanos,
    /// Which CPU; one of the scenario's machine.
    pub cpu: CpuId,
    /// Which timer; they are numbered from 0.
    pub timer: u32,
    /// What.
    pub verb: Verb,
}

/// What happened to a timer.
///
/// ```
/// assert_ne!(quietcore_sim::Happened::Ran, quietcore_sim::Happened::Cancelled { was_pending: true });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Happened {
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
///
/// ```
/// use quietcore_core::{CpuId, Nanos};
/// use quietcore_sim::{Happened, Occurrence};
///
/// let ran = Occurrence { at: Nanos(5), cpu: CpuId::default(), timer: 0, what: Happened::Ran };
/// assert_eq!(ran.at, Nanos(5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Simulated time.
    pub at: Nanos,
    /// The CPU that armed, cancelled or ran it.
    pub cpu: CpuId,
    /// Which timer.
    pub timer: u32,
    /// What.
    pub what: Happened,
}
