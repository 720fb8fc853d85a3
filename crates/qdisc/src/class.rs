//! What a class, or a discipline, is called: two numbers of 16 bits, `1:10`.
//!
//! The first names the discipline, the second a class in it; 0 is the discipline itself. Both are written in
//! hexadecimal. Source: Linux include/uapi/linux/pkt_sched.h (`TC_H_MAKE`), tc(8), by behaviour.

use core::fmt;
use core::str::FromStr;

/// The number of a class, or of a discipline (whose minor number is 0).
///
/// ```
/// use quietcore_qdisc::ClassId;
///
/// let class: ClassId = "1:10".parse()?;
/// assert_eq!(class, ClassId::new(1, 0x10));
/// # Ok::<(), quietcore_qdisc::ClassIdError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(u32);

impl ClassId {
    /// From its two numbers.
    ///
    /// ```
    /// assert_eq!(quietcore_qdisc::ClassId::new(1, 0xfe).to_string(), "1:fe");
    /// ```
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self((major as u32) << 16 | minor as u32)
    }

    /// Both numbers in one, the first one above.
    ///
    /// ```
    /// assert_eq!(quietcore_qdisc::ClassId::new(1, 2).as_u32(), 0x1_0002);
    /// ```
    #[must_use]
    pub const fn as_u32(self) -> u32 {
        self.0
    }
}

/// `1:10`, in hexadecimal; a discipline, whose minor number is 0, is `1:`.
impl fmt::Display for ClassId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 >> 16, self.0 & 0xffff) {
            (major, 0) => write!(out, "{major:x}:"),
            (major, minor) => write!(out, "{major:x}:{minor:x}"),
        }
    }
}

/// Why a text is no [`ClassId`].
///
/// ```
/// let error = "10".parse::<quietcore_qdisc::ClassId>().expect_err("a colon is missing");
/// assert_eq!(error.to_string(), "not two hexadecimal numbers of at most 4 digits with a colon between them");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassIdError;

impl fmt::Display for ClassIdError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("not two hexadecimal numbers of at most 4 digits with a colon between them")
    }
}

impl core::error::Error for ClassIdError {}

/// `1:10`; `1:` is `1:0`.
impl FromStr for ClassId {
    type Err = ClassIdError;

    fn from_str(text: &str) -> Result<Self, ClassIdError> {
        let (major, minor) = text.split_once(':').ok_or(ClassIdError)?;
        let minor = if minor.is_empty() { "0" } else { minor };
        let number = |digits: &str| {
            let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            if plain { u16::from_str_radix(digits, 16).map_err(|_| ClassIdError) } else { Err(ClassIdError) }
        };
        Ok(Self::new(number(major)?, number(minor)?))
    }
}

#[cfg(test)]
mod tests {
    use super::ClassId;
    use std::string::ToString;

    /// Goal: both directions agree. Method: edges, and texts that are none.
    #[test]
    fn texts() {
        for (text, major, minor) in
            [("1:", 1, 0), ("1:10", 1, 16), ("ffff:ffff", 0xffff, 0xffff), ("0:1", 0, 1)]
        {
            let id = ClassId::new(major, minor);
            assert_eq!((text.parse(), id.to_string().as_str()), (Ok(id), text));
        }
        assert_eq!("1:0".parse(), Ok(ClassId::new(1, 0)));
        for text in ["", ":", "1", ":1", "1:2:3", "10000:", "1:10000", "+1:", "1:-1", "x:", "1: 1"] {
            assert!(text.parse::<ClassId>().is_err(), "{text}");
        }
    }
}
