//! What a lane finds while it turns, and a subscriber is told of.

use crate::stall::StallReport;
use quietcore_core::CpuId;

/// Something that a lane found.
#[derive(Debug)]
#[cfg_attr(not(feature = "tracing"), expect(dead_code, reason = "told by the feature `tracing` only"))]
pub(super) enum Found {
    Stall(StallReport),
    Panic(CpuId),
}
