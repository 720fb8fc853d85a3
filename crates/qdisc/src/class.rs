//! The names of classes, as `tc` writes them.
//!
//! Source: `tc` and Linux include/uapi/linux/pkt_sched.h (`TC_H_MAJ`, `TC_H_MIN`), by behaviour.

use core::fmt;

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

#[cfg(test)]
mod tests {
    use super::ClassId;
    use alloc::string::ToString;

    /// Goal: a class is shown as `tc` shows it. Method: the corners of both numbers.
    #[test]
    fn a_number_of_0_is_left_out() {
        let shown =
            [(0, 0, ":0"), (0, 0xffff, ":ffff"), (1, 0, "1:"), (0xffff, 0, "ffff:"), (1, 0x10, "1:10")];
        for (major, minor, text) in shown {
            assert_eq!(ClassId::new(major, minor).to_string(), text);
        }
    }
}
