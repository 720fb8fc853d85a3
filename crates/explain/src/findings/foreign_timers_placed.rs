//! Housekeeping CPUs put timers into the bases of isolated CPUs.

use super::text::{by_name, model, severity, verify_live, with_examples};
use crate::figures::Explanation;
use crate::finding::Finding;
use quietcore_trace::{Question, TimerModel, counted};

pub(super) fn rule(report: &Explanation) -> Option<Finding> {
    let placed = report.foreign.placed.filter(|&count| count > 0)?;
    let is_push = model(report) == Some(TimerModel::Push);
    let (why, change, predicted) = if is_push && report.timer_migration != Some(false) {
        (
            "Up to 6.8 an idle CPU that arms an unpinned timer puts it on a busy CPU of its scheduling \
             domains; work queued on a CPU from outside (add_timer_on) is placed there as well.",
            "$ sysctl -w kernel.timer_migration=0",
            format!("placed: {placed} -> those of add_timer_on() only."),
        )
    } else {
        (
            "The timer was put into the isolated CPU's own base from outside: add_timer_on() (delayed work \
             queued on that CPU, per-CPU housekeeping of drivers), or a timer re-armed elsewhere while \
             its callback still ran there. All kernel versions.",
            "Stop the sender: find it by the function and the arming CPU below. Unbound work:\n\
             $ echo HOUSEKEEPING_MASK > /sys/devices/virtual/workqueue/cpumask\n\
             Per-CPU work: its driver's own setting.",
            format!("placed: {placed} -> 0 once the sender is gone."),
        )
    };
    let finding = Finding::new("foreign-timers-placed", Question::Isolation, severity(report, placed))
        .what(format!(
            "{} put into isolated CPUs' bases by housekeeping CPUs ({}).",
            counted(placed, "timer was", "timers were"),
            by_name(&report.foreign.placed_by_function)
        ))
        .why(why)
        .change(change)
        .predicted(predicted)
        .verify(verify_live(report));
    Some(with_examples(finding, &report.foreign, |example| example.kind == "placed"))
}
