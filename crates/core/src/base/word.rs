//! Where a timer is: one word beside its links, and the names of bases.
//!
//! [`TimerWord`] says which base a timer belongs to, whether it is pending there, and what was asked for
//! when it was made. It is written under the lock of the base that it names; while it names none, by the
//! compare-and-swap that makes it name one. Any thread may read it. So a reader that saw a base, locked it,
//! and sees the same base again holds the lock of the timer (docs/design/KERNEL.md 1.10, without the state
//! in between).

use crate::CpuId;
use core::fmt;

/// The kinds of bases a CPU has, in the order in which their locks nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BaseKind {
    /// Pinned timers: they run on their CPU only.
    Local,
    /// Timers that another CPU may run while their own is idle.
    Global,
    /// The same, armed by threads that are not the CPU's own.
    Guest,
    /// Timers that wake no CPU; they run when theirs is busy anyway.
    Deferrable,
}

impl BaseKind {
    /// All kinds, in locking order.
    pub const ALL: [Self; 4] = [Self::Local, Self::Global, Self::Guest, Self::Deferrable];

    #[inline]
    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    /// Whether another CPU may run its timers.
    pub(crate) const fn is_pullable(self) -> bool {
        matches!(self, Self::Global | Self::Guest)
    }

    /// Whether a timer for a base of one kind may as well be in one of the other, of any CPU.
    pub(super) const fn is_alike(self, other: Self) -> bool {
        match (self, other) {
            (Self::Local, _) | (_, Self::Local) => false,
            (Self::Deferrable, other) | (other, Self::Deferrable) => matches!(other, Self::Deferrable),
            (Self::Global | Self::Guest, Self::Global | Self::Guest) => true,
        }
    }
}

/// Names one base of a machine. Ordered as locks nest: by CPU, then by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BaseId {
    /// Whose base.
    pub cpu: CpuId,
    /// Which of its bases.
    pub kind: BaseKind,
}

impl BaseId {
    /// Its word among all bases, in locking order: CPU by CPU.
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.cpu.index() * BaseKind::ALL.len() + self.kind.index()
    }

    #[inline]
    const fn from_index(index: usize) -> Self {
        let (cpu, kind) = (index / BaseKind::ALL.len(), index % BaseKind::ALL.len());
        Self { cpu: CpuId(cpu as u16), kind: BaseKind::ALL[kind] }
    }
}

impl fmt::Display for BaseId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?} of CPU {}", self.kind, self.cpu)
    }
}

/// A timer's word at one moment. All its functions are pure.
///
/// Bits 0 to 17 are the [index](BaseId::index) of the base, which says nothing unless
/// [`PLACED`](Self::PLACED).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimerWord(pub(super) u32);

impl TimerWord {
    const INDEX_MASK: u32 = 0x3_ffff;
    const PLACED: Self = Self(1 << 18);
    const BASE_MASK: u32 = Self::INDEX_MASK | Self::PLACED.0;
    /// In a queue of the base, or on a record of it.
    pub(super) const PENDING: Self = Self(1 << 19);
    /// Of an exact timer: in the queue of collected ones.
    pub(super) const COLLECTED: Self = Self(1 << 20);
    pub(super) const PINNED: Self = Self(1 << 21);
    pub(super) const DEFERRABLE: Self = Self(1 << 22);
    /// Refuses every arm from now on.
    pub(super) const SHUT_DOWN: Self = Self(1 << 23);
    /// A run of it leaves no record.
    pub(super) const DETACHED: Self = Self(1 << 24);
    pub(super) const NOWHERE: Self = Self(0);

    #[inline]
    pub(super) const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    #[inline]
    pub(super) const fn with(self, flag: Self) -> Self {
        Self(self.0 | flag.0)
    }

    #[inline]
    pub(super) const fn without(self, flag: Self) -> Self {
        Self(self.0 & !flag.0)
    }

    #[inline]
    const fn encode(base: BaseId) -> u32 {
        base.index() as u32 | Self::PLACED.0
    }

    #[inline]
    pub(super) const fn at(self, base: BaseId) -> Self {
        Self(self.0 & !Self::BASE_MASK | Self::encode(base))
    }

    #[inline]
    pub(super) const fn is_at(self, base: BaseId) -> bool {
        self.0 & Self::BASE_MASK == Self::encode(base)
    }

    /// Whether it belongs to the base that `other` belongs to, and to one at all.
    #[inline]
    pub(super) const fn is_with(self, other: Self) -> bool {
        self.has(Self::PLACED) && (self.0 ^ other.0) & Self::BASE_MASK == 0
    }

    /// What keeps an arm from being a usual one: the timer is pinned or deferrable, or was shut down.
    const NOT_FAST: u32 = Self::SHUT_DOWN.0 | Self::PINNED.0 | Self::DEFERRABLE.0;

    /// Whether it is that of a floating timer that belongs to `base` and was not shut down.
    #[inline]
    pub(super) const fn is_fast_at(self, base: BaseId) -> bool {
        self.0 & (Self::BASE_MASK | Self::NOT_FAST) == Self::encode(base)
    }

    /// Whether a timer with this word is a usual one for `base`, as far as can be told without its lock.
    #[inline]
    pub(super) const fn may_be_fast_at(self, base: BaseId) -> bool {
        self.is_fast_at(base) || self.is_fast_new()
    }

    /// Whether it is that of a floating timer that was never armed, and was not shut down.
    #[inline]
    pub(super) const fn is_fast_new(self) -> bool {
        self.0 & (Self::PLACED.0 | Self::NOT_FAST) == 0
    }

    /// The index of the base that it belongs to; `None` before its first arm.
    #[inline]
    pub(super) const fn index(self) -> Option<usize> {
        if self.has(Self::PLACED) { Some((self.0 & Self::INDEX_MASK) as usize) } else { None }
    }

    /// The base that it belongs to; `None` before its first arm.
    #[inline]
    pub(crate) const fn base(self) -> Option<BaseId> {
        match self.index() {
            Some(index) => Some(BaseId::from_index(index)),
            None => None,
        }
    }
}

impl fmt::Debug for TimerWord {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TimerWord")
            .field("base", &self.base())
            .field("is_pending", &self.has(Self::PENDING))
            .field("is_pinned", &self.has(Self::PINNED))
            .field("is_deferrable", &self.has(Self::DEFERRABLE))
            .field("is_shut_down", &self.has(Self::SHUT_DOWN))
            .field("is_detached", &self.has(Self::DETACHED))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{BaseId, BaseKind, TimerWord};
    use crate::CpuId;

    /// Goal: a word keeps its base and its flags apart. Method: every kind, both ends of the CPUs, all flags.
    #[test]
    fn base_and_flags_are_independent() {
        let flags = TimerWord::PENDING.with(TimerWord::PINNED).with(TimerWord::SHUT_DOWN);
        assert_eq!(flags.base(), None);
        for cpu in [0, 1, crate::CPU_LIMIT - 1] {
            for kind in BaseKind::ALL {
                let base = BaseId { cpu: CpuId(cpu), kind };
                let word = flags.at(base);
                assert_eq!(word.base(), Some(base));
                assert!(word.is_at(base) && word.has(TimerWord::PENDING) && word.has(TimerWord::SHUT_DOWN));
                assert!(!word.has(TimerWord::DEFERRABLE) && !flags.is_at(base));
                let other = BaseId { cpu: CpuId(7), kind: BaseKind::Guest };
                assert_eq!(word.at(other), flags.at(other));
                assert_eq!(word.without(TimerWord::PENDING).base(), Some(base));
            }
        }
    }
}
