//! Random numbers of streams: each toxic of each connection has its own, by the relay's seed.
//!
//! Invariant: what one connection draws depends on no other connection, so the same seed gives the same
//! delays to the same connection, counted as it is accepted.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Where numbers begin: a seed and what they are for (FNV-1a).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DrawKey(u64);

impl DrawKey {
    pub(super) fn new(seed: u64) -> Self {
        Self(0xcbf2_9ce4_8422_2325).and(&seed.to_le_bytes())
    }

    /// The numbers of one of its parts.
    pub(super) fn and(self, part: &[u8]) -> Self {
        // The length first: no two lists of parts are one text.
        let length = (part.len() as u64).to_le_bytes();
        let all = length.iter().chain(part);
        Self(all.fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)))
    }
}

/// Numbers, one after the other.
#[derive(Debug)]
pub(super) struct StreamDraws(ChaCha8Rng);

impl StreamDraws {
    pub(super) fn new(key: DrawKey) -> Self {
        Self(ChaCha8Rng::seed_from_u64(key.0))
    }

    /// Whether what has this probability happens.
    pub(super) fn happens(&mut self, probability: f64) -> bool {
        let drawn = (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        drawn < probability
    }

    /// One of the numbers from 0 to `most`, all alike.
    pub(super) fn up_to(&mut self, most: u64) -> u64 {
        let wide = u128::from(self.0.next_u64()) * (u128::from(most) + 1);
        (wide >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::{DrawKey, StreamDraws};

    /// Goal: the same key has the same numbers, and another one others. Method: parts that are one text when
    /// they are put together.
    #[test]
    fn numbers_are_those_of_their_key() {
        let numbers = |parts: [&str; 2]| {
            let key = parts.iter().fold(DrawKey::new(7), |key, part| key.and(part.as_bytes()));
            let mut draws = StreamDraws::new(key);
            [(); 4].map(|()| draws.up_to(u64::MAX))
        };
        assert_eq!(numbers(["ab", "c"]), numbers(["ab", "c"]));
        assert_ne!(numbers(["ab", "c"]), numbers(["a", "bc"]));
        assert_ne!(DrawKey::new(1), DrawKey::new(2));
    }

    /// Goal: what is certain happens, what is impossible does not, and numbers keep to their range, both ends
    /// of which are drawn.
    #[test]
    fn numbers_keep_to_their_range() {
        let mut draws = StreamDraws::new(DrawKey::new(1));
        assert!((0..1000).all(|_| draws.happens(1.0) && !draws.happens(0.0)));
        let mut seen = [0; 4];
        (0..1000).for_each(|_| seen[draws.up_to(3) as usize] += 1);
        assert!(seen.iter().all(|count| (150..350).contains(count)), "{seen:?}");
        assert_eq!(draws.up_to(0), 0);
        let often = (0..10_000).filter(|_| draws.happens(0.3)).count();
        assert!((2_800..3_200).contains(&often), "{often}");
    }
}
