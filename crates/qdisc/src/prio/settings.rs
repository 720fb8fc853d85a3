//! What a [`Prio`](super::Prio) is told.

use core::fmt;

/// The least and the greatest number of bands (`TCQ_MIN_PRIO_BANDS`, `TCQ_PRIO_BANDS`).
const BANDS: core::ops::RangeInclusive<u8> = 2..=16;

/// What a [`Prio`](super::Prio) is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrioSettings {
    /// The major number of its classes, of which `major:1` is the first band.
    pub major: u16,
    /// How many bands there are.
    pub bands: u8,
    /// Each priority's band, from 0.
    pub priomap: [u8; 16],
}

impl Default for PrioSettings {
    /// As `tc` has it: interactive traffic first, bulk last.
    fn default() -> Self {
        Self { major: 1, bands: 3, priomap: [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1] }
    }
}

impl PrioSettings {
    pub(super) fn check(&self) -> Result<(), PrioError> {
        if !BANDS.contains(&self.bands) {
            return Err(PrioError::Bands(self.bands));
        }
        match self.priomap.iter().position(|band| *band >= self.bands) {
            Some(priority) => Err(PrioError::Band { priority, band: self.priomap[priority] }),
            None => Ok(()),
        }
    }
}

/// Why settings cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrioError {
    /// So many bands are too few, or too many.
    Bands(u8),
    /// A priority has a band that there is not.
    Band {
        /// The priority.
        priority: usize,
        /// The band.
        band: u8,
    },
}

impl fmt::Display for PrioError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bands(count) => write!(out, "{count} bands: there are 2 to 16"),
            Self::Band { priority, band } => {
                write!(out, "priority {priority} has band {band}: the last one is below the number of bands")
            }
        }
    }
}

impl core::error::Error for PrioError {}
