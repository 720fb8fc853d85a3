//! From figures to findings: what is wrong, by which mechanism, and the command that changes it.
//!
//! One file per finding, one row per file in [`RULES`]. A rule looks only at the [`Explanation`], so a
//! finding can never know more than its reader. The texts name their sources (kernel version ranges; stock
//! kernels); effects quoted under `predicted` were measured on the recordings of this project.

mod delayed_work_on_isolated;
mod foreign_hrtimers;
mod foreign_timers_placed;
mod foreign_timers_pulled;
mod isolated_timers_exchanged;
mod qdisc_watchdog_migrates;
mod remote_expiries;
mod rt_wakeups_behind_softirq;
mod sysctl_without_effect;
mod text;
mod timer_softirq_empty;

use crate::figures::Explanation;
use crate::finding::Finding;
use std::cmp::Reverse;

type Rule = fn(&Explanation) -> Option<Finding>;

/// Findings of equal severity are shown in this order.
const RULES: &[Rule] = &[
    foreign_timers_pulled::rule,
    foreign_timers_placed::rule,
    delayed_work_on_isolated::rule,
    sysctl_without_effect::rule,
    isolated_timers_exchanged::rule,
    remote_expiries::rule,
    qdisc_watchdog_migrates::rule,
    foreign_hrtimers::rule,
    rt_wakeups_behind_softirq::rule,
    timer_softirq_empty::rule,
];

/// What follows from the figures, the most severe first.
pub(crate) fn all(explanation: &Explanation) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().filter_map(|rule| rule(explanation)).collect();
    findings.sort_by_key(|finding| Reverse(finding.severity));
    findings
}
