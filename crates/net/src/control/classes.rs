//! `class add`, `change`, `replace`, `del`, of htb, hfsc and cbq.

use super::body::Body;
use super::class_settings::{
    cbq_class, cbq_error, hfsc_class, hfsc_error, hfsc_merged, htb_class, htb_error,
};
use super::node::{Class, Estimate, Node};
use super::qdiscs::estimate;
use super::tree::has_classes;
use super::{ControlError, State};
use core::fmt::Debug;
use quietcore_live::Nanos;
use quietcore_qdisc::tc::{ClassCommand, ClassOptions, Verb};
use quietcore_qdisc::{ClassId, Packet};

/// What nobody can do.
fn not_possible<T>(what: String, remedy: &'static str) -> Result<T, ControlError> {
    Err(ControlError::NotPossible { what, remedy })
}

impl<P: Packet + Debug + Send> State<P> {
    pub(super) fn class(&mut self, command: &ClassCommand, now: Nanos) -> Result<(), ControlError> {
        let entry = self.entry(&command.device)?;
        let Some(id) = command.id else {
            return not_possible(format!("`{command}` names no class"), "name it with `classid`");
        };
        if let Some(parent) = command.parent.filter(|parent| parent.major() != id.major()) {
            let what = format!("class {id} cannot be below {parent}, which is of another discipline");
            return not_possible(what, "let both begin with the discipline's handle");
        }
        if entry.mq() == Some(id.major()) {
            return not_possible(
                format!("the classes of mq {id} are the device's queues"),
                "they stay as they are",
            );
        }
        let estimate = estimate(command.est, now)?;
        entry.change((id.major(), now), |node| {
            if !has_classes(node.options.kind()) {
                let what = format!("{} {} has no classes of its own", node.options.kind(), node.id());
                return not_possible(what, "only htb, hfsc and cbq have");
            }
            if id.minor() == 0 {
                return not_possible(
                    format!("{id} is the discipline itself"),
                    "name a class: its number is not 0",
                );
            }
            if command.verb == Verb::Delete {
                return node.remove_class(id);
            }
            node.make_class(command, (id, estimate), now)
        })
    }
}

impl<P: Packet + Debug + Send> Node<P> {
    /// Those that somebody made.
    pub(super) fn class_names(&self) -> Vec<ClassId> {
        self.classes.keys().copied().collect()
    }

    fn unknown_class(&self, class: ClassId) -> ControlError {
        ControlError::UnknownClass { class, known: self.class_names() }
    }

    fn make_class(
        &mut self,
        command: &ClassCommand,
        (id, estimate): (ClassId, Option<Estimate>),
        now: Nanos,
    ) -> Result<(), ControlError> {
        let Some(options) = &command.options else {
            return not_possible(format!("`{command}` names no kind"), "name that of the discipline");
        };
        if options.kind() != self.options.kind() {
            return Err(ControlError::OtherKind { found: self.options.kind(), named: options.kind() });
        }
        // Below the discipline is below no class.
        let parent = command.parent.filter(|parent| parent.minor() != 0);
        match (self.classes.contains_key(&id), command.verb) {
            (true, Verb::Add) => return Err(ControlError::ClassExists { class: id }),
            (false, Verb::Change | Verb::Delete) => return Err(self.unknown_class(id)),
            (true, _) => {
                let before = self.classes.get(&id).and_then(|class| class.parent);
                if command.parent.is_some() && parent != before {
                    let above = before.unwrap_or(self.id());
                    return not_possible(
                        format!("class {id} stays below {above}"),
                        "`del` it and add it again",
                    );
                }
                let options = self.change_class(id, options, now)?;
                if let Some(class) = self.classes.get_mut(&id) {
                    class.options = options;
                    class.estimate = estimate.or(class.estimate.take());
                }
            }
            (false, _) => {
                self.add_class(parent, id, options)?;
                self.classes.insert(id, Class { parent, options: options.clone(), estimate });
            }
        }
        Ok(())
    }

    fn add_class(
        &mut self,
        parent: Option<ClassId>,
        id: ClassId,
        options: &ClassOptions,
    ) -> Result<(), ControlError> {
        let known = self.class_names();
        match (&mut self.body, options) {
            (Body::Htb(htb), ClassOptions::Htb(typed)) => {
                htb.add_class(parent, id, htb_class(typed)?).map_err(|error| htb_error(error, known))
            }
            (Body::Hfsc(hfsc), ClassOptions::Hfsc(typed)) => {
                hfsc.add_class(parent, id, hfsc_class(typed)?).map_err(|error| hfsc_error(error, known))
            }
            (Body::Cbq(cbq), ClassOptions::Cbq(typed)) => {
                let class = cbq_class(typed, cbq.settings())?;
                cbq.add_class(parent, id, class).map_err(|error| cbq_error(error, known))
            }
            _ => Err(ControlError::OtherKind { found: self.options.kind(), named: options.kind() }),
        }
    }

    /// Gives what the class has been told in all then.
    fn change_class(
        &mut self,
        id: ClassId,
        options: &ClassOptions,
        now: Nanos,
    ) -> Result<ClassOptions, ControlError> {
        let known = self.class_names();
        match (&mut self.body, options) {
            (Body::Htb(htb), ClassOptions::Htb(typed)) => {
                htb.change_class(id, htb_class(typed)?).map_err(|error| htb_error(error, known))?;
            }
            (Body::Hfsc(hfsc), ClassOptions::Hfsc(typed)) => {
                let merged = match self.classes.get(&id).map(|class| &class.options) {
                    Some(ClassOptions::Hfsc(before)) => hfsc_merged((**typed).clone(), before),
                    _ => (**typed).clone(),
                };
                let changed = hfsc.change_class(now, id, hfsc_class(&merged)?);
                changed.map_err(|error| hfsc_error(error, known))?;
                return Ok(ClassOptions::Hfsc(Box::new(merged)));
            }
            (Body::Cbq(cbq), ClassOptions::Cbq(typed)) => {
                let class = cbq_class(typed, cbq.settings())?;
                cbq.change_class(id, class).map_err(|error| cbq_error(error, known))?;
            }
            _ => return Err(ControlError::OtherKind { found: self.options.kind(), named: options.kind() }),
        }
        Ok(options.clone())
    }

    fn remove_class(&mut self, id: ClassId) -> Result<(), ControlError> {
        if !self.classes.contains_key(&id) {
            return Err(self.unknown_class(id));
        }
        if self.filters.hold(id) {
            return Err(ControlError::ClassInUse { class: id, by: "a filter" });
        }
        let known = self.class_names();
        match &mut self.body {
            Body::Htb(htb) => htb.remove_class(id).map_err(|error| htb_error(error, known))?,
            Body::Hfsc(hfsc) => hfsc.remove_class(id).map_err(|error| hfsc_error(error, known))?,
            Body::Cbq(cbq) => cbq.remove_class(id).map_err(|error| cbq_error(error, known))?,
            _ => {}
        }
        self.classes.remove(&id);
        Ok(())
    }
}
