//! What a variant of the row comes to: figures of its counts, in the order of the plan, and what cyclictest
//! would print.

use crate::plan::{TrialFigures, percent, quantile, quantile_us};
use quietcore_live::metrics::Metrics;

/// What one variant came to.
pub(super) struct TrialCounts {
    pub(super) seconds: f64,
    /// Of tasks, sorted, in ns.
    pub(super) late: Vec<u64>,
    pub(super) missed: u64,
    /// Of softirqs, likewise.
    pub(super) delays: Vec<u64>,
    pub(super) raised: u64,
    /// Raised and never begun.
    pub(super) left: u64,
    pub(super) metrics: Metrics,
}

pub(super) fn figures(of: &TrialCounts) -> TrialFigures {
    let per_second = |count: u64| Some(count as f64 / of.seconds);
    let cycles = of.missed + of.late.len() as u64;
    let ran_inline = of.metrics.sum(|cpu| cpu.softirqs);
    let ran_ksoftirqd = of.metrics.sum(|cpu| cpu.ksoftirqd_ran);
    vec![
        quantile_us(&of.late, 0.5),
        quantile_us(&of.late, 0.99),
        quantile_us(&of.late, 0.999),
        quantile_us(&of.late, 1.0),
        per_second(of.metrics.sum(|cpu| cpu.migrations)),
        quantile_us(&of.delays, 0.5),
        quantile_us(&of.delays, 0.99),
        quantile(&of.delays, 1.0).map(|ns| ns / 1e6),
        per_second(of.metrics.sum(|cpu| cpu.deferred)),
        percent(ran_ksoftirqd as f64, (ran_inline + ran_ksoftirqd) as f64),
        // Of nothing that was raised nothing can be lost.
        (of.raised > 0).then_some(of.left as f64),
        percent(of.missed as f64, cycles as f64),
    ]
}

/// The line of a task, whose cycles were that `late`, in their order. Tasks have no thread ids; theirs are
/// their numbers.
pub(super) fn line(number: usize, interval_ns: u64, late: &[u64]) -> String {
    let (count, interval) = (late.len(), interval_ns / 1_000);
    let us = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| (ns / 1_000).to_string());
    let min = us(late.iter().copied().min());
    let last = us(late.last().copied());
    let average = us(late.iter().sum::<u64>().checked_div(count as u64));
    let max = us(late.iter().copied().max());
    format!(
        "T:{number:2} ({number:5}) P:99 I:{interval} C:{count:7} Min:{min:>7} Act:{last:>5} Avg:{average:>5} \
         Max:{max:>8}"
    )
}

#[cfg(test)]
mod tests {
    use super::{TrialCounts, figures, line};
    use quietcore_live::{Machine, metrics::Metrics};

    /// A snapshot of a machine that did nothing.
    fn metrics() -> Metrics {
        let machine = Machine::start().expect("a machine");
        let metrics = machine.metrics();
        machine.shutdown();
        metrics
    }

    /// Goal: each figure is its own. Method: two seconds with 2000 cycles that were 1 to 2000 us late, 100
    /// softirqs that waited 10 us to 1 ms, and two CPUs with counts of which each is another, by hand.
    #[test]
    fn figures_of_a_round() {
        let mut metrics = metrics();
        for (cpu, factor) in metrics.cpus.iter_mut().zip([1, 3]) {
            (cpu.migrations, cpu.deferred) = (2 * factor, 7 * factor);
            (cpu.softirqs, cpu.ksoftirqd_ran) = (15 * factor, 5 * factor);
            (cpu.pulled, cpu.pushed, cpu.raises) = (100 * factor, 200 * factor, 400 * factor);
        }
        let counts = TrialCounts {
            seconds: 2.0,
            late: (1..=2000).map(|us| us * 1_000).collect(),
            missed: 500,
            delays: (1..=100).map(|number| number * 10_000).collect(),
            raised: 41,
            left: 9,
            metrics,
        };
        let expected = [1000.0, 1980.0, 1998.0, 2000.0, 4.0, 500.0, 990.0, 1.0, 14.0, 25.0, 9.0, 20.0];
        assert_eq!(figures(&counts), expected.map(Some));
    }

    /// Goal: what has no sample has no figure, so that nothing lost of nothing raised does not pass. Method:
    /// a round in which nothing happened.
    #[test]
    fn nothing_is_no_figure() {
        let (late, delays, seconds, metrics) = (vec![], vec![], 2.0, metrics());
        let counts = TrialCounts { seconds, late, missed: 0, delays, raised: 0, left: 0, metrics };
        let zero = Some(0.0);
        let expected = [None, None, None, None, zero, None, None, None, zero, None, None, None];
        assert_eq!(figures(&counts), expected);
    }

    /// Goal: a task's line is cyclictest's, in its columns. Method: four cycles of which the last is neither
    /// the shortest nor the longest, by hand; a task that never ran.
    #[test]
    fn lines_are_those_of_cyclictest() {
        let found = [line(3, 2_500_000, &[9_999, 2_000, 81_000, 7_000]), line(0, 1_000_000, &[])];
        let expected = [
            "T: 3 (    3) P:99 I:2500 C:      4 Min:      2 Act:    7 Avg:   24 Max:      81",
            "T: 0 (    0) P:99 I:1000 C:      0 Min:      - Act:    - Avg:    - Max:       -",
        ];
        assert_eq!(found, expected);
    }
}
