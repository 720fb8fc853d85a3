//! What a tracepoint prints of an event: expressions in C over its fields.
//!
//! Decides what an expression is worth for an event. A value is `None` where the event is too short for it,
//! or it divides by zero; nothing an event holds can make it panic or recurse deeper than the expression is.

use super::field::{CNumber, EventField, little_endian};
use std::cmp::Ordering;

/// An expression of a `print fmt`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    /// A constant.
    Constant(CNumber),
    /// A text in quotes.
    Literal(Box<[u8]>),
    /// `REC->field`: its number, or its text.
    Field(EventField),
    /// `__get_dynamic_array_len(field)`: how many bytes it refers to.
    Length(EventField),
    /// `__get_cpumask(field)`, `__get_bitmask(field)`.
    Mask(EventField),
    /// `-x`.
    Negative(Box<Expression>),
    /// `~x`.
    Complement(Box<Expression>),
    /// `!x`.
    Not(Box<Expression>),
    /// `(type)x`, of a type of so many bytes.
    Cast { bytes: usize, is_signed: bool, of: Box<Expression> },
    /// `a + b` and the like.
    Binary(CBinary, Box<[Expression; 2]>),
    /// `condition ? a : b`.
    Choice(Box<[Expression; 3]>),
    /// `__print_flags(x, separator, ...)`.
    Flags { of: Box<Expression>, separator: Box<[u8]>, names: Box<[NamedNumber]> },
    /// `__print_symbolic(x, ...)`.
    Symbol { of: Box<Expression>, names: Box<[NamedNumber]> },
    /// `__print_hex(bytes, count)`; `__print_hex_str` has nothing between the bytes.
    Hex { of: EventField, count: Box<Expression>, is_spaced: bool },
}

/// A number and what it is printed as.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NamedNumber {
    pub(crate) number: u64,
    pub(crate) name: Box<[u8]>,
}

/// An operator with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CBinary {
    Multiply,
    Divide,
    Remainder,
    Add,
    Subtract,
    ShiftLeft,
    ShiftRight,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    And,
    ExclusiveOr,
    Or,
    BothTrue,
    EitherTrue,
}

impl Expression {
    /// Its number for `event`.
    pub(crate) fn number(&self, event: &[u8]) -> Option<CNumber> {
        match self {
            Self::Constant(number) => Some(*number),
            Self::Field(field) => field.number(event),
            Self::Length(field) => Some(CNumber::signed(field.bytes(event)?.len() as i64)),
            Self::Negative(of) => {
                let of = of.number(event)?;
                Some(CNumber { bits: of.bits.wrapping_neg(), ..of })
            }
            Self::Complement(of) => {
                let of = of.number(event)?;
                Some(CNumber { bits: !of.bits, ..of })
            }
            Self::Not(of) => Some(CNumber::truth(of.number(event)?.bits == 0)),
            Self::Cast { bytes, is_signed, of } => Some(of.number(event)?.cut(*bytes, *is_signed)),
            Self::Binary(operator, operands) => {
                let [left, right] = &**operands;
                operator.number(left.number(event)?, || right.number(event))
            }
            Self::Choice(parts) => self::chosen(parts, event)?.number(event),
            Self::Literal(_)
            | Self::Mask(_)
            | Self::Flags { .. }
            | Self::Symbol { .. }
            | Self::Hex { .. } => None,
        }
    }

    /// Writes its text for `event`.
    pub(crate) fn write_text(&self, event: &[u8], out: &mut Vec<u8>) -> Option<()> {
        match self {
            Self::Literal(text) => out.extend_from_slice(text),
            Self::Field(field) => out.extend_from_slice(field.text(event)?),
            Self::Choice(parts) => self::chosen(parts, event)?.write_text(event, out)?,
            Self::Mask(field) => write_mask(field.bytes(event)?, out),
            Self::Flags { of, separator, names } => {
                write_flags(of.number(event)?.bits, separator, names, out);
            }
            Self::Symbol { of, names } => write_symbol(of.number(event)?.bits, names, out),
            Self::Hex { of, count, is_spaced } => {
                let count = usize::try_from(count.number(event)?.bits).ok()?;
                write_hex(of.bytes(event)?.get(..count)?, *is_spaced, out);
            }
            Self::Cast { of, .. } => of.write_text(event, out)?,
            _ => return None,
        }
        Some(())
    }
}

/// The one of two expressions that a condition chooses.
fn chosen<'a>([condition, first, second]: &'a [Expression; 3], event: &[u8]) -> Option<&'a Expression> {
    Some(if condition.number(event)?.bits != 0 { first } else { second })
}

impl CBinary {
    /// The value of `left OPERATOR right`; the second operand only if the operator asks for it.
    fn number(self, left: CNumber, right: impl FnOnce() -> Option<CNumber>) -> Option<CNumber> {
        match (self, left.bits != 0) {
            (Self::BothTrue, false) => return Some(CNumber::truth(false)),
            (Self::EitherTrue, true) => return Some(CNumber::truth(true)),
            _ => {}
        }
        let right = right()?;
        // An unsigned operand makes both of them unsigned.
        let is_signed = left.is_signed && right.is_signed;
        let (a, b) = (left.bits, right.bits);
        let order = if is_signed { (a as i64).cmp(&(b as i64)) } else { a.cmp(&b) };
        let bits = match self {
            Self::Multiply => a.wrapping_mul(b),
            Self::Divide if is_signed => (a as i64).checked_div(b as i64)? as u64,
            Self::Divide => a.checked_div(b)?,
            Self::Remainder if is_signed => (a as i64).checked_rem(b as i64)? as u64,
            Self::Remainder => a.checked_rem(b)?,
            Self::Add => a.wrapping_add(b),
            Self::Subtract => a.wrapping_sub(b),
            // What is shifted decides on the sign alone.
            Self::ShiftLeft => return Some(CNumber { bits: a.checked_shl(shift(b)?)?, ..left }),
            Self::ShiftRight if left.is_signed => {
                return Some(CNumber::signed((a as i64).checked_shr(shift(b)?)?));
            }
            Self::ShiftRight => return Some(CNumber::unsigned(a.checked_shr(shift(b)?)?)),
            Self::Less => return Some(CNumber::truth(order == Ordering::Less)),
            Self::LessOrEqual => return Some(CNumber::truth(order != Ordering::Greater)),
            Self::Greater => return Some(CNumber::truth(order == Ordering::Greater)),
            Self::GreaterOrEqual => return Some(CNumber::truth(order != Ordering::Less)),
            Self::Equal => return Some(CNumber::truth(a == b)),
            Self::NotEqual => return Some(CNumber::truth(a != b)),
            Self::And => a & b,
            Self::ExclusiveOr => a ^ b,
            Self::Or => a | b,
            Self::BothTrue | Self::EitherTrue => return Some(CNumber::truth(b != 0)),
        };
        Some(CNumber { bits, is_signed })
    }
}

fn shift(by: u64) -> Option<u32> {
    u32::try_from(by).ok()
}

/// A set of CPUs as the kernel prints it: words of eight hexadecimal digits, highest first.
fn write_mask(bytes: &[u8], out: &mut Vec<u8>) {
    for (index, word) in bytes.chunks(4).rev().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_hexadecimal(little_endian(word), 8, out);
    }
}

/// The names of the flags that are set, and what is left of them as a number; nothing if none is set.
fn write_flags(mut flags: u64, separator: &[u8], names: &[NamedNumber], out: &mut Vec<u8>) {
    let begun = out.len();
    for NamedNumber { number, name } in names {
        if flags != 0 && flags & number == *number {
            separate(begun, separator, out);
            out.extend_from_slice(name);
            flags &= !number;
        }
    }
    if flags != 0 {
        separate(begun, separator, out);
        out.extend_from_slice(b"0x");
        push_hexadecimal(flags, 1, out);
    }
}

/// Writes the separator, unless nothing was written yet.
fn separate(begun: usize, separator: &[u8], out: &mut Vec<u8>) {
    if out.len() > begun {
        out.extend_from_slice(separator);
    }
}

fn write_symbol(number: u64, names: &[NamedNumber], out: &mut Vec<u8>) {
    match names.iter().find(|named| named.number == number) {
        Some(named) => out.extend_from_slice(&named.name),
        None => {
            out.extend_from_slice(b"0x");
            push_hexadecimal(number, 1, out);
        }
    }
}

fn write_hex(bytes: &[u8], is_spaced: bool, out: &mut Vec<u8>) {
    for (index, &byte) in bytes.iter().enumerate() {
        if is_spaced && index > 0 {
            out.push(b' ');
        }
        push_hexadecimal(u64::from(byte), 2, out);
    }
}

/// Writes `number` with at least so many digits, at most 16.
pub(crate) fn push_hexadecimal(number: u64, digits_min: usize, out: &mut Vec<u8>) {
    let digits = (16 - number.leading_zeros() as usize / 4).max(digits_min);
    for digit in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(number >> (4 * digit) & 15) as usize]);
    }
}
