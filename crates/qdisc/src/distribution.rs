//! Tables from which netem draws how much later than usual a packet is.
//!
//! A table holds quantiles of a distribution with mean 0 and standard deviation 1, in 8192ths, each as likely
//! as any other; what is further than 4 standard deviations from the mean is clipped there, as 16 bits hold
//! no more. Ours are computed, not copied from iproute2's files: the quantiles at the middles of 4096 equal
//! shares, so their moments are those of the distribution up to what clipping takes.

use alloc::sync::Arc;
use alloc::vec::Vec;

/// What stands for one standard deviation.
pub(crate) const SCALE: i64 = 8192;

/// Entries of the tables made here.
const SIZE: u32 = 4096;

/// The shape of Pareto's distribution: the smallest whole number with a variance.
const SHAPE: f64 = 3.0;

/// Odd, so that its multiples meet every entry once; about the golden share, so that neighbours do not.
const STRIDE: u32 = 2531;

/// A distribution of delays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution(Arc<[i16]>);

/// Why numbers are no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistributionError {
    /// How many there are.
    pub entries: usize,
}

impl core::fmt::Display for DistributionError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "a table of delays has 1 to 65536 entries, not {}", self.entries)
    }
}

impl core::error::Error for DistributionError {}

impl Distribution {
    /// The normal distribution.
    #[must_use]
    pub fn normal() -> Self {
        Self::of(normal_quantile)
    }

    /// Pareto's, of shape 3: short delays, and a few long ones.
    #[must_use]
    pub fn pareto() -> Self {
        Self::of(pareto_quantile)
    }

    /// A quarter of a normal and three quarters of a Pareto's, standardised.
    #[must_use]
    pub fn paretonormal() -> Self {
        let (normal, pareto) = (0.25, 0.75);
        let deviation = libm::sqrt(normal * normal + pareto * pareto);
        let entry = |index: u32| {
            let other = index.wrapping_mul(STRIDE) % SIZE;
            let sum = normal * normal_quantile(share(other)) + pareto * pareto_quantile(share(index));
            scaled(sum / deviation)
        };
        Self((0..SIZE).map(entry).collect())
    }

    /// One of the caller's own.
    ///
    /// # Errors
    /// Of no entries, or of more than 65536.
    pub fn from_table(table: &[i16]) -> Result<Self, DistributionError> {
        let entries = table.len();
        if (1..=65_536).contains(&entries) {
            Ok(Self(table.into()))
        } else {
            Err(DistributionError { entries })
        }
    }

    /// Its entries, in 8192ths of a standard deviation.
    #[must_use]
    pub fn table(&self) -> &[i16] {
        &self.0
    }

    /// The entry that a random number means.
    pub(crate) fn draw(&self, random: u32) -> i64 {
        i64::from(self.0[random as usize % self.0.len()])
    }

    fn of(quantile: fn(f64) -> f64) -> Self {
        let table: Vec<i16> = (0..SIZE).map(|index| scaled(quantile(share(index)))).collect();
        Self(table.into())
    }
}

/// The middle of the share that an entry stands for.
fn share(index: u32) -> f64 {
    (f64::from(index) + 0.5) / f64::from(SIZE)
}

fn scaled(deviations: f64) -> i16 {
    // `as` clips.
    libm::round(deviations * SCALE as f64) as i16
}

/// By bisection: it is made 4096 times, once.
fn normal_quantile(share: f64) -> f64 {
    if share > 0.5 {
        // So that the table is as symmetrical as the distribution.
        return -normal_quantile(1.0 - share);
    }
    let below = |value: f64| 0.5 * libm::erfc(-value * core::f64::consts::FRAC_1_SQRT_2);
    let (mut low, mut high) = (-8.0, 0.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if below(middle) < share { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

fn pareto_quantile(share: f64) -> f64 {
    let mean = SHAPE / (SHAPE - 1.0);
    let variance = SHAPE / ((SHAPE - 1.0) * (SHAPE - 1.0) * (SHAPE - 2.0));
    (libm::pow(1.0 - share, -1.0 / SHAPE) - mean) / libm::sqrt(variance)
}

#[cfg(test)]
mod tests {
    use super::{Distribution, SCALE};

    fn moments(table: &Distribution) -> (f64, f64) {
        let values = || table.table().iter().map(|entry| f64::from(*entry) / SCALE as f64);
        let count = table.table().len() as f64;
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
        (mean, libm::sqrt(variance))
    }

    /// Goal: mean 0 and deviation 1, but for what is clipped. Method: moments; of Pareto's distribution with
    /// shape 3 the part beyond 4 deviations has 0.026 of the mean.
    #[test]
    fn moments_are_standard() {
        for (table, off) in [
            (Distribution::normal(), 0.001),
            (Distribution::pareto(), 0.06),
            (Distribution::paretonormal(), 0.06),
        ] {
            let (mean, deviation) = moments(&table);
            assert!(mean.abs() < off, "{mean}");
            assert!(deviation <= 1.0 && deviation > 1.0 - 6.0 * off, "{deviation}");
        }
    }

    /// Goal: quantiles are those of textbooks. Method: some of the normal distribution, interpolated.
    #[test]
    fn quantiles_are_normal() {
        let table = Distribution::normal();
        let at = |share: f64| f64::from(table.table()[(share * 4096.0) as usize]) / SCALE as f64;
        for (share, value) in [(0.5, 0.0), (0.8413, 1.0), (0.975, 1.96), (0.99, 2.326), (0.1587, -1.0)] {
            assert!((at(share) - value).abs() < 0.01, "{share}: {}", at(share));
        }
        assert!(table.table().is_sorted());
    }

    /// Goal: entries are those of their formulas. Method: by hand. Pareto's quantiles of shape 3 are the
    /// cube root of 1 / (1 - share): 1, 2 and 3 at 0, 7/8 and 26/27; with a mean of 3/2 and a variance of 3/4
    /// they are -0.577, 0.577 and 1.732. In the other table a quarter of a normal one comes to three quarters
    /// of that, over 0.7906: entry 0 meets entry 0, at 0.0122 %, which is -3.668; entry 3584, which is 7/8,
    /// meets 3584 * 2531 mod 4096 = 2560, at 62.5 %, which is 0.319.
    #[test]
    fn entries_by_hand() {
        let at = |table: &Distribution, entry: usize| f64::from(table.table()[entry]) / SCALE as f64;
        for (table, entry, expected) in [
            (Distribution::pareto(), 0, -0.577),
            (Distribution::pareto(), 3_584, 0.577),
            (Distribution::pareto(), 4_096 * 26 / 27, 1.732),
            (Distribution::paretonormal(), 0, -1.708),
            (Distribution::paretonormal(), 3_584, 0.649),
        ] {
            let entry_is = at(&table, entry);
            assert!((entry_is - expected).abs() < 0.002, "{entry}: {entry_is}, not {expected}");
        }
    }
}
