//! All randomness of a run: ChaCha with 8 rounds, from a seed.
//!
//! A run's parts draw from streams of their own, so that one load more does not change what another one does.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A stream of random numbers: the same on every platform for the same seed and stream.
///
/// ```
/// use quietcore_sim::Random;
///
/// let draw = |stream| Random::new(7, stream).below(1000);
/// assert_eq!(draw(1), draw(1));
/// assert!((0..20).any(|stream| draw(stream) != draw(20)));
/// ```
#[derive(Clone, Debug)]
pub struct Random {
    source: ChaCha8Rng,
}

impl Random {
    /// The numbers of `seed`, in the stream `stream`.
    ///
    /// ```
    /// # use quietcore_sim::Random;
    /// assert_ne!(Random::new(7, 0).word(), Random::new(8, 0).word());
    /// ```
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut source = ChaCha8Rng::seed_from_u64(seed);
        source.set_stream(stream);
        Self { source }
    }

    /// 32 random bits.
    ///
    /// ```
    /// # use quietcore_sim::Random;
    /// let mut random = Random::new(7, 0);
    /// assert_ne!([random.word(), random.word()], [0, 0]);
    /// ```
    #[inline]
    pub fn word(&mut self) -> u32 {
        self.source.next_u32()
    }

    /// A number below `limit`; 0 when `limit` is 0. Biased by less than `limit` / 2^64.
    ///
    /// ```
    /// # use quietcore_sim::Random;
    /// assert!(Random::new(7, 0).below(10) < 10);
    /// ```
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.source.next_u64()) * u128::from(limit)) >> 64) as u64
    }

    /// True with a probability of `percent` in a hundred.
    ///
    /// ```
    /// # use quietcore_sim::Random;
    /// assert!(Random::new(7, 0).chance(100) && !Random::new(7, 0).chance(0));
    /// ```
    #[inline]
    pub fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < u64::from(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    /// Goal: all numbers below the limit appear and no others. Method: enough draws for small limits.
    #[test]
    fn numbers_are_below_the_limit() {
        let mut random = Random::new(1, 2);
        for limit in 1..20_u64 {
            let mut seen = [false; 20];
            (0..2000).for_each(|_| seen[random.below(limit) as usize] = true);
            assert_eq!(seen.iter().filter(|seen| **seen).count() as u64, limit);
            assert!(seen[..limit as usize].iter().all(|seen| *seen), "limit {limit}");
        }
        assert_eq!(random.below(0), 0);
    }
}
