//! Words that findings share: counts in order, the kernel's model, the lines that prove a finding.

use crate::figures::{CountByName, CountByNumber, Disturbance, ExampleExpiry, Explanation};
use crate::finding::{Finding, Severity};
use quietcore_core::CpuSet;
use quietcore_trace::{KernelRelease, TimerModel};
use std::collections::BTreeMap;

const EVIDENCE_MAX: usize = 3;

/// Fewer than so many may be chance, and so may fewer than one in so many seconds.
const FEW: u64 = 3;
const SECONDS_EACH: u64 = 10;

pub(super) fn model(report: &Explanation) -> Option<TimerModel> {
    report.kernel.as_deref().and_then(KernelRelease::parse).map(|kernel| kernel.timer_model())
}

/// How much something matters that happened so often: what is seldom is a note.
pub(super) fn severity(report: &Explanation, count: u64) -> Severity {
    let seconds = report.duration_ns.unwrap_or(0) / 1_000_000_000;
    let is_seldom = count < FEW || count.saturating_mul(SECONDS_EACH) < seconds;
    if is_seldom { Severity::Note } else { Severity::Warning }
}

/// `explain` on the running kernel with the same isolated set.
pub(super) fn verify_live(report: &Explanation) -> String {
    format!("quietcore explain --live 30s --isolated {}", report.isolated)
}

/// The largest counts first: `27 on CPU 1, 6 on CPU 2`.
pub(super) fn top<K: std::fmt::Display + Ord>(counts: &BTreeMap<K, u64>, most: usize, word: &str) -> String {
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let named = sorted.iter().take(most).map(|(key, count)| format!("{count} {word}{key}"));
    let mut text = named.collect::<Vec<_>>().join(", ");
    if sorted.len() > most {
        text.push_str(&format!(" and {} more", sorted.len() - most));
    }
    text
}

pub(super) fn by_cpu(counts: &CountByNumber) -> String {
    top(counts, 4, "on CPU ")
}

pub(super) fn by_name(counts: &CountByName) -> String {
    top(counts, 4, "")
}

/// Isolated CPUs that 6.19 takes out of the hierarchy: it leaves those with `nohz_full` in.
pub(super) fn excluded_from_6_19(report: &Explanation) -> CpuSet {
    let set = |list: &str| list.parse::<CpuSet>().unwrap_or_default();
    set(&report.isolated).difference(&set(&report.nohz_full))
}

/// Whether a kernel from 6.19 on would change how timers are placed here.
pub(super) fn may_upgrade(report: &Explanation) -> bool {
    !matches!(model(report), Some(TimerModel::PullExcludesIsolated | TimerModel::Push))
}

/// Adds the first examples of `side` that prove the finding.
pub(super) fn with_examples(
    mut finding: Finding,
    side: &Disturbance,
    proves: impl Fn(&ExampleExpiry) -> bool,
) -> Finding {
    for example in side.examples.iter().filter(|example| proves(example)).take(EVIDENCE_MAX) {
        let (function, armed_line) = (&example.function, example.armed_line);
        finding = finding.line(
            example.line,
            format!(
                "{function} armed on CPU {} (line {armed_line}), base CPU {}, ran on CPU {}",
                example.armed_cpu, example.base_cpu, example.cpu
            ),
        );
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::{by_cpu, by_name, severity};
    use crate::figures::Explanation;
    use crate::finding::Severity;

    /// Goal: what is seldom is a note. Method: both limits, from both sides; a recording without a length.
    #[test]
    fn what_is_seldom_is_a_note() {
        let of = |seconds: u64, count| {
            let duration_ns = Some(seconds * 1_000_000_000 + 999_999_999);
            severity(&Explanation { duration_ns, ..Explanation::default() }, count)
        };
        assert_eq!([of(2, 2), of(2, 3)], [Severity::Note, Severity::Warning]);
        assert_eq!([of(101, 10), of(100, 10)], [Severity::Note, Severity::Warning]);
        assert_eq!(severity(&Explanation::default(), 3), Severity::Warning);
    }

    /// Goal: the four largest counts are named, equal ones in order, and the rest is counted.
    #[test]
    fn the_largest_counts_come_first() {
        let cpus = [(7, 2), (1, 2), (3, 9), (4, 1), (5, 3), (6, 1)].into();
        assert_eq!(by_cpu(&cpus), "9 on CPU 3, 3 on CPU 5, 2 on CPU 1, 2 on CPU 7 and 2 more");
        let names = [("a", 1), ("b", 3), ("c", 2), ("d", 5), ("e", 4)];
        let names = names.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        assert_eq!(by_name(&names), "5 d, 4 e, 3 b, 2 c and 1 more");
    }
}
