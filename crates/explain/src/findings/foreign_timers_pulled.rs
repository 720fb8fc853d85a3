//! Isolated CPUs ran timers out of the bases of housekeeping CPUs.

use super::text::{by_cpu, by_name, excluded_from_6_19, model, severity, verify_live, with_examples};
use crate::figures::{CountByNumber, Explanation};
use crate::finding::{Finding, Severity};
use quietcore_core::{CpuSet, Nanos};
use quietcore_trace::{Question, TimerModel, counted};

pub(super) fn rule(report: &Explanation) -> Option<Finding> {
    let pulled = report.foreign.pulled.filter(|&count| count > 0)?;
    let (why, change, predicted) = match model(report) {
        Some(TimerModel::PullExcludesIsolated) => (
            "From 6.19 on, domain-isolated CPUs (isolcpus=domain, isolated cpuset partitions) are outside \
             the migration hierarchy unless they are nohz_full; a CPU that only nohz_full or an affinity \
             keeps quiet is inside, and pulls while it is busy with the tick on.",
            "Isolate these CPUs by domain: boot with isolcpus=domain,LIST, or make their cpuset an isolated \
             partition. On nohz_full CPUs keep exactly one runnable task, so that the tick stays off."
                .to_owned(),
            format!("pulled: {pulled} -> 0 on domain-isolated CPUs."),
        ),
        Some(TimerModel::Push) => (
            "Stock kernels up to 6.8 do not pull timers; this one ran them on another CPU than their base \
             (timers of a CPU that went offline, or a vendor back-port of the pull model).",
            "If CPUs went offline meanwhile, nothing. Otherwise see the vendor's kernel notes for the timer \
             migration hierarchy."
                .to_owned(),
            "No change is asked for.".to_owned(),
        ),
        _ => (
            "Stock kernels 6.9 to 6.18 let busy CPUs expire the timers of idle ones (timer migration \
             hierarchy). Isolated CPUs take part: one that stays busy becomes its group's migrator, the \
             lowest first, and keeps that role. 6.19 excludes domain-isolated CPUs.",
            keep_awake(report),
            format!(
                "pulled: {pulled} -> 0 (measured on 6.12 with housekeeping CPUs awake: 74 -> 0, and in 9 of \
                 9 machines).",
            ),
        ),
    };
    let (when, is_over) = since_isolated(report);
    let (change, predicted) = if is_over {
        (
            "Nothing: the isolation that is in force since then prevents it. To count without what was before, record \
             after it began."
                .to_owned(),
            "No change is asked for.".to_owned(),
        )
    } else {
        (change, predicted)
    };
    let severity = if is_over { Severity::Note } else { severity(report, pulled) };
    let finding = Finding::new("foreign-timers-pulled", Question::Isolation, severity)
        .what(format!(
            "{} pulled by isolated CPUs ({}; {}){when}.",
            counted(pulled, "timer armed on housekeeping CPUs was", "timers armed on housekeeping CPUs were"),
            by_cpu(&pullers(report)),
            by_name(&report.foreign.pulled_by_function)
        ))
        .why(why)
        .change(change)
        .predicted(predicted)
        .verify(verify_live(report));
    Some(with_examples(finding, &report.foreign, |example| example.kind == "pulled"))
}

/// How many foreign timers ran since the isolated CPUs were taken out of timer migration, and whether that
/// was the end of them.
fn since_isolated(report: &Explanation) -> (String, bool) {
    let Some((at, since)) = report.isolated_at_ns.zip(report.foreign.since_isolated) else {
        return (String::new(), false);
    };
    let at = Nanos(at).as_secs_f64();
    match since {
        0 => (format!(", all before the kernel took these CPUs out of timer migration at {at:.6} s"), true),
        _ => (
            format!(
                "; {since} of all foreign timers ran after the kernel took isolated CPUs out of timer migration at \
                 {at:.6} s"
            ),
            false,
        ),
    }
}

/// The isolated CPUs that pulled, with how often.
fn pullers(report: &Explanation) -> CountByNumber {
    let rows = report.isolated_cpus.iter().filter(|row| row.pulled > 0);
    rows.map(|row| (row.cpu, row.pulled)).collect()
}

/// A housekeeping CPU to keep awake in each group that has one: that serves groups without one, too.
fn keep_awake(report: &Explanation) -> String {
    let isolated: CpuSet = report.isolated.parse().unwrap_or_default();
    let groups = report.groups.cpus.values().filter_map(|list| list.parse().ok());
    let awake: CpuSet = groups.filter_map(|cpus: CpuSet| cpus.difference(&isolated).first()).collect();
    let mut lines = Vec::new();
    if !awake.is_empty() {
        lines.push(
            "Keep one housekeeping CPU awake in each group that has one; that serves the groups that have \
             none, too. Start it before the isolated load (an awake migrator is never replaced):"
                .to_owned(),
        );
        lines.push(format!("$ quietcore keep-awake --isolated {isolated} # keeps CPUs {awake} awake"));
    } else {
        lines.push("No CPU of these groups is a housekeeping CPU that could be kept awake.".to_owned());
    }
    if report.groups.estimated {
        lines.push("(Groups of eight are assumed: the input does not show the hierarchy.)".to_owned());
    }
    if excluded_from_6_19(report).is_empty() {
        lines.push(
            "A kernel from 6.19 on leaves these CPUs in the hierarchy, because they are nohz_full."
                .to_owned(),
        );
    } else {
        lines.push(
            "Or boot with nohz_full=LIST rcu_nocbs=LIST: the CPU that keeps the time never stops its tick \
             then, which is the awake one, while each isolated CPU runs one task."
                .to_owned(),
        );
        lines.push("Or boot a kernel from 6.19 on with isolcpus=domain,LIST.".to_owned());
    }
    lines.push("kernel.timer_migration=0 does not help.".to_owned());
    lines.join("\n")
}
