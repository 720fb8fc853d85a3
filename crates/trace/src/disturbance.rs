//! What takes a CPU away from its tasks, and how it is started: the kinds that reports name.

/// What kind of thing takes a CPU away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DisturbanceSource {
    /// A device's interrupt.
    Device,
    /// An interrupt that no device raised: the CPU's timer, or another CPU.
    Processor,
    /// A softirq.
    Softirq,
    /// An interrupt that cannot be masked.
    Nmi,
    /// A wheel timer's callback.
    Timer,
    /// A high-resolution timer's callback.
    Hrtimer,
    /// A work item, in the task of a worker.
    Work,
    /// A task.
    Task,
}

impl DisturbanceSource {
    /// All.
    pub const ALL: [Self; 8] = [
        Self::Device,
        Self::Processor,
        Self::Softirq,
        Self::Nmi,
        Self::Timer,
        Self::Hrtimer,
        Self::Work,
        Self::Task,
    ];

    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Processor => "processor",
            Self::Softirq => "softirq",
            Self::Nmi => "nmi",
            Self::Timer => "timer",
            Self::Hrtimer => "hrtimer",
            Self::Work => "work",
            Self::Task => "task",
        }
    }

    /// Whether it goes on where it was when the task below it has the CPU again.
    #[must_use]
    pub const fn is_of_a_task(self) -> bool {
        matches!(self, Self::Softirq | Self::Timer | Self::Work)
    }
}

/// How a thing is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Initiation {
    /// A timer.
    Armed,
    /// An interrupt, to another CPU.
    Sent,
    /// A softirq.
    Raised,
    /// A task.
    Woken,
    /// A work item.
    Queued,
}

impl Initiation {
    /// All.
    pub const ALL: [Self; 5] = [Self::Armed, Self::Sent, Self::Raised, Self::Woken, Self::Queued];

    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Armed => "armed",
            Self::Sent => "sent",
            Self::Raised => "raised",
            Self::Woken => "woken",
            Self::Queued => "queued",
        }
    }
}
