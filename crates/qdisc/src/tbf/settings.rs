//! What a tbf is asked for, in the words of `tc`, and what it cannot be asked for.

use crate::Rate;
use core::fmt;
use quietcore_core::Nanos;

/// How much may wait in a [`Tbf`](crate::Tbf).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TbfLimit {
    /// `limit`: so many bytes.
    Bytes(u64),
    /// `latency`: as many as pass in a burst and so long; with a peak rate as few as pass at either rate.
    Latency(Nanos),
}

/// What a [`Tbf`](crate::Tbf) is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TbfSettings {
    /// What passes in the long run.
    pub rate: Rate,
    /// Bytes that the bucket holds: no longer packet is taken.
    pub burst: u32,
    /// How much may wait.
    pub limit: TbfLimit,
    /// What passes within a burst.
    pub peak: Option<TbfPeak>,
}

/// How fast a burst may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TbfPeak {
    /// `peakrate`: more than the rate.
    pub rate: Rate,
    /// `minburst` or `mtu`: bytes that pass at once: no longer packet is taken.
    pub minburst: u32,
}

impl TbfSettings {
    /// Without a peak rate.
    #[must_use]
    pub const fn new(rate: Rate, burst: u32, limit: TbfLimit) -> Self {
        Self { rate, burst, limit, peak: None }
    }

    /// With one.
    #[must_use]
    pub const fn peak(self, rate: Rate, minburst: u32) -> Self {
        Self { peak: Some(TbfPeak { rate, minburst }), ..self }
    }

    /// Bytes of the longest packet that is taken.
    #[must_use]
    pub fn longest(&self) -> u32 {
        self.peak.map_or(self.burst, |peak| self.burst.min(peak.minburst))
    }

    /// Bytes that may wait.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        let latency = match self.limit {
            TbfLimit::Bytes(bytes) => return bytes,
            TbfLimit::Latency(latency) => latency,
        };
        let within = |rate: Rate, burst: u32| rate.bytes_in(latency).saturating_add(u64::from(burst));
        let at_rate = within(self.rate, self.burst);
        self.peak.map_or(at_rate, |peak| at_rate.min(within(peak.rate, peak.minburst)))
    }

    pub(super) fn check(&self) -> Result<(), TbfError> {
        if self.burst == 0 {
            return Err(TbfError::Burst(self.burst));
        }
        if self.limit_bytes() == 0 {
            return Err(TbfError::Limit(0));
        }
        let Some(peak) = self.peak else { return Ok(()) };
        if peak.minburst == 0 {
            return Err(TbfError::Minburst(peak.minburst));
        }
        let (rate, peak_rate) = (self.rate.get(), peak.rate.get());
        if peak_rate <= rate {
            return Err(TbfError::PeakRate { rate, peak: peak_rate });
        }
        let (time, bucket) = (peak.rate.time(self.longest()), self.rate.time(self.burst));
        if time > bucket {
            return Err(TbfError::PeakOverhead { time, bucket });
        }
        Ok(())
    }
}

/// Which setting a [`Tbf`](crate::Tbf) cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TbfError {
    /// No packet would ever pass a bucket of so many bytes.
    Burst(u32),
    /// No packet could ever wait where so many bytes may.
    Limit(u64),
    /// No packet would ever pass a bucket of the peak rate of so many bytes.
    Minburst(u32),
    /// The peak rate is not above the rate.
    PeakRate {
        /// Bytes per second.
        rate: u64,
        /// Bytes per second.
        peak: u64,
    },
    /// With its overhead the longest packet needs more of the peak rate than the bucket has.
    PeakOverhead {
        /// That the packet takes at the peak rate.
        time: Nanos,
        /// What the bucket of the rate holds.
        bucket: Nanos,
    },
}

impl fmt::Display for TbfError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Burst(bytes) => write!(out, "burst of {bytes} bytes lets no packet pass"),
            Self::Limit(bytes) => write!(out, "limit of {bytes} bytes lets no packet wait"),
            Self::Minburst(bytes) => write!(out, "minburst of {bytes} bytes lets no packet pass"),
            Self::PeakRate { rate, peak } => {
                write!(out, "peak rate of {peak} bytes/s is not above the rate of {rate} bytes/s")
            }
            Self::PeakOverhead { time, bucket } => {
                write!(out, "longest packet takes {time} at the peak rate, more than the bucket's {bucket}")
            }
        }
    }
}

impl core::error::Error for TbfError {}
