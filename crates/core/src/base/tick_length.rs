//! What a tick lasts, and the way from nanoseconds to ticks and back.
//!
//! Nanoseconds become ticks by flooring, for the present and for expiries alike: a wheel hands a timer out at
//! the first tick after its own, which is the first edge strictly after the nanosecond asked for, so no timer
//! is early. The division is a multiplication (Granlund, Montgomery: Division by invariant integers using
//! multiplication, PLDI 1994, figure 4.1), because every arm does it.

use crate::Nanos;
use quietcore_wheel::Tick;

/// The length of a machine's tick in nanoseconds: 1 ms is usual, 4 ms is a kernel with `HZ=250`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickLength {
    nanos: u64,
    multiplier: u64,
    /// 0 for a length of 1 ns, else 1.
    first_shift: u32,
    second_shift: u32,
}

impl TickLength {
    /// A tick of `length`; `None` when that is zero.
    #[must_use]
    pub const fn new(length: Nanos) -> Option<Self> {
        let nanos = length.0;
        if nanos == 0 {
            return None;
        }
        // The bits of `nanos - 1`: the power of two that is not below `nanos`.
        let bits = u64::BITS - (nanos - 1).leading_zeros();
        let excess = (1_u128 << bits) - nanos as u128;
        let multiplier = ((excess << 64) / nanos as u128) as u64 + 1;
        let first_shift = if bits == 0 { 0 } else { 1 };
        Some(Self { nanos, multiplier, first_shift, second_shift: bits - first_shift })
    }

    /// The length in nanoseconds.
    #[must_use]
    pub const fn nanos(self) -> Nanos {
        Nanos(self.nanos)
    }

    /// The tick that `moment` lies in.
    #[inline]
    #[must_use]
    pub const fn floor(self, moment: Nanos) -> Tick {
        let high = ((self.multiplier as u128 * moment.0 as u128) >> 64) as u64;
        Tick((high + ((moment.0 - high) >> self.first_shift)) >> self.second_shift)
    }

    /// When `tick` begins; ends one nanosecond before the end of time, which stands for "never".
    #[inline]
    #[must_use]
    pub const fn start(self, tick: Tick) -> Nanos {
        match tick.0.checked_mul(self.nanos) {
            Some(nanos) if nanos != u64::MAX => Nanos(nanos),
            _ => Nanos(u64::MAX - 1),
        }
    }
}

/// One millisecond.
impl Default for TickLength {
    fn default() -> Self {
        match Self::new(Nanos(1_000_000)) {
            Some(length) => length,
            None => unreachable!("a millisecond is not zero"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Nanos, TickLength};

    /// Goal: the multiplication is the division. Method: lengths around powers of two and usual ones,
    /// moments around multiples of each and at both ends.
    #[test]
    fn floor_is_division() {
        let powers = (0..64).flat_map(|bit| [(1_u64 << bit).wrapping_sub(1), 1 << bit, (1 << bit) + 1]);
        let lengths = powers.chain([1_000_000, 4_000_000, 10_000_000, 3, 7, 999_983, u64::MAX]);
        for nanos in lengths.filter(|nanos| *nanos != 0) {
            let length = TickLength::new(Nanos(nanos)).expect("not zero");
            for multiple in [0, 1, 2, 3, 1000, u64::MAX / nanos, u64::MAX / nanos / 3] {
                for offset in [0, 1, nanos / 2, nanos - 1] {
                    let moment = multiple.wrapping_mul(nanos).wrapping_add(offset);
                    for moment in [moment, moment.wrapping_sub(1), !moment] {
                        assert_eq!(length.floor(Nanos(moment)).0, moment / nanos, "{moment} / {nanos}");
                    }
                }
            }
        }
    }

    /// Goal: the start of a tick saturates below "never". Method: the largest ticks.
    #[test]
    fn start_saturates() {
        let length = TickLength::default();
        for tick in [u64::MAX, u64::MAX / 1_000_000 + 1] {
            assert_eq!(length.start(quietcore_wheel::Tick(tick)), Nanos(u64::MAX - 1), "tick {tick}");
        }
        let one = TickLength::new(Nanos(1)).expect("not zero");
        assert_eq!(one.start(quietcore_wheel::Tick(u64::MAX)), Nanos(u64::MAX - 1));
    }
}
