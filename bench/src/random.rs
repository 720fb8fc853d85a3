//! Random numbers: which sequence of operations a seed stands for.
//!
//! SplitMix64, so that a seed gives the same operations on every machine and with every version of every
//! dependency. Not here: entropy; a sequence is always asked for by its seed.
//!
//! Source: Guy L. Steele Jr., Doug Lea, Christine H. Flood, "Fast splittable pseudorandom number
//! generators" (OOPSLA 2014), figure 17.

use std::ops::RangeInclusive;

/// A generator of 64 random bits at a time.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence that `seed` stands for.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0. The bias is below `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number of `range`, each as likely as the next.
    pub fn uniform(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.below(range.end() - range.start() + 1)
    }

    /// A number of `range`, which begins above 0: every doubling is as likely as the next.
    pub fn log_uniform(&mut self, range: RangeInclusive<u64>) -> u64 {
        let unit = (self.bits() >> 11) as f64 / (1u64 << 53) as f64;
        let (low, high) = (*range.start() as f64, (*range.end() + 1) as f64);
        let value = (low.ln() + unit * (high / low).ln()).exp() as u64;
        value.clamp(*range.start(), *range.end())
    }

    /// Puts `items` in random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: seeds mean the same everywhere. Method: numbers published for this generator (by many; here
    /// those of the Rosetta Code task "Pseudo-random numbers/Splitmix64").
    #[test]
    fn sequence_is_the_published_one() {
        let mut random = Random::new(1_234_567);
        let bits: Vec<u64> = (0..5).map(|_| random.bits()).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(bits, published);
    }

    /// Goal: ranges are met and not left. Method: both ends of a small range within many draws.
    #[test]
    fn ranges_are_inclusive() {
        let mut random = Random::new(1);
        let uniform: Vec<u64> = (0..1000).map(|_| random.uniform(3..=5)).collect();
        let log: Vec<u64> = (0..1000).map(|_| random.log_uniform(3..=5)).collect();
        for drawn in [uniform, log] {
            assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&3), Some(&5)));
        }
    }

    /// Goal: every doubling is as likely. Method: ten doublings, 10 000 draws, a tenth give or take 15 %.
    #[test]
    fn log_uniform_is_even_over_doublings() {
        let (mut random, mut counts) = (Random::new(2), [0u32; 10]);
        for _ in 0..10_000 {
            counts[random.log_uniform(1..=1023).ilog2() as usize] += 1;
        }
        assert!(counts.iter().all(|count| (850..=1150).contains(count)), "{counts:?}");
    }

    /// Goal: a shuffle loses nothing and moves something. Method: sort what was shuffled.
    #[test]
    fn shuffle_is_a_permutation() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(3).shuffle(&mut items);
        assert!(items.iter().zip(0..).any(|(&item, at)| item != at), "{items:?}");
        items.sort_unstable();
        assert!(items.iter().zip(0..).all(|(&item, at)| item == at), "{items:?}");
    }
}
