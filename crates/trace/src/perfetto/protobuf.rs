//! The wire format of Protocol Buffers, as far as a writer of small messages needs it.
//!
//! Three of its wire types are written: varints, numbers of 64 bits, and length-delimited fields
//! (strings and nested messages). Invariant: whatever is called, the bytes are a sequence of whole
//! fields, so every reader of the format can walk them. Deliberately absent: numbers of 32 bits and
//! signed ones (no field that we write has them), and reading.
//!
//! Source: the format's public description ("Encoding": base-128 varints, message structure).

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;
/// 64 bits in groups of seven.
const VARINT_BYTES_MAX: usize = 10;

/// Fields written one after the other.
#[derive(Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// What was written so far.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets what was written; the memory stays for the next fields.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// An unsigned, bool, enum or non-negative signed field.
    pub(super) fn uint(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3 | VARINT);
        self.varint(value);
    }

    /// A field of type `fixed64`.
    pub(super) fn fixed(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3 | FIXED_64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A string field.
    pub(super) fn text(&mut self, field: u32, text: &str) {
        self.varint(u64::from(field) << 3 | LENGTH_DELIMITED);
        self.varint(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// A message field: `fill` writes its fields. Costs one move of its bytes, because their
    /// number, which stands before them, is known only afterwards.
    pub(super) fn nested(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        self.varint(u64::from(field) << 3 | LENGTH_DELIMITED);
        let start = self.bytes.len();
        fill(self);
        let end = self.bytes.len();
        self.varint((end - start) as u64);
        let length_bytes = self.bytes.len() - end;
        self.bytes[start..].rotate_right(length_bytes);
    }

    fn varint(&mut self, mut value: u64) {
        let mut groups = [0; VARINT_BYTES_MAX];
        let mut count = 0;
        while value >= 0x80 {
            groups[count] = value as u8 | 0x80;
            value >>= 7;
            count += 1;
        }
        groups[count] = value as u8;
        self.bytes.extend_from_slice(&groups[..=count]);
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    fn written(write: impl FnOnce(&mut Message)) -> Vec<u8> {
        let mut message = Message::default();
        write(&mut message);
        message.bytes().to_vec()
    }

    /// Goal: a varint has as many groups as its value needs. Method: both edges of a group, and
    /// the largest value and field number.
    #[test]
    fn varints_at_the_edges() {
        assert_eq!(written(|message| message.uint(1, 0)), [0x08, 0]);
        assert_eq!(written(|message| message.uint(1, 127)), [0x08, 0x7f]);
        assert_eq!(written(|message| message.uint(1, 128)), [0x08, 0x80, 0x01]);
        assert_eq!(written(|message| message.uint(16, 300)), [0x80, 0x01, 0xac, 0x02]);
        let largest = [&[0x08][..], &[0xff; 9], &[0x01]].concat();
        assert_eq!(written(|message| message.uint(1, u64::MAX)), largest);
        assert_eq!(written(|message| message.uint((1 << 29) - 1, 0)), [0xf8, 0xff, 0xff, 0xff, 0x0f, 0]);
    }

    /// Goal: a number of 64 bits has eight bytes, the lowest first, whatever it is.
    #[test]
    fn fixed_numbers_have_eight_bytes() {
        assert_eq!(written(|message| message.fixed(1, 0)), [0x09, 0, 0, 0, 0, 0, 0, 0, 0]);
        let bytes = written(|message| message.fixed(47, 0x8877_6655_4433_2211));
        assert_eq!(bytes, [0xf9, 0x02, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88]);
    }

    /// Goal: a length stands before what it counts, at every depth. Method: bodies whose lengths
    /// need one byte and two, behind a field that must stay where it is.
    #[test]
    fn lengths_stand_before_their_bytes() {
        assert_eq!(written(|message| message.nested(2, |_| {})), [0x12, 0]);
        assert_eq!(written(|message| message.text(3, "")), [0x1a, 0]);
        for size in [0usize, 1, 123, 124, 125, 126, 127, 128, 300, 16_384] {
            let text = "x".repeat(size);
            let bytes = written(|message| {
                message.uint(1, 5);
                message.nested(2, |outer| outer.nested(3, |inner| inner.text(4, &text)));
                message.uint(5, 6);
            });
            let length = |size: usize| written(|message| message.varint(size as u64));
            let inner = [&[0x22][..], &length(size), text.as_bytes()].concat();
            let outer = [&[0x1a][..], &length(inner.len()), &inner].concat();
            let whole = [&[0x08, 5, 0x12][..], &length(outer.len()), &outer, &[0x28, 6]].concat();
            assert_eq!(bytes, whole, "a text of {size} bytes");
        }
    }
}
