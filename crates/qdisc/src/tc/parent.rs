//! What a command's discipline, class or filter is below.

use super::scalar::Show as _;
use super::value::OptionValue as _;
use crate::ClassId;
use core::fmt::{self, Formatter};

/// Below what something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcParent {
    /// The device itself.
    Root,
    /// A class, or a discipline.
    Parent(ClassId),
}

impl fmt::Display for TcParent {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => out.write_str("root"),
            Self::Parent(id) => {
                out.write_str("parent")?;
                id.show(out)
            }
        }
    }
}

/// Writes a name and an id, each behind a blank, if there is an id.
pub(super) fn write_id(name: &'static str, id: Option<ClassId>, out: &mut Formatter<'_>) -> fmt::Result {
    id.map_or(Ok(()), |id| id.put(name, out))
}
