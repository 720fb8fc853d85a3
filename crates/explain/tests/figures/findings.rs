//! Every text of the findings of a recording, and how they change with the kernel and its settings.

use crate::doctor::text;
use crate::trace::{self, explain, options};
use quietcore_explain::{ExplainOptions, Finding};
use quietcore_trace::KernelRelease;

/// What is changed: kernel, `timer_migration`, isolated CPUs, those with nohz_full.
type Change = (&'static str, Option<bool>, &'static str, &'static str);

/// Each without what connects the CPUs to their groups, but the first two.
const CHANGES: &[Change] = &[
    ("6.19.1", Some(true), "2-3,9", "3"),
    ("6.8.0", None, "2-3,9", "3"),
    ("6.8.0", Some(false), "2-3,9", "3"),
    ("6.9.0", Some(true), "2-3,8-11", ""),
    ("6.9.0", None, "2-3,8-11", "2-11"),
    ("vendor", Some(false), "7", "7"),
];

/// Goal: what is advised fits the kernel, its settings and the CPUs. Method: the trace of `trace.rs` with
/// each of [`CHANGES`]; of the findings only those that are not as before.
#[test]
fn every_finding_is_as_reviewed() {
    let all = trace::text();
    let unconnected: String = all.lines().skip(5).map(|line| format!("{line}\n")).collect();
    let mut told: Vec<Finding> = trace::report().findings;
    let mut found: String = told.iter().map(text).collect();
    for (number, (kernel, timer_migration, isolated, nohz_full)) in CHANGES.iter().enumerate() {
        let options = ExplainOptions {
            isolated: isolated.parse().expect("a list"),
            nohz_full: nohz_full.parse().expect("a list"),
            kernel: KernelRelease::parse(kernel),
            timer_migration: *timer_migration,
            ..options()
        };
        let findings = explain(if number < 2 { &all } else { &unconnected }, options).findings;
        found += &format!("\n== {kernel}, {timer_migration:?}, isolated {isolated}, nohz_full {nohz_full}\n");
        let ids: Vec<&str> = findings.iter().map(|finding| finding.id).collect();
        found += &format!("{}\n", ids.join(", "));
        found.extend(findings.iter().filter(|finding| !told.contains(finding)).map(text));
        told.extend(findings);
    }
    insta::assert_snapshot!("recorded", found);
}

/// The names of a finding, and its figures.
fn whats(text: &str, switched_on: &[&str]) -> Vec<String> {
    let options = ExplainOptions {
        isolated: "1-2".parse().expect("a list"),
        switched_on: switched_on.iter().map(|&event| event.to_owned()).collect(),
        ..options()
    };
    explain(text, options).findings.into_iter().map(|finding| finding.what).collect()
}

/// Goal: one event is a finding, and none is not one. Method: a trace with one of each; one without events,
/// though all were switched on.
#[test]
fn one_event_is_a_finding_and_none_is_not() {
    let expected = [
        "1 timer armed on housekeeping CPUs was pulled by isolated CPUs (1 on CPU 1; 1 \
         delayed_work_timer_fn).",
        "1 timer was put into isolated CPUs' bases by housekeeping CPUs (1 neigh_timer_handler).",
        "1 of the foreign timers was one of delayed work (1 on CPU 1): a kworker may run each item there \
         next.",
        "kernel.timer_migration is 0, and 1 timer was pulled all the same.",
        "1 timer armed on one isolated CPU ran on another (1 on CPU 2; 1 commit_timeout).",
        "2 expiries (67 %) ran on another CPU than the timer's base (1 on CPU 1, 1 on CPU 2); 0 of these \
         timers were armed on their old base again (rate unknown: ping-pong).",
        "1 of 1 packet-scheduler watchdogs expired off the CPU that armed them (all 1: 1 on CPU 1).",
        "1 hrtimer started on housekeeping CPUs expired on isolated CPUs.",
        "1 of 1 real-time wake-ups went to a CPU inside a NET or BLOCK softirq; they waited p50 unknown, p99 \
         unknown, at most unknown.",
        "1 of 1 TIMER softirqs ran no timer (1 on CPU 1); 1 of them on isolated CPUs. They took 0 ns in all: p50 0 \
         ns, p99 0 ns, at most 0 ns.",
    ];
    assert_eq!(whats(&trace::ones(), &[]), expected);
    let events = "timer_start timer_expire_entry softirq_entry softirq_exit hrtimer_start hrtimer_expire_entry \
                  sched_waking sched_switch";
    assert_eq!(
        whats("a-1 [000] 1.0: tracing_mark_write: x\n", &events.split(' ').collect::<Vec<_>>()),
        [""; 0]
    );
}
