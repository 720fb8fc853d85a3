//! What a class of a classful discipline is called: two numbers in hexadecimal, as `tc` writes them.
//!
//! Source: Linux include/uapi/linux/pkt_sched.h (`TC_H_MAKE`), by behaviour.

use core::fmt;
use core::str::FromStr;

/// A class, `major:minor`: which discipline, and which class of it.
///
/// ```
/// use quietcore_qdisc::ClassId;
///
/// let class: ClassId = "1:10".parse()?;
/// assert_eq!(class, ClassId::new(1, 0x10));
/// assert_eq!((class.as_u32(), class.to_string().as_str()), (0x1_0010, "1:10"));
/// # Ok::<(), quietcore_qdisc::ClassIdError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(u32);

impl ClassId {
    /// The class `minor` of the discipline `major`.
    ///
    /// ```
    /// assert_eq!(quietcore_qdisc::ClassId::new(0xffff, 1).to_string(), "ffff:1");
    /// ```
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self((major as u32) << 16 | minor as u32)
    }

    /// Both numbers in one, as a packet's priority names its class.
    ///
    /// ```
    /// assert_eq!(quietcore_qdisc::ClassId::new(1, 2).as_u32(), 0x1_0002);
    /// ```
    #[must_use]
    pub const fn as_u32(self) -> u32 {
        self.0
    }
}

impl fmt::Display for ClassId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:x}:{:x}", self.0 >> 16, self.0 & 0xffff)
    }
}

/// A text that is no class: two hexadecimal numbers below 10000 with a colon between are, and one with a
/// colon behind.
///
/// ```
/// let error = "1".parse::<quietcore_qdisc::ClassId>().expect_err("no colon");
/// assert_eq!(error.to_string(), "a class is written major:minor, in hexadecimal");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassIdError;

impl fmt::Display for ClassIdError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a class is written major:minor, in hexadecimal")
    }
}

impl core::error::Error for ClassIdError {}

impl FromStr for ClassId {
    type Err = ClassIdError;

    fn from_str(text: &str) -> Result<Self, ClassIdError> {
        let (major, minor) = text.split_once(':').ok_or(ClassIdError)?;
        let minor = if minor.is_empty() { "0" } else { minor };
        Ok(Self::new(number(major)?, number(minor)?))
    }
}

/// Digits only: `from_str_radix` would take a sign too.
fn number(text: &str) -> Result<u16, ClassIdError> {
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(ClassIdError);
    }
    u16::from_str_radix(text, 16).map_err(|_| ClassIdError)
}

#[cfg(test)]
mod tests {
    use super::ClassId;

    /// Goal: what is read is what `tc` writes. Method: both ends of both numbers, and what is neither.
    #[test]
    fn texts() {
        for (text, id) in [("0:0", 0), ("1:", 0x1_0000), ("1:a", 0x1_000a), ("ffff:ffff", u32::MAX)] {
            assert_eq!(text.parse().map(ClassId::as_u32), Ok(id), "{text}");
        }
        for text in ["", ":", ":1", "1", "1:2:3", "10000:1", "1:10000", "+1:1", "1:-1", "x:1", " 1:1"] {
            assert!(text.parse::<ClassId>().is_err(), "{text}");
        }
    }
}
