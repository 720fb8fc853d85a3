//! What filters of all kinds say: of a packet, and of themselves.

use quietcore_qdisc::ClassId;
use quietcore_qdisc::tc::{FilterHandle, TcProperties};

/// What filters say of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is for this class, or for none if all is 0.
    For(ClassId),
    /// The next priority is asked.
    Next,
}

impl From<Option<ClassId>> for Outcome {
    fn from(class: Option<ClassId>) -> Self {
        class.map_or(Self::Next, Self::For)
    }
}

/// One line of `filter show`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::control) struct ShownFilter {
    pub(in crate::control) handle: Option<FilterHandle>,
    pub(in crate::control) flow: Option<ClassId>,
    pub(in crate::control) options: TcProperties,
}

/// The number of a filter, if its handle is one.
pub(super) const fn number(handle: Option<FilterHandle>) -> Option<u32> {
    match handle {
        Some(FilterHandle::Number(number)) => Some(number),
        _ => None,
    }
}
