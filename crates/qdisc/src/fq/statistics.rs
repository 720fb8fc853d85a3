//! What an fq counts besides what all do.

use super::bands::BANDS;
use quietcore_core::Nanos;

/// What an [`Fq`](crate::Fq) has done, and what it holds, of flows, bands and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FqStatistics {
    /// Flows that are known.
    pub flows: u64,
    /// Of these, how many hold no packet.
    pub inactive_flows: u64,
    /// Of these, how many wait for their time.
    pub throttled_flows: u64,
    /// When the earliest of them is due.
    pub next_throttled: Option<Nanos>,
    /// How often a flow began to wait for its time.
    pub throttled: u64,
    /// Flows that were forgotten.
    pub collected_flows: u64,
    /// Packets that took the short way, past flows and bands.
    pub fast_path_packets: u64,
    /// Packets that were dropped because their flow had too many.
    pub flow_limit_drops: u64,
    /// Packets that were dropped because their band had too many.
    pub band_drops: [u64; BANDS],
    /// Packets that are queued, of each band; those on the short way are of none.
    pub band_packets: [u64; BANDS],
    /// Packets that were dropped because they asked to leave beyond the horizon.
    pub horizon_drops: u64,
    /// Packets that asked for it and were put at the horizon.
    pub horizon_caps: u64,
    /// Packets that were marked because they left late.
    pub ce_marks: u64,
    /// Packets behind which their flow would have waited for longer than the second that it did.
    pub too_long_packets: u64,
    /// How late flows are let go: an average in which the last one weighs 1/8. This is how late the
    /// watchdog is.
    pub unthrottle_latency: Nanos,
}
