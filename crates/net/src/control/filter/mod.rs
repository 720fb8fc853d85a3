//! Filters of one discipline: which class a packet is for.
//!
//! They belong to the discipline or to one of its classes; a class without a queue hands packets on by its
//! own. Lower priorities are asked first; a priority is of one kind and one protocol. They are under the
//! lock of the queue, as the discipline is.
//!
//! What actions say of a packet comes before its class: it may be dropped, or the filters be asked further or
//! anew.
//!
//! Source: Linux net/sched/cls_api.c, cls_matchall.c, cls_fw.c, cls_flower.c, cls_basic.c, by behaviour
//! (`tests/tc_recorded`).

mod basic;
mod body;
mod change;
mod error;
mod flower;
mod marks;
mod outcome;

pub(super) use body::FilterBody;
pub(super) use change::FilterOrder;
pub use error::TcFilterError;
pub(super) use outcome::ShownFilter;

use super::TcControlError;
use super::action::{ActionChain, Asked};
use outcome::Outcome;
use quietcore_live::Nanos;
use quietcore_qdisc::filter::{U32Tables, ether_type};
use quietcore_qdisc::tc::Protocol;
use quietcore_qdisc::{ClassId, Packet};
use std::collections::BTreeMap;

/// How often filters may be asked anew; then the packet is dropped.
const RECLASSIFY_MAX: usize = 16;

/// What the filters of a discipline or of a hook say of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Classified {
    /// It is for this class, or for none if all is 0.
    Class(ClassId),
    /// No filter is for it.
    Unknown,
    /// It is dropped.
    Drop,
    /// It goes elsewhere.
    Stolen,
}

/// The filters of one priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FilterPriority {
    pub(super) prio: u16,
    pub(super) protocol: Protocol,
    pub(super) body: FilterBody,
}

/// All filters of a discipline, or of one of its classes.
#[derive(Debug, Default)]
pub(super) struct FilterBlock {
    /// The lowest first.
    pub(super) priorities: Vec<FilterPriority>,
    /// Of all priorities that are `u32`.
    pub(super) tables: U32Tables<ActionChain>,
}

/// All filters of a discipline and of its classes.
#[derive(Debug, Default)]
pub(super) struct Filters {
    /// By whose they are: the discipline's own with the minor number 0.
    of: BTreeMap<ClassId, FilterBlock>,
}

impl FilterBlock {
    /// What the first filter that is for a packet says of it.
    pub(super) fn first(&mut self, packet: &impl Packet, asked: &mut Asked) -> Classified {
        let network = packet.network_bytes();
        let kind = ether_type(network);
        let Self { priorities, tables } = self;
        'anew: for _ in 0..=RECLASSIFY_MAX {
            for FilterPriority { prio, protocol, body } in &mut *priorities {
                if !protocol.is_of(kind) {
                    continue;
                }
                match body.ask(packet, asked, *prio, tables) {
                    Outcome::For(class) => return Classified::Class(class),
                    Outcome::Next => {}
                    Outcome::Again => continue 'anew,
                    Outcome::Drop => return Classified::Drop,
                    Outcome::Stolen => return Classified::Stolen,
                }
            }
            return Classified::Unknown;
        }
        Classified::Drop
    }

    /// Carries out a command; nothing has changed if it fails.
    pub(super) fn execute(&mut self, order: &FilterOrder<'_>) -> Result<(), TcControlError> {
        Ok(order.carry_out(self)?)
    }

    fn sends_to(&self, class: ClassId) -> bool {
        self.tables.send_to(class) || self.priorities.iter().any(|priority| priority.body.sends_to(class))
    }
}

impl Filters {
    /// What the first filter of `parent` that is for a packet says of it.
    #[inline]
    pub(super) fn first(&mut self, parent: ClassId, packet: &impl Packet, now: Nanos) -> Classified {
        // Most disciplines have none, and each packet asks.
        if self.of.is_empty() { Classified::Unknown } else { self.first_of(parent, packet, now) }
    }

    #[inline(never)]
    fn first_of(&mut self, parent: ClassId, packet: &impl Packet, now: Nanos) -> Classified {
        let block = self.of.get_mut(&parent);
        let mut asked = Asked::sent(now, packet);
        block.map_or(Classified::Unknown, |block| block.first(packet, &mut asked))
    }

    /// Those of `parent`, if it has any.
    pub(super) fn of(&self, parent: ClassId) -> Option<&FilterBlock> {
        self.of.get(&parent)
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.of.values().all(|block| block.priorities.is_empty())
    }

    /// Whether a filter names a class, or is of one.
    pub(super) fn hold(&self, class: ClassId) -> bool {
        self.of.contains_key(&class) || self.of.values().any(|block| block.sends_to(class))
    }

    /// Carries out a command about the filters of `parent`; nothing has changed if it fails.
    pub(super) fn execute(&mut self, parent: ClassId, order: &FilterOrder<'_>) -> Result<(), TcControlError> {
        let block = self.of.entry(parent).or_default();
        let done = block.execute(order);
        if block.priorities.is_empty() {
            self.of.remove(&parent);
        }
        done
    }
}
