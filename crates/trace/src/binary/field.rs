//! Where in the bytes of an event a field lies, and what its bytes mean.

/// A field of an event, as the `format` file of its tracepoint describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventField {
    pub(crate) name: Box<str>,
    pub(crate) offset: usize,
    /// In bytes; an array at the end of an event may have none, and goes on to the end.
    pub(crate) size: usize,
    pub(crate) is_signed: bool,
    /// Its bytes are letters.
    pub(crate) is_text: bool,
    pub(crate) shape: FieldShape,
}

/// What lies at the place of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldShape {
    /// A number of 1, 2, 4 or 8 bytes.
    Number,
    /// The bytes themselves.
    Array,
    /// A word that says where in the event the bytes are (`__data_loc`).
    Located,
    /// The same, counted from the end of the word (`__rel_loc`).
    LocatedFromHere,
}

/// A number as C has it. Arithmetic is of 64 bits, whatever its operands are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CNumber {
    pub(crate) bits: u64,
    pub(crate) is_signed: bool,
}

impl CNumber {
    pub(crate) const fn unsigned(bits: u64) -> Self {
        Self { bits, is_signed: false }
    }

    pub(crate) const fn signed(number: i64) -> Self {
        Self { bits: number as u64, is_signed: true }
    }

    pub(crate) const fn truth(is_true: bool) -> Self {
        Self::signed(is_true as i64)
    }

    /// Its lowest so many bytes, at most 8.
    pub(crate) const fn cut(self, bytes: usize, is_signed: bool) -> Self {
        let unused = 64 - 8 * bytes as u32;
        let bits = self.bits << unused;
        let bits = if is_signed { (bits as i64 >> unused) as u64 } else { bits >> unused };
        Self { bits, is_signed }
    }
}

/// The number in up to eight bytes, lowest first.
pub(crate) fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

impl EventField {
    /// The number at its place; `None` where the event is too short, or the field is none.
    #[inline]
    pub(crate) fn number(&self, event: &[u8]) -> Option<CNumber> {
        if self.shape != FieldShape::Number {
            return None;
        }
        let bytes = event.get(self.offset..)?;
        let (bits, is_signed) = match self.size {
            8 => (u64::from_le_bytes(*bytes.first_chunk()?), self.is_signed),
            4 => (u64::from(u32::from_le_bytes(*bytes.first_chunk()?)), self.is_signed),
            // What is shorter than an `int` is one wherever it is used.
            2 => (u64::from(u16::from_le_bytes(*bytes.first_chunk()?)), self.is_signed),
            1 => (u64::from(*bytes.first()?), self.is_signed),
            _ => return None,
        };
        Some(CNumber { bits, is_signed }.cut(self.size, is_signed))
    }

    /// The bytes that it holds or refers to; `None` where they are not in the event.
    pub(crate) fn bytes<'a>(&self, event: &'a [u8]) -> Option<&'a [u8]> {
        let after = self.offset.checked_add(self.size)?;
        match self.shape {
            FieldShape::Array if self.size == 0 => event.get(self.offset..),
            FieldShape::Number | FieldShape::Array => event.get(self.offset..after),
            FieldShape::Located | FieldShape::LocatedFromHere => {
                let word = u32::from_le_bytes(*event.get(self.offset..)?.first_chunk()?);
                let (offset, length) = ((word & 0xffff) as usize, (word >> 16) as usize);
                let from = if self.shape == FieldShape::Located { offset } else { after + offset };
                event.get(from..from + length)
            }
        }
    }

    /// The text of its bytes, which ends at the first zero; a number has none: it may be the address of one.
    pub(crate) fn text<'a>(&self, event: &'a [u8]) -> Option<&'a [u8]> {
        if self.shape == FieldShape::Number {
            return None;
        }
        let bytes = self.bytes(event)?;
        Some(&bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())])
    }
}

#[cfg(test)]
mod tests {
    use super::{CNumber, EventField, FieldShape, little_endian};

    fn field(offset: usize, size: usize, is_signed: bool, shape: FieldShape) -> EventField {
        EventField { name: "f".into(), offset, size, is_signed, is_text: true, shape }
    }

    /// Goal: a number of each length, with and without a sign, and none where the event ends before it does.
    /// Method: bytes with the high bit.
    #[test]
    fn a_number_has_its_length_and_its_sign() {
        let event = [0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x99];
        for (size, unsigned, signed) in [
            (1, 0x81, -0x7f),
            (2, 0x8281, -0x7d7f),
            (4, 0x8483_8281, -0x7b7c_7d7f),
            (8, 0x8887_8685_8483_8281, -0x7778_797a_7b7c_7d7f),
        ] {
            let read = |is_signed| field(0, size, is_signed, FieldShape::Number).number(&event);
            assert_eq!(read(false), Some(CNumber::unsigned(unsigned)), "{size}");
            assert_eq!(read(true), Some(CNumber::signed(signed)), "{size}");
            assert_eq!(field(10 - size, size, true, FieldShape::Number).number(&event), None, "{size}");
            assert_eq!(little_endian(&event[..size]), unsigned);
        }
        assert_eq!(field(0, 3, false, FieldShape::Number).number(&event), None, "no number has three bytes");
        assert_eq!(field(usize::MAX, 8, false, FieldShape::Number).number(&event), None);
    }

    /// Goal: the bytes of each shape, and none that lie outside of the event. Method: an event in which a
    /// word at 0 refers to the last three bytes, counted from either place.
    #[test]
    fn bytes_are_found_in_the_event() {
        let event = *b"\x08\0\x03\0wxyzab\0";
        let bytes = |offset, size, shape| field(offset, size, false, shape).bytes(&event);
        assert_eq!(bytes(4, 2, FieldShape::Array), Some(&b"wx"[..]));
        assert_eq!(bytes(8, 0, FieldShape::Array), Some(&b"ab\0"[..]));
        assert_eq!(bytes(8, 4, FieldShape::Array), None);
        assert_eq!(bytes(0, 4, FieldShape::Located), Some(&b"ab\0"[..]));
        assert_eq!(field(0, 4, false, FieldShape::Located).text(&event), Some(&b"ab"[..]));
        let nearer = *b"\x04\0\x03\0wxyzab\0";
        assert_eq!(
            field(0, 4, false, FieldShape::LocatedFromHere).text(&nearer),
            Some(&b"ab"[..]),
            "four bytes behind the word"
        );
        let beyond = *b"\x08\0\x04\0wxyzab\0";
        assert_eq!(field(0, 4, false, FieldShape::Located).bytes(&beyond), None);
        assert_eq!(
            field(4, 4, false, FieldShape::Array).text(&event),
            Some(&b"wxyz"[..]),
            "no zero is in it"
        );
        assert_eq!(field(9, 4, false, FieldShape::Located).bytes(&event), None, "no room for the word");
        assert_eq!(field(0, 4, false, FieldShape::Located).number(&event), None);
        assert_eq!(field(4, 4, false, FieldShape::Number).text(&event), None);
    }

    /// Goal: a cast keeps the lowest bytes. Method: to each length, with and without a sign.
    #[test]
    fn a_cast_keeps_the_lowest_bytes() {
        let number = CNumber::unsigned(0xffff_ffff_8000_80ff);
        let cut = |bytes, is_signed| number.cut(bytes, is_signed).bits as i64;
        assert_eq!([cut(1, true), cut(2, true), cut(4, true)], [-1, -0x7f01, -0x7fff_7f01]);
        assert_eq!([cut(1, false), cut(2, false), cut(4, false)], [0xff, 0x80ff, 0x8000_80ff]);
        assert_eq!(number.cut(8, true), CNumber { bits: number.bits, is_signed: true });
    }
}
