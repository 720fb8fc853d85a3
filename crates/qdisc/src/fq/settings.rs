//! What an fq is asked for, in the words of `tc`, and what it cannot be asked for.

use super::bands::BANDS;
use core::fmt;
use quietcore_core::Nanos;

/// The least weight of a band: one packet, however long, costs it a few turns at most.
const LEAST_WEIGHT: u32 = 1 << 14;

/// How far ahead a packet may ask to leave, and what becomes of one that asks for later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Horizon {
    /// `horizon_drop`: it is dropped.
    Drop(Nanos),
    /// `horizon_cap`: it leaves when so much time has passed.
    Cap(Nanos),
}

/// What an [`Fq`](crate::Fq) is asked for; what is not said is as in the kernel, with an MTU of 1514 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqSettings {
    /// Packets that may be queued, of each band.
    pub limit: u32,
    /// Packets that may be queued, of each flow.
    pub flow_limit: u32,
    /// Bytes that a flow may send in its turn: at least 1.
    pub quantum: u32,
    /// Bytes that a flow may send in its first turn.
    pub initial_quantum: u32,
    /// Bytes per second that a flow may send, whatever its packets ask for.
    pub maxrate: Option<u64>,
    /// From twice as many flows on, idle ones are forgotten: at least 1.
    pub buckets: u32,
    /// Flows whose numbers agree in these bits are one.
    pub orphan_mask: Option<u64>,
    /// Whether rates are kept; what packets say of their departure holds in any case.
    pub pacing: bool,
    /// After so long without packets a flow has at least a quantum again.
    pub refill_delay: Nanos,
    /// Flows of at most so many bytes per second are paced packet by packet.
    pub low_rate_threshold: u64,
    /// Packets that leave so much later than they could have are marked.
    pub ce_threshold: Option<Nanos>,
    /// How late the watchdog may be; for the caller, which arms it.
    pub timer_slack: Nanos,
    /// How far ahead packets may ask to leave.
    pub horizon: Horizon,
    /// The band of each priority: 0, 1 or 2; priorities count modulo 16.
    pub priomap: [u8; 16],
    /// Bytes that each band may send in its turn: at least 16384.
    pub weights: [u32; BANDS],
}

impl Default for FqSettings {
    fn default() -> Self {
        Self::new(1_514)
    }
}

impl FqSettings {
    /// The kernel's, for a device whose packets have up to `mtu` bytes, the link's header included.
    #[must_use]
    pub const fn new(mtu: u32) -> Self {
        Self {
            limit: 10_000,
            flow_limit: 100,
            quantum: mtu.saturating_mul(2),
            initial_quantum: mtu.saturating_mul(10),
            maxrate: None,
            buckets: 1_024,
            orphan_mask: None,
            pacing: true,
            refill_delay: Nanos(40_000_000),
            low_rate_threshold: 550_000 / 8,
            ce_threshold: None,
            timer_slack: Nanos(10_000),
            horizon: Horizon::Drop(Nanos(10_000_000_000)),
            priomap: [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
            weights: [589_824, 196_608, 65_536],
        }
    }

    /// The band of a priority.
    pub(super) fn band_of(&self, priority: u32) -> usize {
        usize::from(self.priomap[priority as usize % self.priomap.len()])
    }

    pub(super) fn check(&self) -> Result<(), FqError> {
        if self.quantum == 0 {
            return Err(FqError::Quantum(self.quantum));
        }
        if self.buckets == 0 {
            return Err(FqError::Buckets(self.buckets));
        }
        if let Some(priority) = self.priomap.iter().position(|band| usize::from(*band) >= BANDS) {
            return Err(FqError::Band { priority, band: self.priomap[priority] });
        }
        if let Some(band) = self.weights.iter().position(|weight| *weight < LEAST_WEIGHT) {
            return Err(FqError::Weight { band, weight: self.weights[band] });
        }
        Ok(())
    }
}

/// Which setting an [`Fq`](crate::Fq) cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FqError {
    /// No flow could send with so many bytes in its turn.
    Quantum(u32),
    /// No flow could be kept in so many buckets.
    Buckets(u32),
    /// There is no such band.
    Band {
        /// That is mapped to it.
        priority: usize,
        /// Of 0, 1 and 2.
        band: u8,
    },
    /// One packet could cost the band very many turns.
    Weight {
        /// Of 0, 1 and 2.
        band: usize,
        /// Bytes, of at least 16384.
        weight: u32,
    },
}

impl fmt::Display for FqError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantum(bytes) => write!(out, "quantum of {bytes} bytes lets no flow send"),
            Self::Buckets(count) => write!(out, "{count} buckets keep no flow"),
            Self::Band { priority, band } => {
                write!(out, "priority {priority} is mapped to band {band} of {BANDS}, which begin at 0")
            }
            Self::Weight { band, weight } => {
                write!(out, "weight {weight} of band {band} is below {LEAST_WEIGHT}")
            }
        }
    }
}

impl core::error::Error for FqError {}
