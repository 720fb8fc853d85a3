//! `filter add` and `del`.

use super::TcControlError;
use super::filter::NewFilter;
use super::node::QdiscNode;
use super::qdiscs::root_handle;
use super::state::ControlState;
use core::fmt::Debug;
use quietcore_live::Nanos;
use quietcore_qdisc::tc::{Classifier, FilterCommand, FilterVerb};
use quietcore_qdisc::{ClassId, Packet};

impl<P: Packet + Debug + Send> ControlState<P> {
    pub(super) fn filter(&mut self, command: &FilterCommand, now: Nanos) -> Result<(), TcControlError> {
        let entry = self.entry(&command.device)?;
        let parent = root_handle(entry, command.place).unwrap_or(ClassId::new(0, 0));
        if parent.major() == 0 || entry.mq() == Some(parent.major()) {
            let what = format!("mq {:x}: has no filters: the sender's CPU decides the queue", parent.major());
            return Err(TcControlError::not_possible(what, "name a discipline with classes as `parent`"));
        }
        entry.change(parent.major(), now, |node| {
            node.filterable(parent)?;
            if command.verb == FilterVerb::Delete {
                let kind = command.classifier.as_ref().map(|classifier| match classifier {
                    Classifier::MatchAll { .. } => "matchall",
                    _ => "u32",
                });
                return node.filters.remove(parent, command.prio, kind);
            }
            let Some(classifier) = &command.classifier else {
                let what = format!("`{command}` names no kind");
                return Err(TcControlError::not_possible(what, "use u32 or matchall"));
            };
            let wanted = NewFilter::new(command.protocol, command.prio, classifier)?;
            if wanted.flow.major() != node.handle || wanted.flow == parent {
                let remedy = format!("name another class of {}", node.id());
                return Err(TcControlError::setting(wanted.kind.name(), "flowid", wanted.flow, remedy));
            }
            node.filters.add(parent, wanted)
        })
    }
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
