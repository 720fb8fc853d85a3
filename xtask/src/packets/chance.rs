//! Within which limits a random figure has to be: quantiles of what the model gives when it is played often.

/// Numbers that look random, the same in every run (xorshift64*, S. Vigna 2016).
pub(super) struct Draws(pub(super) u64);

impl Draws {
    /// Uniform in [0, 1).
    pub(super) fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Normal with mean 0 and deviation 1.
    pub(super) fn normal(&mut self) -> f64 {
        // Box and Muller 1958; `1 - u` is never 0.
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.uniform()).cos()
    }
}

/// The interval in which 99 % of `plays` of a model fall.
pub(super) fn interval_99(plays: usize, mut play: impl FnMut() -> f64) -> (f64, f64) {
    let mut figures: Vec<f64> = (0..plays).map(|_| play()).collect();
    figures.sort_by(f64::total_cmp);
    let at = |share: f64| figures[((plays - 1) as f64 * share).round() as usize];
    (at(0.005), at(0.995))
}

/// A quantile of figures that are sorted.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted.get(((sorted.len().max(1) - 1) as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: intervals are those of the textbook. Method: the mean of 100 normal figures, 0 +- 2.576 / 10.
    #[test]
    fn the_mean_of_normal_figures() {
        let mut draws = Draws(1);
        let (low, high) = interval_99(4_000, || (0..100).map(|_| draws.normal()).sum::<f64>() / 100.0);
        assert!((low + 0.2576).abs() < 0.03 && (high - 0.2576).abs() < 0.03, "{low} {high}");
        let figures: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!((quantile(&figures, 0.5), quantile(&figures, 1.0)), (50.0, 100.0));
        assert!(quantile(&[], 0.5).is_nan());
    }
}
