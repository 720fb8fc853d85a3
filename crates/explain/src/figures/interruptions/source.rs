//! The kinds of things that take a CPU away from its tasks.

/// What kind of thing it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Source {
    /// A device's interrupt.
    Device,
    /// An interrupt that no device raised: the CPU's timer, or another CPU.
    Processor,
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

/// What tells one thing from the others of its CPU: its source, and the number of an interrupt, a vector, a
/// task's id, or a name's number.
pub(super) type ThingKey = (Source, u64);

/// The softirqs' names, by vector.
pub(super) const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

impl Source {
    pub(super) const fn name(self) -> &'static str {
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
    pub(super) const fn is_of_a_task(self) -> bool {
        matches!(self, Self::Softirq | Self::Timer | Self::Work)
    }
}

/// The name of a softirq.
pub(super) fn softirq(vector: u8) -> &'static [u8] {
    SOFTIRQS.get(usize::from(vector)).copied().unwrap_or("(unknown)").as_bytes()
}
