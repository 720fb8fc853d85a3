//! A line that contradicts the wheel or the hierarchy, and what was compared.

use serde::Serialize;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Check {
    /// Where a `timer_start` says that the timer was put.
    TimerStart,
    /// A `timer_cancel` is of a pending timer, and a pending timer that is started again has one.
    TimerCancel,
    /// The bucket, the moment and the place in the order of a `timer_expire_entry`.
    TimerExpireEntry,
    /// A bucket is run completely, and no due bucket is left.
    Run,
    /// A line of the timer migration hierarchy: masks, migrator, events, wake-up.
    Hierarchy,
    /// A line that builds the hierarchy's tree.
    Tree,
}

impl Check {
    /// As in the JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TimerStart => "timer_start",
            Self::TimerCancel => "timer_cancel",
            Self::TimerExpireEntry => "timer_expire_entry",
            Self::Run => "run",
            Self::Hierarchy => "hierarchy",
            Self::Tree => "tree",
        }
    }
}

/// A line that contradicts the wheel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Mismatch {
    /// Its number in the input, from 1.
    pub line: u64,
    /// What was compared.
    pub kind: Check,
    /// The event in words: the timer, its base, its numbers.
    pub event: String,
    /// What the replay arrives at.
    pub expected: String,
    /// What the line says.
    pub recorded: String,
    /// What does not agree.
    pub why: String,
}

/// A mismatch in words; see [`Mismatch`].
#[derive(Debug, Default)]
pub(crate) struct MismatchText {
    pub(crate) event: String,
    pub(crate) expected: String,
    pub(crate) recorded: String,
    pub(crate) why: &'static str,
}
