//! Why a future of this module gave up.

use std::io;

/// The deadline of a [`Timeout`](super::Timeout) came before its future was ready.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("deadline has elapsed")]
pub struct Elapsed(());

impl Elapsed {
    pub(super) const fn new() -> Self {
        Self(())
    }
}

/// As [`io::ErrorKind::TimedOut`], for functions whose errors are those of the system.
impl From<Elapsed> for io::Error {
    fn from(_: Elapsed) -> Self {
        io::ErrorKind::TimedOut.into()
    }
}
