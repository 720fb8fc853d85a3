//! Why a future of this module gave up.

use core::fmt;
use std::io;

/// The deadline of a [`Timeout`](super::Timeout) came before its future was ready.
#[derive(Debug, PartialEq, Eq)]
pub struct Elapsed(());

impl Elapsed {
    pub(super) const fn new() -> Self {
        Self(())
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("deadline has elapsed")
    }
}

impl core::error::Error for Elapsed {}

/// As [`io::ErrorKind::TimedOut`], for functions whose errors are those of the system.
impl From<Elapsed> for io::Error {
    fn from(_: Elapsed) -> Self {
        io::ErrorKind::TimedOut.into()
    }
}
