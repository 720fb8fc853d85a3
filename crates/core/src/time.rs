//! Time as every quietcore crate counts it: unsigned nanoseconds.
//!
//! Not here: clocks. A moment arrives as an argument; only a world reads a clock.

use core::fmt;

/// A moment or a span in nanoseconds (`u64`: 584 years).
///
/// Which of the two it is follows from the field that holds it; moments of one recording share
/// one clock. Arithmetic saturates at both ends, so hostile input cannot make it panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(
    /// The count of nanoseconds.
    pub u64,
);

impl Nanos {
    /// Microseconds as nanoseconds; saturates.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// The count of nanoseconds.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to `self`, 0 when `earlier` is the later one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// The same span in seconds, for rates and text.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

/// Stands for "never" wherever a moment that may not come is one word.
pub(crate) const NEVER: u64 = u64::MAX;

#[inline]
pub(crate) fn to_word(moment: Option<Nanos>) -> u64 {
    moment.map_or(NEVER, |moment| moment.0)
}

#[inline]
pub(crate) fn from_word(word: u64) -> Option<Nanos> {
    (word != NEVER).then_some(Nanos(word))
}

/// Two to four significant digits in the unit a reader would choose: `950 ns`, `12.3 us`, `4 ms`.
impl fmt::Display for Nanos {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "us"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let (whole, tenth) = (self.0 / unit, self.0 % unit * 10 / unit);
        if whole >= 100 || tenth == 0 {
            write!(out, "{whole} {name}")
        } else {
            write!(out, "{whole}.{tenth} {name}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Nanos;
    use alloc::string::ToString;

    /// Goal: the unit changes exactly at its boundary. Method: both edges of every unit.
    #[test]
    fn display_picks_the_unit_at_its_boundary() {
        for (nanos, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1 us"),
            (12_345, "12.3 us"),
            (999_999, "999 us"),
            (1_000_000, "1 ms"),
            (999_999_999, "999 ms"),
            (1_000_000_000, "1 s"),
            (u64::MAX, "18446744073 s"),
        ] {
            assert_eq!(Nanos(nanos).to_string(), text, "{nanos} ns");
        }
    }
}
