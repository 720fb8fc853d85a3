//! A histogram of spans: four buckets for each power of two, from 1 us to 17 s.
//!
//! A value is at most 25 % below the end of its bucket. What is shorter than 1.024 us is in the first bucket,
//! what is longer than 17 s in the last.

use quietcore_core::Nanos;

/// The first bucket ends here: 2^10 ns.
const FIRST_BIT: u32 = 10;
/// Four per power of two.
const SUB_BITS: u32 = 2;
const LAST_BIT: u32 = 34;
pub(super) const BUCKETS: usize = (((LAST_BIT - FIRST_BIT) << SUB_BITS) + 1) as usize;

#[inline]
pub(super) fn bucket_of(nanos: u64) -> usize {
    let bit = 63 - (nanos | 1).leading_zeros();
    if bit < FIRST_BIT {
        return 0;
    }
    let sub = (nanos >> (bit - SUB_BITS)) as usize & ((1 << SUB_BITS) - 1);
    ((((bit - FIRST_BIT) << SUB_BITS) as usize) + sub + 1).min(BUCKETS - 1)
}

/// The end of a bucket: every value in it is below.
fn end_of(bucket: usize) -> Nanos {
    let (octave, sub) = (bucket >> SUB_BITS, (bucket & ((1 << SUB_BITS) - 1)) as u64);
    Nanos(((1 << SUB_BITS) + sub) << (octave as u32 + FIRST_BIT - SUB_BITS))
}

/// How late timers were run, in buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    pub(super) counts: Box<[u64]>,
}

impl Histogram {
    /// How many values there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The end of the bucket below which the share `quantile` (0 to 1) of the values lies; `None` without
    /// values. At most 25 % more than the value itself, but for two ends: 1.024 us stands for all that is
    /// shorter, and 17.18 s also for all that is longer.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<Nanos> {
        let all = self.len();
        let wanted = ((all as f64 * quantile).ceil() as u64).clamp(1, all.max(1));
        let mut seen = 0;
        let mut ends = self.counts.iter().enumerate();
        ends.find_map(|(bucket, count)| {
            seen += count;
            (seen >= wanted).then(|| end_of(bucket))
        })
    }

    /// Ends of buckets and how many values lie below each; the last is infinite.
    pub fn cumulative(&self) -> impl Iterator<Item = (Option<Nanos>, u64)> + '_ {
        self.buckets().scan(0, |seen, (end, count)| {
            *seen += count;
            Some((end, *seen))
        })
    }

    /// Ends of buckets and how many values lie in each; the last is infinite.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (Option<Nanos>, u64)> + '_ {
        let last = self.counts.len() - 1;
        let ends = (0..).map(move |bucket| (bucket < last).then(|| end_of(bucket)));
        ends.zip(self.counts.iter().copied())
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Histogram, bucket_of, end_of};

    /// Goal: every value is below the end of its bucket and at most a quarter of it away, and buckets do not
    /// overlap. Method: both sides of every end, and values between.
    #[test]
    fn a_value_is_near_the_end_of_its_bucket() {
        for bucket in 0..BUCKETS - 1 {
            let end = end_of(bucket).0;
            assert_eq!(bucket_of(end - 1), bucket, "the last value below {end}");
            assert_eq!(bucket_of(end), bucket + 1, "{end} itself");
            if bucket > 0 {
                let start = end_of(bucket - 1).0;
                assert!((end - start) * 4 <= end, "bucket {bucket}: {start} to {end}");
            }
        }
        assert_eq!((bucket_of(0), bucket_of(u64::MAX)), (0, BUCKETS - 1));
    }

    /// Goal: quantiles count values, not buckets. Method: 99 short spans and a long one.
    #[test]
    fn quantiles_count_values() {
        let mut counts = vec![0; BUCKETS].into_boxed_slice();
        counts[bucket_of(2_000)] = 99;
        counts[bucket_of(9_000_000)] = 1;
        let late = Histogram { counts };
        let at = |quantile| late.quantile(quantile).expect("values").0;
        assert!((2_000..=2_560).contains(&at(0.5)) && at(0.5) == at(0.99), "{}", at(0.99));
        assert!((9_000_000..=11_250_000).contains(&at(0.995)), "{}", at(0.995));
        assert_eq!((late.len(), late.cumulative().last()), (100, Some((None, 100))));
        assert_eq!(at(0.0), at(0.5), "not below the first value");
        let none = Histogram { counts: vec![0; BUCKETS].into_boxed_slice() };
        assert_eq!((none.is_empty(), late.is_empty(), none.quantile(0.5)), (true, false, None));
    }
}
