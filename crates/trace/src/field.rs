//! The text after an event's name: `key=value` pairs, and the numbers in them.
//!
//! A cursor walks forward, because the kernel prints fields in a fixed order; a key that is not
//! where it is expected is searched for, so extra or reordered fields of other kernels and of
//! `trace-cmd report` do not matter. Nothing here allocates or panics.

use crate::word;
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
///
/// Each kind of value is read twice over: in its usual form where the cursor is, eight bytes at a time
/// ([`word`]), and else in any form, wherever it stands. The first is the second with its conditions looked
/// at before.
pub(crate) struct Fields<'a> {
    all: &'a [u8],
    /// What lies behind the cursor: an end of `all`.
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn new(all: &'a [u8]) -> Self {
        Self { all, rest: all }
    }

    /// The value of `key` (which ends in `=`), up to the next space; `None` when it is absent.
    #[inline(always)]
    pub(crate) fn optional(&mut self, key: &'static str) -> Option<&'a [u8]> {
        let value = self.here(key).or_else(|| self.find(key))?;
        Some(self.take(value, word::before_space(value)))
    }

    /// What stands in `key=ARRAY[...]`, where spaces may be; `None` when the value is no array.
    pub(crate) fn array(&self, key: &'static str) -> Option<&'a [u8]> {
        let array = self.find(key)?.strip_prefix(b"ARRAY[")?;
        Some(&array[..memchr::memchr(b']', array)?])
    }

    /// The value of `key`, or the reason why the line is malformed.
    #[inline(always)]
    pub(crate) fn text(&mut self, key: &'static str) -> Result<&'a [u8], Malformed> {
        self.optional(key).ok_or(Malformed::MissingField(key))
    }

    /// A decimal `u64`.
    #[inline(always)]
    pub(crate) fn number(&mut self, key: &'static str) -> Result<u64, Malformed> {
        match self.usual_number(key) {
            Some(number) => Ok(number),
            None => self.any(key, unsigned),
        }
    }

    /// A decimal `u64` that not every text has.
    #[inline(always)]
    pub(crate) fn number_if_any(&mut self, key: &'static str) -> Result<Option<u64>, Malformed> {
        match self.number(key) {
            Err(Malformed::MissingField(_)) => Ok(None),
            read => read.map(Some),
        }
    }

    /// A decimal `i64`, a trailing `]` allowed (`[timeout=250]`).
    #[inline(always)]
    pub(crate) fn signed(&mut self, key: &'static str) -> Result<i64, Malformed> {
        match self.usual_signed(key) {
            Some(number) => Ok(number),
            None => self.any(key, |text| signed(text.strip_suffix(b"]").unwrap_or(text))),
        }
    }

    /// A hexadecimal mask of at most 32 bits.
    #[inline(always)]
    pub(crate) fn mask(&mut self, key: &'static str) -> Result<u32, Malformed> {
        match self.usual_mask(key) {
            Some(mask) => Ok(mask),
            None => self.any(key, |text| hexadecimal(text).and_then(|mask| u32::try_from(mask).ok())),
        }
    }

    /// A pointer, hashed or not, with or without `0x`; `(nil)` and `(null)` are 0.
    #[inline(always)]
    pub(crate) fn pointer(&mut self, key: &'static str) -> Result<u64, Malformed> {
        match self.usual_pointer(key) {
            Some(identity) => Ok(identity),
            None => pointer(self.text(key)?).ok_or(Malformed::NotAPointer(key)),
        }
    }

    /// A function's name without the offset that some formats append.
    #[inline(always)]
    pub(crate) fn function(&mut self, key: &'static str) -> Result<&'a [u8], Malformed> {
        if let Some(value) = self.here(key) {
            let end = word::before_sign(value, |byte| matches!(byte, b' ' | b'/' | b'+' | b','));
            if matches!(value.get(end), None | Some(b' ')) {
                return Ok(self.take(value, end));
            }
        }
        let text = self.text(key)?;
        let end = text.iter().position(|&byte| matches!(byte, b'/' | b'+' | b',')).unwrap_or(text.len());
        Ok(&text[..end])
    }

    /// A CPU's number.
    #[inline(always)]
    pub(crate) fn cpu(&mut self, key: &'static str) -> Result<CpuId, Malformed> {
        let number = match self.usual_number(key) {
            Some(number) => number,
            None => unsigned(self.text(key)?).ok_or(Malformed::NotACpu(key))?,
        };
        CpuId::new(number).map_err(|_| Malformed::NotACpu(key))
    }

    /// What lies between `key` and the last occurrence of `until` (which begins with a space and ends in
    /// `=`): for task names, which may hold anything, `until` included. Goes on at the word of `until`.
    pub(crate) fn between(&mut self, key: &'static str, until: &'static str) -> Option<&'a [u8]> {
        let value = self.here(key).or_else(|| self.find(key))?;
        let length = find_last(value, until.as_bytes())?;
        Some(self.take(value, length))
    }

    /// What lies between `key` and the end, whatever it is.
    pub(crate) fn rest(&mut self, key: &'static str) -> Option<&'a [u8]> {
        let value = self.here(key).or_else(|| self.find(key))?;
        Some(self.take(value, value.len()))
    }

    /// What stands behind `key`, if that is where the cursor is.
    #[inline(always)]
    fn here(&self, key: &'static str) -> Option<&'a [u8]> {
        self.rest.strip_prefix(key.as_bytes())
    }

    /// Takes the first `length` bytes of `value`, which lies behind a key; goes on behind the byte after
    /// them.
    #[inline(always)]
    fn take(&mut self, value: &'a [u8], length: usize) -> &'a [u8] {
        self.rest = value.get(length + 1..).unwrap_or_default();
        &value[..length]
    }

    /// As [`Fields::take`], if the value ends there.
    #[inline(always)]
    fn take_whole(&mut self, value: &'a [u8], length: usize) -> Option<()> {
        if !matches!(value.get(length), None | Some(b' ')) {
            return None;
        }
        self.take(value, length);
        Some(())
    }

    #[inline(always)]
    fn usual_number(&mut self, key: &'static str) -> Option<u64> {
        let value = self.here(key)?;
        let (number, length) = word::decimal(value)?;
        self.take_whole(value, length)?;
        Some(number)
    }

    #[inline(always)]
    fn usual_mask(&mut self, key: &'static str) -> Option<u32> {
        let value = self.here(key)?;
        let (mask, length) = word::short_hexadecimal(value)?;
        self.take_whole(value, length)?;
        Some(mask)
    }

    /// A minus sign or none, digits, a `]` or none.
    #[inline(always)]
    fn usual_signed(&mut self, key: &'static str) -> Option<i64> {
        let value = self.here(key)?;
        let digits = value.strip_prefix(b"-").unwrap_or(value);
        let is_negative = digits.len() < value.len();
        let (number, length) = word::decimal(digits)?;
        let number = i64::try_from(number).ok()?;
        let is_closed = digits.get(length) == Some(&b']');
        self.take_whole(digits, length + usize::from(is_closed))?;
        Some(if is_negative { -number } else { number })
    }

    /// Sixteen digits, with or without `0x`.
    #[inline(always)]
    fn usual_pointer(&mut self, key: &'static str) -> Option<u64> {
        let value = self.here(key)?;
        let digits = value.strip_prefix(b"0x").unwrap_or(value);
        let identity = word::pointer(digits)?;
        self.take_whole(digits, 16)?;
        Some(identity)
    }

    /// The number that `read` makes of the value of `key`, wherever it stands.
    #[cold]
    fn any<T>(&mut self, key: &'static str, read: impl FnOnce(&[u8]) -> Option<T>) -> Result<T, Malformed> {
        read(self.text(key)?).ok_or(Malformed::NotANumber(key))
    }

    /// What stands behind `key`: at the cursor, else at a later word, else at any word.
    #[inline(never)]
    fn find(&self, key: &'static str) -> Option<&'a [u8]> {
        let key = key.as_bytes();
        let word_from = |mut rest: &'a [u8]| loop {
            if let Some(value) = rest.strip_prefix(key) {
                return Some(value);
            }
            rest = &rest[memchr::memchr(b' ', rest)? + 1..];
        };
        word_from(self.rest).or_else(|| word_from(self.all))
    }
}

/// Where `word`, which ends in `=`, stands last in `text`.
pub(crate) fn find_last(text: &[u8], word: &[u8]) -> Option<usize> {
    let mut before = text;
    loop {
        let sign = memchr::memrchr(b'=', before)?;
        if before[..=sign].ends_with(word) {
            return Some(sign + 1 - word.len());
        }
        before = &before[..sign];
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
    use super::{Fields, Malformed, find_last, hexadecimal, pointer, signed, unsigned};
    use proptest::prelude::{ProptestConfig, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};

    /// Values as traces have them, and such as they do not.
    fn value() -> impl Strategy<Value = String> {
        prop_oneof![
            "-?[0-9]{0,21}[]:,/]?",
            "(0x)?[0-9a-f]{8}[0-9a-f]{8}[,:]?",
            "(0x)?00000000[0-9a-fA-F]{7,9}",
            "[0-9a-f]{1,9}",
            "[a-z_.$]{0,20}[/+,]?[a-z0-9]{0,9}",
            "[ =]{0,3}",
            any::<String>(),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Goal: the usual form of a value is read as any form of it is, and what comes next is the same.
        /// Method: texts of words, with the key first or not; each kind of value is read both ways.
        #[test]
        fn the_usual_form_reads_as_any(
            words in prop::collection::vec((prop::sample::select(vec!["k=", "kk=", "l="]), value()), 0..4),
        ) {
            let text = words.iter().map(|(key, value)| format!("{key}{value}")).collect::<Vec<_>>().join(" ");
            let (usual, any) = (&mut Fields::new(text.as_bytes()), &mut Fields::new(text.as_bytes()));
            for key in ["k=", "l=", "k="] {
                let number = any.any(key, unsigned);
                prop_assert_eq!(usual.number(key), number, "{}", text);
                prop_assert_eq!(usual.rest, any.rest, "{}", text);
            }
            let (usual, any) = (&mut Fields::new(text.as_bytes()), &mut Fields::new(text.as_bytes()));
            for key in ["k=", "l=", "k="] {
                let number = any.any(key, |text| signed(text.strip_suffix(b"]").unwrap_or(text)));
                prop_assert_eq!(usual.signed(key), number, "{}", text);
                prop_assert_eq!(usual.rest, any.rest, "{}", text);
            }
            let (usual, any) = (&mut Fields::new(text.as_bytes()), &mut Fields::new(text.as_bytes()));
            for key in ["k=", "l=", "k="] {
                let mask = any.any(key, |text| hexadecimal(text).and_then(|mask| u32::try_from(mask).ok()));
                prop_assert_eq!(usual.mask(key), mask, "{}", text);
                prop_assert_eq!(usual.rest, any.rest, "{}", text);
            }
            let (usual, any) = (&mut Fields::new(text.as_bytes()), &mut Fields::new(text.as_bytes()));
            for key in ["k=", "l=", "k="] {
                let identity = any.any(key, pointer);
                prop_assert_eq!(usual.pointer(key).ok(), identity.ok(), "{}", text);
                prop_assert_eq!(usual.rest, any.rest, "{}", text);
            }
            let (usual, any) = (&mut Fields::new(text.as_bytes()), &mut Fields::new(text.as_bytes()));
            for key in ["k=", "l=", "k="] {
                let name = any.text(key).map(|text| text.split(|byte| b"/+,".contains(byte)).next().unwrap());
                prop_assert_eq!(usual.function(key), name, "{}", text);
                prop_assert_eq!(usual.rest, any.rest, "{}", text);
            }
        }

        /// Goal: a word is found where it stands last.
        #[test]
        fn the_last_one_is_found(text in "[ k=]{0,24}") {
            prop_assert_eq!(find_last(text.as_bytes(), b" k="), text.rfind(" k="));
        }
    }

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
