//! An answer to "what if" as text: what was asked, before and after side by side, the assumptions.

use super::page::Page;
use crate::terminal::Style;
use quietcore_answers::WhatifComparison;
use quietcore_core::Nanos;
use quietcore_explain::{CountByNumber, Disturbance};
use quietcore_trace::visible;
use quietcore_verify::whatif::{FigureRange, WhatifFigures};
use std::collections::BTreeSet;

/// Width of the labels.
const LABEL: usize = 10;

/// Rows of isolated CPUs that are printed; the JSON has all of them.
const CPU_ROWS_MAX: usize = 24;

/// The whole comparison for the recording `name`.
pub(crate) fn comparison(page: &mut Page, name: &str, comparison: &WhatifComparison<'_>) {
    header(page, name, comparison);
    page.heading("Recorded, replayed as it was, and replayed as asked");
    table(page, comparison);
    cpus(page, comparison);
    agreement(page, comparison);
    page.heading("Assumptions");
    for (number, sentence) in (1..).zip(&comparison.answer.assumptions) {
        page.item(2, &format!("{number:>2}"), 2, sentence);
    }
}

/// A list of CPUs for people.
fn list(cpus: &str) -> &str {
    if cpus.is_empty() { "none" } else { cpus }
}

fn header(page: &mut Page, name: &str, comparison: &WhatifComparison<'_>) {
    let recorded = &comparison.recorded;
    page.styled_line(Style::Heading, &format!("quietcore whatif {}", visible(name)));
    let kernel = recorded.kernel.map_or("unknown".to_owned(), visible);
    page.item(2, "kernel", LABEL, &format!("{kernel}, timers placed by {}", recorded.policy));
    let (isolated, source) = (list(recorded.isolated), recorded.isolated_source);
    page.item(2, "CPUs", LABEL, &format!("{}, isolated {isolated} (from the {source})", recorded.cpus));
    let lost = page.lost(recorded.lost_events);
    page.item(2, "recorded", LABEL, &format!("{} events, {lost}", recorded.events));
    for reason in recorded.incomplete {
        let label = page.styled(Style::Bad, "INCOMPLETE");
        page.item(2, &label, LABEL, reason);
    }
    for warning in recorded.warnings {
        page.item(2, "warning", LABEL, &visible(warning));
    }
    for (label, figures) in [("before", &comparison.answer.before), ("after", &comparison.answer.after)] {
        let (excluded, kept) = (list(&figures.excluded), list(&figures.kept_awake));
        let text = format!("{}, excluded: {excluded}, kept awake: {kept}", figures.policy);
        page.item(2, label, LABEL, &text);
    }
}

fn table(page: &mut Page, comparison: &WhatifComparison<'_>) {
    let recorded = &comparison.recorded;
    let (before, after) = (&comparison.answer.before, &comparison.answer.after);
    page.line(&format!("  {:<38} {:>12} {:>12} {:>12}", "", "recorded", "before", "after"));
    let mut row = |label: &str, cells: [String; 3]| {
        let [recorded, before, after] = cells;
        page.line(&format!("  {label:<38} {recorded:>12} {before:>12} {after:>12}"));
    };
    let count = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
    let counts = |recorded: Option<u64>, of: &dyn Fn(&WhatifFigures) -> Option<u64>| {
        [count(recorded), count(of(before)), count(of(after))]
    };
    let nothing = || "-".to_owned();
    row("foreign timers on isolated CPUs", counts(recorded.foreign.total, &|of| of.foreign.total));
    let mut ranges = |label, of: fn(&WhatifFigures) -> FigureRange| {
        let [before, after] = [before, after].map(|figures| of(figures).to_string());
        row(label, [nothing(), before, after]);
    };
    ranges("  in four orders within a tick", |of| of.foreign_range);
    ranges("  a real kernel, in 19 of 20 runs", |of| of.foreign_expected);
    let top = [recorded.foreign, &before.foreign, &after.foreign].map(top_cpu);
    row("  most of them on", top);
    row("timers that another CPU ran", counts(recorded.remote.total, &|of| of.remote.total));
    row("timers that ran", counts(recorded.timers.expired, &|of| Some(of.expired)));
    row("wake-ups of sleeping CPUs", counts(None, &|of| Some(of.wakeups.total)));
    let late = |of: Option<u64>| of.map_or_else(nothing, |nanos| Nanos(nanos).to_string());
    for (label, of) in [
        ("lateness, half of them at most", (|of| of.lateness_ns.p50) as fn(&WhatifFigures) -> Option<u64>),
        ("lateness, 99 of 100 at most", |of| of.lateness_ns.p99),
        ("lateness, the latest", |of| of.lateness_ns.max),
    ] {
        row(label, [nothing(), late(of(before)), late(of(after))]);
    }
}

/// The CPU with the most of them.
fn top_cpu(of: &Disturbance) -> String {
    let counts = of.by_cpu.iter().flatten();
    let top = counts.max_by_key(|(cpu, count)| (**count, std::cmp::Reverse(**cpu)));
    top.map_or("-".to_owned(), |(cpu, count)| format!("CPU {cpu}: {count}"))
}

/// Foreign timers and wake-ups, CPU by CPU.
fn cpus(page: &mut Page, comparison: &WhatifComparison<'_>) {
    let (before, after) = (&comparison.answer.before, &comparison.answer.after);
    let sides = [comparison.recorded.foreign, &before.foreign, &after.foreign];
    let foreign = sides.map(|of| of.by_cpu.as_ref());
    let touched: BTreeSet<u16> = foreign.iter().flatten().flat_map(|counts| counts.keys().copied()).collect();
    if touched.is_empty() {
        return;
    }
    page.heading("Isolated CPUs: foreign timers, and wake-ups of the sleeping CPU");
    page.line(&format!(
        "  {:<8} {:>10} {:>10} {:>10} {:>16} {:>10}",
        "CPU", "recorded", "before", "after", "wake-ups before", "after"
    ));
    let get = |counts: &CountByNumber, cpu: u16| counts.get(&cpu).copied().unwrap_or(0).to_string();
    let nothing = "-".to_owned();
    for &cpu in touched.iter().take(CPU_ROWS_MAX) {
        let [recorded, was, is] =
            foreign.map(|counts| counts.map_or(nothing.clone(), |counts| get(counts, cpu)));
        let wakeups = [before, after].map(|of| get(&of.wakeups.by_cpu, cpu));
        let [woken, wakes] = wakeups;
        page.line(&format!("  {cpu:<8} {recorded:>10} {was:>10} {is:>10} {woken:>16} {wakes:>10}"));
    }
    if touched.len() > CPU_ROWS_MAX {
        page.line(&format!("  and {} more; --json has all of them", touched.len() - CPU_ROWS_MAX));
    }
}

fn agreement(page: &mut Page, comparison: &WhatifComparison<'_>) {
    page.heading("How far \"before\" is what was recorded");
    let Some(agreement) = &comparison.answer.agreement else {
        page.item(2, "same CPU", LABEL, "not known: no expiry was recorded");
        return;
    };
    let share = match agreement.expired_in_both {
        0 => String::new(),
        both => format!(" ({:.1} %)", agreement.same_cpu as f64 * 100.0 / both as f64),
    };
    let text = format!(
        "{} of {} timers that ran in both ran on the same CPU{share}; {} ran in the recording only, {} in the \
         replay only",
        agreement.same_cpu, agreement.expired_in_both, agreement.recorded_only, agreement.replayed_only
    );
    page.item(2, "same CPU", LABEL, &text);
}
