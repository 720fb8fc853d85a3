//! Tins: which packets go into which, at which rate each is favoured, and how they share without a rate.
//!
//! A tin that has sent less than its threshold goes before the others; what it sends beyond that waits for
//! theirs. Tins are numbered here by rank; the order in which `tc` shows and marks name them puts bulk first.
//!
//! Source: tc-cake(8), "PRIORITY QUEUE PARAMETERS"; the code points of each tin, thresholds and quanta as
//! recorded on Linux 6.12 (tests/cake).

use super::cobalt::CobaltLaw;
use super::settings::{CakeSettings, CakeTins};

/// The most tins that there can be.
pub(super) const TINS_MAX: usize = 8;
/// How many code points there are.
const CODE_POINTS: usize = 64;
const SECOND: u64 = 1_000_000_000;
/// Bits that are left for a time per byte, so that the product with a packet's bytes fits.
const PACE_BITS: u32 = 34;
/// No slower than so many bytes per second.
const RATE_MIN: u64 = 64;
/// A flow's turn at most, and at least.
const QUANTUM: (u64, u64) = (1_514, 300);

/// Class selectors and the like, by name (RFC 2474, 2597, 3246, 5865, 8622; TOS4 of RFC 1349 is 4).
mod code_point {
    pub(super) const LE: usize = 1;
    pub(super) const TOS1: usize = 2;
    pub(super) const TOS4: usize = 4;
    pub(super) const CS1: usize = 8;
    pub(super) const AF1: [usize; 3] = [10, 12, 14];
    pub(super) const CS2: usize = 16;
    pub(super) const AF2: [usize; 3] = [18, 20, 22];
    pub(super) const CS3: usize = 24;
    pub(super) const AF3: [usize; 3] = [26, 28, 30];
    pub(super) const CS4: usize = 32;
    pub(super) const AF4: [usize; 3] = [34, 36, 38];
    pub(super) const CS5: usize = 40;
    pub(super) const VA: usize = 44;
    pub(super) const EF: usize = 46;
    pub(super) const CS6: usize = 48;
    pub(super) const CS7: usize = 56;
}

/// A table in which all code points are of tin `rest` but those that are named.
const fn spread<const N: usize>(rest: u8, named: [(u8, &[usize]); N]) -> [u8; CODE_POINTS] {
    let mut table = [rest; CODE_POINTS];
    let mut group = 0;
    while group < N {
        let (tin, points) = named[group];
        let mut at = 0;
        while at < points.len() {
            table[points[at]] = tin;
            at += 1;
        }
        group += 1;
    }
    table
}

use code_point::{AF1, AF2, AF3, AF4, CS1, CS2, CS3, CS4, CS5, CS6, CS7, EF, LE, TOS1, TOS4, VA};

const DIFFSERV3: [u8; CODE_POINTS] = spread(0, [(1, &[LE, CS1]), (2, &[TOS4, VA, EF, CS6, CS7])]);

const DIFFSERV4: [u8; CODE_POINTS] = spread(
    0,
    [
        (1, &[LE, CS1]),
        (2, &[TOS4, CS2, AF2[0], AF2[1], AF2[2], CS3]),
        (2, &[AF3[0], AF3[1], AF3[2], AF4[0], AF4[1], AF4[2]]),
        (3, &[CS4, CS5, VA, EF, CS6, CS7]),
    ],
);

const DIFFSERV8: [u8; CODE_POINTS] = spread(
    2,
    [
        (0, &[LE]),
        (1, &[TOS1, CS1, AF1[0], AF1[1], AF1[2]]),
        (3, &[CS3, AF3[0], AF3[1], AF3[2], AF4[0], AF4[1], AF4[2]]),
        (4, &[TOS4, AF2[0], AF2[1], AF2[2]]),
        (5, &[CS2]),
        (6, &[CS4, CS5, VA, EF]),
        (7, &[CS6, CS7]),
    ],
);

impl CakeTins {
    /// How many there are.
    pub(super) const fn count(self) -> usize {
        match self {
            Self::BestEffort => 1,
            Self::Diffserv3 => 3,
            Self::Diffserv4 => 4,
            Self::Precedence | Self::Diffserv8 => TINS_MAX,
        }
    }

    /// The tin of a code point.
    pub(super) const fn of_code_point(self, code_point: u8) -> usize {
        let at = (code_point as usize) % CODE_POINTS;
        match self {
            Self::BestEffort => 0,
            Self::Precedence => at >> 3,
            Self::Diffserv3 => DIFFSERV3[at] as usize,
            Self::Diffserv4 => DIFFSERV4[at] as usize,
            Self::Diffserv8 => DIFFSERV8[at] as usize,
        }
    }

    /// The tin that is shown, and named by marks, as the `number`-th from 0 on.
    pub(super) const fn in_order(self, number: usize) -> usize {
        match (self, number) {
            (Self::Diffserv3 | Self::Diffserv4, 0 | 1) => 1 - number,
            (_, number) => number,
        }
    }

    /// The names that `tc` shows above the tins, in its order.
    pub(super) const fn names(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Diffserv3 => Some(&["Bulk", "Best Effort", "Voice"]),
            Self::Diffserv4 => Some(&["Bulk", "Best Effort", "Video", "Voice"]),
            _ => None,
        }
    }

    /// Of each tin, what part of the whole rate is its threshold, and its quantum without a rate.
    fn shares(self, rate: u64) -> [(u64, u16); TINS_MAX] {
        let mut shares = [(rate, u16::MAX); TINS_MAX];
        match self {
            Self::BestEffort => {}
            Self::Diffserv3 => {
                shares[..3].copy_from_slice(&[(rate, 1_024), (rate >> 4, 64), (rate >> 2, 256)]);
            }
            Self::Diffserv4 => {
                let four = [(rate, 1_024), (rate >> 4, 64), (rate >> 1, 512), (rate >> 2, 256)];
                shares[..4].copy_from_slice(&four);
            }
            Self::Precedence | Self::Diffserv8 => {
                let next =
                    |(rate, quantum): &(u64, u16)| Some((rate.saturating_mul(7) >> 3, (quantum * 7) >> 3));
                let each = core::iter::successors(Some((rate, 256)), next);
                shares.iter_mut().zip(each).for_each(|(share, each)| *share = each);
            }
        }
        shares
    }
}

/// Time per byte, of a rate, in parts of 2^`shift` of a nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CakePace {
    time: u64,
    shift: u32,
}

impl CakePace {
    /// Nothing takes any time at no rate. Of each time 34 bits count, as in the kernel.
    fn of(rate: Option<u64>) -> Self {
        let Some(rate) = rate else { return Self::default() };
        let time = (SECOND << PACE_BITS) / rate.max(RATE_MIN);
        let over = (u64::BITS - time.leading_zeros()).saturating_sub(PACE_BITS);
        Self { time: time >> over, shift: PACE_BITS - over }
    }

    /// Nanoseconds that so many bytes take.
    pub(super) const fn time_of(self, bytes: u32) -> u64 {
        ((bytes as u128 * self.time as u128) >> self.shift) as u64
    }
}

/// What a tin goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TinLaw {
    /// Its threshold in bytes per second; 0 of no rate.
    pub(super) rate: u64,
    pub(super) pace: CakePace,
    /// Bytes of a flow's turn.
    pub(super) flow_quantum: u32,
    /// Its share of a round without a rate.
    pub(super) quantum: u16,
    pub(super) cobalt: CobaltLaw,
}

impl TinLaw {
    fn new(rate: Option<u64>, quantum: u16, told: &CakeSettings) -> Self {
        let pace = CakePace::of(rate.filter(|rate| *rate > 0));
        let (most, least) = QUANTUM;
        let rate = rate.unwrap_or(0);
        let turn = if rate == 0 { most } else { (rate >> 12).clamp(least, most) };
        let packet_time = pace.time_of(told.mtu);
        // At a low rate a packet and a half waits for longer than any target.
        let target = (packet_time * 3 / 2).max(told.target.0);
        let longer = told.interval.0.saturating_add(target - told.target.0);
        let interval = longer.max(target.saturating_mul(2));
        Self {
            rate,
            pace,
            flow_quantum: turn as u32,
            quantum,
            cobalt: CobaltLaw { target, interval, packet_time },
        }
    }

    /// Those of all tins, of which the first ones are used.
    pub(super) fn all(told: &CakeSettings) -> [Self; TINS_MAX] {
        let rate = told.bandwidth.filter(|rate| *rate > 0);
        let shares = told.tins.shares(rate.unwrap_or(0));
        shares.map(|(share, quantum)| Self::new(rate.map(|_| share), quantum, told))
    }
}

#[cfg(test)]
mod tests {
    use super::{CakePace, CakeSettings, CakeTins, TinLaw};

    /// Goal: the time of bytes is right to a part in 10^9 and never too long. Method: rates of all sizes
    /// beside the quotient.
    #[test]
    fn bytes_take_their_time() {
        for shift in 6..40 {
            for rate in [1_u64 << shift, (1 << shift) + 1, (1 << shift) * 3 - 1] {
                for bytes in [1_u32, 60, 1_514, 65_536] {
                    let exact = u128::from(bytes) * 1_000_000_000 * 1_000_000 / u128::from(rate);
                    let time = u128::from(CakePace::of(Some(rate)).time_of(bytes)) * 1_000_000;
                    assert!(
                        time <= exact && exact - time <= 1_000_000 + exact / 1_000_000_000,
                        "{rate} {bytes}"
                    );
                }
            }
        }
        assert_eq!(CakePace::of(None).time_of(1_514), 0);
        assert_eq!(CakePace::of(Some(1)), CakePace::of(Some(64)));
    }

    /// Goal: a slow tin waits for a packet and a half at least, and its interval is longer by as much.
    /// Method: a tin of 1 Mbit and of 100.
    #[test]
    fn slow_tins_wait_longer() {
        let law = |rate| {
            let told =
                CakeSettings { bandwidth: Some(rate), tins: CakeTins::BestEffort, ..CakeSettings::default() };
            let law = TinLaw::all(&told)[0];
            (law.cobalt.target, law.cobalt.interval, law.flow_quantum)
        };
        assert_eq!(law(12_500_000), (5_000_000, 100_000_000, 1_514));
        assert_eq!(law(125_000), (18_168_000, 113_168_000, 300));
    }

    /// Goal: without a rate there are no thresholds. Method: all tins of one.
    #[test]
    fn no_rate_no_threshold() {
        let laws = TinLaw::all(&CakeSettings::default());
        assert!(laws.iter().all(|law| law.rate == 0 && law.flow_quantum == 1_514));
        assert_eq!(laws.map(|law| law.quantum)[..3], [1_024, 64, 256]);
    }
}
