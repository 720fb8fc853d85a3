//! How a tracepoint prints its events: the `print fmt` of its `format` file, run over the bytes of an event.
//!
//! Decides which conversions of `printk` are understood; a format with another one is `None`.
//!
//! Source: Linux 6.18 Documentation/core-api/printk-formats.rst and lib/vsprintf.c (the conversions).

use super::expression::{Expression, push_hexadecimal};
use super::expression_parser::ExpressionParser;
use super::field::{CNumber, EventField};
use super::names::KernelNames;

/// No format is longer.
const FORMAT_BYTES_MAX: usize = 256 * 1024;
/// What is printed is padded to so many columns at most.
const WIDTH_MAX: usize = 255;

/// A `print fmt`, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PrintFormat(Box<[Piece]>);

/// What is printed next.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(Box<[u8]>),
    Value(Conversion, Expression),
}

/// A conversion: `%-8lu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Conversion {
    kind: ConversionKind,
    /// Padded on the right.
    is_left: bool,
    /// Padded with zeros.
    has_zeros: bool,
    /// `0x` in front.
    is_alternate: bool,
    width: usize,
    /// How many bytes of a text are printed at most.
    precision: Option<usize>,
    /// How many bytes of a number are.
    bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConversionKind {
    Signed,
    Unsigned,
    Hexadecimal {
        is_upper: bool,
    },
    Octal,
    Letter,
    Text,
    /// `%p`: who an object is.
    Identity,
    /// `%px`.
    Address,
    /// `%ps`.
    Symbol,
    /// `%pS`.
    SymbolAndOffset,
}

impl PrintFormat {
    /// Takes the text behind `print fmt: ` apart; also says how many operators are in it, each of which needs
    /// memory.
    pub(crate) fn parse(text: &str, fields: &[EventField]) -> Option<(Self, usize)> {
        if text.len() > FORMAT_BYTES_MAX {
            return None;
        }
        let mut parser = ExpressionParser::new(text, fields)?;
        let format = parser.literal()?;
        let (mut pieces, mut literal, mut rest) = (Vec::new(), Vec::new(), &format[..]);
        while let Some(percent) = memchr::memchr(b'%', rest) {
            literal.extend_from_slice(&rest[..percent]);
            rest = &rest[percent + 1..];
            if let Some(after) = rest.strip_prefix(b"%") {
                literal.push(b'%');
                rest = after;
                continue;
            }
            let (conversion, after) = Conversion::parse(rest)?;
            rest = after;
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal).into()));
            }
            parser.take(",").then_some(())?;
            pieces.push(Piece::Value(conversion, parser.expression()?));
        }
        literal.extend_from_slice(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal.into()));
        }
        // An argument that nothing prints is a warning of the compiler's, and not ours.
        Some((Self(pieces.into()), parser.operators()))
    }

    /// Prints `event`. `None` where it is shorter than its format says; some of it is written then.
    pub(crate) fn write(&self, event: &[u8], names: &mut KernelNames, out: &mut Vec<u8>) -> Option<()> {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Value(conversion, value) => conversion.write(value, event, names, out)?,
            }
        }
        Some(())
    }
}

impl Conversion {
    /// Reads a conversion behind its `%`; also gives what follows.
    fn parse(text: &[u8]) -> Option<(Self, &[u8])> {
        let flags = text.iter().take_while(|byte| b"-+ #0".contains(byte)).count();
        let has = |flag| text[..flags].contains(&flag);
        let (width, rest) = digits(&text[flags..])?;
        let (precision, rest) = match rest.strip_prefix(b".") {
            Some(rest) => digits(rest).map(|(precision, rest)| (Some(precision), rest))?,
            None => (None, rest),
        };
        let (bytes, rest) = match rest {
            [b'h', b'h', rest @ ..] => (1, rest),
            [b'h', rest @ ..] => (2, rest),
            [b'l', b'l', rest @ ..] | [b'l' | b'L' | b'z' | b't' | b'q' | b'j', rest @ ..] => (8, rest),
            _ => (4, rest),
        };
        let (kind, rest) = match rest {
            [b'd' | b'i', rest @ ..] => (ConversionKind::Signed, rest),
            [b'u', rest @ ..] => (ConversionKind::Unsigned, rest),
            [b'x', rest @ ..] => (ConversionKind::Hexadecimal { is_upper: false }, rest),
            [b'X', rest @ ..] => (ConversionKind::Hexadecimal { is_upper: true }, rest),
            [b'o', rest @ ..] => (ConversionKind::Octal, rest),
            [b'c', rest @ ..] => (ConversionKind::Letter, rest),
            [b's', rest @ ..] => (ConversionKind::Text, rest),
            [b'p', b's' | b'f', rest @ ..] => (ConversionKind::Symbol, rest),
            [b'p', b'S' | b'F' | b'B', rest @ ..] => (ConversionKind::SymbolAndOffset, rest),
            [b'p', b'x', rest @ ..] => (ConversionKind::Address, rest),
            [b'p', b'K', rest @ ..] => (ConversionKind::Identity, rest),
            // Every other letter behind it is a form of its own.
            [b'p', letter, ..] if letter.is_ascii_alphanumeric() => return None,
            [b'p', rest @ ..] => (ConversionKind::Identity, rest),
            _ => return None,
        };
        let conversion = Self {
            kind,
            is_left: has(b'-'),
            has_zeros: has(b'0'),
            is_alternate: has(b'#'),
            width: width.min(WIDTH_MAX),
            precision,
            bytes,
        };
        Some((conversion, rest))
    }

    fn write(
        &self,
        value: &Expression,
        event: &[u8],
        names: &mut KernelNames,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let begun = out.len();
        match self.kind {
            ConversionKind::Text => {
                value.write_text(event, out)?;
                out.truncate(self.precision.map_or(out.len(), |precision| out.len().min(begun + precision)));
                one_line(&mut out[begun..]);
            }
            ConversionKind::Letter => {
                out.push(value.number(event)?.bits as u8);
                one_line(&mut out[begun..]);
            }
            ConversionKind::Identity => names.write_identity(value.number(event)?.bits, out),
            ConversionKind::Address => push_hexadecimal(value.number(event)?.bits, 16, out),
            ConversionKind::Symbol => names.write_symbol(value.number(event)?.bits, out),
            ConversionKind::SymbolAndOffset => {
                names.write_symbol_and_offset(value.number(event)?.bits, out);
            }
            _ => self.write_number(value.number(event)?, out),
        }
        if self.width > out.len() - begun {
            self.pad(begun, out);
        }
        Some(())
    }

    fn write_number(&self, number: CNumber, out: &mut Vec<u8>) {
        let begun = out.len();
        match self.kind {
            ConversionKind::Signed => {
                let number = number.cut(self.bytes, true).bits as i64;
                out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            }
            ConversionKind::Unsigned => {
                let number = number.cut(self.bytes, false).bits;
                out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            }
            ConversionKind::Octal => {
                out.extend_from_slice(format!("{:o}", number.cut(self.bytes, false).bits).as_bytes());
            }
            _ => {
                let number = number.cut(self.bytes, false).bits;
                if self.is_alternate {
                    out.extend_from_slice(b"0x");
                }
                push_hexadecimal(number, 1, out);
                if self.kind == (ConversionKind::Hexadecimal { is_upper: true }) {
                    out[begun..].make_ascii_uppercase();
                }
            }
        }
    }

    /// Fills what was written since `begun` up to the width.
    #[cold]
    fn pad(&self, begun: usize, out: &mut Vec<u8>) {
        let missing = self.width - (out.len() - begun);
        if self.is_left {
            out.resize(out.len() + missing, b' ');
            return;
        }
        let is_number = matches!(
            self.kind,
            ConversionKind::Signed
                | ConversionKind::Unsigned
                | ConversionKind::Hexadecimal { .. }
                | ConversionKind::Octal
        );
        let (filling, at) = match (is_number && self.has_zeros, out[begun]) {
            (false, _) => (b' ', begun),
            (true, b'-') => (b'0', begun + 1),
            (true, _) if self.is_alternate => (b'0', begun + 2),
            (true, _) => (b'0', begun),
        };
        out.splice(at..at, std::iter::repeat_n(filling, missing));
    }
}

/// The digits at the front as a number, 0 if there are none, and what follows. A width that an argument
/// gives is not understood.
fn digits(text: &[u8]) -> Option<(usize, &[u8])> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = text[..count]
        .iter()
        .try_fold(0usize, |number, &digit| number.checked_mul(10)?.checked_add(usize::from(digit - b'0')))?;
    (text.get(count) != Some(&b'*')).then_some((number, &text[count..]))
}

/// An event is one line, whatever its texts hold.
pub(crate) fn one_line(text: &mut [u8]) {
    for byte in text.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r' | 0)) {
        *byte = b' ';
    }
}

#[cfg(test)]
mod tests {
    use super::PrintFormat;
    use crate::binary::field::{EventField, FieldShape};
    use crate::binary::names::KernelNames;

    /// -3 in four bytes, and `ab\ncd` in eight.
    const EVENT: &[u8] = b"\xfd\xff\xff\xffab\ncd\0\0\0";

    fn fields() -> [EventField; 2] {
        let field = |name: &str, offset, size, shape| EventField {
            name: name.into(),
            offset,
            size,
            is_signed: true,
            is_text: true,
            shape,
        };
        [field("n", 0, 4, FieldShape::Number), field("text", 4, 8, FieldShape::Array)]
    }

    fn printed(format: &str) -> Option<String> {
        let (mut names, mut out) = (KernelNames::default(), Vec::new());
        assert!(names.set_symbols("ffff0010 T start\nffff0020 t second [mod]\nffff0030 T end\n"));
        PrintFormat::parse(format, &fields())?.0.write(EVENT, &mut names, &mut out)?;
        String::from_utf8(out).ok()
    }

    /// Goal: every conversion prints as `printk` does. Method: one value for each, padded on both sides.
    #[test]
    fn conversions_print_as_printk_does() {
        for (format, expected) in [
            (r#""plain 100%%""#, Some("plain 100%")),
            (
                r#""%d %u %x %X %#x %o", REC->n, REC->n, REC->n, REC->n, 255, 8"#,
                Some("-3 4294967293 fffffffd FFFFFFFD 0xff 10"),
            ),
            (r#""%ld %lu %llx", REC->n, REC->n, REC->n"#, Some("-3 18446744073709551613 fffffffffffffffd")),
            (r#""%hd %hu %hhd %hhu", REC->n, REC->n, REC->n, 300"#, Some("-3 65533 -3 44")),
            (
                r#""[%5d] [%-5d] [%05d] [%03d] [%05u] [%#06x]", REC->n, REC->n, REC->n, 7, 42, 10"#,
                Some("[   -3] [-3   ] [-0003] [007] [00042] [0x000a]"),
            ),
            (r#""%c%c", 'x', 10"#, Some("x ")),
            (
                r#""%s|%.2s|%7s|%-7s|", REC->text, REC->text, REC->text, REC->text"#,
                Some("ab cd|ab|  ab cd|ab cd  |"),
            ),
            (r#""%p %px %pK", REC->n, 18, 19"#, Some("fffffffffffffffd 0000000000000012 0000000000000013")),
            (
                r#""%ps %pS %pf", 0xffff0010, 0xffff0022, 0xffff0040"#,
                Some("start second+0x2/0x10 [mod] 0xffff0040"),
            ),
            (r#""%zu %lld", 5, 6"#, Some("5 6")),
            (r#""%d", REC->n, 9"#, Some("-3")),
            (r#""%d %d", REC->n"#, None),
            (r#""%*d", 3, REC->n"#, None),
            (r#""%pI4", REC->n"#, None),
            (r#""%f", REC->n"#, None),
            (r#""%""#, None),
            (r#""%d", __get_str(text)"#, None),
            ("REC->n", None),
            ("", None),
        ] {
            assert_eq!(printed(format).as_deref(), expected, "{format}");
        }
    }

    /// Goal: no width makes a line without bounds.
    #[test]
    fn widths_are_bounded() {
        assert_eq!(printed(r#""%9999999d", 1"#).map(|text| text.len()), Some(super::WIDTH_MAX));
        assert_eq!(printed(r#""%99999999999999999999d", 1"#), None);
    }
}
