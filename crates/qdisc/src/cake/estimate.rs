//! How fast packets arrive: what `autorate-ingress` follows.
//!
//! Bytes are counted over windows that end where a gap is longer than usual, so that bursts do not count as a
//! rate; the rate of each window moves a mean, fast when it is higher and slowly when it is lower. The shaper
//! has fifteen sixteenths of that mean.
//!
//! Source: tc-cake(8), "autorate-ingress"; Linux 6.12 net/sched/sch_cake.c, by behaviour.

use super::framing::moved;

const SECOND: u64 = 1_000_000_000;
/// The rate is not told before that moment; as in the kernel, it counts from when time began.
const FIRST_TOLD: u64 = SECOND / 4;

/// The rate at which packets arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CapacityEstimate {
    /// Bytes per second, a mean.
    peak: u64,
    /// Nanoseconds between packets, a mean.
    gap: u64,
    /// When the last packet arrived.
    last: u64,
    window_begin: u64,
    window_bytes: u64,
}

impl CapacityEstimate {
    pub(super) const fn new(peak: u64) -> Self {
        Self { peak, gap: 0, last: 0, window_begin: 0, window_bytes: 0 }
    }

    pub(super) const fn bytes_per_second(&self) -> u64 {
        self.peak
    }

    /// A packet arrived that is not to be followed.
    pub(super) const fn skip(&mut self, now: u64) {
        (self.last, self.window_bytes) = (now, 0);
    }

    /// A packet arrived; gives the rate of the shaper if that changes.
    pub(super) fn arrived(&mut self, now: u64, bytes: u32) -> Option<u64> {
        self.window_bytes += u64::from(bytes);
        let gap = now.saturating_sub(self.last).min(SECOND);
        self.gap = moved(self.gap, gap, if gap > self.gap { 2 } else { 8 });
        self.last = now;
        if gap <= self.gap {
            return None;
        }
        let window = now.saturating_sub(self.window_begin).max(1);
        let rate = self.window_bytes.saturating_mul(SECOND) / window;
        self.peak = moved(self.peak, rate, if rate > self.peak { 2 } else { 8 });
        (self.window_bytes, self.window_begin) = (0, now);
        (now > FIRST_TOLD).then_some((self.peak * 15) >> 4)
    }
}

#[cfg(test)]
mod tests {
    use super::CapacityEstimate;

    /// Goal: the rate is found, bursts do not count as one. Method: bursts of ten packets at 8 Mbit/s on
    /// average.
    #[test]
    fn the_rate_of_bursts_is_their_mean() {
        let (mut estimate, mut told) = (CapacityEstimate::new(0), 0);
        for number in 0..20_000_u64 {
            let at = 1_000_000_000 + number / 10 * 10_000_000 + number % 10 * 12_000;
            told = estimate.arrived(at, 1_000).unwrap_or(told);
        }
        let rate = estimate.bytes_per_second();
        assert!((990_000..1_010_000).contains(&rate), "{rate}");
        assert_eq!(told, rate * 15 / 16);
    }

    /// Goal: what is not followed begins no window. Method: a packet that is skipped, before one that ends
    /// one.
    #[test]
    fn what_is_skipped_does_not_count() {
        let mut estimate = CapacityEstimate::new(800);
        estimate.arrived(1_000_000_000, 500);
        estimate.skip(1_500_000_000);
        let before = estimate.bytes_per_second();
        estimate.arrived(3_000_000_000, 0);
        assert_eq!(estimate.bytes_per_second(), before - (before >> 8));
    }
}
