//! Repeats of a measurement, and what is reported of them: the median, and the smallest and the largest.

use quietcore_sim::Cost;

pub(crate) const REPEATS: usize = 15;

/// Takes a cost, its repeats in ns, and how they were measured.
pub(crate) type SetCost<'a> = &'a mut dyn FnMut(Cost, &[f64], &str);

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

    /// Goal: the median is the middle, the spread the ends. Method: an odd number out of order, and none.
    #[test]
    fn a_summary_is_middle_and_ends() {
        assert_eq!(summary(&[3.0, 1.04, 2.0]), Some((2.0, vec![1.0, 3.0])));
        assert_eq!(summary(&[]), None);
    }
}
