//! Random spans with a heavy tail, and random intervals, from basic operations alone.
//!
//! Logarithms and powers of the platform's library differ in their last bit between platforms; additions,
//! multiplications and divisions do not. So `ln` and `exp` are series here, and a seed's run is the same
//! everywhere.

use super::SimRandom;
use std::f64::consts::LN_2;

/// Bits of a random fraction.
const BITS: u32 = 53;

/// Lengths of work: half of them evenly between `least` and `median`, the other half above it in a Pareto
/// distribution with this exponent that is cut off at `most`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tail {
    pub(crate) least: u64,
    pub(crate) median: u64,
    pub(crate) most: u64,
    /// The smaller, the heavier.
    pub(crate) exponent: f64,
}

impl Tail {
    /// A length between `least` and `most`.
    pub(crate) fn draw(&self, random: &mut SimRandom) -> u64 {
        if random.chance(50) {
            return self.least + random.below(self.median - self.least + 1);
        }
        let (low, high) = (self.median.max(1) as f64, self.most.max(1) as f64);
        let cut = power(low / high, self.exponent);
        let left = 1.0 - fraction(random) * (1.0 - cut);
        let length = low / power(left, 1.0 / self.exponent);
        (length as u64).clamp(self.median, self.most)
    }
}

/// The time until the next of events that come independently of each other, `mean` apart on average; at most
/// twenty times that.
pub(crate) fn interval(random: &mut SimRandom, mean: u64) -> u64 {
    let span = -ln(fraction(random)) * mean as f64;
    (span as u64).clamp(1, mean.saturating_mul(20).max(1))
}

/// Above 0, at most 1.
fn fraction(random: &mut SimRandom) -> f64 {
    (random.below(1 << BITS) + 1) as f64 / (1_u64 << BITS) as f64
}

/// `base` above 0.
fn power(base: f64, exponent: f64) -> f64 {
    exp(exponent * ln(base))
}

/// Of a normal number above 0: the exponent's share, and a series for the mantissa.
fn ln(number: f64) -> f64 {
    let bits = number.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    let (mut term, mut sum) = (ratio, 0.0);
    for odd in 0..20_i32 {
        sum += term / f64::from(2 * odd + 1);
        term *= square;
    }
    2.0 * sum + exponent as f64 * LN_2
}

/// Between -700 and 700.
fn exp(number: f64) -> f64 {
    let halvings = (number / LN_2).round();
    let rest = number - halvings * LN_2;
    let (mut term, mut sum) = (1.0, 1.0);
    for count in 1..20_i32 {
        term *= rest / f64::from(count);
        sum += term;
    }
    sum * f64::from_bits(((halvings as i64 + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::{Tail, exp, interval, ln, power};
    use crate::engine::SimRandom;

    /// Goal: the series are logarithms and powers. Method: against the library, over many magnitudes.
    #[test]
    fn series_are_what_they_are_called() {
        let mut number = 1e-15;
        while number < 1e15 {
            let near = |ours: f64, theirs: f64| (ours - theirs).abs() <= 1e-12 * theirs.abs().max(1.0);
            assert!(near(ln(number), number.ln()), "ln {number}");
            assert!(near(exp(number.ln() / 2.0) / number.sqrt(), 1.0), "exp of half of ln {number}");
            assert!(near(power(number, 0.3) / number.powf(0.3), 1.0), "{number} to 0.3");
            number *= 1.37;
        }
    }

    /// Goal: lengths have the median and the tail that was asked for. Method: many draws, and how many are
    /// beyond the median and ten times that; for a Pareto tail half of 10 to the minus exponent.
    #[test]
    fn half_are_above_the_median_and_the_tail_is_heavy() {
        let tail = Tail { least: 100, median: 1_000, most: 10_000_000, exponent: 1.25 };
        let mut random = SimRandom::new(3, 3);
        let draws: Vec<u64> = (0..100_000).map(|_| tail.draw(&mut random)).collect();
        let share = |above: u64| draws.iter().filter(|length| **length > above).count() as f64 / 1e5;
        assert!(draws.iter().all(|length| (100..=10_000_000).contains(length)));
        assert!((share(1_000) - 0.5).abs() < 0.01, "{}", share(1_000));
        let beyond = 0.5 * 10_f64.powf(-1.25);
        assert!((share(10_000) - beyond).abs() < 0.1 * beyond, "{} {beyond}", share(10_000));
        assert!(share(1_000_000) > 0.0, "no long one");
    }

    /// Goal: intervals have their mean, and are never 0. Method: the mean of many.
    #[test]
    fn intervals_have_their_mean() {
        let mut random = SimRandom::new(4, 4);
        let all: Vec<u64> = (0..100_000).map(|_| interval(&mut random, 10_000)).collect();
        let mean = all.iter().sum::<u64>() as f64 / 1e5;
        assert!((mean - 10_000.0).abs() < 200.0, "{mean}");
        assert!(all.iter().all(|span| (1..=200_000).contains(span)));
    }
}
