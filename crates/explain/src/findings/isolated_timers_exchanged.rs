//! One isolated CPU ran timers of another.

use super::text::{by_cpu, by_name, excluded_from_6_19, may_upgrade, severity, verify_live, with_examples};
use crate::figures::Explanation;
use crate::finding::Finding;
use quietcore_trace::{Question, counted};

const PIN_OR_UPGRADE: &str = "A kernel from 6.19 on, or pinned timers in the program that arms them.";

pub(super) fn rule(report: &Explanation) -> Option<Finding> {
    let side = &report.between_isolated;
    let total = side.total.filter(|&count| count > 0)?;
    let all_stay = excluded_from_6_19(report).is_empty();
    let stays = all_stay || !may_upgrade(report);
    let finding = Finding::new("isolated-timers-exchanged", Question::Isolation, severity(report, total))
        .what(format!(
            "{} armed on one isolated CPU ran on another ({}; {}).",
            counted(total, "timer", "timers"),
            by_cpu(side.by_cpu.as_ref()?),
            by_name(side.by_function.as_ref()?)
        ))
        .why("As foreign-timers-pulled, between isolated CPUs: an idle isolated CPU's timers are run by a busy one.")
        .change(if stays { "Pinned timers in the program that arms them." } else { PIN_OR_UPGRADE })
        .predicted(if stays {
            let why = if all_stay { "; 6.19 leaves nohz_full CPUs in" } else { "" };
            format!("between_isolated.total: {total} -> those of unpinned timers{why}.")
        } else {
            format!("between_isolated.total: {total} -> 0 on 6.19.")
        })
        .verify(verify_live(report));
    let kind = if side.pulled > side.placed { "pulled" } else { "placed" };
    Some(with_examples(finding, side, |example| example.kind == kind))
}
