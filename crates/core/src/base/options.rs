//! What is fixed when a timer is made.

use super::word::TimerWord;
use quietcore_wheel::Precision;

/// What is fixed when a timer is made. Default: may run anywhere, wakes its CPU, coarse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimerOptions {
    is_pinned: bool,
    is_deferrable: bool,
    is_detached: bool,
    pub(super) precision: Precision,
}

impl TimerOptions {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self { is_pinned: false, is_deferrable: false, is_detached: false, precision: Precision::Coarse }
    }

    /// It runs on the CPU that it is armed on, and on no other.
    #[must_use]
    pub const fn pinned(self) -> Self {
        Self { is_pinned: true, ..self }
    }

    /// It wakes no CPU: it runs when its CPU is busy anyway.
    #[must_use]
    pub const fn deferrable(self) -> Self {
        Self { is_deferrable: true, ..self }
    }

    /// A run of it is over as soon as it is handed out, because what runs does not need the timer: it takes
    /// what it needs under the lock ([`next_expired_with`](crate::Machine::next_expired_with)), wakes a task,
    /// say. So the timer may be armed, handed out again, or freed during an earlier
    /// run; it never counts as running, and telling the machine of the end costs no lock.
    #[must_use]
    pub const fn detached(self) -> Self {
        Self { is_detached: true, ..self }
    }

    /// How exactly it is kept. ExactKind timers have no use for it.
    #[must_use]
    pub const fn precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// Whether it is pinned.
    #[must_use]
    pub const fn is_pinned(self) -> bool {
        self.is_pinned
    }

    /// Whether it wakes no CPU.
    #[must_use]
    pub const fn is_deferrable(self) -> bool {
        self.is_deferrable
    }

    /// Whether a run of it is over when it is handed out.
    #[must_use]
    pub const fn is_detached(self) -> bool {
        self.is_detached
    }

    pub(super) fn word(self) -> TimerWord {
        let flags = [
            (self.is_pinned, TimerWord::PINNED),
            (self.is_deferrable, TimerWord::DEFERRABLE),
            (self.is_detached, TimerWord::DETACHED),
        ];
        let asked = flags.into_iter().filter(|(is_asked, _)| *is_asked);
        asked.fold(TimerWord::NOWHERE, |word, (_, flag)| word.with(flag))
    }
}
