//! The name of an instance.

use core::fmt;
use core::str::FromStr;

/// A name that can be part of a file's name and of a network namespace's: 1 to 32 letters, digits, `-` and
/// `_`, with no `-` at its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceName(String);

/// Why text is no [`InstanceName`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceNameError(String);

impl fmt::Display for InstanceNameError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?} is no name: 1 to 32 letters, digits, - and _", self.0)
    }
}

impl core::error::Error for InstanceNameError {}

impl FromStr for InstanceName {
    type Err = InstanceNameError;

    fn from_str(text: &str) -> Result<Self, InstanceNameError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if !text.is_empty() && text.len() <= 32 && text.bytes().all(allowed) && !text.starts_with('-') {
            return Ok(Self(text.to_owned()));
        }
        Err(InstanceNameError(text.to_owned()))
    }
}

impl InstanceName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InstanceName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::InstanceName;

    /// Goal: no name leads out of the folder.
    #[test]
    fn names_are_plain() {
        for good in ["qc-2_x", &"x".repeat(32)] {
            assert_eq!(good.parse::<InstanceName>().unwrap().as_str(), good);
        }
        for bad in ["", "../x", "a/b", "a b", "-a", "ä", &"x".repeat(33)] {
            let refused = bad.parse::<InstanceName>().unwrap_err().to_string();
            assert_eq!(refused, format!("{bad:?} is no name: 1 to 32 letters, digits, - and _"));
        }
    }
}
