//! What `quietcore watch` shows at each interval.

use super::Page;
use super::cause::started;
use crate::terminal::Style;
use crate::watch::{IntervalReport, IntervalRow};
use quietcore_core::Nanos;
use quietcore_trace::visible;
use std::cmp::Reverse;
use std::fmt::Write;

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
    let Some(cause) = &row.cause else { return text };
    let why = started(cause.how, u64::from(cause.cpu), (cause.source, &cause.name), None);
    let _ = write!(text, "; {why}");
    if let Some(task) = cause.task.as_ref().filter(|_| cause.source != "task") {
        let _ = write!(text, ", on behalf of {}", visible(task));
    }
    // What is in no group of its own is the host's.
    if let Some(owner) = cause.owner.as_ref().filter(|owner| *owner != "/") {
        let _ = write!(text, " of {}", visible(owner));
    }
    if let Some(function) = &cause.function {
        let _ = write!(text, ", for {}", visible(function));
    }
    text
}

fn losses(page: &mut Page, report: &IntervalReport) {
    let losses = report.losses;
    for (count, what) in [
        (losses.skipped, "events that were not counted, as the kernel was in the middle of the same one"),
        (losses.overflows, "durations that are not known, as too much was open at once"),
        (losses.unnamed, "counted by their kind alone, as there was no room for more (--rows COUNT)"),
    ] {
        if count > 0 {
            let label = page.styled(Style::Bad, "INCOMPLETE");
            page.item(2, &label, 10, &format!("{what}: {count}"));
        }
    }
    if !report.function_names {
        page.item(2, "without", 10, "names of functions: the kernel shows no addresses");
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

#[cfg(test)]
mod tests {
    use super::watched;
    use crate::text::Page;
    use crate::watch::{IntervalCause, IntervalLeftOut, IntervalLosses, IntervalReport, IntervalRow};

    fn row(source: &'static str, name: &str, count: u64, own_ns: u64) -> IntervalRow {
        IntervalRow {
            cpu: 3,
            source,
            name: name.to_owned(),
            own: false,
            count,
            own_ns,
            p50_ns: Some(1_024),
            p99_ns: Some(2_048),
            longest_ns: 6_100,
            count_total: 10 * count,
            own_total_ns: 10 * own_ns,
            cause: None,
        }
    }

    fn sent(task: &str, owner: &str) -> Option<IntervalCause> {
        Some(IntervalCause {
            how: "sent",
            cpu: 0,
            source: "task",
            name: task.to_owned(),
            function: Some("flush_tlb_func".to_owned()),
            task: Some(task.to_owned()),
            cgroup: Some(format!("/system.slice/{owner}")),
            owner: Some(owner.to_owned()),
            stack: vec!["a".to_owned()],
        })
    }

    fn report(rows: Vec<IntervalRow>) -> IntervalReport {
        IntervalReport {
            schema: 1,
            at_ns: 1_000_000_000,
            interval_ns: 10_000_000_000,
            watched_ns: 70_000_000_000,
            cpus: "2-3".to_owned(),
            rows,
            losses: IntervalLosses { skipped: 0, overflows: 0, unnamed: 0 },
            left_out: vec![],
            function_names: true,
        }
    }

    fn text(report: &IntervalReport, rows: usize) -> String {
        let mut page = Page::of_width(80);
        watched(&mut page, report, rows);
        page.into_text()
    }

    /// Goal: the longest in all comes first, with its cause and whose it is; what did not happen in the
    /// interval and what the CPU is there for are no rows; what may be wrong is said. Method: a snapshot of
    /// one that has all of it, with a name that would steer a terminal.
    #[test]
    fn everything_has_its_place() {
        let softirq = IntervalCause {
            how: "raised",
            source: "processor",
            name: "local_timer".to_owned(),
            ..sent("rsync", "backup.service").expect("it is one")
        };
        let rows = vec![
            row("hrtimer", "tick_nohz_handler", 3, 900),
            IntervalRow {
                cause: sent("rsync", "backup.service"),
                ..row("processor", "call_function_single", 622, 1_200_000)
            },
            IntervalRow { cause: Some(softirq), ..row("softirq", "RCU", 7, 40_000) },
            row("work", "vmstat_update", 0, 0),
            IntervalRow { own: true, ..row("task", "polling", 9, 9_000_000_000) },
            IntervalRow { p99_ns: None, cause: sent("a\u{1b}[2Jb", "/"), ..row("task", "kworker/3:1", 1, 0) },
        ];
        let mut report = report(rows);
        report.losses = IntervalLosses { skipped: 1, overflows: 2, unnamed: 3 };
        report.left_out = vec![IntervalLeftOut {
            tracepoint: "ipi_send_cpu".to_owned(),
            why: "it is not there".to_owned(),
        }];
        report.function_names = false;
        insta::assert_snapshot!("watched", text(&report, 3));
    }

    /// Goal: where nothing happened, that is said. Method: no row, and one of an earlier interval.
    #[test]
    fn a_quiet_interval_says_so() {
        for rows in [vec![], vec![row("work", "vmstat_update", 0, 0)]] {
            let text = text(&report(rows), 20);
            assert_eq!(
                text,
                "quietcore watch: CPUs 2-3, for 70 s\n  nothing took these CPUs away in the last 10 s\n"
            );
        }
    }
}
