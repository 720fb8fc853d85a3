//! What an [`Htb`](super::Htb) and its classes are told, and what they answer.

use crate::{ClassId, Rate, Statistics};
use core::fmt;
use quietcore_core::Nanos;

/// What passes between two moments that timers can tell apart: `tc` adds it to the defaults of `burst`.
const TICK: Nanos = Nanos(1);

/// What a class may send per round by default, at least and at most, in bytes.
const QUANTUM: (u64, u64) = (1_000, 200_000);

/// What a whole [`Htb`](super::Htb) is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtbSettings {
    /// The major number of all its classes.
    pub major: u16,
    /// The minor number of the class of packets that name none; 0 for none.
    pub default_class: u16,
    /// A class's quantum is its rate, in bytes per second, by this, if it has none of its own; 0 is taken
    /// as 1.
    pub r2q: u32,
    /// How many packets that have no class may wait.
    pub direct_qlen: u32,
}

impl Default for HtbSettings {
    fn default() -> Self {
        Self { major: 1, default_class: 0, r2q: 10, direct_qlen: 1_000 }
    }
}

/// What a class is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtbClass {
    /// What it has for itself.
    pub rate: Rate,
    /// What it never exceeds, borrowed or its own.
    pub ceil: Rate,
    /// Bytes of its own that it may send at once; see [`burst_bytes`](Self::burst_bytes).
    pub burst: Option<u64>,
    /// Bytes that it may send at once at all; see [`cburst_bytes`](Self::cburst_bytes).
    pub cburst: Option<u64>,
    /// The lowest is served first when several may send, from 0; above 7 is 7. Only leaves have one.
    pub prio: u8,
    /// Bytes per round where several of one priority may send; see
    /// [`quantum_bytes`](Self::quantum_bytes).
    pub quantum: Option<u32>,
    /// The longest packet that is expected: longer ones are counted as giants.
    pub mtu: u32,
}

impl HtbClass {
    /// A class that never sends faster than `rate`, with all defaults.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self { rate, ceil: rate, burst: None, cburst: None, prio: 0, quantum: None, mtu: 1_600 }
    }

    /// `burst`, or the default: the longest packet, and what passes at `rate` in a tick. A tick is a
    /// nanosecond, as `tc` finds it where timers are exact; where they are late, give a burst.
    #[must_use]
    pub fn burst_bytes(&self) -> u64 {
        self.burst.unwrap_or(u64::from(self.mtu) + self.rate.bytes_in(TICK))
    }

    /// `cburst`, or the default: the longest packet, and what passes at `ceil` in a tick.
    #[must_use]
    pub fn cburst_bytes(&self) -> u64 {
        self.cburst.unwrap_or(u64::from(self.mtu) + self.ceil.bytes_in(TICK))
    }

    /// `quantum`, or the default: `rate / r2q`, made to lie between 1,000 and 200,000; and whether that
    /// changed it much, which is worth a warning.
    #[must_use]
    pub fn quantum_bytes(&self, r2q: u32) -> (u32, Option<HtbQuantumWarning>) {
        if let Some(quantum) = self.quantum {
            return (quantum, None);
        }
        let quantum = self.rate.get() / u64::from(r2q.max(1));
        let (least, most) = QUANTUM;
        let warning = if quantum < least {
            Some(HtbQuantumWarning::Small)
        } else {
            (quantum > most).then_some(HtbQuantumWarning::Big)
        };
        (u32::try_from(quantum.clamp(least, most)).unwrap_or(u32::MAX), warning)
    }
}

/// Why a class's default quantum was changed: `r2q` does not suit its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HtbQuantumWarning {
    /// It was less than a packet, and was raised.
    Small,
    /// It was so much that others would wait long, and was lowered.
    Big,
}

impl fmt::Display for HtbQuantumWarning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = if *self == Self::Small { "small" } else { "big" };
        write!(out, "quantum is {size}, consider r2q change")
    }
}

/// Why an [`Htb`](super::Htb) refused to change its classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HtbError {
    /// No class has that name.
    Unknown(ClassId),
    /// The class that was to be the parent does not exist.
    UnknownParent(ClassId),
    /// There is one already.
    Exists(ClassId),
    /// It has another major number than the discipline, or the minor number 0, which is the discipline's.
    Foreign(ClassId),
    /// It has classes below it: it cannot be removed, and has no queue.
    HasChildren(ClassId),
    /// Packets are queued in it, so it cannot become a parent.
    HoldsPackets(ClassId),
    /// It would be the 9th level.
    TooDeep(ClassId),
}

impl fmt::Display for HtbError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(id) => write!(out, "there is no class {id}"),
            Self::UnknownParent(id) => write!(out, "there is no class {id} to be the parent"),
            Self::Exists(id) => write!(out, "there is a class {id} already"),
            Self::Foreign(id) => write!(out, "{id} cannot name a class of this discipline"),
            Self::HasChildren(id) => write!(out, "class {id} has classes below it"),
            Self::HoldsPackets(id) => write!(out, "packets are queued in class {id}"),
            Self::TooDeep(id) => write!(out, "class {id} would be below the 8th level"),
        }
    }
}

impl core::error::Error for HtbError {}

/// What a class has done, and where it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HtbClassStatistics {
    /// What left from it or from below it, and what its own queue dropped and holds; `overlimits` is how
    /// often it reached its ceil, and had to wait.
    pub queue: Statistics,
    /// Packets that left on its tokens, its own or those of classes below it.
    pub lends: u64,
    /// Packets of it, or from below it, that left on tokens of a class above it.
    pub borrows: u64,
    /// Packets longer than its `mtu`.
    pub giants: u64,
    /// How far it is below its rate, in nanoseconds at that rate, when it was last charged; below 0, above.
    pub tokens: i64,
    /// How far it is below its ceil, in nanoseconds at that ceil, when it was last charged.
    pub ctokens: i64,
    /// 0 of a leaf, 7 of a class that has classes below it and none above, one less at each step down.
    pub level: u8,
    /// What it may send per round, in bytes.
    pub quantum: u32,
    /// Whether that is worth a warning.
    pub quantum_warning: Option<HtbQuantumWarning>,
}
