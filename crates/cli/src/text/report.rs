//! An explanation as text: the header, the isolated CPUs one by one, idle states, a row per question.

use super::cause::{main_cause, why};
use super::page::Page;
use super::when::when;
use crate::live::Own;
use crate::terminal::Style;
use crate::wall_clock;
use quietcore_core::Nanos;
use quietcore_explain::{CountByName, Explanation, Interruption, MomentReport};
use quietcore_trace::{Question, visible};

/// Rows of isolated CPUs that are printed; the JSON has all of them.
const CPU_ROWS_MAX: usize = 32;

/// Rows of what took one isolated CPU away, at least and at most: the fewer CPUs, the more.
const INTERRUPTIONS: (usize, usize) = (4, 12);

/// The whole explanation of `name`.
pub(crate) fn explanation(page: &mut Page, name: &str, report: &Explanation, own: Option<&Own>) {
    header(page, name, report);
    if let Some(own) = own {
        page.item(2, "ourselves", 10, &own_disturbance(own));
    }
    isolated_cpus(page, report);
    interruptions(page, report);
    super::osnoise::osnoise(page, report);
    super::idle::idle_states(page, report, about(report));
    moment(page, report);
    page.heading("The five questions");
    question_rows(page, report);
    super::finding::findings(page, &report.findings);
}

fn header(page: &mut Page, name: &str, report: &Explanation) {
    page.styled_line(Style::Heading, &format!("quietcore explain {}", visible(name)));
    let kernel = report.kernel.as_deref().unwrap_or("unknown (--kernel names it)");
    page.item(2, "kernel", 10, &visible(kernel));
    let isolated = match (report.isolated.as_str(), report.isolated_source) {
        ("", source) => format!("none (from the {source}); --isolated LIST names CPUs that must stay quiet"),
        (list, source) => format!("{list} (from the {source})"),
    };
    let nohz_full = if report.nohz_full.is_empty() { "none" } else { &report.nohz_full };
    let cpus = format!("{} possible, isolated {isolated}, nohz_full {nohz_full}", report.cpus);
    page.item(2, "CPUs", 10, &cpus);
    let span = report.duration_ns.map_or("unknown".to_owned(), |nanos| Nanos(nanos).to_string());
    let lost = page.lost(report.lost_events);
    let from = match (report.begin_ns, report.wall_clock_ns) {
        (Some(begin), Some(clock)) => {
            format!(" from {}", wall_clock::date(Nanos(clock.saturating_add(begin))))
        }
        _ => String::new(),
    };
    page.item(2, "recorded", 10, &format!("{span}{from}, {} events, {lost}", report.events));
    for reason in &report.incomplete {
        let label = page.styled(Style::Bad, "INCOMPLETE");
        page.item(2, &label, 10, reason);
    }
    for line in &report.malformed.first {
        page.item(2, "unreadable", 10, &visible(line));
    }
    if !report.unknown_events.is_empty() {
        page.item(
            2,
            "ignored",
            10,
            &format!("events without meaning here: {}", names(&report.unknown_events, 6, "")),
        );
    }
    for warning in &report.warnings {
        let label = page.styled(Style::Warning, "warning");
        page.item(2, &label, 10, warning);
    }
}

/// What the recording itself cost.
pub(crate) fn own_disturbance(own: &Own) -> String {
    let receivers = own.interrupts_by_cpu.iter().map(|(cpu, count)| format!("{count} to CPU {cpu}"));
    let receivers = receivers.collect::<Vec<_>>().join(", ");
    format!(
        "sent {} interrupts to other CPUs ({}), mostly by switching tracepoints on; switching them off \
         costs about as many; ran on CPUs {}",
        own.interrupts_sent,
        if receivers.is_empty() { "none" } else { &receivers },
        own.thread_cpus
    )
}

/// `27 process_timeout, 3 x and 2 more`, with `about` before each count.
fn names(counts: &CountByName, most: usize, about: &str) -> String {
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let shown = sorted.iter().take(most).map(|(name, count)| format!("{about}{count} {}", visible(name)));
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if sorted.len() > most {
        text.push_str(&format!(" and {} more", sorted.len() - most));
    }
    text
}

fn isolated_cpus(page: &mut Page, report: &Explanation) {
    if report.isolated_cpus.is_empty() {
        return;
    }
    page.heading("Timers of other CPUs that ran on isolated CPUs");
    let about = about(report);
    let estimated = if report.groups.estimated { "~group" } else { "group" };
    page.line(&format!("  {:>4} {estimated:>6} {:>7} {:>7}  functions", "CPU", "pulled", "placed"));
    for row in report.isolated_cpus.iter().take(CPU_ROWS_MAX) {
        let [pulled, placed] = [row.pulled, row.placed].map(|count| format!("{about}{count}"));
        let counts = format!("{:>4} {:>6} {pulled:>7} {placed:>7} ", row.cpu, row.group);
        page.item(2, &counts, counts.len(), &names(&row.by_function, 4, about));
    }
    if let Some(more) = report.isolated_cpus.len().checked_sub(CPU_ROWS_MAX).filter(|&more| more > 0) {
        page.line(&format!("  ... and {more} more CPUs (--json has all)"));
    }
    if report.groups.estimated {
        page.line("  ~group: groups of eight are assumed, the input does not show the hierarchy");
    }
}

/// What took each isolated CPU away, the longest in all first.
fn interruptions(page: &mut Page, report: &Explanation) {
    if report.isolated.is_empty() || report.interruptions.is_empty() {
        return;
    }
    // Callbacks and work items without times say no more than the table of foreign timers.
    let is_part = |row: &Interruption| matches!(row.source, "timer" | "hrtimer" | "work");
    let is_shown = |row: &&Interruption| !row.own && (row.total_ns.is_some() || !is_part(row));
    let mut rows: Vec<_> = report.interruptions.iter().filter(is_shown).collect();
    if rows.is_empty() {
        return;
    }
    page.heading("What took isolated CPUs away from their tasks");
    page.line(&format!("  {:>4} {:>9} {:>9} {:>9} {:>9}  what", "CPU", "times", "in all", "p99", "longest"));
    rows.sort_by_key(|row| (row.cpu, std::cmp::Reverse((row.total_ns, row.count))));
    let of_a_cpu: Vec<_> = rows.chunk_by(|one, two| one.cpu == two.cpu).collect();
    let most = (CPU_ROWS_MAX / of_a_cpu.len()).clamp(INTERRUPTIONS.0, INTERRUPTIONS.1);
    let shown: Vec<_> = of_a_cpu.into_iter().flat_map(|rows| rows.iter().take(most)).collect();
    let about = about(report);
    for row in shown.iter().take(CPU_ROWS_MAX) {
        let span =
            |nanos: Option<u64>| nanos.map_or("-".to_owned(), |nanos| format!("{about}{}", Nanos(nanos)));
        let [total, p99, max] = [row.total_ns, row.p99_ns, row.max_ns].map(span);
        let times = format!("{about}{}", row.count);
        let counts = format!("{:>4} {times:>9} {total:>9} {p99:>9} {max:>9} ", row.cpu);
        let until = |at| format!("; longest until {}", when(report, at));
        let until = row.max_at_ns.map_or("; no end was recorded".to_owned(), until);
        let why = main_cause(row).map_or(String::new(), |cause| format!("; {cause}"));
        let what = format!("{} {}{why}{until}", row.source, visible(&row.name));
        page.item(2, &counts, counts.len(), &what);
    }
    let left_out = rows.len() - shown.len().min(CPU_ROWS_MAX);
    if left_out > 0 {
        page.line(&format!("  ... and {left_out} more (--json has all)"));
    }
    let own = report.interruptions.iter().filter(|row| row.own);
    let owners: Vec<String> = own.map(|row| format!("{} on CPU {}", visible(&row.name), row.cpu)).collect();
    if !owners.is_empty() {
        let owners =
            format!("{}: what the CPU is there for, the task that had it longest", owners.join(", "));
        page.item(2, "apart", 10, &owners);
    }
}

/// What was open around the moment that was asked for, each with its begin from there.
fn moment(page: &mut Page, report: &Explanation) {
    let Some(MomentReport { at_ns, around_ns, spans, more, .. }) = &report.at else { return };
    let (at, around) = (when(report, *at_ns), Nanos(*around_ns));
    page.heading(&format!("What held CPUs at {at}, and {around} before and after"));
    if spans.is_empty() {
        page.line("  nothing that is recorded");
        return;
    }
    page.line(&format!("  {:>4} {:>10} {:>9} {:>9}  what", "CPU", "from", "until", "alone"));
    let from = |nanos: u64| {
        let sign = if nanos < *at_ns { "-" } else { "+" };
        format!("{sign}{}", Nanos(nanos.abs_diff(*at_ns)))
    };
    for span in spans.iter().take(CPU_ROWS_MAX) {
        let until = span.end_ns.map_or("?".to_owned(), from);
        let own = span.own_ns.map_or("-".to_owned(), |nanos| Nanos(nanos).to_string());
        let label = format!("{:>4} {:>10} {until:>9} {own:>9} ", span.cpu, from(span.begin_ns));
        let why = if span.steps.is_empty() { String::new() } else { format!("; {}", why(&span.steps)) };
        page.item(2, &label, label.len(), &format!("{} {}{why}", span.source, visible(&span.name)));
    }
    let left_out = spans.len().saturating_sub(CPU_ROWS_MAX) as u64 + more;
    if left_out > 0 {
        page.line(&format!("  ... and {left_out} more (--json has 256)"));
    }
}

/// One row per question.
pub(crate) fn question_rows(page: &mut Page, report: &Explanation) {
    for (question, wish, answer) in questions(report) {
        let answer = answer.as_deref().unwrap_or("not recorded");
        page.item(2, &format!("{question:<14} {wish:<36}"), 51, answer);
    }
}

/// Each question with what should be, and the figures that answer it, if they were recorded.
pub(crate) fn questions(report: &Explanation) -> [(Question, &'static str, Option<String>); 5] {
    [
        (Question::PacketTimers, "packet timers stay on their CPU", packets(report)),
        (Question::Isolation, "isolated CPUs run no foreign timers", isolation(report)),
        (Question::Placement, "timers run where it is cheap", pull(report)),
        (Question::RealTime, "real-time tasks wait for no softirq", real_time(report)),
        (Question::EmptySoftirqs, "no TIMER softirq for nothing", softirqs(report)),
    ]
}

/// A figure, or the words for a missing one.
fn figure(report: &Explanation, value: Option<u64>) -> String {
    value.map_or("not recorded".to_owned(), |value| format!("{}{value}", about(report)))
}

/// What stands before every figure of an incomplete input.
pub(crate) fn about(report: &Explanation) -> &'static str {
    if report.incomplete.is_empty() { "" } else { "~" }
}

fn packets(report: &Explanation) -> Option<String> {
    let hrtimers = &report.hrtimers;
    let watchdog = &hrtimers.qdisc_watchdog;
    hrtimers.expired?;
    Some(format!(
        "{} of {} qdisc watchdogs off their arming CPU; all hrtimers: {} of {}",
        figure(report, watchdog.off_arming_cpu),
        figure(report, watchdog.expired),
        figure(report, hrtimers.off_arming_cpu),
        figure(report, hrtimers.expired)
    ))
}

fn isolation(report: &Explanation) -> Option<String> {
    let foreign = &report.foreign;
    foreign.total?;
    if report.isolated.is_empty() {
        return Some("no isolated CPUs".to_owned());
    }
    let mut text = format!(
        "{} foreign expiries: {} pulled, {} placed",
        figure(report, foreign.total),
        figure(report, foreign.pulled),
        figure(report, foreign.placed)
    );
    if let Some((total, max)) = foreign.took_ns.total.zip(foreign.took_ns.max) {
        let (about, total, max) = (about(report), Nanos(total), Nanos(max));
        text.push_str(&format!(", whose callbacks took {about}{total}, at most {about}{max} each"));
    }
    if let Some(between) = report.between_isolated.total.filter(|&count| count > 0) {
        text.push_str(&format!("; {} between isolated CPUs", figure(report, Some(between))));
    }
    if report.hrtimers.foreign.is_some() {
        text.push_str(&format!("; {} hrtimers", figure(report, report.hrtimers.foreign)));
    }
    Some(text)
}

fn pull(report: &Explanation) -> Option<String> {
    report.remote.total?;
    let about = about(report);
    let rate = report.ping_pong.per_s.map_or("rate unknown".to_owned(), |rate| format!("{about}{rate:.1}/s"));
    Some(format!(
        "{} of {} expiries remote, {} ping-pongs ({rate})",
        figure(report, report.remote.total),
        figure(report, report.timers.expired),
        figure(report, report.ping_pong.count)
    ))
}

fn real_time(report: &Explanation) -> Option<String> {
    let wakeups = &report.rt_wakeups;
    wakeups.count?;
    let about = about(report);
    let worst = wakeups.delay_ns.max.map_or(String::new(), |max| format!(", at most {about}{}", Nanos(max)));
    Some(format!(
        "{} of {} wake-ups behind a NET or BLOCK softirq{worst}",
        figure(report, wakeups.behind_softirq),
        figure(report, wakeups.count)
    ))
}

fn softirqs(report: &Explanation) -> Option<String> {
    let softirq = &report.softirq;
    softirq.timer_entries?;
    let about = about(report);
    let longest = softirq.empty_ns.max;
    let longest = longest.map_or(String::new(), |max| format!(", at most {about}{} each", Nanos(max)));
    Some(format!(
        "{} of {} TIMER softirqs ran no timer{longest}",
        figure(report, softirq.timer_empty),
        figure(report, softirq.timer_entries)
    ))
}

#[cfg(test)]
mod tests;
