//! Eight bytes of text at a time: numbers, and the ends of words.
//!
//! A trace is read at the speed of the instructions that a byte of it costs, so what every line has
//! (decimal numbers, pointers, the ends of names) is looked at as words of eight bytes, first byte lowest.
//! Each function reads the usual form alone and says so where it is another one; [`crate::field`] reads all
//! of them.
//!
//! Source: the carry-free tests for a byte of H. S. Warren, Hacker's Delight, section 6-1.

/// Every byte 1.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of every byte.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Powers of ten, for the digits behind the first eight.
const TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The first eight bytes of `text`; zeros behind its end.
#[inline(always)]
pub(crate) fn load(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => load_short(text),
    }
}

#[cold]
#[inline(never)]
fn load_short(text: &[u8]) -> u64 {
    text.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// The high bit of every byte of `word` that is `byte`; exact for the lowest one, and zero if there is none.
#[inline(always)]
fn equal(word: u64, byte: u8) -> u64 {
    let other = word ^ (ONES * u64::from(byte));
    other.wrapping_sub(ONES) & !other & HIGH
}

/// How many bytes lie before the lowest one that `marks` has a high bit of; 8 if there is none.
#[inline(always)]
fn bytes_before(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}

/// How many bytes at the front of `word` are decimal digits. Each byte that is none has its high bit in one
/// of the two sums; what it carries or borrows reaches only bytes behind it.
#[inline(always)]
fn digits_in_front(word: u64) -> usize {
    let above = word.wrapping_add(ONES * (0x80 - (b'9' as u64 + 1)));
    let below = word.wrapping_sub(ONES * b'0' as u64);
    bytes_before((above | below) & HIGH)
}

/// The value of the first `count` bytes of `word`, which are decimal digits.
#[inline(always)]
fn value_of_digits(word: u64, count: usize) -> u64 {
    // Shifted up, the missing digits in front are zeros. Then neighbours are joined: 8 digits, 4 pairs, 2
    // fours.
    let digits = word.wrapping_sub(ONES * b'0' as u64);
    let digits = digits.checked_shl(64 - 8 * count as u32).unwrap_or(0);
    let pairs = (digits.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 << 32 | 1) >> 32
}

/// The decimal number at the front of `text` and its length; `None` if there is none, or one of more than 19
/// digits, which may not fit.
#[inline(always)]
pub(crate) fn decimal(text: &[u8]) -> Option<(u64, usize)> {
    let word = load(text);
    let count = digits_in_front(word);
    if count == 8 {
        return long_decimal(text, value_of_digits(word, 8));
    }
    (count > 0).then(|| (value_of_digits(word, count), count))
}

/// A decimal number of which the first eight digits are `front`.
#[inline(always)]
fn long_decimal(text: &[u8], front: u64) -> Option<(u64, usize)> {
    let word = load(&text[8..]);
    let count = digits_in_front(word);
    let number = front * TENS[count] + value_of_digits(word, count);
    if count < 8 {
        return Some((number, 8 + count));
    }
    let word = load(&text[16..]);
    let count = digits_in_front(word);
    (count <= 3).then(|| (number * TENS[count] + value_of_digits(word, count), 16 + count))
}

/// The decimal number at the front of `text`, and its length with the spaces behind it; looks no further
/// than eight bytes.
#[inline(always)]
pub(crate) fn padded(text: &[u8]) -> Option<(u64, usize)> {
    let word = load(text);
    let count = digits_in_front(word);
    if !(1..8).contains(&count) {
        return None;
    }
    let padding = (word >> (8 * count)) ^ (ONES * u64::from(b' '));
    Some((value_of_digits(word, count), count + padding.trailing_zeros() as usize / 8))
}

/// The value of three decimal digits.
#[inline(always)]
pub(crate) fn three_digits(digits: [u8; 3]) -> Option<u64> {
    let [hundreds, tens, ones] = digits.map(|byte| u64::from(byte.wrapping_sub(b'0')));
    (hundreds < 10 && tens < 10 && ones < 10).then_some(100 * hundreds + 10 * tens + ones)
}

/// The value of the 16 hexadecimal digits (in lower case) at the front of `text`, the usual form of a
/// pointer.
#[inline(always)]
pub(crate) fn pointer(text: &[u8]) -> Option<u64> {
    let digits: &[u8; 16] = text.first_chunk()?;
    let (front, back) = (load(digits), load(&digits[8..]));
    // A hashed pointer has 32 bits.
    let front = if front == ONES * u64::from(b'0') { 0 } else { eight_hexadecimal(front)? };
    Some(front << 32 | eight_hexadecimal(back)?)
}

/// The value of a word of eight hexadecimal digits in lower case.
#[inline(always)]
fn eight_hexadecimal(word: u64) -> Option<u64> {
    let digit = word ^ (ONES * u64::from(b'0'));
    let no_digit = ((digit & !HIGH) + ONES * 0x76) | digit;
    // `a` to `f` are 1 to 6 here.
    let letter = word ^ (ONES * 0x60);
    let no_letter = ((letter & !HIGH) + ONES * 0x79) | !((letter & !HIGH) + ONES * 0x7f) | letter;
    if no_digit & no_letter & HIGH != 0 {
        return None;
    }
    let values = ((word & (ONES * 0x0f)) + (word >> 6 & ONES) * 9).swap_bytes();
    let pairs = (values | values >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    Some((fours | fours >> 16) & 0xffff_ffff)
}

/// How many spaces stand at the front of `text`.
#[inline(always)]
pub(crate) fn spaces(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let other = load(&text[at..]) ^ (ONES * u64::from(b' '));
        if other != 0 {
            return at + other.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
}

/// How many bytes lie before the first space in `text`; its length if there is none.
#[inline(always)]
pub(crate) fn before_space(text: &[u8]) -> usize {
    let mut at = 0;
    while at < text.len() {
        let marks = equal(load(&text[at..]), b' ');
        if marks != 0 {
            return at + bytes_before(marks);
        }
        at += 8;
    }
    text.len()
}

/// How many bytes lie before the first `first` or `second` in `text`, if that is less than 8.
#[inline(always)]
pub(crate) fn before_either(text: &[u8], first: u8, second: u8) -> Option<usize> {
    let word = load(text);
    let marks = equal(word, first) | equal(word, second);
    (marks != 0).then(|| bytes_before(marks))
}

/// How many bytes lie before the first one in `text` that is a sign and ends a name; its length if there is
/// none. Signs are the bytes without the bit that letters and the underscore have: digits and a dot are
/// some, too.
#[inline(always)]
pub(crate) fn before_sign(text: &[u8], ends_name: impl Fn(u8) -> bool) -> usize {
    let mut at = 0;
    while at < text.len() {
        let mut signs = !load(&text[at..]) & (ONES * 0x40);
        while signs != 0 {
            let found = at + bytes_before(signs);
            match text.get(found) {
                Some(&byte) if !ends_name(byte) => signs &= signs - 1,
                Some(_) => return found,
                None => return text.len(),
            }
        }
        at += 8;
    }
    text.len()
}

/// The hexadecimal number in lower case at the front of `text`, of at most eight digits, and its length.
#[inline(always)]
pub(crate) fn short_hexadecimal(text: &[u8]) -> Option<(u32, usize)> {
    let (mut number, mut length) = (0u32, 0);
    while let Some(&byte) = text.get(length) {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => break,
        };
        number = number << 4 | u32::from(digit);
        length += 1;
    }
    matches!(length, 1..=8).then_some((number, length))
}

#[cfg(test)]
mod tests {
    use super::{
        before_either, before_sign, before_space, decimal, load, padded, pointer, short_hexadecimal, spaces,
        three_digits,
    };
    use crate::field::{hexadecimal, unsigned};
    use proptest::prelude::{ProptestConfig, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};

    /// Texts of the bytes that matter, and of their neighbours.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let usual = prop::sample::select(&b"0123456789abcdef  =:/+,.@`gAF\xb0\x80\0"[..]);
        prop::collection::vec(prop_oneof![9 => usual, 1 => any::<u8>()], 0..40)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Goal: a number read by eight digits is the number read digit by digit.
        #[test]
        fn decimals_are_read_alike(text in text(), digits in "[0-9]{0,22}") {
            let text = [digits.as_bytes(), &text].concat();
            let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let expected = unsigned(&text[..length]).filter(|_| length <= 19).map(|number| (number, length));
            prop_assert_eq!(decimal(&text), expected);
        }

        /// Goal: a pointer of the usual form is read as by its digits, and another form is not read.
        #[test]
        fn pointers_are_read_alike(text in text(), digits in "(00000000)?[0-9a-f]{0,16}") {
            let text = [digits.as_bytes(), &text].concat();
            let usual = |digits: &&[u8]| digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            let expected = text.get(..16).filter(usual).and_then(hexadecimal);
            prop_assert_eq!(pointer(&text), expected);
        }

        /// Goal: what stands between a task and its flags is read as by its digits.
        #[test]
        fn columns_are_read_alike(text in text(), column in "[0-9]{0,7} {0,7}", cpu in [b'-'..b'@', b'/'..b'=', b'/'..b';']) {
            let text = [column.as_bytes(), &text].concat();
            let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let padding = text[digits..].iter().take_while(|byte| **byte == b' ').count();
            let length = (digits + padding).min(8);
            let expected = unsigned(&text[..digits]).filter(|_| digits < 8).map(|number| (number, length));
            prop_assert_eq!(padded(&text), expected);
            let expected = cpu.iter().all(u8::is_ascii_digit).then(|| unsigned(&cpu)).flatten();
            prop_assert_eq!(three_digits(cpu), expected);
        }

        /// Goal: a mask is read as by its digits.
        #[test]
        fn masks_are_read_alike(text in text(), digits in "[0-9a-f]{0,9}") {
            let text = [digits.as_bytes(), &text].concat();
            let length = text.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).count();
            let expected = hexadecimal(&text[..length]).filter(|_| length <= 8);
            let read = short_hexadecimal(&text);
            prop_assert_eq!(read, expected.map(|number| (number as u32, length)));
        }

        /// Goal: the end of a word is where the first such byte is.
        #[test]
        fn ends_are_the_first(text in text()) {
            let before = |found: &dyn Fn(u8) -> bool| {
                text.iter().position(|&byte| found(byte)).unwrap_or(text.len())
            };
            let ends = |byte| matches!(byte, b':' | b' ');
            prop_assert_eq!(before_sign(&text, ends), before(&ends));
            let within = |end: &usize| *end < text.len().min(8);
            prop_assert_eq!(before_either(&text, b':', b' '), Some(before(&ends)).filter(within));
            prop_assert_eq!(before_space(&text), before(&|byte| byte == b' '));
            prop_assert_eq!(spaces(&text), before(&|byte| byte != b' '));
        }
    }

    /// Goal: the largest numbers are read, and what may not fit is left to others.
    #[test]
    fn numbers_end_at_nineteen_digits() {
        assert_eq!(decimal(b"9999999999999999999 x"), Some((9_999_999_999_999_999_999, 19)));
        assert_eq!(decimal(b"18446744073709551615"), None);
        assert_eq!((decimal(b""), decimal(b" 1"), decimal(b"7")), (None, None, Some((7, 1))));
        assert_eq!((load(b""), load(b"\x01\x02")), (0, 0x0201));
    }
}
