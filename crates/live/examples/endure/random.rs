//! Random numbers from a seed, and the delays that are drawn from them.

use core::time::Duration;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(ChaCha8Rng);

impl Random {
    /// The numbers of `seed`, in the stream `stream`.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut source = ChaCha8Rng::seed_from_u64(seed);
        source.set_stream(stream);
        Self(source)
    }

    /// A number below `limit`, which is above 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    /// An index into something of `length` elements, at least one.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// Most end soon; some are far away, and are there to be cancelled. Above 0.
    pub(crate) fn delay(&mut self) -> Duration {
        let longest = match self.below(10) {
            0..=4 => 5_000,
            5..=7 => 100_000,
            8 => 2_000_000,
            _ => 3_600_000_000,
        };
        Duration::from_micros(1 + self.below(longest))
    }
}
