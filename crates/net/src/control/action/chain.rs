//! The actions of one filter, one after the other.

use super::{OneSaid, SharedAction};
use core::ptr;
use quietcore_live::Nanos;
use quietcore_qdisc::action::ControlAction;
use quietcore_qdisc::tc::{ActionUse, MirredKind, TcProperties, describe_actions};
use quietcore_qdisc::{Packet, PacketSize};
use std::sync::Arc;

/// A packet that is held against filters.
#[derive(Debug)]
pub(in crate::control) struct Asked {
    pub(super) now: Nanos,
    /// What counts of it.
    pub(in crate::control) size: PacketSize,
    /// Its bytes on the link, of each if it stands for several.
    pub(super) longest: u32,
    /// The `mirred`s that want the packet or a copy, in order; only what has no queue's lock has any.
    pub(in crate::control) mirreds: Vec<Arc<SharedAction>>,
}

impl Asked {
    /// One that is sent.
    pub(in crate::control) fn sent(now: Nanos, packet: &impl Packet) -> Self {
        let size = packet.size();
        Self { now, size, longest: size.each(), mirreds: Vec::new() }
    }

    /// One that has come in: it counts without the header of the link.
    pub(in crate::control) fn received(now: Nanos, packet: &impl Packet) -> Self {
        let mut asked = Self::sent(now, packet);
        asked.size.bytes = asked.size.bytes.saturating_sub(packet.link_header());
        asked
    }
}

/// What the actions of a filter say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::control) enum Said {
    /// As the filter says: also if it has no actions, or if the last one says `pipe`.
    Pass,
    Reclassify,
    Drop,
    Continue,
    /// It went elsewhere.
    Stolen,
}

/// What is done with the packets of a filter.
#[derive(Clone, Debug, Default)]
pub(in crate::control) struct ActionChain {
    actions: Vec<Arc<SharedAction>>,
    /// A `police` without `action`.
    is_old: bool,
}

impl PartialEq for ActionChain {
    /// The same actions, and not some like them.
    fn eq(&self, other: &Self) -> bool {
        self.actions.len() == other.actions.len()
            && self.actions.iter().zip(&other.actions).all(|(one, other)| ptr::eq(&**one, &**other))
    }
}

impl Eq for ActionChain {}

impl ActionChain {
    pub(super) const fn new(actions: Vec<Arc<SharedAction>>, is_old: bool) -> Self {
        Self { actions, is_old }
    }

    /// Whether there are no actions.
    pub(in crate::control) const fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Whether there are actions that were not typed as an old `police`.
    pub(in crate::control) const fn is_list(&self) -> bool {
        !self.actions.is_empty() && !self.is_old
    }

    /// Asks one after the other until one says more than `pipe`.
    pub(in crate::control) fn ask(&self, asked: &mut Asked) -> Said {
        for action in &self.actions {
            match action.ask(asked) {
                OneSaid::Control(ControlAction::Pipe) => {}
                OneSaid::Control(ControlAction::Pass) => return Said::Pass,
                OneSaid::Control(ControlAction::Reclassify) => return Said::Reclassify,
                OneSaid::Control(ControlAction::Drop) => return Said::Drop,
                OneSaid::Control(ControlAction::Continue) => return Said::Continue,
                OneSaid::Sends(kind) => {
                    asked.mirreds.push(Arc::clone(action));
                    if kind == MirredKind::Redirect {
                        return Said::Stolen;
                    }
                }
            }
        }
        Said::Pass
    }

    /// What `filter show` says of them.
    pub(in crate::control) fn describe(&self, now: Nanos, shown: &mut TcProperties) {
        // Besides the filters only the command that shows them could have it, and there is one at a time.
        let described = |action: &Arc<SharedAction>| action.describe(Arc::strong_count(action), now);
        let actions: Vec<ActionUse> = self.actions.iter().map(described).collect();
        describe_actions(shown, &actions, self.is_old);
    }
}
