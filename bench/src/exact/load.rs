//! What the queues are loaded with: delays, orders of arming, and the random numbers behind both.
//!
//! All numbers follow from a seed and are drawn before a measurement begins, so that every candidate
//! gets the same ones and none of the time.

use super::Times;
use serde::Serialize;

/// When every script begins, in nanoseconds: a machine that has been up for some days.
pub(crate) const START: u64 = 345_678_901_234_567;
/// The longest delay that a script draws.
pub(crate) const LONGEST: u64 = 10_000_000_000;
const SHORTEST: u64 = 1_000;

/// Sebastiano Vigna's splitmix64: small, and good enough to deal timers with.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number in `0..end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    pub(crate) fn shuffled(&mut self, count: usize) -> Vec<u32> {
        let mut ids: Vec<u32> = (0..count as u32).collect();
        for end in (2..=count).rev() {
            ids.swap(end - 1, self.below(end as u64) as usize);
        }
        ids
    }
}

/// How delays are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Spread {
    /// 1 us..100 ms, every length equally often
    Uniform,
    /// 1 us..10 s, every order of magnitude equally often
    Logarithmic,
}

impl Spread {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Logarithmic => "log",
        }
    }

    pub(crate) fn draw(self, random: &mut Random) -> u64 {
        match self {
            Self::Uniform => SHORTEST + random.below(100_000_000 - SHORTEST),
            Self::Logarithmic => {
                let part = random.next() as f64 / u64::MAX as f64;
                (SHORTEST as f64 * (LONGEST as f64 / SHORTEST as f64).powf(part)) as u64
            }
        }
    }

    pub(crate) fn draws(self, count: usize, random: &mut Random) -> Vec<u64> {
        (0..count).map(|_| self.draw(random)).collect()
    }
}

/// In which order a burst arms its timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Uniform delays
    Uniform,
    /// Logarithmic delays
    Logarithmic,
    /// Each later than the one before
    Ascending,
    /// Each earlier than the one before
    Descending,
    /// From both ends to the middle
    Inwards,
    /// All at the same time
    Equal,
    /// At powers of two, many at each: as far apart in bits as expiries can be
    Powers,
}

pub(crate) const ORDERS: [Order; 7] = [
    Order::Uniform,
    Order::Logarithmic,
    Order::Ascending,
    Order::Descending,
    Order::Inwards,
    Order::Equal,
    Order::Powers,
];

impl Order {
    /// The delays of a burst, in the order of arming.
    pub(crate) fn delays(self, count: usize, random: &mut Random) -> Vec<u64> {
        // Steps as far apart as they would be if all fell within the same 100 ms.
        let step = (100_000_000 / count as u64).max(1);
        let delay = |place: u64| SHORTEST + place * step;
        let count = count as u64;
        match self {
            Self::Uniform => Spread::Uniform.draws(count as usize, random),
            Self::Logarithmic => Spread::Logarithmic.draws(count as usize, random),
            Self::Ascending => (0..count).map(delay).collect(),
            Self::Descending => (0..count).rev().map(delay).collect(),
            Self::Inwards => {
                let place = |at: u64| if at.is_multiple_of(2) { at / 2 } else { count - 1 - at / 2 };
                (0..count).map(place).map(delay).collect()
            }
            Self::Equal => vec![delay(0); count as usize],
            Self::Powers => (0..count).map(|at| 1 << (at % 33)).collect(),
        }
    }
}

/// A timer without slack.
pub(crate) fn at(hard: u64) -> Times {
    Times { soft: hard, hard }
}

/// Median (the lower one of an even count), smallest, largest.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Quantiles {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Quantiles {
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let last = values.len() - 1;
        Self { median: values[last / 2], min: values[0], max: values[last] }
    }
}
