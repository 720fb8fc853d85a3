//! What errors say of what there is.

use core::fmt;

/// Names, with something between them; "there is none" without any.
pub(super) fn write_known<T: fmt::Display>(known: &[T], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some((first, others)) = known.split_first() else { return out.write_str("there is none") };
    write!(out, "there is {first}")?;
    others.iter().try_for_each(|other| write!(out, ", {other}"))
}
