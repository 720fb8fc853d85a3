//! What a red is told, and what it cannot be told.

use super::average::RedCurve;
use core::fmt;

/// What a [`Red`](crate::Red) is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedSettings {
    /// Bytes that it holds at most, unless another discipline is put inside.
    pub limit: u32,
    /// When packets are marked.
    pub curve: RedCurve,
    /// Whether packets that can be marked are marked, not dropped.
    pub ecn: bool,
    /// Whether above `max` they are dropped nonetheless.
    pub harddrop: bool,
    /// Whether packets that cannot be marked pass; only with `ecn`.
    pub nodrop: bool,
    /// Whether the probability follows the average, each half second.
    pub adaptive: bool,
}

impl RedSettings {
    pub(super) const fn check(&self) -> Result<(), RedError> {
        let RedCurve { min, max, weight_log, .. } = self.curve;
        if min > max {
            return Err(RedError::Limits { min, max });
        }
        if weight_log == 0 || weight_log > 31 {
            return Err(RedError::Weight(weight_log));
        }
        if self.nodrop && !self.ecn { Err(RedError::NoDrop) } else { Ok(()) }
    }
}

/// Why settings cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedError {
    /// The lower limit is above the upper one.
    Limits {
        /// The lower one.
        min: u32,
        /// The upper one.
        max: u32,
    },
    /// The weight cannot be this power of 2.
    Weight(u32),
    /// `nodrop` without `ecn`.
    NoDrop,
}

impl fmt::Display for RedError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limits { min, max } => write!(out, "min {min} is above max {max}"),
            Self::Weight(log) => write!(out, "a weight of 1/2^{log}: it is 1/2 to 1/2^31"),
            Self::NoDrop => write!(out, "it only means something with `ecn`"),
        }
    }
}

impl core::error::Error for RedError {}
