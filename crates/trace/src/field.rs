//! The text after an event's name: `key=value` pairs, and the numbers in them.
//!
//! A cursor walks forward, because the kernel prints fields in a fixed order; a key that is not
//! where it is expected is searched for, so extra or reordered fields of other kernels and of
//! `trace-cmd report` do not matter. Nothing here allocates or panics.

use quietcore_core::CpuId;
use std::fmt;

/// Why a line that looks like an event could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// There is no `TASK-PID [CPU]` at the front.
    NoTask,
    /// The number in `[...]` is not a CPU.
    Cpu,
    /// There is no `seconds.fraction:` after the CPU.
    NoTimestamp,
    /// The event has no such field.
    MissingField(&'static str),
    /// The field holds something that is no number in its range.
    NotANumber(&'static str),
    /// The field holds something that is no pointer.
    NotAPointer(&'static str),
    /// The field holds a number that is no CPU.
    NotACpu(&'static str),
    /// The line is longer than [`crate::LINE_BYTES_MAX`].
    TooLong,
}

/// Lower case, no full stop, names the field.
impl fmt::Display for Malformed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTask => write!(out, "no TASK-PID [CPU] at the front"),
            Self::Cpu => write!(out, "the number in [ ] is no CPU"),
            Self::NoTimestamp => write!(out, "no time stamp after [CPU]"),
            Self::MissingField(key) => write!(out, "no field {key}"),
            Self::NotANumber(key) => write!(out, "field {key} holds no number"),
            Self::NotAPointer(key) => write!(out, "field {key} holds no pointer"),
            Self::NotACpu(key) => write!(out, "field {key} holds no CPU number"),
            Self::TooLong => write!(out, "line longer than {} bytes", crate::lines::LINE_BYTES_MAX),
        }
    }
}

impl std::error::Error for Malformed {}

/// A cursor over the fields of one event.
pub(crate) struct Fields<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(all: &'a [u8]) -> Self {
        Self { all, at: 0 }
    }

    /// The value of `key` (which ends in `=`), up to the next space; `None` when it is absent.
    pub(crate) fn optional(&mut self, key: &'static str) -> Option<&'a [u8]> {
        let found = self.find(key)?;
        let value = &self.all[found..];
        let end = memchr::memchr(b' ', value).unwrap_or(value.len());
        self.at = (found + end + 1).min(self.all.len());
        Some(&value[..end])
    }

    /// What stands in `key=ARRAY[...]`, where spaces may be; `None` when the value is no array.
    pub(crate) fn array(&self, key: &'static str) -> Option<&'a [u8]> {
        let array = self.all[self.find(key)?..].strip_prefix(b"ARRAY[")?;
        Some(&array[..memchr::memchr(b']', array)?])
    }

    /// The value of `key`, or the reason why the line is malformed.
    pub(crate) fn text(&mut self, key: &'static str) -> Result<&'a [u8], Malformed> {
        self.optional(key).ok_or(Malformed::MissingField(key))
    }

    /// A decimal `u64`.
    pub(crate) fn number(&mut self, key: &'static str) -> Result<u64, Malformed> {
        unsigned(self.text(key)?).ok_or(Malformed::NotANumber(key))
    }

    /// A decimal `i64`, a trailing `]` allowed (`[timeout=250]`).
    pub(crate) fn signed(&mut self, key: &'static str) -> Result<i64, Malformed> {
        let text = self.text(key)?;
        let text = text.strip_suffix(b"]").unwrap_or(text);
        signed(text).ok_or(Malformed::NotANumber(key))
    }

    /// A hexadecimal mask of at most 32 bits.
    pub(crate) fn mask(&mut self, key: &'static str) -> Result<u32, Malformed> {
        hexadecimal(self.text(key)?)
            .and_then(|mask| u32::try_from(mask).ok())
            .ok_or(Malformed::NotANumber(key))
    }

    /// A pointer, hashed or not, with or without `0x`; `(nil)` and `(null)` are 0.
    pub(crate) fn pointer(&mut self, key: &'static str) -> Result<u64, Malformed> {
        pointer(self.text(key)?).ok_or(Malformed::NotAPointer(key))
    }

    /// A function's name without the offset that some formats append.
    pub(crate) fn function(&mut self, key: &'static str) -> Result<&'a [u8], Malformed> {
        let text = self.text(key)?;
        let end = text.iter().position(|&byte| matches!(byte, b'/' | b'+' | b',')).unwrap_or(text.len());
        Ok(&text[..end])
    }

    /// A CPU's number.
    pub(crate) fn cpu(&mut self, key: &'static str) -> Result<CpuId, Malformed> {
        let number = unsigned(self.text(key)?).ok_or(Malformed::NotACpu(key))?;
        CpuId::new(number).map_err(|_| Malformed::NotACpu(key))
    }

    /// What lies between `key` and the last occurrence of `until` (which begins with a space): for
    /// task names, which may hold anything, `until` included. Goes on at the word of `until`.
    pub(crate) fn between(&mut self, key: &'static str, until: &'static str) -> Option<&'a [u8]> {
        let found = self.find(key)?;
        let length = memchr::memmem::rfind(&self.all[found..], until.as_bytes())?;
        self.at = found + length + 1;
        Some(&self.all[found..found + length])
    }

    /// Byte offset just behind `key`: at the cursor, else at a later word, else at any word.
    fn find(&self, key: &'static str) -> Option<usize> {
        let key = key.as_bytes();
        let word_from = |mut at: usize| loop {
            if self.all[at..].starts_with(key) {
                return Some(at + key.len());
            }
            at += memchr::memchr(b' ', &self.all[at..])? + 1;
        };
        word_from(self.at).or_else(|| word_from(0))
    }
}

/// Decimal digits as `u64`; `None` on anything else or on overflow.
pub(crate) fn unsigned(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    let mut value = 0u64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// Decimal digits with an optional minus sign.
pub(crate) fn signed(text: &[u8]) -> Option<i64> {
    match text.strip_prefix(b"-") {
        Some(digits) => unsigned(digits).and_then(|value| 0i64.checked_sub_unsigned(value)),
        None => unsigned(text).and_then(|value| i64::try_from(value).ok()),
    }
}

/// Hexadecimal digits, with or without `0x`.
pub(crate) fn hexadecimal(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let mut value = 0u64;
    for &byte in digits {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => return None,
        };
        value = value << 4 | u64::from(digit);
    }
    Some(value)
}

/// A pointer as any of our formats prints it.
pub(crate) fn pointer(text: &[u8]) -> Option<u64> {
    match text {
        b"(nil)" | b"(null)" => Some(0),
        _ => hexadecimal(text.strip_suffix(b",").unwrap_or(text).strip_suffix(b":").unwrap_or(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Fields, Malformed, hexadecimal, pointer, signed, unsigned};

    /// Goal: fields are found in any order, and only at a word's start.
    #[test]
    fn a_key_is_found_wherever_it_stands() {
        let mut fields = Fields::new(b"xcpu=1 cpu=2 now=7");
        assert_eq!(fields.number("now="), Ok(7));
        assert_eq!(fields.number("cpu="), Ok(2), "xcpu= is another key");
        assert_eq!(fields.number("idx="), Err(Malformed::MissingField("idx=")));
        let mut twice = Fields::new(b"cpu=3 now=4 cpu=5");
        let numbers = ["cpu=", "cpu=", "cpu="].map(|key| twice.number(key));
        assert_eq!(numbers, [Ok(3), Ok(5), Ok(3)], "the cursor walks forward, then begins again");
    }

    /// Goal: numbers at and beyond their range. Method: both edges.
    #[test]
    fn numbers_end_at_their_range() {
        assert_eq!(unsigned(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(unsigned(b"18446744073709551616"), None);
        assert_eq!(signed(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(signed(b"9223372036854775808"), None);
        assert_eq!((unsigned(b""), signed(b"-"), unsigned(b"1:")), (None, None, None));
        assert_eq!(
            (hexadecimal(b"ffffffffffffffff"), hexadecimal(b"10000000000000005")),
            (Some(u64::MAX), None)
        );
    }

    /// Goal: every spelling of a pointer that our formats use.
    #[test]
    fn pointers_have_several_spellings() {
        for (text, value) in [
            ("00000000cefecd69", Some(0xcefe_cd69)),
            ("0xffff888627d28f90", Some(0xffff_8886_27d2_8f90)),
            ("0xABCDEF", Some(0xab_cdef)),
            ("(nil)", Some(0)),
            ("000000005a4b6ff6:", Some(0x5a4b_6ff6)),
            ("(____ptrval____)", None),
            ("", None),
        ] {
            assert_eq!(pointer(text.as_bytes()), value, "{text:?}");
        }
    }
}
