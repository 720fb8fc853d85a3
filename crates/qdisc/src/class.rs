//! The names of classes, as `tc` writes them.
//!
//! Source: `tc` and Linux include/uapi/linux/pkt_sched.h (`TC_H_MAJ`, `TC_H_MIN`), by behaviour.

use core::fmt;
use core::str::FromStr;

/// A class: a major and a minor number of 16 bits each, shown in hexadecimal as `tc` does.
///
/// A packet whose [`priority`](crate::Packet::priority) is a class's number belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(
    /// The major number in the upper 16 bits, the minor one in the lower.
    pub u32,
);

impl ClassId {
    /// A class by its two numbers.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self((major as u32) << 16 | minor as u32)
    }

    /// The number of the discipline.
    #[must_use]
    pub const fn major(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// The number of the class in its discipline.
    #[must_use]
    pub const fn minor(self) -> u16 {
        self.0 as u16
    }
}

/// As `tc` shows it: a number that is 0 is left out.
impl fmt::Display for ClassId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.major(), self.minor()) {
            (0, minor) => write!(out, ":{minor:x}"),
            (major, 0) => write!(out, "{major:x}:"),
            (major, minor) => write!(out, "{major:x}:{minor:x}"),
        }
    }
}

/// Why a text is not a [`ClassId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClassIdError {
    /// Nothing separates the two numbers.
    NoColon,
    /// One of them is not hexadecimal, or longer than 16 bits.
    NotANumber,
}

impl fmt::Display for ClassIdError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::NoColon => "a class is two numbers with a colon between them",
            Self::NotANumber => "a class's numbers are hexadecimal, up to ffff",
        })
    }
}

impl core::error::Error for ClassIdError {}

impl FromStr for ClassId {
    type Err = ClassIdError;

    fn from_str(text: &str) -> Result<Self, ClassIdError> {
        let (major, minor) = text.split_once(':').ok_or(ClassIdError::NoColon)?;
        Ok(Self::new(number(major)?, number(minor)?))
    }
}

/// A number of 16 bits; one that is left out is 0.
fn number(text: &str) -> Result<u16, ClassIdError> {
    if text.is_empty() {
        return Ok(0);
    }
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(ClassIdError::NotANumber); // a sign, which the conversion would take
    }
    u16::from_str_radix(text, 16).map_err(|_| ClassIdError::NotANumber)
}

#[cfg(test)]
mod tests {
    use super::{ClassId, ClassIdError};
    use alloc::string::ToString;

    /// Goal: what is shown is read back. Method: the corners of both numbers.
    #[test]
    fn shown_and_read_back() {
        for major in [0, 1, 0xffff] {
            for minor in [0, 1, 0x10, 0xffff] {
                let class = ClassId::new(major, minor);
                assert_eq!(class.to_string().parse(), Ok(class), "{class}");
            }
        }
    }

    /// Goal: nothing else is read. Method: texts that are close to one.
    #[test]
    fn other_texts_are_refused() {
        for text in ["+1:1", "1:-1", "1: 1", "1:1:1", "g:1", "0x1:1", "1:00001000f"] {
            assert_eq!(text.parse::<ClassId>(), Err(ClassIdError::NotANumber), "{text}");
        }
        assert_eq!("".parse::<ClassId>(), Err(ClassIdError::NoColon));
    }
}
