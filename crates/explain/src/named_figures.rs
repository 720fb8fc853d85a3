//! Figures of a report with one flat name each: what gates and comparisons are about.

use crate::figures::{Explanation, Interruption};
use std::collections::BTreeMap;

/// A figure and its name.
#[derive(Debug)]
pub(crate) struct ReportFigure {
    pub(crate) name: &'static str,
    pub(crate) kind: FigureUnit,
    pub(crate) value: fn(&Explanation) -> FigureValue,
}

impl PartialEq for ReportFigure {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// What a figure is a number of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureUnit {
    /// Of how often something happened: it grows with the recording.
    Count,
    /// Of ns.
    Span,
}

/// What a report says of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FigureValue {
    Known(u64),
    NoSample,
    NotRecorded,
}

impl From<Option<u64>> for FigureValue {
    fn from(figure: Option<u64>) -> Self {
        figure.map_or(Self::NotRecorded, Self::Known)
    }
}

/// What takes CPUs away from any task, one thing after the other: without it nothing is known of them.
const INTERRUPTS: [&str; 4] =
    ["interruptions.device", "interruptions.processor", "interruptions.softirq", "interruptions.nmi"];

/// What runs inside of another thing that is counted.
const PARTS: [&str; 3] = ["timer", "hrtimer", "work"];

/// All of them, in the order in which they are listed.
pub(crate) static FIGURES: [ReportFigure; 16] = [
    count("foreign", |report| report.foreign.total.into()),
    count("pulled", |report| report.foreign.pulled.into()),
    count("placed", |report| report.foreign.placed.into()),
    count("foreign_hrtimers", |report| report.hrtimers.foreign.into()),
    count("remote", |report| report.remote.total.into()),
    count("ping_pongs", |report| report.ping_pong.count.into()),
    count("watchdogs_off", |report| report.hrtimers.qdisc_watchdog.off_arming_cpu.into()),
    count("empty_softirqs", |report| report.softirq.timer_empty.into()),
    count("rt_behind_softirq", |report| report.rt_wakeups.behind_softirq.into()),
    span("rt_delay_p50", |report| delay(report, report.rt_wakeups.delay_ns.p50)),
    span("rt_delay_p99", |report| delay(report, report.rt_wakeups.delay_ns.p99)),
    span("rt_delay_max", |report| delay(report, report.rt_wakeups.delay_ns.max)),
    count("interruptions", |report| interruptions(report, times)),
    span("interruption_p99", |report| longest(report, |row| row.p99_ns)),
    span("interruption_max", |report| longest(report, |row| row.max_ns)),
    count("lost_events", |report| FigureValue::Known(report.lost_events)),
];

const fn count(name: &'static str, value: fn(&Explanation) -> FigureValue) -> ReportFigure {
    ReportFigure { name, kind: FigureUnit::Count, value }
}

const fn span(name: &'static str, value: fn(&Explanation) -> FigureValue) -> ReportFigure {
    ReportFigure { name, kind: FigureUnit::Span, value }
}

fn delay(report: &Explanation, delay: Option<u64>) -> FigureValue {
    match (report.rt_wakeups.behind_softirq, delay) {
        (None, _) => FigureValue::NotRecorded,
        (Some(_), None) => FigureValue::NoSample,
        (Some(_), Some(delay)) => FigureValue::Known(delay),
    }
}

/// A figure of all rows about what takes CPUs away; no interrupts were recorded where none is.
fn interruptions(report: &Explanation, figure: fn(&[Interruption]) -> u64) -> FigureValue {
    if INTERRUPTS.iter().all(|path| report.not_recorded.contains(path)) {
        return FigureValue::NotRecorded;
    }
    FigureValue::Known(figure(&report.interruptions))
}

/// How often a CPU was taken away.
fn times(rows: &[Interruption]) -> u64 {
    rows.iter().filter(|row| !row.own && !PARTS.contains(&row.source)).map(|row| row.count).sum()
}

fn longest(report: &Explanation, of: fn(&Interruption) -> Option<u64>) -> FigureValue {
    match interruptions(report, |_| 0) {
        FigureValue::Known(_) => {
            let longest = report.interruptions.iter().filter(|row| !row.own).filter_map(of).max();
            longest.map_or(FigureValue::NoSample, FigureValue::Known)
        }
        unknown => unknown,
    }
}

/// The figures of a report by their names: counts, and spans in ns; `None` where a figure was not recorded or
/// has no sample. Any thread.
#[must_use]
pub fn named_figures(report: &Explanation) -> BTreeMap<&'static str, Option<u64>> {
    let value = |figure: &ReportFigure| match (figure.value)(report) {
        FigureValue::Known(value) => Some(value),
        FigureValue::NoSample | FigureValue::NotRecorded => None,
    };
    FIGURES.iter().map(|figure| (figure.name, value(figure))).collect()
}

/// The names of all figures with what they are numbers of, in the order in which they are shown.
pub fn figure_names() -> impl Iterator<Item = (&'static str, FigureUnit)> {
    FIGURES.iter().map(|figure| (figure.name, figure.kind))
}
