//! The five questions that quietcore asks a kernel, and their names.
//!
//! Whatever belongs to a question names it by this type: the tracepoints that answer it, a finding, a row of
//! text, a label. `docs/reference/explain-json.md` lists the names.

use std::fmt;

/// What is asked of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Question {
    /// Do the timers of packet schedulers stay on the CPU of their queue?
    PacketTimers,
    /// Do isolated CPUs run timers of others?
    Isolation,
    /// Do timers run where that is cheap?
    Placement,
    /// Do real-time tasks wait for softirqs?
    RealTime,
    /// Is the TIMER softirq raised for nothing?
    EmptySoftirqs,
}

impl Question {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 5] =
        [Self::PacketTimers, Self::Isolation, Self::Placement, Self::RealTime, Self::EmptySoftirqs];

    /// As it is typed and as programs read it: lower case with hyphens.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PacketTimers => "packet-timers",
            Self::Isolation => "isolation",
            Self::Placement => "placement",
            Self::RealTime => "real-time",
            Self::EmptySoftirqs => "empty-softirqs",
        }
    }

    /// The question of this [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|question| question.name() == name)
    }
}

/// Its name.
impl fmt::Display for Question {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}
