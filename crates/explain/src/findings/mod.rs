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
    if !explanation.incomplete.is_empty() {
        for finding in &mut findings {
            finding.what.push_str(" The recording is incomplete, so these figures are approximate.");
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::all;
    use crate::figures::Explanation;

    /// Goal: no figure of an incomplete recording is told as if it was exact. Method: a finding of the same
    /// figures, with and without something missing.
    #[test]
    fn an_incomplete_recording_has_approximate_figures() {
        let mut report = Explanation::default();
        report.hrtimers.foreign = Some(9);
        let what =
            |report: &Explanation| all(report).into_iter().map(|finding| finding.what).collect::<Vec<_>>();
        assert_eq!(what(&report), ["9 hrtimers started on housekeeping CPUs expired on isolated CPUs."]);
        report.incomplete = vec!["3 events were lost".to_owned()];
        let approximate = "9 hrtimers started on housekeeping CPUs expired on isolated CPUs. The recording is \
                           incomplete, so these figures are approximate.";
        assert_eq!(what(&report), [approximate]);
    }
}
