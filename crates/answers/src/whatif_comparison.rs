//! What `quietcore whatif` compares; field for field its JSON.

use quietcore_explain::{Disturbance, Explanation, HierarchyGroups, PingPong, RemoteExpiries, TimerTotals};
use quietcore_verify::whatif::{RecordedLoad, WhatifAnswer};
use serde::Serialize;

/// What was recorded, what the replays came to, and what they take for granted.
#[derive(Debug, Serialize)]
pub struct WhatifComparison<'a> {
    /// 1.
    pub schema: u32,
    /// What was recorded.
    pub recorded: RecordedKernel<'a>,
    /// What the replays came to.
    #[serde(flatten)]
    pub answer: &'a WhatifAnswer,
}

/// Of the explanation, what can be compared; under its names.
#[derive(Debug, Serialize)]
pub struct RecordedKernel<'a> {
    /// The kernel's release, if the input says.
    pub kernel: Option<&'a str>,
    /// How that kernel placed unpinned timers.
    pub policy: &'static str,
    /// CPUs of the load.
    pub cpus: u16,
    /// The isolated CPUs, a kernel list.
    pub isolated: &'a str,
    /// Where that list is from: `option` or `recording`.
    pub isolated_source: &'static str,
    /// CPUs with `nohz_full`, a kernel list.
    pub nohz_full: &'a str,
    /// From the first to the last event; `None` when the clock has no unit.
    pub duration_ns: Option<u64>,
    /// Events read.
    pub events: u64,
    /// Events that were lost.
    pub lost_events: u64,
    /// Why the figures are approximate.
    pub incomplete: &'a [String],
    /// Counts of the wheel timers' events.
    pub timers: &'a TimerTotals,
    /// Armed on a CPU that is not isolated, ran on an isolated one.
    pub foreign: &'a Disturbance,
    /// Armed on one isolated CPU, ran on another.
    pub between_isolated: &'a Disturbance,
    /// Ran on another CPU than the base's.
    pub remote: &'a RemoteExpiries,
    /// Remote expiries after which the timer was armed on its old base again.
    pub ping_pong: &'a PingPong,
    /// The level-0 groups of the hierarchy.
    pub groups: &'a HierarchyGroups,
    /// Sentences to know before trusting the figures.
    pub warnings: &'a [String],
}

impl<'a> RecordedKernel<'a> {
    /// What the recording showed, beside its load.
    #[must_use]
    pub fn of(report: &'a Explanation, load: &RecordedLoad) -> Self {
        Self {
            kernel: report.kernel.as_deref(),
            policy: load.policy().name(),
            cpus: load.cpus(),
            isolated: &report.isolated,
            isolated_source: report.isolated_source,
            nohz_full: &report.nohz_full,
            duration_ns: report.duration_ns,
            events: report.events,
            lost_events: report.lost_events,
            incomplete: &report.incomplete,
            timers: &report.timers,
            foreign: &report.foreign,
            between_isolated: &report.between_isolated,
            remote: &report.remote,
            ping_pong: &report.ping_pong,
            groups: &report.groups,
            warnings: &report.warnings,
        }
    }
}
