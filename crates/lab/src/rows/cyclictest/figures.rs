//! What a variant of the row comes to: figures of its counts, in the order of the plan.

use crate::plan::{TrialFigures, percent, quantile, quantile_us};

/// What one variant came to.
pub(super) struct TrialCounts {
    pub(super) seconds: f64,
    /// Of tasks, sorted, in ns.
    pub(super) late: Vec<u64>,
    pub(super) missed: u64,
    pub(super) migrations: u64,
    /// Of softirqs, likewise.
    pub(super) delays: Vec<u64>,
    pub(super) deferred: u64,
    pub(super) ran_inline: u64,
    pub(super) ran_ksoftirqd: u64,
    pub(super) raised: u64,
    /// Raised and never begun.
    pub(super) left: u64,
}

pub(super) fn figures(of: &TrialCounts) -> TrialFigures {
    let per_second = |count: u64| Some(count as f64 / of.seconds);
    let cycles = of.missed + of.late.len() as u64;
    vec![
        quantile_us(&of.late, 0.5),
        quantile_us(&of.late, 0.99),
        quantile_us(&of.late, 0.999),
        quantile_us(&of.late, 1.0),
        per_second(of.migrations),
        quantile_us(&of.delays, 0.5),
        quantile_us(&of.delays, 0.99),
        quantile(&of.delays, 1.0).map(|ns| ns / 1e6),
        per_second(of.deferred),
        percent(of.ran_ksoftirqd as f64, (of.ran_inline + of.ran_ksoftirqd) as f64),
        // Of nothing that was raised nothing can be lost.
        (of.raised > 0).then_some(of.left as f64),
        percent(of.missed as f64, cycles as f64),
    ]
}

#[cfg(test)]
mod tests {
    use super::{TrialCounts, figures};

    /// Goal: each figure is its own. Method: two seconds with 2000 cycles that were 1 to 2000 us late, and
    /// 100 softirqs that waited 10 us to 1 ms, by hand.
    #[test]
    fn figures_of_a_round() {
        let counts = TrialCounts {
            seconds: 2.0,
            late: (1..=2000).map(|us| us * 1_000).collect(),
            missed: 500,
            migrations: 8,
            delays: (1..=100).map(|number| number * 10_000).collect(),
            deferred: 6,
            ran_inline: 30,
            ran_ksoftirqd: 10,
            raised: 41,
            left: 9,
        };
        let expected = [1000.0, 1980.0, 1998.0, 2000.0, 4.0, 500.0, 990.0, 1.0, 3.0, 25.0, 9.0, 20.0];
        assert_eq!(figures(&counts), expected.map(Some));
    }

    /// Goal: what has no sample has no figure, so that nothing lost of nothing raised does not pass. Method:
    /// a round in which nothing happened.
    #[test]
    fn nothing_is_no_figure() {
        let (late, delays) = (vec![], vec![]);
        let (missed, migrations, deferred, raised, left) = (0, 0, 0, 0, 0);
        let (ran_inline, ran_ksoftirqd, seconds) = (0, 0, 2.0);
        let counts = TrialCounts {
            seconds,
            late,
            missed,
            migrations,
            delays,
            deferred,
            ran_inline,
            ran_ksoftirqd,
            raised,
            left,
        };
        let zero = Some(0.0);
        let expected = [None, None, None, None, zero, None, None, None, zero, None, None, None];
        assert_eq!(figures(&counts), expected);
    }
}
