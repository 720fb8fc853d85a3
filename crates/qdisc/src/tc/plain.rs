//! The options of disciplines without classes, `netem` apart: `pfifo`, `bfifo`, `mq`, `tbf`, `fq`.
//!
//! Source: tc-pfifo(8), tc-mq(8), tc-tbf(8), tc-fq(8).

use super::error::{Problem, TcError};
use super::scalar::{Scalar, Show};
use super::table::{Complete, first_missing, options, switch};
use super::units::{BitRate, Bytes};
use super::value::OptionValue;
use super::words::LineWords;
use crate::LinkLayer;
use core::fmt::{self, Formatter};
use quietcore_core::Nanos;

options! {
    /// What was typed behind `pfifo`.
    ///
    /// ```
    /// let typed = quietcore_qdisc::tc::PfifoOptions { limit: Some(10) };
    /// assert_eq!(typed.to_string(), "pfifo limit 10");
    /// ```
    pub struct PfifoOptions of "pfifo" {
        /// Packets that it holds at most.
        limit: u32 = "limit",
    }
}

options! {
    /// What was typed behind `bfifo`.
    ///
    /// ```
    /// # use quietcore_qdisc::tc::{BfifoOptions, Bytes};
    /// assert_eq!(BfifoOptions { limit: Some(Bytes(2_048)) }.to_string(), "bfifo limit 2kb");
    /// ```
    pub struct BfifoOptions of "bfifo" {
        /// Bytes that it holds at most.
        limit: Bytes = "limit",
    }
}

options! {
    /// What was typed behind `mq`: nothing.
    ///
    /// ```
    /// assert_eq!(quietcore_qdisc::tc::MqOptions {}.to_string(), "mq");
    /// ```
    pub struct MqOptions of "mq" {}
}

impl Complete for PfifoOptions {}
impl Complete for BfifoOptions {}
impl Complete for MqOptions {}

/// The depth of a bucket: `BYTES` or `BYTES/CELL`.
///
/// ```
/// use quietcore_qdisc::tc::{Burst, Bytes};
///
/// assert_eq!(Burst { size: Bytes(6_000), cell: Some(16) }.to_string(), "6000b/16");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// How much it holds.
    pub size: Bytes,
    /// The steps in which `tc` would reckon times; a power of 2. Nothing here is in such steps.
    pub cell: Option<u32>,
}

impl fmt::Display for Burst {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.size)?;
        self.cell.map_or(Ok(()), |cell| write!(out, "/{cell}"))
    }
}

impl Show for Burst {
    fn show(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {self}")
    }
}

impl Scalar for Burst {
    const ALLOWED: &'static [&'static str] = &["a number with b, k, m or g (bytes)", "the same and /CELL"];

    fn read(word: &str) -> Result<Self, Problem> {
        let Some((size, cell)) = word.split_once('/') else {
            return Ok(Self { size: Bytes::read(word)?, cell: None });
        };
        let (size, cell) = (Bytes::read(size)?, u32::read(cell)?);
        if !cell.is_power_of_two() {
            return Err(Problem::Malformed { form: "a size with a cell that is a power of 2" });
        }
        Ok(Self { size, cell: Some(cell) })
    }
}

options! {
    /// What was typed behind `tbf`.
    ///
    /// ```
    /// use quietcore_qdisc::tc::{BitRate, TbfOptions};
    ///
    /// let typed = TbfOptions { rate: Some(BitRate(500_000)), ..TbfOptions::default() };
    /// assert_eq!(typed.to_string(), "tbf rate 500kbit");
    /// ```
    pub struct TbfOptions of "tbf" {
        /// How fast the bucket fills.
        rate: BitRate = "rate",
        /// How much it holds.
        burst: Burst = "burst" | "buffer" | "maxburst",
        /// Bytes that may wait.
        limit: Bytes = "limit",
        /// How long a packet may wait.
        latency: Nanos = "latency",
        /// Bytes that any packet counts at least.
        mpu: Bytes = "mpu",
        /// How fast the bucket may empty.
        peakrate: BitRate = "peakrate",
        /// How much may leave at once in spite of that.
        mtu: Burst = "mtu" | "minburst",
        /// Bytes more per packet.
        overhead: u16 = "overhead",
        /// How packets are packed.
        linklayer: LinkLayer = "linklayer",
    }
}

impl Complete for TbfOptions {
    fn lacks(&self) -> Option<Problem> {
        if self.limit.is_some() && self.latency.is_some() {
            return Some(Problem::Excludes { option: "latency", other: "limit" });
        }
        if self.peakrate.is_some() && self.mtu.is_none() {
            return Some(Problem::Needs { option: "peakrate", needs: "`mtu`" });
        }
        let bounded = self.limit.is_some() || self.latency.is_some();
        let needed = [
            (self.rate.is_some(), "`rate`"),
            (self.burst.is_some(), "`burst`"),
            (bounded, "`limit` or `latency`"),
        ];
        first_missing("tbf", &needed)
    }
}

options! {
    /// What was typed behind `fq`.
    ///
    /// ```
    /// use quietcore_qdisc::tc::{FqOptions, Pacing};
    ///
    /// let typed = FqOptions { pacing: Some(Pacing::Off), ..FqOptions::default() };
    /// assert_eq!(typed.to_string(), "fq nopacing");
    /// ```
    pub struct FqOptions of "fq" {
        /// Packets that it holds at most.
        limit: u32 = "limit",
        /// Packets of one flow that it holds at most.
        flow_limit: u32 = "flow_limit",
        /// Bytes that a flow sends in its turn.
        quantum: Bytes = "quantum",
        /// Bytes that a new flow sends at once.
        initial_quantum: Bytes = "initial_quantum",
        /// The most that a flow is paced to.
        maxrate: BitRate = "maxrate",
        /// Buckets of flows.
        buckets: u32 = "buckets",
        /// Which bits of a hash tell flows without a socket apart.
        orphan_mask: u32 = "orphan_mask",
        /// Whether flows are paced.
        pacing: Pacing = "pacing" | "nopacing",
        /// How long a flow has been idle when it gets a new quantum.
        refill_delay: Nanos = "refill_delay",
        /// Below it, each packet is paced for itself.
        low_rate_threshold: BitRate = "low_rate_threshold",
        /// So late, packets are marked.
        ce_threshold: Nanos = "ce_threshold",
        /// How late the timer may be.
        timer_slack: Nanos = "timer_slack",
        /// How far ahead a packet may ask to leave.
        horizon: Nanos = "horizon",
        /// What happens to packets that ask for more.
        beyond: BeyondHorizon = "horizon_drop" | "horizon_cap",
        /// How many bands; three is all that there are.
        bands: u32 = "bands" in 3..=3,
        /// Each priority's band.
        priomap: Priomap = "priomap",
        /// Each band's share.
        weights: Weights = "weights",
    }
}

impl Complete for FqOptions {}

switch! {
    /// Whether `fq` paces.
    ///
    /// ```
    /// assert_ne!(quietcore_qdisc::tc::Pacing::On, quietcore_qdisc::tc::Pacing::Off);
    /// ```
    pub enum Pacing {
        /// `pacing`.
        On = "pacing",
        /// `nopacing`.
        Off = "nopacing",
    }
}

switch! {
    /// What `fq` does with a packet that asks to leave beyond the horizon.
    ///
    /// ```
    /// assert_ne!(quietcore_qdisc::tc::BeyondHorizon::Drop, quietcore_qdisc::tc::BeyondHorizon::Cap);
    /// ```
    pub enum BeyondHorizon {
        /// `horizon_drop`: it is dropped.
        Drop = "horizon_drop",
        /// `horizon_cap`: it leaves at the horizon.
        Cap = "horizon_cap",
    }
}

/// Each priority's band, from 0 to 2.
///
/// ```
/// assert_eq!(quietcore_qdisc::tc::Priomap([1; 16]).0.len(), 16);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priomap(
    /// Bands.
    pub [u8; 16],
);

/// Each band's share of the bytes, from 1 to 2^31 - 1.
///
/// ```
/// assert_eq!(quietcore_qdisc::tc::Weights([4, 2, 1]).0[0], 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights(
    /// Shares.
    pub [u32; 3],
);

impl OptionValue for Priomap {
    fn take(words: &mut LineWords<'_>, name: &'static str) -> Result<Self, TcError> {
        let mut bands = [0; 16];
        for band in &mut bands {
            *band = words.scalar(name)?;
            words.in_range(*band, 0..=2)?;
        }
        Ok(Self(bands))
    }

    fn put(&self, name: &'static str, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {name}")?;
        self.0.iter().try_for_each(|band| band.show(out))
    }
}

impl OptionValue for Weights {
    fn take(words: &mut LineWords<'_>, name: &'static str) -> Result<Self, TcError> {
        let mut weights = [0; 3];
        for weight in &mut weights {
            *weight = words.scalar(name)?;
            words.in_range(*weight, 1..=i32::MAX.unsigned_abs())?;
        }
        Ok(Self(weights))
    }

    fn put(&self, name: &'static str, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {name}")?;
        self.0.iter().try_for_each(|weight| weight.show(out))
    }
}
