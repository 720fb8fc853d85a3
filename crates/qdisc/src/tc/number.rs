//! Numbers, without floating point: decimal fractions with a unit, and integers in three bases.
//!
//! A fraction is exact to its 18th digit, and what is left over when it is brought to whole units is cut off,
//! as `tc` does. Numbers that are too large stay too large: they saturate above every range.

/// More than any range: what too many digits become.
const TOO_LARGE: u128 = 1 << 64;
/// Digits behind the point that count.
const FRACTION_DIGITS: usize = 18;
const FRACTION: u128 = 10_u128.pow(FRACTION_DIGITS as u32);

/// A decimal number that is not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    /// At most [`TOO_LARGE`].
    whole: u128,
    /// In parts of [`FRACTION`].
    fraction: u128,
}

impl Decimal {
    /// How many whole ones it is, if one is `unit` of them; `unit` is below 2^60.
    pub(crate) const fn scaled(self, unit: u128) -> u128 {
        self.whole * unit + self.fraction * unit / FRACTION
    }

    /// A tenth of it, or ten times as much.
    fn shifted(self, is_down: bool) -> Self {
        let Self { whole, fraction } = self;
        if is_down {
            return Self { whole: whole / 10, fraction: (whole % 10 * FRACTION + fraction) / 10 };
        }
        let carried = fraction * 10 / FRACTION;
        Self { whole: (whole * 10 + carried).min(TOO_LARGE), fraction: fraction * 10 % FRACTION }
    }
}

/// Splits `1.5mbit` into its number and its unit; `None` without a digit at the beginning.
pub(crate) fn decimal(text: &str) -> Option<(Decimal, &str)> {
    let (whole, rest) = digits(text);
    let (fraction, unit) = rest.strip_prefix('.').map_or(("", rest), digits);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = whole.bytes().fold(0, |sum, digit| push(sum, u32::from(digit - b'0'), 10));
    let padded = fraction.bytes().chain(core::iter::repeat(b'0')).take(FRACTION_DIGITS);
    let fraction = padded.fold(0, |sum, digit| sum * 10 + u128::from(digit - b'0'));
    Some((Decimal { whole, fraction }, unit))
}

/// A decimal number with a power of ten behind it, as C reads one: `1e-1`. A letter that no number follows is
/// the beginning of a unit.
pub(crate) fn scientific(text: &str) -> Option<(Decimal, &str)> {
    let (number, unit) = decimal(text)?;
    let Some(rest) = unit.strip_prefix(['e', 'E']) else { return Some((number, unit)) };
    let (is_negative, rest) = match rest.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, rest.strip_prefix('+').unwrap_or(rest)),
    };
    let (exponent, behind) = digits(rest);
    if exponent.is_empty() {
        return Some((number, unit));
    }
    // More than the digits that count are as good as any number of them.
    let exponent = exponent.parse().unwrap_or(u32::MAX).min(2 * FRACTION_DIGITS as u32);
    Some(((0..exponent).fold(number, |number, _| number.shifted(is_negative)), behind))
}

/// An integer as C reads it: `0x` is hexadecimal, a leading `0` octal.
pub(crate) fn integer(text: &str) -> Option<u128> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return based(digits, 16);
    }
    let octal = text.len() > 1 && text.starts_with('0');
    based(text, if octal { 8 } else { 10 })
}

/// An integer in hexadecimal, with or without `0x`.
pub(crate) fn hexadecimal(text: &str) -> Option<u128> {
    based(text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text), 16)
}

fn based(digits: &str, base: u32) -> Option<u128> {
    if digits.is_empty() {
        return None;
    }
    digits.chars().try_fold(0, |sum, c| Some(push(sum, c.to_digit(base)?, base)))
}

fn push(sum: u128, digit: u32, base: u32) -> u128 {
    (sum * u128::from(base) + u128::from(digit)).min(TOO_LARGE)
}

/// The decimal digits at the beginning, and the rest.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

#[cfg(test)]
mod tests {
    use super::{TOO_LARGE, decimal, hexadecimal, integer, scientific};

    /// Goal: fractions are exact. Method: texts, a unit, and the whole units that they are.
    #[test]
    fn fractions() {
        for (text, unit, value, rest) in [
            ("1.5mbit", 1_000_000, 1_500_000, "mbit"),
            ("0.1", 1_000_000_000, 100_000_000, ""),
            (".25k", 1_024, 256, "k"),
            ("7.", 1, 7, ""),
            ("0.333333333333333333999", 3, 0, ""),
            ("0.9999", 1_000, 999, ""),
            ("18446744073709551615", 1, u128::from(u64::MAX), ""),
            ("99999999999999999999999999999999999999999999999", 1, TOO_LARGE, ""),
        ] {
            let (number, unit_text) = decimal(text).expect("a number");
            assert_eq!((number.scaled(unit), unit_text), (value, rest), "{text}");
        }
        for text in ["", ".", "k", "-1", "+1", ".k"] {
            assert_eq!(decimal(text), None, "{text}");
        }
    }

    /// Goal: powers of ten are read as C reads them. Method: both signs, none, one that no number follows,
    /// and more than there are digits for.
    #[test]
    fn powers_of_ten() {
        for (text, unit, value, rest) in [
            ("1e-1%", 1_000, 100, "%"),
            ("2.5E+2", 1, 250, ""),
            ("12e1", 1, 120, ""),
            ("1eb", 1, 1, "eb"),
            ("3e-99", 1_000_000, 0, ""),
            ("3e99", 1, TOO_LARGE, ""),
        ] {
            let (number, unit_text) = scientific(text).expect("a number");
            assert_eq!((number.scaled(unit), unit_text), (value, rest), "{text}");
        }
        assert_eq!(scientific("e1"), None);
    }

    /// Goal: integers in all bases. Method: texts and values, and texts that are none.
    #[test]
    fn integers() {
        for (text, value) in [
            ("0", 0),
            ("10", 10),
            ("010", 8),
            ("0x10", 16),
            ("0XfF", 255),
            ("98765432109876543210", TOO_LARGE),
        ] {
            assert_eq!(integer(text), Some(value), "{text}");
        }
        for text in ["", "0x", "08", "1.5", "-1", "+1", "1k", "ä"] {
            assert_eq!(integer(text), None, "{text}");
        }
        assert_eq!((hexadecimal("10"), hexadecimal("0x10"), hexadecimal("g")), (Some(16), Some(16), None));
    }
}
