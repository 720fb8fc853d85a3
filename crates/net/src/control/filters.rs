//! `filter add`, `change`, `replace` and `del`: whose filters they are about.

use super::TcControlError;
use super::action::{ActionChain, ActionContext, MirredTarget};
use super::clsact::ClsactEntry;
use super::filter::FilterOrder;
use super::node::QdiscNode;
use super::qdiscs::{random, root_handle};
use super::state::ControlState;
use super::tree::DeviceEntry;
use core::fmt::Debug;
use quietcore_live::Nanos;
use quietcore_qdisc::tc::{CLSACT, Classifier, FilterAction, FilterActions, FilterCommand, TcParent, TcVerb};
use quietcore_qdisc::{ClassId, Packet};
use rand_chacha::rand_core::Rng as _;
use std::sync::Arc;

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
        self.entry(&command.device)?;
        let typed = command.classifier.as_ref().filter(|_| command.verb != TcVerb::Delete);
        let typed = typed.map_or(&FilterActions::None, Classifier::actions);
        let actions = self.chain(typed, now)?;
        let entry = self.entry(&command.device)?;
        let Some(parent) = filter_parent(entry, command.place) else {
            // Nothing of nothing can be removed.
            let is_flush = command.verb == TcVerb::Delete && command.prio.unwrap_or(0) == 0;
            return if is_flush { Ok(()) } else { Err(no_filters(0)) };
        };
        let order = FilterOrder::new(command, actions);
        if let Some(clsact) = entry.clsact_of(parent) {
            return clsact.execute(&entry.device, parent, &order);
        }
        if parent.major() == CLSACT.major() && parent != ROOT {
            let what =
                format!("Parent Qdisc doesn't exists: {} has neither ingress nor clsact", command.device);
            return Err(TcControlError::not_possible(what, "`qdisc add dev DEVICE clsact` first"));
        }
        if sends_elsewhere(typed) {
            let what = "mirred in a filter of a discipline, which is asked under the lock of the queue";
            return Err(TcControlError::not_possible(what, "let it be a filter of `clsact`, `egress`"));
        }
        if parent.major() == 0 || entry.mq() == Some(parent.major()) {
            return Err(no_filters(parent.major()));
        }
        entry.change(parent.major(), now, |node| {
            node.filterable(parent)?;
            node.filters.execute(parent, &order)
        })
    }

    /// The actions that a line has.
    fn chain(&mut self, typed: &FilterActions, now: Nanos) -> Result<ActionChain, TcControlError> {
        let Self { actions, devices, seeds, .. } = self;
        let mut random = || random(seeds.next_u64());
        let device = |name: &str| match devices.get(name) {
            Some(entry) => Ok(MirredTarget::new(Arc::downgrade(&entry.device))),
            None => {
                let known = devices.keys().cloned().collect();
                Err(TcControlError::UnknownDevice { device: name.into(), known })
            }
        };
        actions.chain(typed, &mut ActionContext { now, random: &mut random, device: &device })
    }
}

/// Whether a line has a `mirred`.
fn sends_elsewhere(typed: &FilterActions) -> bool {
    let FilterActions::List(list) = typed else { return false };
    list.iter().any(|action| matches!(action, FilterAction::Mirred(_)))
}

impl<P> DeviceEntry<P> {
    /// The `ingress` or `clsact`, if that is the parent.
    pub(super) fn clsact_of(&self, parent: ClassId) -> Option<&ClsactEntry<P>> {
        self.clsact.as_ref().filter(|_| parent.major() == CLSACT.major() && parent != ROOT)
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
