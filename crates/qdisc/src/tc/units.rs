//! Rates, sizes, percentages: what is behind the units of `tc`, and how they are written back.
//!
//! Sizes are in binary thousands, rates in decimal ones (`kibit` and its like are binary); `bps` is bytes.
//! Source: tc(8), "PARAMETERS".

use core::fmt::{self, Formatter};

const KIBI: u64 = 1 << 10;
const MEBI: u64 = 1 << 20;
const GIBI: u64 = 1 << 30;
const TEBI: u64 = 1 << 40;
const KILO: u64 = 1_000;
const MEGA: u64 = 1_000_000;
const GIGA: u64 = 1_000_000_000;
const TERA: u64 = 1_000_000_000_000;

/// Units of rates, in bits per second.
pub(crate) const RATES: &[(&str, u64)] = &[
    ("", 1),
    ("bit", 1),
    ("kbit", KILO),
    ("mbit", MEGA),
    ("gbit", GIGA),
    ("tbit", TERA),
    ("kibit", KIBI),
    ("mibit", MEBI),
    ("gibit", GIBI),
    ("tibit", TEBI),
    ("bps", 8),
    ("kbps", 8 * KILO),
    ("mbps", 8 * MEGA),
    ("gbps", 8 * GIGA),
    ("tbps", 8 * TERA),
    ("kibps", 8 * KIBI),
    ("mibps", 8 * MEBI),
    ("gibps", 8 * GIBI),
    ("tibps", 8 * TEBI),
];

/// Units of sizes, in bytes.
pub(crate) const SIZES: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", KIBI),
    ("kb", KIBI),
    ("m", MEBI),
    ("mb", MEBI),
    ("g", GIBI),
    ("gb", GIBI),
    ("kbit", KIBI / 8),
    ("mbit", MEBI / 8),
    ("gbit", GIBI / 8),
];

/// Units of times, in nanoseconds.
pub(crate) const TIMES: &[(&str, u64)] = &[
    ("", KILO),
    ("s", GIGA),
    ("sec", GIGA),
    ("secs", GIGA),
    ("ms", MEGA),
    ("msec", MEGA),
    ("msecs", MEGA),
    ("us", KILO),
    ("usec", KILO),
    ("usecs", KILO),
    ("ns", 1),
    ("nsec", 1),
    ("nsecs", 1),
];

/// One percent, in billionths of one.
pub(crate) const PERCENT: u64 = GIGA;

/// Units in which times are written, the largest first.
pub(crate) const TIMES_WRITTEN: &[(&str, u64)] = &[("s", GIGA), ("ms", MEGA), ("us", KILO), ("ns", 1)];
const RATES_WRITTEN: &[(&str, u64)] =
    &[("tbit", TERA), ("gbit", GIGA), ("mbit", MEGA), ("kbit", KILO), ("bit", 1)];
const SIZES_WRITTEN: &[(&str, u64)] = &[("gb", GIBI), ("mb", MEBI), ("kb", KIBI), ("b", 1)];

/// Writes `number` in the largest unit of which it is a whole multiple; 0 in the smallest.
pub(crate) fn write_largest(
    out: &mut Formatter<'_>,
    before: &str,
    number: u64,
    units: &[(&str, u64)],
) -> fmt::Result {
    let mut whole = units.iter().filter(|(_, one)| number.is_multiple_of(*one));
    // Nothing is nothing of the smallest.
    let unit = if number == 0 { whole.next_back() } else { whole.next() };
    let (name, one) = unit.copied().unwrap_or(("", 1));
    write!(out, "{before}{}{name}", number / one)
}

/// A rate, in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(
    /// Bits per second.
    pub u64,
);

impl BitRate {
    /// Whole bytes per second: what `tc` tells the kernel.
    #[must_use]
    pub const fn bytes_per_second(self) -> u64 {
        self.0 / 8
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write_largest(out, "", self.0, RATES_WRITTEN)
    }
}

/// A size, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(
    /// Bytes.
    pub u32,
);

impl fmt::Display for Bytes {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write_largest(out, "", u64::from(self.0), SIZES_WRITTEN)
    }
}

/// A percentage, from 0 to 100, in billionths of one percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u64);

impl Percent {
    /// From billionths of one percent; `None` above 100 percent.
    #[must_use]
    pub const fn from_billionths(billionths: u64) -> Option<Self> {
        if billionths <= 100 * PERCENT { Some(Self(billionths)) } else { None }
    }

    /// 0 percent.
    pub(crate) const NONE: Self = Self(0);

    /// What is left of 100 percent.
    pub(crate) const fn complement(self) -> Self {
        Self(100 * PERCENT - self.0)
    }

    /// In billionths of one percent.
    #[must_use]
    pub const fn billionths(self) -> u64 {
        self.0
    }

    /// As a share of 2^32 - 1, which is 100 percent; rounded to the nearest.
    #[must_use]
    pub const fn share(self) -> u32 {
        let all = 100 * PERCENT as u128;
        // Not above `u32::MAX`: the percentage is not above 100.
        ((self.0 as u128 * u32::MAX as u128 + all / 2) / all) as u32
    }
}

/// `0.25%`, with as many digits as it takes.
impl fmt::Display for Percent {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let (whole, mut fraction, mut digits) = (self.0 / PERCENT, self.0 % PERCENT, 9);
        if fraction == 0 {
            return write!(out, "{whole}%");
        }
        while fraction.is_multiple_of(10) {
            (fraction, digits) = (fraction / 10, digits - 1);
        }
        write!(out, "{whole}.{fraction:0digits$}%")
    }
}

/// The second number of a class, in hexadecimal: what `default` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Minor(
    /// The number.
    pub u16,
);

impl fmt::Display for Minor {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{:x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::scalar::Scalar;
    use super::{BitRate, Bytes, Percent, RATES, SIZES, TIMES};
    use quietcore_core::Nanos;
    use std::format;
    use std::string::ToString;

    /// Goal: every unit is what iproute2 makes of it. Method: each name with its value as the manual has
    /// it, and that there are no others: rates in decimal thousands but for those with an `i`, sizes in
    /// binary ones, also those in bits.
    #[test]
    fn every_unit() {
        let rates: [(&str, u64); 19] = [
            ("", 1),
            ("bit", 1),
            ("kbit", 1_000),
            ("mbit", 1_000_000),
            ("gbit", 1_000_000_000),
            ("tbit", 1_000_000_000_000),
            ("kibit", 1_024),
            ("mibit", 1_048_576),
            ("gibit", 1_073_741_824),
            ("tibit", 1_099_511_627_776),
            ("bps", 8),
            ("kbps", 8_000),
            ("mbps", 8_000_000),
            ("gbps", 8_000_000_000),
            ("tbps", 8_000_000_000_000),
            ("kibps", 8_192),
            ("mibps", 8_388_608),
            ("gibps", 8_589_934_592),
            ("tibps", 8_796_093_022_208),
        ];
        for (unit, bits) in rates {
            assert_eq!(BitRate::read(&format!("3{unit}")), Ok(BitRate(3 * bits)), "{unit}");
        }
        let sizes: [(&str, u32); 11] = [
            ("", 1),
            ("b", 1),
            ("k", 1_024),
            ("kb", 1_024),
            ("m", 1_048_576),
            ("mb", 1_048_576),
            ("g", 1_073_741_824),
            ("gb", 1_073_741_824),
            ("kbit", 128),
            ("mbit", 131_072),
            ("gbit", 134_217_728),
        ];
        for (unit, bytes) in sizes {
            assert_eq!(Bytes::read(&format!("3{unit}")), Ok(Bytes(3 * bytes)), "{unit}");
        }
        let times: [(&str, u64); 13] = [
            ("", 1_000),
            ("s", 1_000_000_000),
            ("sec", 1_000_000_000),
            ("secs", 1_000_000_000),
            ("ms", 1_000_000),
            ("msec", 1_000_000),
            ("msecs", 1_000_000),
            ("us", 1_000),
            ("usec", 1_000),
            ("usecs", 1_000),
            ("ns", 1),
            ("nsec", 1),
            ("nsecs", 1),
        ];
        for (unit, nanos) in times {
            assert_eq!(Nanos::read(&format!("3{unit}")), Ok(Nanos(3 * nanos)), "{unit}");
        }
        assert_eq!((RATES.len(), SIZES.len(), TIMES.len()), (rates.len(), sizes.len(), times.len()));
    }

    /// Goal: units are those of the manual. Method: texts and what they are, in any case of letters.
    #[test]
    fn units() {
        for (text, bits) in [
            ("8", 8),
            ("1.5mbit", 1_500_000),
            ("1Mbit", 1_000_000),
            ("1KIBIT", 1_024),
            ("1bps", 8),
            ("1kbps", 8_000),
            ("0.5tbit", 500_000_000_000),
            ("2gibps", 17_179_869_184),
            ("0.3333kbit", 333),
        ] {
            assert_eq!(BitRate::read(text), Ok(BitRate(bits)), "{text}");
        }
        for (text, bytes) in [
            ("1514", 1_514),
            ("1b", 1),
            ("5k", 5_120),
            ("5KB", 5_120),
            ("0.5mb", 524_288),
            ("8kbit", 1_024),
            ("3g", 3_221_225_472),
        ] {
            assert_eq!(Bytes::read(text), Ok(Bytes(bytes)), "{text}");
        }
        for (text, nanos) in [
            ("6ms", 6_000_000),
            ("1sec", 1_000_000_000),
            ("4SECS", 4_000_000_000),
            ("70", 70_000),
            ("1.5us", 1_500),
            ("0.001usec", 1),
            ("9nsecs", 9),
        ] {
            assert_eq!(Nanos::read(text), Ok(Nanos(nanos)), "{text}");
        }
    }

    /// Goal: a percentage keeps its digits. Method: texts, billionths, shares, and back.
    #[test]
    fn percentages() {
        for (text, billionths, share, written) in [
            ("0", 0, 0, "0%"),
            ("50%", 50_000_000_000, 1 << 31, "50%"),
            ("0.1", 100_000_000, 4_294_967, "0.1%"),
            ("100.0%", 100_000_000_000, u32::MAX, "100%"),
            ("33.300000001%", 33_300_000_001, 1_430_224_109, "33.300000001%"),
        ] {
            let percent = Percent::read(text).expect("a percentage");
            let seen = (percent.billionths(), percent.share(), percent.to_string());
            assert_eq!(seen, (billionths, share, written.to_string()), "{text}");
        }
        assert!(Percent::read("100.000000001").is_err() && Percent::read("1%%").is_err());
    }
}
