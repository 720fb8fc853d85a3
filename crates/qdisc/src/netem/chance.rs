//! How likely something is, and whether it happens now.
//!
//! A random number that depends on the one before it is a weighted mean of both, as netem has it: its
//! distribution is narrower than that of independent ones, so a correlated loss of p % loses less or more
//! than p % of all packets. That is netem's behaviour, and ours.

use core::fmt;

/// A probability as a 32-bit share: 100 % is 2^32 - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(u32);

impl Probability {
    /// 0 %.
    pub const NEVER: Self = Self(0);
    /// 100 %.
    pub const ALWAYS: Self = Self(u32::MAX);

    /// From the share itself.
    #[must_use]
    pub const fn from_share(share: u32) -> Self {
        Self(share)
    }

    /// From 0 to 100; `None` of anything else.
    #[must_use]
    pub fn percent(percent: f64) -> Option<Self> {
        let share = libm::rint(percent / 100.0 * f64::from(u32::MAX));
        (0.0..=100.0).contains(&percent).then_some(Self(share as u32))
    }

    /// The share.
    #[must_use]
    pub const fn share(self) -> u32 {
        self.0
    }

    /// What is left to 100 %.
    #[must_use]
    pub const fn complement(self) -> Self {
        Self(u32::MAX - self.0)
    }
}

/// In percent, with up to six digits that matter.
impl fmt::Display for Probability {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = f64::from(self.0) / f64::from(u32::MAX) * 100.0;
        write!(out, "{}%", libm::round(percent * 1e6) / 1e6)
    }
}

/// How likely something is, and how much that depends on the last time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance {
    /// How likely it is.
    pub probability: Probability,
    /// The weight of the random number before.
    pub correlation: Probability,
}

/// The random number before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Correlated {
    last: u32,
}

impl Correlated {
    /// The next one.
    pub(super) fn draw(&mut self, correlation: Probability, random: &mut impl FnMut() -> u32) -> u32 {
        let fresh = random();
        if correlation == Probability::NEVER {
            return fresh;
        }
        let weight = u64::from(correlation.0) + 1;
        // Both weights add up to 2^32, so the sum fits.
        let sum = u64::from(fresh) * ((1 << 32) - weight) + u64::from(self.last) * weight;
        self.last = (sum >> 32) as u32;
        self.last
    }

    /// Whether it happens. What never does draws nothing.
    pub(super) fn happens(&mut self, chance: Chance, random: &mut impl FnMut() -> u32) -> bool {
        chance.probability != Probability::NEVER
            && chance.probability.0 >= self.draw(chance.correlation, random)
    }
}

#[cfg(test)]
mod tests {
    use super::{Chance, Correlated, Probability};
    use alloc::string::ToString as _;

    /// Goal: a probability is shown in percent, to a millionth. Method: the bounds, whole and broken ones.
    #[test]
    fn in_percent() {
        for (percent, text) in
            [(0.0, "0%"), (100.0, "100%"), (25.0, "25%"), (0.3, "0.3%"), (12.345_678_4, "12.345678%")]
        {
            assert_eq!(Probability::percent(percent).map(|shown| shown.to_string()).as_deref(), Some(text));
        }
    }

    fn counted(count: &mut u32) -> impl FnMut() -> u32 {
        move || {
            *count += 1;
            u32::MAX / 2
        }
    }

    /// Goal: what never happens draws nothing, what always does draws one; full correlation repeats the
    /// first number for ever. Method: a generator that counts.
    #[test]
    fn draws_are_as_netem_makes_them() {
        let mut count = 0;
        let mut last = Correlated::default();
        assert!(!last.happens(Chance::default(), &mut counted(&mut count)));
        assert_eq!(count, 0);
        let always = Chance { probability: Probability::ALWAYS, correlation: Probability::NEVER };
        assert!(last.happens(always, &mut counted(&mut count)));
        assert_eq!((count, last.last), (1, 0), "nothing is kept without correlation");
        let mut full = Correlated { last: 77 };
        assert_eq!(full.draw(Probability::ALWAYS, &mut counted(&mut count)), 77);
        let half = Probability::from_share(u32::MAX / 2);
        assert_eq!(Correlated { last: 0 }.draw(half, &mut || 1_000), 500);
        assert_eq!(Correlated { last: 1_000 }.draw(half, &mut || 0), 500);
    }
}
