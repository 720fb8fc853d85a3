//! All randomness of a run: ChaCha with 8 rounds, from a seed.
//!
//! A run's parts draw from streams of their own, so that one load more does not change what another one does.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A stream of random numbers: the same on every platform for the same seed and stream.
#[derive(Clone, Debug)]
pub struct SimRandom {
    source: ChaCha8Rng,
}

impl SimRandom {
    /// The numbers of `seed`, in the stream `stream`.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut source = ChaCha8Rng::seed_from_u64(seed);
        source.set_stream(stream);
        Self { source }
    }

    /// 32 random bits.
    #[inline]
    pub fn word(&mut self) -> u32 {
        self.source.next_u32()
    }

    /// A number below `limit`; 0 when `limit` is 0. Biased by less than `limit` / 2^64.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.source.next_u64()) * u128::from(limit)) >> 64) as u64
    }

    /// True with a probability of `percent` in a hundred.
    #[inline]
    pub fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < u64::from(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::SimRandom;

    /// Goal: all numbers below the limit appear and no others. Method: enough draws for small limits.
    #[test]
    fn numbers_are_below_the_limit() {
        let mut random = SimRandom::new(1, 2);
        for limit in 1..20_u64 {
            let mut seen = [false; 20];
            (0..2000).for_each(|_| seen[random.below(limit) as usize] = true);
            assert_eq!(seen.iter().filter(|seen| **seen).count() as u64, limit);
            assert!(seen[..limit as usize].iter().all(|seen| *seen), "limit {limit}");
        }
        assert_eq!(random.below(0), 0);
    }
}
