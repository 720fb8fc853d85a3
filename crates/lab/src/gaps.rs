//! How long a loop that does nothing but look at the clock was away.
//!
//! Lengths are kept twice: rounded up to whole microseconds, the last of [`BUCKETS`] with all longer ones, as
//! rt-tests' oslat prints them; and to about 3 %, for quantiles. Memory does not depend on how long it runs.
//! Not here: the loop, and the clock.

use crate::plan::percent;

/// As many as oslat has by default.
const BUCKETS: usize = 32;
/// Steps per doubling.
const STEPS: u32 = 32;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Gaps from here on count as having been away; shorter ones are the loop itself.
pub(crate) const AWAY_NS: u64 = 1_000;

#[derive(Clone, Debug)]
pub(crate) struct Gaps {
    micros: [u64; BUCKETS],
    fine: Vec<u64>,
    count: u64,
    sum_ns: u64,
    away_ns: u64,
    smallest_ns: u64,
    largest_ns: u64,
}

impl Gaps {
    pub(crate) fn new() -> Self {
        let fine = vec![0; place(u64::MAX) + 1];
        let (micros, smallest_ns) = ([0; BUCKETS], u64::MAX);
        Self { micros, fine, count: 0, sum_ns: 0, away_ns: 0, smallest_ns, largest_ns: 0 }
    }

    /// The loop looks at the clock, `now_ns` after it began; all gaps until then were taken so.
    pub(crate) fn look(&mut self, now_ns: u64) {
        self.take(now_ns - self.sum_ns);
    }

    pub(crate) fn take(&mut self, ns: u64) {
        let micros = ns.div_ceil(1_000).clamp(1, BUCKETS as u64);
        self.micros[micros as usize - 1] += 1;
        self.count += 1;
        self.sum_ns += ns;
        self.smallest_ns = self.smallest_ns.min(ns);
        self.largest_ns = self.largest_ns.max(ns);
        if ns >= AWAY_NS {
            self.away_ns += ns;
            self.fine[place(ns)] += 1;
        }
    }

    /// Share of the time, in percent, that gaps of [`AWAY_NS`] and more took; `None` when no time went by.
    pub(crate) fn away_percent(&self) -> Option<f64> {
        percent(self.away_ns as f64, self.sum_ns as f64)
    }

    /// Of gaps of [`AWAY_NS`] and more, in ns; `None` of none.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        let all: u64 = self.fine.iter().sum();
        let rank = ((all as f64 * share).ceil() as u64).max(1);
        let mut below = 0;
        let found = self.fine.iter().position(|count| {
            below += count;
            below >= rank
        });
        found.map(|place| upper(place).min(self.largest_ns) as f64)
    }

    pub(crate) fn largest_ns(&self) -> Option<f64> {
        (self.count > 0).then_some(self.largest_ns as f64)
    }

    /// The lines that oslat prints of one core at its end; `None` when the loop never looked.
    pub(crate) fn oslat(&self, core: usize) -> Option<Vec<String>> {
        if self.count == 0 {
            return None;
        }
        let micros = |ns: u64| ns.div_ceil(1_000).max(1);
        let mut lines = vec![format!("        Core:\t {core}")];
        for (at, count) in self.micros.iter().enumerate() {
            let rest = if at + 1 == BUCKETS { " (including overflows)" } else { "" };
            lines.push(format!("    {:03} (us):\t {count}{rest}", at + 1));
        }
        let (first, last) = (micros(self.smallest_ns), micros(self.largest_ns));
        let weighted: u64 = self.micros.iter().zip(1..).map(|(count, micros)| count * micros).sum();
        let average = weighted as f64 / self.count as f64;
        lines.push(format!("     Minimum:\t {first} (us)"));
        lines.push(format!("     Average:\t {average:.3} (us)"));
        lines.push(format!("     Maximum:\t {last} (us)"));
        lines.push(format!("     Max-Min:\t {} (us)", last - first));
        lines.push(format!("    Duration:\t {:.3} (sec)", self.sum_ns as f64 / 1e9));
        Some(lines)
    }
}

/// Where a length is counted: exact up to [`STEPS`], then [`STEPS`] places per doubling.
fn place(ns: u64) -> usize {
    let Some(doublings) = (ns | 1).ilog2().checked_sub(STEP_BITS) else { return ns as usize };
    (doublings * STEPS) as usize + (ns >> doublings) as usize
}

/// The longest length that is counted there.
fn upper(place: usize) -> u64 {
    let place = place as u64;
    if place < u64::from(STEPS) {
        return place;
    }
    let doublings = place / u64::from(STEPS) - 1;
    let step = place - doublings * u64::from(STEPS);
    (u128::from(step + 1) << doublings).saturating_sub(1).try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Gaps, place, upper};

    /// Goal: places are in order, and a length is at most 1/32 below the upper end of its place. Method: both
    /// sides of every doubling.
    #[test]
    fn a_place_is_narrow() {
        let lengths = (0..63).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        let mut lengths: Vec<u64> = lengths.chain([u64::MAX]).collect();
        lengths.sort_unstable();
        let mut last = 0;
        for ns in lengths {
            assert!(place(ns) >= last, "{ns}");
            last = place(ns);
            let end = upper(place(ns));
            assert!(end >= ns && end - ns <= ns / 32 + 1, "{ns}: {end}");
        }
    }

    /// Goal: quantiles are of what was away, the rest is the loop. Method: many short gaps, a few long ones.
    #[test]
    fn only_what_was_away_has_quantiles() {
        let mut gaps = Gaps::new();
        assert_eq!((gaps.quantile(0.99), gaps.away_percent(), gaps.largest_ns()), (None, None, None));
        (0..1000).for_each(|_| gaps.take(50));
        assert_eq!(
            (gaps.quantile(0.5), gaps.away_percent(), gaps.largest_ns()),
            (None, Some(0.0), Some(50.0))
        );
        (0..99).for_each(|_| gaps.take(2_000));
        gaps.take(1_000_000);
        let half = gaps.quantile(0.5).expect("it was away");
        assert!((half - 2_000.0).abs() <= 64.0, "{half}");
        assert_eq!((gaps.quantile(1.0), gaps.largest_ns()), (Some(1_000_000.0), Some(1_000_000.0)));
        assert_eq!(gaps.away_percent(), Some(100.0 * 1_198_000.0 / 1_248_000.0));
    }

    /// Goal: a quantile is the length of the gap of that rank, and no longer than the longest. Method: 100
    /// gaps of four lengths, all but the longest at the upper ends of their places; one alone; the shortest
    /// that was away.
    #[test]
    fn quantiles_are_by_rank() {
        let mut gaps = Gaps::new();
        for (count, ns) in [(50, 2_047), (48, 4_095), (1, 8_191), (1, 9_000)] {
            (0..count).for_each(|_| gaps.take(ns));
        }
        let found = [0.0, 0.5, 0.501, 0.98, 0.981, 0.99, 0.991, 1.0].map(|share| gaps.quantile(share));
        let expected = [2_047.0, 2_047.0, 4_095.0, 4_095.0, 8_191.0, 8_191.0, 9_000.0, 9_000.0];
        assert_eq!(found, expected.map(Some));
        let mut one = Gaps::new();
        one.look(999);
        assert_eq!((one.quantile(0.5), one.away_percent()), (None, Some(0.0)));
        one.look(1_999);
        assert_eq!((one.quantile(0.5), one.away_percent()), (Some(1_000.0), Some(100_000.0 / 1_999.0)));
    }

    /// Goal: oslat's lines, with what is too long in the last bucket. Method: gaps at the ends of buckets,
    /// and 2000 short ones, together 1.251 s; the average is of buckets.
    #[test]
    fn lines_are_those_of_oslat() {
        let mut gaps = Gaps::new();
        let long = 1_249_893_959;
        [1_001, 31_000, 32_000, 41_000, 1_000, 40, long].into_iter().for_each(|ns| gaps.take(ns));
        (0..2_000).for_each(|_| gaps.take(500));
        let lines = gaps.oslat(7).expect("it looked");
        assert_eq!(lines.len(), 1 + BUCKETS + 5);
        assert_eq!(lines[0], "        Core:\t 7");
        assert_eq!(lines[1], "    001 (us):\t 2002");
        assert_eq!(lines[2], "    002 (us):\t 1");
        assert_eq!(lines[31], "    031 (us):\t 1");
        assert_eq!(lines[32], "    032 (us):\t 3 (including overflows)");
        // 2002 * 1 + 2 + 31 + 3 * 32, of 2007.
        let below = [
            "     Minimum:\t 1 (us)",
            "     Average:\t 1.062 (us)",
            "     Maximum:\t 1249894 (us)",
            "     Max-Min:\t 1249893 (us)",
            "    Duration:\t 1.251 (sec)",
        ];
        assert_eq!(lines[33..], below);
        assert_eq!(Gaps::new().oslat(0), None);
    }

    /// Goal: what oslat calls the minimum is the shortest gap, at least 1 us. Method: long gaps, out of
    /// order; a clock that did not move.
    #[test]
    fn the_minimum_is_that_of_the_shortest_gap() {
        let ends = |lengths: &[u64]| {
            let mut gaps = Gaps::new();
            lengths.iter().for_each(|ns| gaps.take(*ns));
            let lines = gaps.oslat(0).expect("it looked");
            let value = |line: &String| line.split_once('\t').map(|(_, value)| value.to_owned());
            (lines[33..37].iter().map(|line| value(line).expect("a value")).collect::<Vec<_>>(), gaps)
        };
        assert_eq!(ends(&[9_000, 3_000, 6_000]).0, [" 3 (us)", " 6.000 (us)", " 9 (us)", " 6 (us)"]);
        let (lines, still) = ends(&[0]);
        assert_eq!(lines, [" 1 (us)", " 1.000 (us)", " 1 (us)", " 0 (us)"]);
        assert_eq!((still.largest_ns(), still.away_percent()), (Some(0.0), None));
    }
}
