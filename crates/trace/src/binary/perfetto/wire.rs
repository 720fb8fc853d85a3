//! The wire format of Protocol Buffers, read field by field, without a copy.
//!
//! Invariant: a length is never believed beyond the bytes that are there. Nothing here recurses: a message
//! inside a message is bytes, until its fields are asked for.
//!
//! Source: the format's public description ("Encoding").

/// 64 bits in groups of seven.
pub(super) const VARINT_BYTES_MAX: usize = 10;

/// A message ends inside a field, or has one of a kind that is not in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BrokenMessage;

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireValue<'a> {
    /// A number; what it means depends on the field.
    Number(u64),
    /// A text, a message, or an array of numbers.
    Bytes(&'a [u8]),
}

impl<'a> WireValue<'a> {
    pub(super) fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Bytes(_) => None,
        }
    }

    pub(super) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Number(_) => None,
        }
    }
}

/// The fields of a message, in its order; the first that is broken is the last.
#[derive(Clone, Debug)]
pub(super) struct WireFields<'a> {
    rest: &'a [u8],
}

impl<'a> WireFields<'a> {
    pub(super) const fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// How many bytes are left.
    pub(super) const fn left(&self) -> usize {
        self.rest.len()
    }

    fn take(&mut self) -> Option<(u32, WireValue<'a>)> {
        let tag = varint(&mut self.rest)?;
        let number = u32::try_from(tag >> 3).ok().filter(|&number| number > 0)?;
        let value = match tag & 7 {
            0 => WireValue::Number(varint(&mut self.rest)?),
            1 => WireValue::Number(u64::from_le_bytes(self.fixed()?)),
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).ok()?;
                let (bytes, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                WireValue::Bytes(bytes)
            }
            5 => WireValue::Number(u32::from_le_bytes(self.fixed()?).into()),
            _ => return None,
        };
        Some((number, value))
    }

    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }
}

impl<'a> Iterator for WireFields<'a> {
    type Item = Result<(u32, WireValue<'a>), BrokenMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let taken = self.take();
        if taken.is_none() {
            self.rest = &[];
        }
        Some(taken.ok_or(BrokenMessage))
    }
}

/// Takes a number from the front of `bytes`; `None` if they end in it, or it is longer than any.
pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (group, &byte) in bytes.iter().take(VARINT_BYTES_MAX).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * group);
        if byte < 0x80 {
            *bytes = &bytes[group + 1..];
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{BrokenMessage, WireFields, WireValue, varint};

    /// Goal: every kind of field is read, and what is broken is told once, at the end. Method: one of each,
    /// and every cut of it.
    #[test]
    fn fields_are_read_and_cuts_are_told() {
        let message = b"\x08\x96\x01\x11\x01\0\0\0\0\0\0\x80\x1a\x02ab\x25\x02\0\0\0";
        let expected = [
            (1, WireValue::Number(150)),
            (2, WireValue::Number(1 | 1 << 63)),
            (3, WireValue::Bytes(b"ab")),
            (4, WireValue::Number(2)),
        ];
        let whole: Result<Vec<_>, _> = WireFields::of(message).collect();
        assert_eq!(whole.expect("whole"), expected);
        let ends = [0, 3, 12, 16, 21];
        for end in 0..message.len() {
            let fields: Vec<_> = WireFields::of(&message[..end]).collect();
            let is_cut = !ends.contains(&end);
            assert_eq!(fields.last() == Some(&Err(BrokenMessage)), is_cut, "{end} bytes: {fields:?}");
            assert!(fields.iter().rev().skip(1).all(Result::is_ok), "{end} bytes: {fields:?}");
        }
    }

    /// Goal: no number is longer than 64 bits, no field has the number 0 or a kind that is not in use.
    #[test]
    fn what_no_writer_writes_is_broken() {
        let longest = [[0xff; 9].as_slice(), &[1]].concat();
        assert_eq!(varint(&mut &*longest), Some(u64::MAX));
        let longer = [[0xff; 10].as_slice(), &[1]].concat();
        assert_eq!(varint(&mut &*longer), None);
        for message in [&b"\0\0"[..], b"\x0b", b"\x0c", b"\x0e\0", b"\x0f\0", b"\x12\xff\xff\xff\xff\x0f"] {
            let fields: Vec<_> = WireFields::of(message).collect();
            assert_eq!(fields, [Err(BrokenMessage)], "{message:?}");
        }
    }
}
