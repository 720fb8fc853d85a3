//! A value of one word, as the grammar and its types see it.

use super::error::TcProblem;
use core::fmt::{self, Formatter};

/// Writes a blank and the value; nothing if there is none.
pub(crate) trait Show {
    fn show(&self, out: &mut Formatter<'_>) -> fmt::Result;
}

impl<T: Show> Show for Option<T> {
    fn show(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.as_ref().map_or(Ok(()), |value| value.show(out))
    }
}

/// [`Show`] of what is typed as it is displayed.
macro_rules! shown_as_displayed {
    ($($ty:ty),*) => {$(
        impl $crate::tc::scalar::Show for $ty {
            fn show(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(out, " {self}")
            }
        }
    )*};
}
pub(crate) use shown_as_displayed;

/// A value that is one word.
pub(crate) trait Scalar: Show + Sized {
    /// What may stand there, for errors.
    const ALLOWED: &'static [&'static str];

    fn read(word: &str) -> Result<Self, TcProblem>;

    /// Whether a word is meant as such a value, where it may also be the next option.
    fn begins(word: &str) -> bool {
        word.starts_with(|c: char| c.is_ascii_digit() || c == '.')
    }
}
