//! A run in 64 bits: two runs with equal hashes saw the same events at the same times.
//!
//! Defined here, so that it never changes with a dependency: per word a rotation, an exclusive or and a
//! multiplication, at the end the finalizer of SplitMix64. It tells runs apart; it does not resist an
//! attacker who wants two runs to look alike.

/// Odd, with bits spread evenly: 2^64 divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Collects the words of a run. Integers only, so it is the same on every platform and in every build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceHash {
    state: u64,
}

impl TraceHash {
    /// Takes the next word. A few cycles.
    #[inline]
    pub const fn feed(&mut self, word: u64) {
        self.state = (self.state.rotate_left(5) ^ word).wrapping_add(1).wrapping_mul(MULTIPLIER);
    }

    /// The hash of all words so far.
    #[must_use]
    pub const fn value(self) -> u64 {
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::TraceHash;

    /// Goal: the definition never changes unnoticed. Method: the hash of 1, 2, .. 1000, held as a constant
    /// that was computed from the definition by other means.
    #[test]
    fn the_definition_is_fixed() {
        let mut hash = TraceHash::default();
        (1..=1000).for_each(|word| hash.feed(word));
        assert_eq!(hash.value(), HASH_OF_1000, "{:#x}", hash.value());
    }

    /// Goal: one changed bit anywhere changes the hash. Method: every bit of every word of a short run.
    #[test]
    fn every_bit_counts() {
        let of = |words: [u64; 8]| {
            let mut hash = TraceHash::default();
            words.into_iter().for_each(|word| hash.feed(word));
            hash.value()
        };
        let plain = of([0; 8]);
        for place in 0..8 {
            for bit in 0..64 {
                let mut words = [0; 8];
                words[place] = 1 << bit;
                assert_ne!(of(words), plain, "word {place}, bit {bit}");
            }
        }
    }

    const HASH_OF_1000: u64 = 0xf6da_8612_96c3_272a;
}
