//! The TIMER softirq ran without a timer to run.

use super::text::{by_cpu, severity};
use crate::figures::{Explanation, TookSpans};
use crate::finding::{Finding, Severity};
use quietcore_core::{CpuSet, Nanos};
use quietcore_trace::Question;

/// What they took, if that is known.
fn took(spans: &TookSpans) -> String {
    let TookSpans { total: Some(total), p50: Some(p50), p99: Some(p99), max: Some(max) } = *spans else {
        return String::new();
    };
    let [total, p50, p99, max] = [total, p50, p99, max].map(Nanos);
    format!(" They took {total} in all: p50 {p50}, p99 {p99}, at most {max}.")
}

pub(super) fn rule(report: &Explanation) -> Option<Finding> {
    let empty = report.softirq.timer_empty.filter(|&count| count > 0)?;
    let entries = report.softirq.timer_entries?;
    let isolated: CpuSet = report.isolated.parse().unwrap_or_default();
    let is_isolated =
        |cpu: &u16| quietcore_core::CpuId::new(u64::from(*cpu)).is_ok_and(|cpu| isolated.contains(cpu));
    let empty_by_cpu = report.softirq.by_cpu.as_ref()?;
    let on_isolated: u64 =
        empty_by_cpu.iter().filter(|(cpu, _)| is_isolated(cpu)).map(|(_, count)| count).sum();
    let (severity, change, predicted) = if on_isolated > 0 {
        // Elsewhere one is a moment of a tick that comes anyway.
        let severity = if report.preempt_rt { severity(report, on_isolated) } else { Severity::Note };
        (
            severity,
            "Stop the tick on CPUs that run one task: boot with nohz_full=LIST rcu_nocbs=LIST",
            format!("On isolated CPUs: {on_isolated} -> close to 0 while they run one task each."),
        )
    } else {
        let nothing = "Nothing is wrong while no isolated CPU is among them.";
        (Severity::Note, nothing, "No change is asked for.".to_owned())
    };
    Some(
        Finding::new("timer-softirq-empty", Question::EmptySoftirqs, severity)
            .what(format!(
                "{empty} of {entries} TIMER softirqs ran no timer ({}); {on_isolated} of them on isolated CPUs.{}",
                by_cpu(empty_by_cpu),
                took(&report.softirq.empty_ns)
            ))
            .why(
                "The tick raises TIMER when a base or the migration hierarchy looks due; a remote look that \
                 finds nothing, a cancelled timer, or a deferrable base raises it for nothing. On PREEMPT_RT \
                 each one wakes a thread.",
            )
            .change(change)
            .predicted(predicted)
            .verify("quietcore explain --live 30s --questions empty-softirqs"),
    )
}
