//! Processors: an id, and a set of them (`set.rs`).
//!
//! Invariant: a [`CpuId`] is below [`CPU_LIMIT`]. The text forms of sets (kernel lists and masks) are in
//! `cpu_text.rs`. Not here: topology, and which CPUs a machine has.

mod set;

pub use set::CpuSet;

use core::fmt;

/// One more than the highest CPU number: the largest `NR_CPUS` that Linux can be built with on
/// x86 (`MAXSMP`). A number at or above it in any input is an error, so hostile input cannot
/// make a per-CPU table large.
pub const CPU_LIMIT: u16 = 8192;

/// The number of a logical CPU, as in `/sys/devices/system/cpu/cpuN`; always below [`CPU_LIMIT`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(pub(crate) u16);

impl CpuId {
    /// Checks the range.
    ///
    /// # Errors
    /// [`CpuError::OutOfRange`] when `number` is not below [`CPU_LIMIT`].
    pub const fn new(number: u64) -> Result<Self, CpuError> {
        if number < CPU_LIMIT as u64 { Ok(Self(number as u16)) } else { Err(CpuError::OutOfRange { number }) }
    }

    /// The number, for indexing a per-CPU table.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for CpuId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

/// Why a CPU number, list or mask was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CpuError {
    /// `number` is not below [`CPU_LIMIT`].
    OutOfRange {
        /// The number that was given.
        number: u64,
    },
    /// The text at byte `at` is neither a number nor the separator that must follow one.
    Unexpected {
        /// Byte offset from the start of the text.
        at: usize,
    },
    /// A list that names so many CPUs so often that it is an attack or a mistake; noticed at `at`.
    Repetitive {
        /// Byte offset from the start of the text.
        at: usize,
    },
    /// A range that ends before it begins, as `7-3`.
    Backwards {
        /// First number of the range.
        first: u64,
        /// Last number of the range.
        last: u64,
    },
}

impl fmt::Display for CpuError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { number } => {
                write!(out, "CPU number {number} is out of range (expected a number below {CPU_LIMIT})")
            }
            Self::Unexpected { at } => {
                write!(out, "not a CPU list at byte {at} (expected numbers and ranges, as 0-3,8)")
            }
            Self::Repetitive { at } => {
                write!(out, "CPU list names the same CPUs over and over at byte {at} (expected each once)")
            }
            Self::Backwards { first, last } => {
                write!(out, "CPU range {first}-{last} ends before it begins (expected {last}-{first})")
            }
        }
    }
}

impl core::error::Error for CpuError {}
