//! What an sfq is told, and what it cannot be told.

use crate::RedCurve;
use core::fmt;
use quietcore_core::Nanos;

/// The most packets that a flow can have.
pub(super) const DEPTH_MAX: u32 = 127;
/// The most flows that can have packets.
pub(super) const FLOWS_MAX: u32 = 65_408;
/// The most buckets of the hash.
const DIVISOR_MAX: u32 = 65_536;

/// What an [`Sfq`](crate::Sfq) is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SfqSettings {
    /// The major number of its classes, of which `major:1` is the first bucket.
    pub major: u16,
    /// Packets that it holds at most: at least 2.
    pub limit: u32,
    /// Bytes that a flow sends in its turn: at least 1.
    pub quantum: u32,
    /// Packets that a flow holds at most: 1 to 127.
    pub depth: u32,
    /// Flows that can hold packets: 1 to 65408.
    pub flows: u32,
    /// Buckets that flows are spread over: a power of 2, at most 65536.
    pub divisor: u32,
    /// After so long flows are spread anew; 0 for never.
    pub perturb: Nanos,
    /// Whether the first of a flow's packets is dropped for want of room, not the last.
    pub headdrop: bool,
    /// Random early detection in each flow.
    pub red: Option<SfqRed>,
}

/// Random early detection of an [`Sfq`](crate::Sfq), for each flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SfqRed {
    /// When packets are marked.
    pub curve: RedCurve,
    /// Whether packets that can be marked are marked, not dropped.
    pub ecn: bool,
    /// Whether above `max` they are dropped nonetheless.
    pub harddrop: bool,
}

impl Default for SfqSettings {
    /// As Linux has it, for packets of up to 1514 bytes.
    fn default() -> Self {
        Self {
            major: 1,
            limit: 127,
            quantum: 1_514,
            depth: DEPTH_MAX,
            flows: 128,
            divisor: 1_024,
            perturb: Nanos(0),
            headdrop: false,
            red: None,
        }
    }
}

impl SfqSettings {
    pub(super) fn check(&self) -> Result<(), SfqError> {
        if self.limit < 2 {
            return Err(SfqError::Limit(self.limit));
        }
        if self.quantum == 0 {
            return Err(SfqError::Quantum);
        }
        if !(1..=DEPTH_MAX).contains(&self.depth) {
            return Err(SfqError::Depth(self.depth));
        }
        if !(1..=FLOWS_MAX).contains(&self.flows) {
            return Err(SfqError::Flows(self.flows));
        }
        let fits = self.divisor.is_power_of_two() && self.divisor <= DIVISOR_MAX;
        if fits { Ok(()) } else { Err(SfqError::Divisor(self.divisor)) }
    }
}

/// Why settings cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SfqError {
    /// So few packets leave no room for turns.
    Limit(u32),
    /// A turn of no bytes.
    Quantum,
    /// A flow cannot have so many packets.
    Depth(u32),
    /// There cannot be so many flows.
    Flows(u32),
    /// There cannot be so many buckets.
    Divisor(u32),
}

impl fmt::Display for SfqError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(packets) => write!(out, "limit of {packets}: it is at least 2"),
            Self::Quantum => write!(out, "quantum of 0 bytes lets no flow send"),
            Self::Depth(packets) => write!(out, "depth of {packets}: it is 1 to {DEPTH_MAX}"),
            Self::Flows(count) => write!(out, "{count} flows: there are 1 to {FLOWS_MAX}"),
            Self::Divisor(count) => {
                write!(out, "{count} buckets: there are a power of 2, at most {DIVISOR_MAX}")
            }
        }
    }
}

impl core::error::Error for SfqError {}
