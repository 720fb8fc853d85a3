//! Filters of one discipline: which class a packet is for.
//!
//! They belong to the discipline or to one of its classes; a class without a queue hands packets on by its
//! own. Lower priorities are asked first; a priority is of one kind and one protocol. They are under the
//! lock of the queue, as the discipline is.
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
use outcome::Outcome;
use quietcore_qdisc::filter::{U32Tables, ether_type};
use quietcore_qdisc::tc::Protocol;
use quietcore_qdisc::{ClassId, Packet};
use std::collections::BTreeMap;

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
    pub(super) tables: U32Tables,
}

/// All filters of a discipline and of its classes.
#[derive(Debug, Default)]
pub(super) struct Filters {
    /// By whose they are: the discipline's own with the minor number 0.
    of: BTreeMap<ClassId, FilterBlock>,
}

impl FilterBlock {
    /// Where the first filter that is for a packet sends it.
    fn first(&mut self, packet: &impl Packet) -> Option<ClassId> {
        let network = packet.network_bytes();
        let kind = ether_type(network);
        let Self { priorities, tables } = self;
        for FilterPriority { prio, protocol, body } in priorities {
            if !protocol.is_of(kind) {
                continue;
            }
            match body.ask(packet, *prio, tables) {
                Outcome::For(class) => return Some(class),
                Outcome::Next => {}
            }
        }
        None
    }

    fn sends_to(&self, class: ClassId) -> bool {
        self.tables.send_to(class) || self.priorities.iter().any(|priority| priority.body.sends_to(class))
    }
}

impl Filters {
    /// Where the first filter of `parent` that is for a packet sends it.
    #[inline]
    pub(super) fn first(&mut self, parent: ClassId, packet: &impl Packet) -> Option<ClassId> {
        // Most disciplines have none, and each packet asks.
        if self.of.is_empty() { None } else { self.first_of(parent, packet) }
    }

    #[inline(never)]
    fn first_of(&mut self, parent: ClassId, packet: &impl Packet) -> Option<ClassId> {
        self.of.get_mut(&parent)?.first(packet)
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
        let done = order.carry_out(block);
        if block.priorities.is_empty() {
            self.of.remove(&parent);
        }
        Ok(done?)
    }
}
