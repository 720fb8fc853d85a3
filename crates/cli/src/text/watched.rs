//! What `quietcore watch` shows at each interval.

use super::Page;
use super::cause::started;
use crate::terminal::Style;
use crate::watch::{IntervalReport, IntervalRow};
use quietcore_core::Nanos;
use quietcore_trace::visible;
use std::cmp::Reverse;

/// What took the CPUs away in the interval, the longest in all first, at most `rows` of them.
pub(crate) fn watched(page: &mut Page, report: &IntervalReport, rows: usize) {
    let (watched, interval) = (Nanos(report.watched_ns), Nanos(report.interval_ns));
    page.styled_line(Style::Heading, &format!("quietcore watch: CPUs {}, for {watched}", report.cpus));
    losses(page, report);
    let shown = |row: &&IntervalRow| !row.own && row.count > 0;
    let mut all: Vec<&IntervalRow> = report.rows.iter().filter(shown).collect();
    if all.is_empty() {
        page.line(&format!("  nothing took these CPUs away in the last {interval}"));
        return;
    }
    all.sort_by_key(|row| (Reverse((row.own_ns, row.count)), row.cpu));
    page.line(&format!(
        "  {:>4} {:>9} {:>9} {:>9} {:>9}  what, in {interval}",
        "CPU", "times", "in all", "p99 to", "longest"
    ));
    for row in all.iter().take(rows) {
        let p99 = row.p99_ns.map_or("-".to_owned(), |nanos| Nanos(nanos).to_string());
        let [total, longest] = [row.own_ns, row.longest_ns].map(|nanos| Nanos(nanos).to_string());
        let counts = format!("{:>4} {:>9} {total:>9} {p99:>9} {longest:>9} ", row.cpu, row.count);
        page.item(2, &counts, counts.len(), &what(row));
    }
    if let Some(more) = all.len().checked_sub(rows).filter(|more| *more > 0) {
        page.line(&format!("  ... and {more} more (--top COUNT shows them, --json has all)"));
    }
    own(page, report);
}

fn what(row: &IntervalRow) -> String {
    let mut text = format!("{} {}", row.source, visible(&row.name));
    if let Some(cause) = &row.cause {
        let why =
            started(cause.how, u64::from(cause.cpu), (cause.source, &cause.name), cause.function.as_deref());
        text.push_str(&format!("; {why}"));
        if let Some(task) = cause.task.as_ref().filter(|task| **task != cause.name) {
            text.push_str(&format!(", for {}", visible(task)));
        }
        // What is in no group of its own is the host's.
        if let Some(owner) = cause.owner.as_ref().filter(|owner| *owner != "/") {
            text.push_str(&format!(" of {}", visible(owner)));
        }
    }
    text
}

fn losses(page: &mut Page, report: &IntervalReport) {
    let losses = report.losses;
    for (count, what) in [
        (losses.skipped, "events were not counted: the kernel was in the middle of the same one"),
        (losses.overflows, "durations are not known, as too much was open at once"),
        (losses.unnamed, "were counted by their kind alone, as there was no room for more (--rows COUNT)"),
    ] {
        if count > 0 {
            let label = page.styled(Style::Bad, "INCOMPLETE");
            page.item(2, &label, 10, &format!("{count} {what}"));
        }
    }
    if !report.left_out.is_empty() {
        let names: Vec<&str> = report.left_out.iter().map(|of| of.tracepoint.as_str()).collect();
        page.item(2, "without", 10, &names.join(", "));
    }
}

/// What the CPUs are there for.
fn own(page: &mut Page, report: &IntervalReport) {
    let mut names: Vec<String> = vec![];
    for row in report.rows.iter().filter(|row| row.own) {
        let name = format!("{} on CPU {}", visible(&row.name), row.cpu);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if !names.is_empty() {
        let text = format!("{}: what the CPU is there for, the task that had it longest", names.join(", "));
        page.item(2, "apart", 10, &text);
    }
}
