//! The static check-up: what a host's settings will do to its isolated CPUs, without tracing it.
//!
//! Decides the list of rules and the order of findings: one rule is one function from [`Facts`] to
//! at most one [`Finding`]; findings are sorted by severity, the worst first, then by the order of
//! the rules. Invariants: a rule warns only if a CPU that is meant to be quiet is or will be
//! disturbed, so a host without isolation gets no warning; every text is printable and every
//! command it proposes is quoted for a shell, whatever the host's names contain; nothing is ever
//! executed. Each rule is a row of `docs/reference/doctor.md`.
//! Not here: reading the host (see `host`), and what only a recording can show (see `explain`).

mod cgroup_rules;
mod cmdline_rules;
mod data;
mod ignored_rules;
mod irq_rules;
mod kernel_rules;
mod summary;
mod system_rules;
mod text;
mod tick_rules;

pub use data::{
    CgroupSummary, FrequencySummary, HostSummary, IrqbalanceSummary, IsolationSummary, NodeSummary,
    PartitionSummary, QuotaSummary,
};

use crate::host::Facts;
use crate::{Evidence, Finding};
use std::cmp::Reverse;
use text::clean;

/// What the check-up of one host found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examination {
    /// What the host is, for programs.
    pub host: HostSummary,
    /// The same for people: rows of a name and a value, in a fixed order.
    pub summary: Vec<(&'static str, String)>,
    /// What is wrong with it or worth knowing, the most severe first.
    pub findings: Vec<Finding>,
}

type Rule = fn(&Facts) -> Option<Finding>;

const RULES: &[Rule] = &[
    kernel_rules::isolated_pull_timers,
    kernel_rules::timers_pushed_when_armed,
    kernel_rules::nohz_full_stays_in_hierarchy,
    kernel_rules::isolated_left_hierarchy,
    kernel_rules::timer_migration_hrtimers_only,
    kernel_rules::housekeeping_empty,
    kernel_rules::nothing_isolated,
    kernel_rules::timer_owners,
    kernel_rules::smt_sibling,
    ignored_rules::isolcpus_ignored,
    ignored_rules::nohz_full_ignored,
    cmdline_rules::isolcpus_no_domain,
    cmdline_rules::isolcpus_unknown_flag,
    cmdline_rules::nohz_full_no_domain,
    tick_rules::rcu_nocbs_narrow,
    tick_rules::rcu_nocb_poll,
    tick_rules::isolated_keeps_tick,
    tick_rules::skew_tick,
    irq_rules::irq_on_isolated,
    irq_rules::irq_default_mask,
    irq_rules::irqbalance_on_isolated,
    irq_rules::workqueue_on_isolated,
    irq_rules::rps_on_isolated,
    irq_rules::xps_shared_queue,
    cgroup_rules::partition_invalid,
    cgroup_rules::partition_isolated,
    cgroup_rules::partition_root,
    cgroup_rules::cpuset_v1_balanced,
    cgroup_rules::cpu_quota,
    cgroup_rules::affinity_narrow,
    system_rules::rt_throttling,
    system_rules::clocksource,
    system_rules::virtual_machine,
    tick_rules::watchdog_on_isolated,
    system_rules::deep_idle,
    system_rules::cpu_frequency,
    tick_rules::vmstat_interval,
    system_rules::memory_daemons,
];

/// Judges `facts` by every rule of `docs/reference/doctor.md`.
///
/// Cost: a few passes over the facts; no file is read. Any thread may call it.
#[must_use]
pub fn examine(facts: &Facts) -> Examination {
    let mut findings: Vec<Finding> = RULES.iter().filter_map(|rule| rule(facts)).map(scrub).collect();
    findings.sort_by_key(|finding| Reverse(finding.severity));
    let summary = summary::rows(facts).into_iter().map(|(name, value)| (name, clean(&value))).collect();
    Examination { host: data::host_summary(facts), summary, findings }
}

/// The last line of defence: names of files and cgroups are chosen by others.
fn scrub(mut finding: Finding) -> Finding {
    // Line breaks are ours: names in commands went through `shell_word`, which leaves none.
    finding.change = finding.change.split('\n').map(clean).collect::<Vec<_>>().join("\n");
    for text in [&mut finding.what, &mut finding.why, &mut finding.predicted, &mut finding.verify] {
        *text = clean(text);
    }
    for evidence in &mut finding.evidence {
        let (Evidence::Line { text, .. } | Evidence::File { text, .. }) = evidence;
        *text = clean(text);
        if let Evidence::File { path, .. } = evidence {
            *path = clean(path);
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::{RULES, examine, scrub};
    use crate::{Facts, Finding, Severity};
    use quietcore_trace::Question;

    /// Goal: no rule is missing from the documentation, or the other way round.
    #[test]
    fn docs_have_one_row_per_rule() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/doctor.md");
        let docs = std::fs::read_to_string(path).expect(path);
        let rules = docs.split("\n## ").find(|section| section.starts_with("Rules\n")).expect("its section");
        assert_eq!(rules.lines().filter(|line| line.starts_with("| `")).count(), RULES.len());
    }

    /// Goal: knowing nothing is not a fault. Method: a host with no files at all.
    #[test]
    fn an_unknown_host_gets_no_finding() {
        let examination = examine(&Facts::default());
        assert_eq!(examination.findings, []);
        assert!(examination.summary.iter().all(|(_, value)| !value.is_empty()));
    }

    /// Goal: no text of a finding steers a terminal, and only the change keeps its lines.
    #[test]
    fn every_text_of_a_finding_is_cleaned() {
        let of = |mark: char, end: char| {
            let text = |name: &str| format!("{name}{mark}[2J{end}");
            let finding = Finding::new("id", Question::Isolation, Severity::Note).what(text("what"));
            let finding =
                finding.why(text("why")).change(format!("a{mark}\n$ b")).predicted(text("predicted"));
            finding.verify(text("verify")).line(1, text("line")).file(text("path"), text("file"))
        };
        assert_eq!(scrub(of('\u{1b}', '\n')), of('\u{fffd}', ' '));
    }
}
