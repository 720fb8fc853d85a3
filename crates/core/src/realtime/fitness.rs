//! Which CPUs a real-time task should not go to: those that long softirqs keep busy.
//!
//! A softirq delays whatever was woken on its CPU until it is over. The short ones are over before it would
//! pay to go elsewhere. What counts is what runs and what is pending, together: what is pending runs before
//! the task does. Fitness never overrides priority; when no CPU fits, it is as if all did.
//!
//! Source: the softirq-aware series of 2022, fifth version, by behaviour. Not taken over: the second
//! version's look at the softirq count, which was that of the CPU that asked and not of the one asked about.

use crate::softirq::VectorSet;

/// What is done about long softirqs for the sake of real-time tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Awareness {
    /// Nothing: the kernel as it is.
    #[default]
    None,
    /// Real-time tasks are placed elsewhere.
    Place,
    /// Long softirqs wait, for a while, where a real-time task runs or waits.
    Defer,
    /// Both.
    Both,
}

impl Awareness {
    /// All of them, for tables and command lines.
    pub const ALL: [Self; 4] = [Self::None, Self::Place, Self::Defer, Self::Both];

    /// The name on command lines and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Place => "place",
            Self::Defer => "defer",
            Self::Both => "both",
        }
    }

    /// Whether tasks are placed by it.
    #[must_use]
    pub const fn places(self) -> bool {
        matches!(self, Self::Place | Self::Both)
    }

    /// Whether softirqs are deferred by it.
    #[must_use]
    pub const fn defers(self) -> bool {
        matches!(self, Self::Defer | Self::Both)
    }
}

/// Whether a CPU with these softirqs `active` and `pending` fits a real-time task.
#[must_use]
pub const fn fits(active: VectorSet, pending: VectorSet) -> bool {
    active.union(pending).intersection(VectorSet::LONG).is_empty()
}
