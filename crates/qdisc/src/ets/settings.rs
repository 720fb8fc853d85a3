//! What an [`Ets`](super::Ets) is told.

use core::fmt;

/// As many bands as there may be (`TCQ_ETS_MAX_BANDS`).
pub(super) const BANDS_MAX: u8 = 16;

/// What an [`Ets`](super::Ets) is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtsSettings {
    /// The major number of its classes, of which `major:1` is the first band.
    pub major: u16,
    /// How many bands there are, from 1 to 16.
    pub bands: u8,
    /// How many of them, the first ones, are served strictly in order.
    pub strict: u8,
    /// The bytes that each band sends in its turn, by its number; of bands that are strict, and of those that
    /// there are not, it means nothing.
    pub quanta: [u32; 16],
    /// Each priority's band, from 0.
    pub priomap: [u8; 16],
}

impl EtsSettings {
    /// So many bands, of which the first ones are strict, with quanta of a whole Ethernet packet; all
    /// priorities have the last band.
    #[must_use]
    pub const fn new(bands: u8, strict: u8) -> Self {
        Self { major: 1, bands, strict, quanta: [1_514; 16], priomap: [bands.saturating_sub(1); 16] }
    }

    pub(super) fn check(&self) -> Result<(), EtsError> {
        if !(1..=BANDS_MAX).contains(&self.bands) {
            return Err(EtsError::Bands(self.bands));
        }
        if self.strict > self.bands {
            return Err(EtsError::Strict { strict: self.strict, bands: self.bands });
        }
        let sharing = usize::from(self.strict)..usize::from(self.bands);
        if let Some(band) = sharing.into_iter().find(|band| self.quanta[*band] == 0) {
            return Err(EtsError::Quantum { band });
        }
        match self.priomap.iter().position(|band| *band >= self.bands) {
            Some(priority) => Err(EtsError::Band { priority, band: self.priomap[priority] }),
            None => Ok(()),
        }
    }
}

/// Why settings cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EtsError {
    /// So many bands are too few, or too many.
    Bands(u8),
    /// More bands are strict than there are.
    Strict {
        /// So many.
        strict: u8,
        /// So many there are.
        bands: u8,
    },
    /// A band that shares has a quantum of 0.
    Quantum {
        /// The band, from 0.
        band: usize,
    },
    /// A priority has a band that there is not.
    Band {
        /// The priority.
        priority: usize,
        /// The band.
        band: u8,
    },
    /// A quantum for a band that is strict, or that there is not.
    NotSharing {
        /// The band, from 0.
        band: usize,
    },
}

impl fmt::Display for EtsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bands(count) => write!(out, "{count} bands: there are 1 to 16"),
            Self::Strict { strict, bands } => write!(out, "{strict} strict bands of {bands}"),
            Self::Quantum { band } => write!(out, "band {band} has a quantum of 0: it could never send"),
            Self::Band { priority, band } => {
                write!(out, "priority {priority} has band {band}: the last one is below the number of bands")
            }
            Self::NotSharing { band } => {
                write!(
                    out,
                    "strict bands do not have a configurable quantum, and band {band} is none that shares"
                )
            }
        }
    }
}

impl core::error::Error for EtsError {}
