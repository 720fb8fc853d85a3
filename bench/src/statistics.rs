//! What is said of the rounds of one measurement: median, smallest, largest.
//!
//! Ratios are taken within a round and then summarised, so that a slow moment of the machine, which falls
//! on both sides of a round's ratio, does not show in it. Deliberately absent: means and standard
//! deviations, which one disturbed round is enough to spoil.

use serde::Serialize;

/// Summary of one number per round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The lower one of an even count.
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Summary {
    /// Of `values`; `None` of none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        Some(Self { median: sorted[(sorted.len() - 1) / 2], min, max })
    }

    /// Of the ratios `values` / `reference`, round by round.
    #[must_use]
    pub fn of_ratios(values: &[f64], reference: &[f64]) -> Option<Self> {
        let ratios: Vec<f64> = values.iter().zip(reference).map(|(value, base)| value / base).collect();
        Self::of(&ratios)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: which value is the median. Method: odd, even, one, none.
    #[test]
    fn median_is_the_lower_middle() {
        let summary = |values: &[f64]| Summary::of(values).map(|of| (of.median, of.min, of.max));
        assert_eq!(summary(&[3.0, 1.0, 2.0]), Some((2.0, 1.0, 3.0)));
        assert_eq!(summary(&[4.0, 1.0, 3.0, 2.0]), Some((2.0, 1.0, 4.0)));
        assert_eq!(summary(&[7.0]), Some((7.0, 7.0, 7.0)));
        assert_eq!(summary(&[]), None);
    }

    /// Goal: ratios are of the same round. Method: a round twice as slow for both, which cancels out.
    #[test]
    fn ratios_are_taken_within_a_round() {
        let summary = Summary::of_ratios(&[2.0, 4.0, 3.0], &[1.0, 2.0, 1.0]).expect("three rounds");
        assert_eq!((summary.median, summary.min, summary.max), (2.0, 2.0, 3.0));
        assert_eq!(Summary::of_ratios(&[1.0], &[]), None);
    }
}
