//! What `quietcore whatif` compares; field for field its JSON.

use quietcore_explain::{Disturbance, HierarchyGroups, PingPong, RemoteExpiries, TimerTotals};
use quietcore_verify::whatif::WhatifAnswer;
use serde::Serialize;

/// What was recorded, what the replays came to, and what they take for granted.
#[derive(Debug, Serialize)]
pub(crate) struct WhatifComparison<'a> {
    pub(crate) schema: u32,
    pub(crate) recorded: RecordedKernel<'a>,
    #[serde(flatten)]
    pub(crate) answer: &'a WhatifAnswer,
}

/// Of the explanation, what can be compared; under its names.
#[derive(Debug, Serialize)]
pub(crate) struct RecordedKernel<'a> {
    pub(crate) kernel: Option<&'a str>,
    /// How that kernel placed unpinned timers.
    pub(crate) policy: &'static str,
    pub(crate) cpus: u16,
    pub(crate) isolated: &'a str,
    pub(crate) isolated_source: &'static str,
    pub(crate) nohz_full: &'a str,
    pub(crate) duration_ns: Option<u64>,
    pub(crate) events: u64,
    pub(crate) lost_events: u64,
    pub(crate) incomplete: &'a [String],
    pub(crate) timers: &'a TimerTotals,
    pub(crate) foreign: &'a Disturbance,
    pub(crate) between_isolated: &'a Disturbance,
    pub(crate) remote: &'a RemoteExpiries,
    pub(crate) ping_pong: &'a PingPong,
    pub(crate) groups: &'a HierarchyGroups,
    pub(crate) warnings: &'a [String],
}
