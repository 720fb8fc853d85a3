//! Repeats of a measurement, and what is reported of them: the median, and the smallest and the largest.
//!
//! Time is what [`Now`] says, so that tests know how long everything took.

use quietcore_sim::Cost;

pub(crate) const REPEATS: usize = 15;

/// Reads a clock: ns since a moment that does not change.
pub(crate) type Now<'a> = &'a (dyn Fn() -> u64 + Sync);

/// Takes a cost, its repeats in ns, and how they were measured.
pub(crate) type SetCost<'a> = &'a mut dyn FnMut(Cost, &[f64], &str);

pub(crate) fn per_item(ns: u64, items: u64) -> f64 {
    ns as f64 / items as f64
}

/// Median, and smallest and largest; `None` of none.
pub(crate) fn summary(repeats: &[f64]) -> Option<(f64, Vec<f64>)> {
    let mut sorted: Vec<f64> = repeats.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (first, last) = (*sorted.first()?, *sorted.last()?);
    let round = |ns: f64| (ns * 10.0).round() / 10.0;
    Some((round(sorted[sorted.len() / 2]), vec![round(first), round(last)]))
}

#[cfg(test)]
mod tests {
    use super::summary;

    /// Goal: the median is the middle, the spread the ends, in tenths. Method: an odd number out of order,
    /// and none.
    #[test]
    fn a_summary_is_middle_and_ends() {
        assert_eq!(summary(&[3.07, 1.04, 2.0]), Some((2.0, vec![1.0, 3.1])));
        assert_eq!(summary(&[9.0, 2.25, 1.0, 4.0, 70.0]), Some((4.0, vec![1.0, 70.0])));
        assert_eq!(summary(&[]), None);
    }
}
