//! Answers as tables: an explanation's figures, findings and disturbances; a verification; a what-if; a
//! comparison.

use crate::layout::{Column, ColumnKind as Kind, TableLayout};
use crate::rows::{Cell, TableRows};
use quietcore_answers::{Comparison, WhatifComparison};
use quietcore_explain::{Cause, Explanation, FigureUnit, Interruption, figure_names, named_figures};
use quietcore_verify::Verification;
use quietcore_verify::whatif::WhatifFigures;

const FIGURES: [Column; 3] = [
    Column::new("figure", Kind::Text, "Its name, as `--fail-on` has it."),
    Column::new("unit", Kind::Text, "`count` or `ns`."),
    Column::new("value", Kind::Unsigned, "Null where it was not recorded, or has no sample."),
];
const FINDINGS: [Column; 10] = [
    Column::new("finding", Kind::Text, "Its stable name."),
    Column::new("question", Kind::Text, "The question that it belongs to."),
    Column::new("severity", Kind::Text, "`note`, `warning` or `critical`."),
    Column::new("what", Kind::Text, "What was seen."),
    Column::new("why", Kind::Text, "The mechanism, with kernel versions."),
    Column::new("change", Kind::Text, "The command that changes it."),
    Column::new("predicted", Kind::Text, "What that will do to the figures."),
    Column::new("verify", Kind::Text, "The command that shows whether it did."),
    Column::new("proof_line", Kind::Unsigned, "The first line that proves it; null without one."),
    Column::new("proof", Kind::Text, "What that line shows."),
];
const DISTURBANCES: [Column; 15] = [
    Column::new("cpu", Kind::Cpu, "The CPU that was taken away."),
    Column::new(
        "source",
        Kind::Text,
        "`device`, `processor`, `softirq`, `nmi`, `timer`, `hrtimer`, `work` or `task`.",
    ),
    Column::new("name", Kind::Text, "The interrupt, vector, function or task."),
    Column::new("own", Kind::Boolean, "A task that is what the CPU is there for."),
    Column::new("count", Kind::Unsigned, "How often it began."),
    Column::new("total_ns", Kind::Unsigned, "For how long in all; null where no end is in the input."),
    Column::new("p99_ns", Kind::Unsigned, "99 of 100 took at most this; null likewise."),
    Column::new("max_ns", Kind::Unsigned, "The longest; null likewise."),
    Column::new("max_at_ns", Kind::Unsigned, "When that ended, on the recording's clock; null likewise."),
    Column::new("max_line", Kind::Unsigned, "In which line; null likewise."),
    Column::new("cause_count", Kind::Unsigned, "How often for its most frequent cause; null: none is known."),
    Column::new("cause_how", Kind::Text, "`armed`, `sent`, `raised`, `woken` or `queued`; null likewise."),
    Column::new("cause_cpu", Kind::Cpu, "The CPU that started it; null likewise."),
    Column::new("cause_source", Kind::Text, "What that CPU was doing, as `source`; null likewise."),
    Column::new("cause_name", Kind::Text, "As `name`; null likewise."),
];
const VERIFICATION: [Column; 2] = [
    Column::new("figure", Kind::Text, "As in the JSON of `quietcore verify`, with dots."),
    Column::new("value", Kind::Unsigned, "Null where the input does not have it."),
];
const MISMATCHES: [Column; 6] = [
    Column::new("line", Kind::Unsigned, "Its number in the input."),
    Column::new("kind", Kind::Text, "What was compared."),
    Column::new("event", Kind::Text, "The event in words."),
    Column::new("expected", Kind::Text, "What the replay arrives at."),
    Column::new("recorded", Kind::Text, "What the line says."),
    Column::new("why", Kind::Text, "What does not agree."),
];
const WHATIF: [Column; 18] = [
    Column::new("side", Kind::Text, "`recorded`, `before` (the replay of it) or `after` (as asked)."),
    Column::new("policy", Kind::Text, "`pull`, `push` or `stay`."),
    Column::new("excluded", Kind::Text, "CPUs that take no part, a kernel list; null of the recording."),
    Column::new("kept_awake", Kind::Text, "CPUs that never go idle, a kernel list; null of the recording."),
    Column::new("expired", Kind::Unsigned, "Timers that ran; null where that was not recorded."),
    Column::new("pending", Kind::Unsigned, "Still pending at the end; null of the recording."),
    Column::new("superseded", Kind::Unsigned, "Armed again before they ran; null of the recording."),
    Column::new("foreign", Kind::Unsigned, "Armed on a CPU not isolated, ran on an isolated one."),
    Column::new(
        "foreign_low",
        Kind::Unsigned,
        "The lowest over the orders within a tick; null of the recording.",
    ),
    Column::new("foreign_high", Kind::Unsigned, "The highest; null of the recording."),
    Column::new(
        "foreign_expected_low",
        Kind::Unsigned,
        "Expected in 19 of 20 runs: from; null of the recording.",
    ),
    Column::new("foreign_expected_high", Kind::Unsigned, "To; null of the recording."),
    Column::new("pulled", Kind::Unsigned, "Of `foreign`: run by another CPU than the base's."),
    Column::new("remote", Kind::Unsigned, "Run by another CPU than the base's."),
    Column::new("wakeups", Kind::Unsigned, "Times that a sleeping CPU was woken; null of the recording."),
    Column::new("lateness_p50_ns", Kind::Unsigned, "Half ran at most so late; null of the recording."),
    Column::new("lateness_p99_ns", Kind::Unsigned, "99 of 100; null of the recording."),
    Column::new("lateness_max_ns", Kind::Unsigned, "The latest; null of the recording."),
];
const DIFF: [Column; 6] = [
    Column::new("figure", Kind::Text, "Its name, as `--fail-on` has it."),
    Column::new("unit", Kind::Text, "`/s` or `ns`: of the next three."),
    Column::new("before", Kind::Float, "Of the first input; null where it is not known."),
    Column::new("after", Kind::Float, "Of the second; null likewise."),
    Column::new("chance", Kind::Float, "How much may be chance; null where that is not known."),
    Column::new("verdict", Kind::Text, "`more`, `less`, `same` or `unknown`."),
];

fn layout(name: &str) -> TableLayout {
    layouts().into_iter().find(|layout| layout.name == name).expect("a table of this file")
}

pub(crate) fn layouts() -> Vec<TableLayout> {
    vec![
        TableLayout::new("figures", "One figure of a recording.", &FIGURES),
        TableLayout::new("findings", "One finding of a recording.", &FINDINGS),
        TableLayout::new(
            "disturbances",
            "What took one isolated CPU away (any CPU where none is isolated), all of one name.",
            &DISTURBANCES,
        ),
        TableLayout::new("verification", "One figure of a verification.", &VERIFICATION),
        TableLayout::new("mismatches", "One line that contradicts the wheel: the first twenty.", &MISMATCHES),
        TableLayout::new("whatif", "The timers of a recording, as they ran or were replayed.", &WHATIF),
        TableLayout::new("diff", "One figure of two recordings.", &DIFF),
    ]
}

/// The named figures of an explanation.
#[must_use]
pub fn figures(report: &Explanation) -> TableRows {
    let values = named_figures(report);
    let mut rows = TableRows::new(layout("figures"));
    for (figure, unit) in figure_names() {
        let unit = if unit == FigureUnit::Span { "ns" } else { "count" };
        rows.push(&[figure.into(), unit.into(), values[figure].into()]);
    }
    rows
}

/// The findings of an explanation.
#[must_use]
pub fn findings(report: &Explanation) -> TableRows {
    let mut rows = TableRows::new(layout("findings"));
    for finding in &report.findings {
        let severity = finding.severity.to_string();
        let line = finding.evidence.iter().find_map(|evidence| match evidence {
            quietcore_explain::Evidence::Line { line, text } => Some((*line, text)),
            quietcore_explain::Evidence::File { .. } => None,
        });
        rows.push(&[
            finding.id.into(),
            finding.question.name().into(),
            severity.as_str().into(),
            (&finding.what).into(),
            (&finding.why).into(),
            (&finding.change).into(),
            (&finding.predicted).into(),
            (&finding.verify).into(),
            line.map(|(line, _)| line).into(),
            line.map(|(_, text)| text).into(),
        ]);
    }
    rows
}

/// What took CPUs away, with its most frequent cause.
#[must_use]
pub fn disturbances(report: &Explanation) -> TableRows {
    let mut rows = TableRows::new(layout("disturbances"));
    report.interruptions.iter().for_each(|row| disturbance(&mut rows, row));
    rows
}

fn disturbance(rows: &mut TableRows, row: &Interruption) {
    let cause: Option<&Cause> = row.causes.first();
    let step = cause.and_then(|cause| cause.steps.first());
    rows.push(&[
        row.cpu.into(),
        row.source.into(),
        (&row.name).into(),
        row.own.into(),
        row.count.into(),
        row.total_ns.into(),
        row.p99_ns.into(),
        row.max_ns.into(),
        row.max_at_ns.into(),
        row.max_line.into(),
        cause.map(|cause| cause.count).into(),
        step.map(|step| step.how).into(),
        step.map(|step| step.cpu).into(),
        step.map(|step| step.source).into(),
        step.map(|step| &step.name).into(),
    ]);
}

/// The figures of a verification.
#[must_use]
pub fn verification(of: &Verification) -> TableRows {
    let mut rows = TableRows::new(layout("verification"));
    let runs = of.runs;
    let figures: [(&str, Option<u64>); 18] = [
        ("ok", Some(u64::from(of.ok))),
        ("events", Some(of.events)),
        ("lost_events", Some(of.lost_events)),
        ("malformed", Some(of.malformed)),
        ("timer_starts", Some(of.timer_starts)),
        ("explained", Some(of.explained)),
        ("exact", Some(of.exact)),
        ("mismatches", Some(of.mismatches)),
        ("mismatches_of_all_kinds", Some(of.mismatches_of_all_kinds())),
        ("cancels.total", Some(of.cancels.total)),
        ("cancels.mismatches", Some(of.cancels.mismatches)),
        ("expiries.total", Some(of.expiries.total)),
        ("expiries.exact", Some(of.expiries.exact)),
        ("expiries.mismatches", Some(of.expiries.mismatches)),
        ("runs.total", runs.map(|runs| runs.total)),
        ("runs.mismatches", runs.map(|runs| runs.mismatches)),
        ("tmigr.unexplained", Some(of.tmigr.unexplained)),
        ("tmigr.tree_mismatches", Some(of.tmigr.tree_mismatches)),
    ];
    figures.into_iter().for_each(|(figure, value)| rows.push(&[figure.into(), value.into()]));
    for (class, count) in of.classes.named() {
        rows.push(&[format!("classes.{class}").as_str().into(), count.into()]);
    }
    rows
}

/// The first lines that contradict the wheel or the hierarchy.
#[must_use]
pub fn mismatches(of: &Verification) -> TableRows {
    let mut rows = TableRows::new(layout("mismatches"));
    for found in &of.mismatch_list {
        rows.push(&[
            found.line.into(),
            found.kind.name().into(),
            (&found.event).into(),
            (&found.expected).into(),
            (&found.recorded).into(),
            (&found.why).into(),
        ]);
    }
    rows
}

/// What was recorded, and both replays.
#[must_use]
pub fn whatif(of: &WhatifComparison<'_>) -> TableRows {
    let mut rows = TableRows::new(layout("whatif"));
    let recorded = &of.recorded;
    let mut cells = vec![Cell::Null; WHATIF.len()];
    cells[0] = "recorded".into();
    cells[1] = recorded.policy.into();
    cells[4] = recorded.timers.expired.into();
    cells[7] = recorded.foreign.total.into();
    cells[12] = recorded.foreign.pulled.into();
    cells[13] = recorded.remote.total.into();
    rows.push(&cells);
    replay(&mut rows, "before", &of.answer.before);
    replay(&mut rows, "after", &of.answer.after);
    rows
}

fn replay(rows: &mut TableRows, side: &str, of: &WhatifFigures) {
    rows.push(&[
        side.into(),
        of.policy.into(),
        (&of.excluded).into(),
        (&of.kept_awake).into(),
        of.expired.into(),
        of.pending.into(),
        of.superseded.into(),
        of.foreign.total.into(),
        of.foreign_range.low.into(),
        of.foreign_range.high.into(),
        of.foreign_expected.low.into(),
        of.foreign_expected.high.into(),
        of.foreign.pulled.into(),
        of.remote.total.into(),
        of.wakeups.total.into(),
        of.lateness_ns.p50.into(),
        of.lateness_ns.p99.into(),
        of.lateness_ns.max.into(),
    ]);
}

/// The figures of two inputs side by side.
#[must_use]
pub fn diff(of: &Comparison) -> TableRows {
    let mut rows = TableRows::new(layout("diff"));
    for row in &of.figures {
        rows.push(&[
            row.figure.into(),
            row.unit.into(),
            row.before.into(),
            row.after.into(),
            row.chance.into(),
            row.verdict.into(),
        ]);
    }
    rows
}
