//! A simulated scenario as text: a table of figures per variant, what was expected, and where the costs are
//! from.

use super::page::{Page, in_lines};
use crate::terminal::Style;
use quietcore_core::Nanos;
use quietcore_sim::{CpuResidency, RunFigures, Scenario, SimOutcome, SpanQuantiles, VariantOutcome};
use quietcore_trace::visible;

/// Width of the labels.
const LABEL: usize = 10;
/// Width of a figure's name, and of one column.
const NAME: usize = 24;
const COLUMN: usize = 17;
/// Variants side by side; more are shown in further tables.
const SIDE_BY_SIDE: usize = 4;

/// The whole outcome of `scenario`, called `name`.
pub(crate) fn simulation(page: &mut Page, name: &str, scenario: &Scenario, outcome: &SimOutcome) {
    page.styled_line(Style::Heading, &format!("quietcore sim {} (simulated)", visible(name)));
    if let Some(about) = scenario.about() {
        page.item(2, "about", LABEL, &visible(&about.replace('\n', " ")));
    }
    page.item(2, "seed", LABEL, &outcome.seed.to_string());
    page.item(2, "costs", LABEL, &in_lines(&scenario.costs().origins()));
    for variants in outcome.variants.chunks(SIDE_BY_SIDE) {
        table(page, variants);
    }
    idle_states(page, &outcome.variants);
    cyclictest(page, &outcome.variants);
    shown(page, outcome);
    sensitivity(page, outcome);
    verdicts(page, outcome);
}

/// A figure's name and its text in a variant; no text where a variant cannot have it.
type Row = (&'static str, fn(&RunFigures) -> Option<String>);

fn table(page: &mut Page, variants: &[VariantOutcome]) {
    page.heading("Simulated");
    let mut line = format!("  {:<NAME$}", "");
    for variant in variants {
        line.push_str(&format!(" {:>COLUMN$}", variant.label));
    }
    page.line(&line);
    for (name, of) in rows() {
        let cells: Vec<Option<String>> = variants.iter().map(|variant| of(&variant.figures)).collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let mut line = format!("  {name:<NAME$}");
        for cell in cells {
            line.push_str(&format!(" {:>COLUMN$}", cell.unwrap_or_else(|| "-".to_owned())));
        }
        page.line(&line);
    }
}

fn rows() -> [Row; 50] {
    [
        ("timers run", |of| Some(of.expiries.to_string())),
        ("armed, cancelled", |of| Some(format!("{}, {}", of.arms, of.cancels))),
        ("foreign on isolated", |of| Some(of.foreign.to_string())),
        ("pullers", |of| Some(list(&of.pullers.to_string()))),
        ("run remotely", |of| Some(of.remote.to_string())),
        ("wake-ups per second", |of| per_second(of, of.wakeups)),
        ("wake-ups by CPU, most", |of| of.wakeups_by_cpu.values().max().map(u64::to_string)),
        ("ping-pongs per second", |of| per_second(of, of.ping_pongs)),
        ("kicks", |of| Some(of.kicks.to_string())),
        ("lateness p50", |of| of.lateness_ns.as_ref().map(|found| nanos(found.p50))),
        ("lateness p99", |of| of.lateness_ns.as_ref().map(|found| nanos(found.p99))),
        ("lateness p99.9", |of| of.lateness_ns.as_ref().map(|found| nanos(found.p999))),
        ("lateness max", |of| of.lateness_ns.as_ref().map(|found| nanos(found.max))),
        ("task delay p99", |of| of.task_delay_ns.as_ref().map(|found| nanos(found.p99))),
        ("gap of a loop, p99", |of| gaps(of, |found| found.p99)),
        ("gap of a loop, max", |of| gaps(of, |found| found.max)),
        ("threads: latency p50", |of| latency(of, |found| found.p50)),
        ("threads: latency p99", |of| latency(of, |found| found.p99)),
        ("threads: latency p99.9", |of| latency(of, |found| found.p999)),
        ("threads: latency max", |of| latency(of, |found| found.max)),
        ("threads: cycles, skipped", |of| {
            Some(format!("{}, {}", figure(of, "rt_cycles")?, figure(of, "rt_skipped")?))
        }),
        ("placed, pushed, pulled", |of| {
            let found = of.realtime.as_ref()?;
            Some(format!("{}, {}, {}", found.placed, found.pushed, found.pulled))
        }),
        ("softirqs raised", |of| of.softirqs.as_ref().map(|found| found.raised.to_string())),
        ("run by ksoftirqd", |of| of.softirqs.as_ref().map(|found| found.ran_ksoftirqd.to_string())),
        ("ksoftirqd woken", |of| of.softirqs.as_ref().map(|found| found.ksoftirqd_wakeups.to_string())),
        ("held back", |of| of.softirqs.as_ref().map(|found| found.deferred.to_string())),
        ("held back, longest", |of| of.softirqs.as_ref().map(|found| nanos(found.deferral_ns_max))),
        ("NET_RX delay p50", |of| delay(of, |found| found.p50)),
        ("NET_RX delay p99", |of| delay(of, |found| found.p99)),
        ("NET_RX delay max", |of| delay(of, |found| found.max)),
        ("TIMER raised, isolated", |of| figure(of, "raises")),
        ("found nothing due", |of| figure(of, "idle_raises")),
        ("calls by who armed", |of| figure(of, "calls")),
        ("later than they may", |of| figure(of, "late")),
        ("packets per second", |of| of.number("packets_per_s").map(|rate| format!("{rate:.0}"))),
        ("taken out elsewhere", |of| percent(of, "elsewhere_share")),
        ("watchdogs, elsewhere", |of| {
            Some(format!("{}, {}", figure(of, "watchdogs")?, figure(of, "watchdogs_elsewhere")?))
        }),
        ("busy with queues' locks", |of| percent(of, "lock_share")),
        ("packets late p99", |of| of.number("packet_late_p99").map(|ns| nanos(ns as u64))),
        ("requests per second", |of| of.throughput.map(|rate| format!("{rate:.1}"))),
        ("arm + cancel", |of| of.pair_ns.map(|ns| format!("{ns:.1} ns"))),
        ("looks for a busy CPU", |of| (of.looks > 0).then(|| of.looks.to_string())),
        ("waits for locks", |of| Some(of.lock_waits.to_string())),
        ("waited for locks", |of| Some(nanos(of.lock_wait_ns))),
        ("busy", |of| Some(format!("{:.2} %", of.busy_share * 100.0))),
        ("in the deepest state", |of| percent(of, "deep_idle_share")),
        ("too short residencies", |of| figure(of, "idle_short")),
        ("panics", |of| (of.panics > 0).then(|| of.panics.to_string())),
        ("events", |of| Some(of.events.to_string())),
        ("hash", |of| Some(format!("{:016x}", of.hash))),
    ]
}

fn per_second(of: &RunFigures, count: u64) -> Option<String> {
    Some(format!("{:.1}", count as f64 / Nanos(of.duration_ns).as_secs_f64()))
}

fn percent(of: &RunFigures, name: &str) -> Option<String> {
    of.number(name).map(|share| format!("{:.2} %", share * 100.0))
}

fn nanos(span: u64) -> String {
    Nanos(span).to_string()
}

fn gaps(of: &RunFigures, which: fn(&SpanQuantiles) -> u64) -> Option<String> {
    of.gaps_ns.values().map(which).max().map(nanos)
}

/// A count by its name.
fn figure(of: &RunFigures, name: &str) -> Option<String> {
    of.number(name).map(|count| count.to_string())
}

fn latency(of: &RunFigures, which: fn(&SpanQuantiles) -> u64) -> Option<String> {
    of.realtime.as_ref()?.latency_ns.as_ref().map(which).map(nanos)
}

fn delay(of: &RunFigures, which: fn(&SpanQuantiles) -> u64) -> Option<String> {
    of.softirqs.as_ref()?.delay_ns.get("NET_RX").map(which).map(nanos)
}

/// A row per variant and idle state, with what the CPUs that were in it differ in.
fn idle_states(page: &mut Page, variants: &[VariantOutcome]) {
    let states =
        |variant: &VariantOutcome| variant.figures.idle.iter().flatten().cloned().collect::<Vec<_>>();
    if variants.iter().all(|variant| states(variant).is_empty()) {
        return;
    }
    page.heading("Idle states (simulated; --json has them CPU by CPU)");
    let head = ["entered", "too short", "longest", "all CPUs", "least", "most"];
    let head = head.map(|cell| format!("{cell:>9}")).join(" ");
    page.line(&format!("  {:<COLUMN$} {:<16} {head}", "", "state"));
    for variant in variants {
        for state in states(variant) {
            let sum = |of: fn(&CpuResidency) -> u64| state.by_cpu.values().map(of).sum::<u64>().to_string();
            let percent = |share: f64| format!("{:.2} %", share * 100.0);
            let shares = || state.by_cpu.values().map(|found| found.share);
            let cells = [
                sum(|found| found.entries),
                sum(|found| found.short),
                nanos(state.by_cpu.values().map(|found| found.max_ns).max().unwrap_or(0)),
                percent(state.share),
                percent(shares().reduce(f64::min).unwrap_or(0.0)),
                percent(shares().reduce(f64::max).unwrap_or(0.0)),
            ];
            let cells = cells.map(|cell| format!("{cell:>9}")).join(" ");
            page.line(&format!("  {:<COLUMN$} {:<16} {cells}", variant.label, state.name));
        }
    }
}

/// Real-time threads in the lines that cyclictest prints, in us.
fn cyclictest(page: &mut Page, variants: &[VariantOutcome]) {
    for variant in variants {
        let Some(realtime) = variant.figures.realtime.as_ref() else { continue };
        page.heading(&format!(
            "{}: real-time threads as cyclictest prints them, in us (simulated)",
            variant.label
        ));
        for (number, thread) in realtime.threads.iter().enumerate() {
            let us = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| (ns / 1_000).to_string());
            page.line(&format!(
                "T:{number:2} ({:5}) P:{:2} I:{} C:{:7} Min:{:>7} Act:{:>5} Avg:{:>5} Max:{:>8}",
                thread.task,
                thread.priority,
                thread.interval_ns / 1_000,
                thread.cycles,
                us(thread.min_ns),
                us(thread.act_ns),
                us(thread.avg_ns),
                us(thread.max_ns),
            ));
        }
    }
}

/// A CPU list that fits into a column.
fn list(text: &str) -> String {
    match text {
        "" => "none".to_owned(),
        text if text.len() > COLUMN => format!("{}..", &text[..COLUMN - 2]),
        text => text.to_owned(),
    }
}

/// The scenario's own sums.
fn shown(page: &mut Page, outcome: &SimOutcome) {
    if outcome.shown.is_empty() {
        return;
    }
    page.heading("Shown by the scenario (simulated)");
    for shown in &outcome.shown {
        let value = shown.value.map_or("-".to_owned(), |value| format!("{value:.4}"));
        page.line(&format!("  {:<COLUMN$} {value:>14}   {}", shown.variant, visible(&shown.what)));
    }
}

fn sensitivity(page: &mut Page, outcome: &SimOutcome) {
    if outcome.variants.iter().all(|variant| variant.sensitivity.is_empty()) {
        return;
    }
    page.heading("How much depends on the costs (all halved, as they are, all doubled)");
    for variant in &outcome.variants {
        let named = |name: &str| is_named(outcome, &variant.label, name);
        let is_any_named = variant.sensitivity.keys().any(|name| named(name));
        for (name, range) in variant.sensitivity.iter().filter(|(name, _)| !is_any_named || named(name)) {
            let cell = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
            let now = variant.figures.number(name);
            let text = format!("{:>14} {:>14} {:>14}", cell(range.halved), cell(now), cell(range.doubled));
            page.line(&format!("  {:<COLUMN$} {name:<18} {text}", variant.label));
        }
    }
}

/// Whether the scenario itself shows or expects something of this figure: of those that change with the costs
/// a reader wants these. JSON has all.
fn is_named(outcome: &SimOutcome, label: &str, name: &str) -> bool {
    let shown = outcome.shown.iter().map(|shown| (&shown.variant, &shown.what));
    let expected = outcome.verdicts.iter().map(|verdict| (&verdict.variant, &verdict.expected));
    let is_word =
        |text: &str| text.split_whitespace().any(|word| word.split(['@', '.']).next() == Some(name));
    shown.chain(expected).any(|(variant, text)| variant == label && is_word(text))
}

fn verdicts(page: &mut Page, outcome: &SimOutcome) {
    if outcome.verdicts.is_empty() {
        return;
    }
    page.heading("Expected");
    for verdict in outcome.verdicts.iter().filter(|verdict| !verdict.holds) {
        let label = page.styled(Style::Bad, "BROKEN");
        let text = format!("{}: {} ({})", verdict.variant, visible(&verdict.expected), verdict.found);
        page.item(2, &label, LABEL, &text);
    }
    let count = outcome.verdicts.len();
    let broken = outcome.verdicts.iter().filter(|verdict| !verdict.holds).count();
    page.blank();
    let text = match broken {
        0 => page.styled(Style::Good, &format!("all {count} expectations hold")),
        _ => page.styled(
            Style::Bad,
            &format!("{broken} of {count} expectations do not hold (seed {})", outcome.seed),
        ),
    };
    page.line(&text);
}

#[cfg(test)]
mod tests;
