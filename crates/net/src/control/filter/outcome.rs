//! What filters of all kinds say: of a packet, and of themselves.

use super::super::action::{ActionChain, Asked, Said};
use quietcore_qdisc::ClassId;
use quietcore_qdisc::tc::{FilterHandle, TcProperties};

/// What filters say of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is for this class, or for none if all is 0.
    For(ClassId),
    /// The next priority is asked.
    Next,
    /// All are asked anew.
    Again,
    /// It is dropped.
    Drop,
    /// It went elsewhere.
    Stolen,
}

impl Outcome {
    /// Of a filter that a packet is for.
    pub(super) fn of(flow: Option<ClassId>, actions: &ActionChain, asked: &mut Asked) -> Self {
        if actions.is_empty() {
            return Self::For(flow.unwrap_or(ClassId(0)));
        }
        match actions.ask(asked) {
            Said::Pass => Self::For(flow.unwrap_or(ClassId(0))),
            Said::Continue => Self::Next,
            Said::Reclassify => Self::Again,
            Said::Drop => Self::Drop,
            Said::Stolen => Self::Stolen,
        }
    }

    /// The same where the next filter of the priority is asked, not the next priority.
    pub(super) fn or_next(flow: Option<ClassId>, actions: &ActionChain, asked: &mut Asked) -> Option<Self> {
        Some(Self::of(flow, actions, asked)).filter(|outcome| *outcome != Self::Next)
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
