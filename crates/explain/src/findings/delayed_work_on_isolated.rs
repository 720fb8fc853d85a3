//! The timer of delayed work ran on an isolated CPU, so the work runs there as well.

use super::text::{by_cpu, severity, verify_live, with_examples};
use crate::figures::{CountByNumber, Explanation};
use crate::finding::Finding;
use quietcore_trace::{Question, counted};

/// The callback of every delayed work item's timer.
const DELAYED_WORK: &str = "delayed_work_timer_fn";

pub(super) fn rule(report: &Explanation) -> Option<Finding> {
    let rows = report.isolated_cpus.iter();
    let counts: CountByNumber =
        rows.filter_map(|row| Some((row.cpu, *row.by_function.get(DELAYED_WORK)?))).collect();
    let total = counts.values().sum::<u64>();
    if total == 0 {
        return None;
    }
    let finding = Finding::new("delayed-work-on-isolated", Question::Isolation, severity(report, total))
        .what(format!(
            "{} of delayed work ({}): a kworker may run each item there next.",
            counted(total, "of the foreign timers was one", "of the foreign timers were those"),
            by_cpu(&counts)
        ))
        .why(
            "delayed_work_timer_fn queues its item on the CPU that runs the timer, unless the caller named a \
             CPU or the workqueue is unbound. So a foreign timer of delayed work costs more than its callback. \
             All kernel versions.",
        )
        .change(
            "Keep the timers away (foreign-timers-pulled, foreign-timers-placed): the items stay with them. For \
             items of unbound workqueues:\n\
             $ echo HOUSEKEEPING_MASK > /sys/devices/virtual/workqueue/cpumask",
        )
        .predicted(format!("foreign.by_function of {DELAYED_WORK}: {total} -> 0 with the timers."))
        .verify(verify_live(report));
    Some(with_examples(finding, &report.foreign, |example| example.function == DELAYED_WORK))
}
