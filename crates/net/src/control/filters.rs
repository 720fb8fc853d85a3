//! `filter add`, `change`, `replace` and `del`: whose filters they are about.

use super::TcControlError;
use super::filter::FilterOrder;
use super::node::QdiscNode;
use super::qdiscs::root_handle;
use super::state::ControlState;
use super::tree::DeviceEntry;
use core::fmt::Debug;
use quietcore_live::Nanos;
use quietcore_qdisc::tc::{FilterCommand, TcParent, TcVerb};
use quietcore_qdisc::{ClassId, Packet};

/// What `root` stands for where filters are meant, which is no discipline.
const ROOT: ClassId = ClassId::new(0xffff, 0xffff);

/// Whose filters a line means: those of the root discipline, if it names none.
pub(super) fn filter_parent<P: Packet + Debug + Send>(
    entry: &DeviceEntry<P>,
    place: Option<TcParent>,
) -> Option<ClassId> {
    match place {
        Some(TcParent::Root) => Some(ROOT),
        named => root_handle(entry, named),
    }
}

impl<P: Packet + Debug + Send> ControlState<P> {
    pub(super) fn filter(&mut self, command: &FilterCommand, now: Nanos) -> Result<(), TcControlError> {
        let entry = self.entry(&command.device)?;
        let Some(parent) = filter_parent(entry, command.place) else {
            // Nothing of nothing can be removed.
            let is_flush = command.verb == TcVerb::Delete && command.prio.unwrap_or(0) == 0;
            return if is_flush { Ok(()) } else { Err(no_filters(0)) };
        };
        if parent.major() == 0 || entry.mq() == Some(parent.major()) {
            return Err(no_filters(parent.major()));
        }
        entry.change(parent.major(), now, |node| {
            node.filterable(parent)?;
            node.filters.execute(parent, &FilterOrder::new(command))
        })
    }
}

fn no_filters(mq: u16) -> TcControlError {
    let what = format!("mq {mq:x}: has no filters: the sender's CPU decides the queue");
    TcControlError::not_possible(what, "name a discipline with classes as `parent`")
}

impl<P: Packet + Debug + Send> QdiscNode<P> {
    /// Whether `parent`, which is this or a class of it, can have filters.
    pub(super) fn filterable(&self, parent: ClassId) -> Result<(), TcControlError> {
        if !self.body.has_filters() {
            let what = format!("{} {} has no classes to choose from", self.options.kind(), self.id());
            return Err(TcControlError::not_possible(what, "filters belong to a discipline with classes"));
        }
        if parent.minor() != 0 && !self.body.classes_have_filters() {
            let what = format!("{} {} has no filters of its classes", self.options.kind(), self.id());
            return Err(TcControlError::not_possible(what, "let the discipline itself be their parent"));
        }
        if parent.minor() != 0 && !self.classes.contains_key(&parent) {
            return Err(TcControlError::UnknownClass { class: parent, known: self.class_names() });
        }
        Ok(())
    }
}
