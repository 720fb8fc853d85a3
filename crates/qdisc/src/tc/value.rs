//! What can stand behind an option: how each kind of value is read, and written back.
//!
//! Invariant, of every type here: what [`Show`] writes, [`Scalar`] or [`OptionValue`] reads back as it was.

use super::error::{TcError, TcProblem};
use super::number::{hexadecimal, integer, scientific};
use super::scalar::{Scalar, Show, shown_as_displayed};
use super::units::{self, BitRate, Bytes, Minor, Percent};
use super::words::LineWords;
use crate::{ClassId, LinkLayer};
use alloc::format;
use core::fmt::{self, Formatter};
use quietcore_core::Nanos;

/// What stands behind the name of an option: one word, several, or none.
pub(crate) trait OptionValue: Sized {
    /// Takes it; the word `name` was just taken.
    fn take(words: &mut LineWords<'_>, name: &'static str) -> Result<Self, TcError>;

    /// Takes what stands behind a further name of an option that may be told with several; the name was just
    /// taken, and this is what the ones before said. Nothing if the option stands once.
    fn take_again(&self, words: &mut LineWords<'_>) -> Option<Result<Self, TcError>> {
        let _ = words;
        None
    }

    /// Writes the name and the value, each behind a blank.
    fn put(&self, name: &'static str, out: &mut Formatter<'_>) -> fmt::Result;
}

impl<T: Scalar> OptionValue for T {
    fn take(words: &mut LineWords<'_>, name: &'static str) -> Result<Self, TcError> {
        words.scalar(name)
    }

    fn put(&self, name: &'static str, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {name}")?;
        self.show(out)
    }
}

/// Brings a number into a type, or says that type's range in its own form.
fn fit<T: TryFrom<u128>>(number: u128, low: &str, high: impl fmt::Display) -> Result<T, TcProblem> {
    T::try_from(number).map_err(|_| TcProblem::OutOfRange { low: low.into(), high: format!("{high}") })
}

shown_as_displayed!(u8, u16, u32, u64, i32, BitRate, Bytes, Percent, Minor, ClassId);

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Scalar for $ty {
            const ALLOWED: &'static [&'static str] = &[];

            fn read(word: &str) -> Result<Self, TcProblem> {
                fit(integer(word).ok_or(TcProblem::Malformed("an integer"))?, "0", Self::MAX)
            }
        }
    )*};
}

integers!(u8, u16, u32, u64);

impl Scalar for i32 {
    const ALLOWED: &'static [&'static str] = &[];

    fn read(word: &str) -> Result<Self, TcProblem> {
        let digits = word.strip_prefix('-');
        let size = integer(digits.unwrap_or(word)).ok_or(TcProblem::Malformed("an integer"))?;
        // At most 2^64: the conversion is exact.
        let value = if digits.is_some() { -(size as i128) } else { size as i128 };
        let range =
            || TcProblem::OutOfRange { low: format!("{}", Self::MIN), high: format!("{}", Self::MAX) };
        Self::try_from(value).map_err(|_| range())
    }

    fn begins(word: &str) -> bool {
        word.strip_prefix('-').unwrap_or(word).starts_with(|c: char| c.is_ascii_digit())
    }
}

/// Reads a number and its unit; units differ in case only in how they are written.
fn with_unit(word: &str, units: &[(&str, u64)], form: &'static str) -> Result<u128, TcProblem> {
    let (number, unit) = scientific(word).ok_or(TcProblem::Malformed(form))?;
    let known = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
    let (_, one) = known.ok_or(TcProblem::Malformed(form))?;
    Ok(number.scaled(u128::from(*one)))
}

impl Scalar for BitRate {
    const ALLOWED: &'static [&'static str] = &[
        "a number with bit, kbit, mbit, gbit, tbit (per second)",
        "bytes with bps to tbps",
        "kibit and so on",
    ];

    fn read(word: &str) -> Result<Self, TcProblem> {
        fit(with_unit(word, units::RATES, "a rate")?, "0", format_args!("{}bit", u64::MAX)).map(Self)
    }
}

impl Scalar for Bytes {
    const ALLOWED: &'static [&'static str] = &["a number with b, k, m or g (bytes)", "kbit, mbit or gbit"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        fit(with_unit(word, units::SIZES, "a size")?, "0", u32::MAX).map(Self)
    }
}

impl Show for Nanos {
    fn show(&self, out: &mut Formatter<'_>) -> fmt::Result {
        units::write_largest(out, " ", self.0, units::TIMES_WRITTEN)
    }
}

/// At most 2^63 - 1 ns, as the kernel's times are signed.
impl Scalar for Nanos {
    const ALLOWED: &'static [&'static str] = &["a number with s, ms, us or ns"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        let nanos: i64 = fit(with_unit(word, units::TIMES, "a time")?, "0", format_args!("{}ns", i64::MAX))?;
        Ok(Self(nanos.unsigned_abs()))
    }
}

impl Scalar for Percent {
    const ALLOWED: &'static [&'static str] = &["a number from 0 to 100, with or without %"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        let units: &[(&str, u64)] = &[("", units::PERCENT), ("%", units::PERCENT)];
        let billionths = with_unit(word, units, "a percentage")?;
        let known = u64::try_from(billionths).ok().and_then(Self::from_billionths);
        known.ok_or_else(|| TcProblem::OutOfRange { low: "0%".into(), high: "100%".into() })
    }
}

impl Scalar for Minor {
    const ALLOWED: &'static [&'static str] = &["a hexadecimal number from 0 to ffff"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        let number = hexadecimal(word).ok_or(TcProblem::Malformed("the number of a class"))?;
        fit(number, "0", "ffff").map(Self)
    }
}

impl Show for LinkLayer {
    fn show(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Ethernet => " ethernet",
            Self::Atm => " atm",
        })
    }
}

impl Scalar for LinkLayer {
    const ALLOWED: &'static [&'static str] = &["ethernet", "atm", "adsl"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        match word {
            "ethernet" => Ok(Self::Ethernet),
            "atm" | "adsl" => Ok(Self::Atm),
            _ => Err(TcProblem::Malformed("a link layer")),
        }
    }
}

/// A class, or a discipline: `1:10`, `1:`. The first number is not 0.
impl Scalar for ClassId {
    const ALLOWED: &'static [&'static str] = &["MAJOR:MINOR in hexadecimal, from 1: to ffff:ffff"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        let form = "an id such as 1:10";
        let (major, minor) = word.split_once(':').ok_or(TcProblem::Malformed(form))?;
        let number = |digits: &str| id_number(digits, "ffff:ffff", form);
        let minor = if minor.is_empty() { 0 } else { number(minor)? };
        Ok(Self::new(major_number(number(major)?, "ffff:ffff")?, minor))
    }
}

/// A number of an id: hexadecimal, and nothing but digits.
fn id_number(digits: &str, high: &str, form: &'static str) -> Result<u16, TcProblem> {
    let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = if plain { hexadecimal(digits) } else { None };
    fit(number.ok_or(TcProblem::Malformed(form))?, "1:", high)
}

fn major_number(number: u16, high: &str) -> Result<u16, TcProblem> {
    if number > 0 { Ok(number) } else { Err(TcProblem::OutOfRange { low: "1:".into(), high: high.into() }) }
}

/// What a discipline is called: an id without a class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QdiscHandle(pub(crate) ClassId);

impl Show for QdiscHandle {
    fn show(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.0.show(out)
    }
}

impl Scalar for QdiscHandle {
    const ALLOWED: &'static [&'static str] = &["MAJOR: in hexadecimal, from 1: to ffff:"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        let form = "a handle such as 1:";
        // `tc` takes a handle without its colon, too, and forgets what stands behind it.
        let is_minor =
            |minor: &str| minor.is_empty() || hexadecimal(minor).is_some_and(|minor| minor <= 0xffff);
        let (digits, _) = word.split_once(':').filter(|(_, minor)| is_minor(minor)).unwrap_or((word, ""));
        let number = id_number(digits, "ffff:", form)?;
        Ok(Self(ClassId::new(major_number(number, "ffff:")?, 0)))
    }
}
