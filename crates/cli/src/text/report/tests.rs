//! The text of a hand-made explanation.

use super::{CPU_ROWS_MAX, explanation};
use crate::live::Own;
use crate::text::Page;
use crate::text::explanation_fixture;
use quietcore_answers::{ISOLATION, explain_source};
use quietcore_explain::{Explanation, Interruption, IsolatedCpu};

fn text(report: &Explanation, own: Option<&Own>) -> String {
    let mut page = Page::plain();
    explanation(&mut page, "given.txt", report, own);
    page.into_text()
}

/// The row of an isolated CPU that ran five functions.
fn row(cpu: u16) -> IsolatedCpu {
    let bundled = &ISOLATION[1];
    let source = quietcore_trace::open_bytes(bundled.name, bundled.bytes).expect("a recording");
    let report = explain_source(bundled.name.as_ref(), source).expect("a recording");
    let mut row = report.isolated_cpus[0].clone();
    let functions = [("a", 2), ("b", 2), ("c", 9), ("d", 1), ("e", 4)];
    row.by_function = functions.map(|(name, count)| (name.to_owned(), count)).into();
    (row.cpu, row.group, row.pulled, row.placed) = (cpu, cpu / 8, 11, 7);
    row
}

/// So many rows of what took a CPU away: the later ones for longer, and the first one without an end.
fn interruptions(cpu: u16, count: u64) -> Vec<Interruption> {
    let event = |at, step| format!("a-1 [001] {at}: softirq_{step}: vec=3 [action=NET_RX]\n");
    let text = [event("5.000010", "entry"), event("5.000017", "exit")].concat();
    let report = explain_source("given".as_ref(), text.as_bytes()).expect("a recording");
    let row = |number: u64| {
        let mut row = report.interruptions[0].clone();
        (row.cpu, row.name, row.count) = (cpu, format!("vector_{number}"), 100 - number);
        row.total_ns = (number > 0).then_some(number * 71_000);
        (row.p99_ns, row.max_ns) = (row.total_ns.map(|span| span / 3), row.total_ns.map(|span| span / 2));
        row.max_at_ns = row.total_ns.map(|span| 5_000_017_000 + span);
        row
    };
    (0..count).map(row).collect()
}

/// Goal: everything that a report can have stands in its place. Method: a snapshot of one that has all of it.
#[test]
fn everything_has_its_place() {
    let mut report = explanation_fixture::explanation();
    report.kernel = Some("6.12.48".to_owned());
    report.cpus = 24;
    report.isolated_source = "option";
    report.nohz_full = "2-3".to_owned();
    report.malformed.first = vec!["line 7: no time: a".to_owned(), "line 9: no CPU: b".to_owned()];
    report.unknown_events =
        (1..=7_u64).map(|number| (format!("event_{number}"), number * number % 7 + 1)).collect();
    report.warnings = vec!["One warning.".to_owned(), "Another one.".to_owned()];
    report.isolated_cpus = vec![row(1), row(9)];
    report.groups.estimated = true;
    report.interruptions = [interruptions(1, 14), interruptions(9, 2)].concat();
    let own = Own {
        interrupts_sent: 12,
        interrupts_by_cpu: [(1, 7), (10, 5)].into(),
        thread_cpus: "0,8".to_owned(),
    };
    insta::assert_snapshot!("full", text(&report, Some(&own)));
}

/// Goal: what is not known, not there or too long to show is said in words. Method: an empty report, and one
/// with as many isolated CPUs as are shown, and one more.
#[test]
fn what_is_not_there_is_said() {
    let mut report = Explanation::default();
    report.isolated_source = "host";
    let own = Own { interrupts_sent: 0, interrupts_by_cpu: [].into(), thread_cpus: "0".to_owned() };
    insta::assert_snapshot!("empty", text(&report, Some(&own)));
    let shown = row(1);
    report.isolated_cpus = vec![shown.clone(); CPU_ROWS_MAX];
    assert!(!text(&report, None).contains("more CPUs"));
    report.isolated_cpus.push(shown);
    assert!(text(&report, None).contains("\n  ... and 1 more CPUs (--json has all)\n"));
    report.interruptions = interruptions(1, 2);
    assert!(!text(&report, None).contains("took isolated CPUs away"), "none is isolated");
}
