//! `class add`, `change`, `replace`, `del`.

use super::TcControlError;
use super::node::{Estimate, MadeClass, QdiscNode};
use super::qdiscs::estimate;
use super::state::ControlState;
use core::fmt::Debug;
use quietcore_live::Nanos;
use quietcore_qdisc::tc::{ClassCommand, ClassOptions, TcRefusal, TcVerb};
use quietcore_qdisc::{ClassId, Packet};

/// What cannot be done.
fn not_possible<T>(what: String, remedy: &'static str) -> Result<T, TcControlError> {
    Err(TcControlError::not_possible(what, remedy))
}

impl<P: Packet + Debug + Send> ControlState<P> {
    pub(super) fn class(&mut self, command: &ClassCommand, now: Nanos) -> Result<(), TcControlError> {
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
        entry.change(id.major(), now, |node| {
            if !ClassOptions::has_kind(node.options.kind()) {
                let what = format!("{} {} has no classes of its own", node.options.kind(), node.id());
                return not_possible(what, "name a discipline whose classes are added");
            }
            if id.minor() == 0 {
                return not_possible(
                    format!("{id} is the discipline itself"),
                    "name a class: its number is not 0",
                );
            }
            if node.body.has_fixed_classes() {
                return node.change_fixed_class(command, id, now);
            }
            if command.verb == TcVerb::Delete {
                return node.remove_class(id);
            }
            node.make_class(command, id, estimate, now)
        })
    }
}

impl<P: Packet + Debug + Send> QdiscNode<P> {
    /// The classes that lines made.
    pub(super) fn class_names(&self) -> Vec<ClassId> {
        self.classes.keys().copied().collect()
    }

    fn unknown_class(&self, class: ClassId) -> TcControlError {
        TcControlError::UnknownClass { class, known: self.class_names() }
    }

    fn make_class(
        &mut self,
        command: &ClassCommand,
        id: ClassId,
        estimate: Option<Estimate>,
        now: Nanos,
    ) -> Result<(), TcControlError> {
        let Some(options) = &command.options else {
            return not_possible(format!("`{command}` names no kind"), "name that of the discipline");
        };
        if options.kind() != self.options.kind() {
            return Err(TcControlError::other_kind(self.options.kind(), options.kind()));
        }
        // Below the discipline is below no class; and as in the kernel, below an unknown one of htb, too, and
        // below any of drr, which has no levels.
        let is_there = |parent: &ClassId| match options {
            ClassOptions::Htb(_) => self.classes.contains_key(parent),
            ClassOptions::Drr(_) => false,
            _ => true,
        };
        let parent = command.parent.filter(|parent| parent.minor() != 0).filter(is_there);
        match (self.classes.contains_key(&id), command.verb) {
            (true, TcVerb::Add) => return Err(TcControlError::Refused(TcRefusal::ClassExists(id))),
            (false, TcVerb::Change | TcVerb::Delete) => return Err(self.unknown_class(id)),
            (true, _) => {
                let before = self.classes.get(&id).and_then(|class| class.parent);
                if command.parent.is_some() && parent != before {
                    let above = before.unwrap_or(self.id());
                    return not_possible(
                        format!("class {id} stays below {above}"),
                        "`del` it and add it again",
                    );
                }
                let Some(mut class) = self.classes.remove(&id) else { return Err(self.unknown_class(id)) };
                let changed = options.clone().change(&class.options, &mut *self.body, id, now);
                if let Ok(told) = &changed {
                    class.options = told.clone();
                    class.estimate = estimate.or(class.estimate);
                }
                self.classes.insert(id, class);
                changed.map_err(|refusal| self.refused(refusal))?;
            }
            (false, _) => {
                let added = options.add(&mut *self.body, parent, id);
                added.map_err(|refusal| self.refused(refusal))?;
                self.classes.insert(id, MadeClass { parent, options: options.clone(), estimate });
                self.table.insert(id);
            }
        }
        Ok(())
    }

    /// Does to a class that came with the discipline what a line says, as far as that can be.
    fn change_fixed_class(
        &mut self,
        command: &ClassCommand,
        id: ClassId,
        now: Nanos,
    ) -> Result<(), TcControlError> {
        let known = self.body.classes();
        let is_there = known.contains(&id);
        let done = match (command.verb, &command.options) {
            (TcVerb::Delete, _) => self.body.remove_class(id),
            (_, None) => {
                return not_possible(format!("`{command}` names no kind"), "name that of the discipline");
            }
            (_, Some(options)) if options.kind() != self.options.kind() => {
                return Err(TcControlError::other_kind(self.options.kind(), options.kind()));
            }
            (TcVerb::Add, Some(_)) if is_there => Err(TcRefusal::ClassExists(id)),
            (TcVerb::Add | TcVerb::Replace, Some(options)) if !is_there => {
                options.add(&mut *self.body, None, id)
            }
            (_, Some(options)) => options.clone().change(options, &mut *self.body, id, now).map(drop),
        };
        done.map_err(|refusal| TcControlError::refused(refusal, known))
    }

    fn remove_class(&mut self, id: ClassId) -> Result<(), TcControlError> {
        if !self.classes.contains_key(&id) {
            return Err(self.unknown_class(id));
        }
        if self.filters.hold(id) {
            return Err(TcControlError::in_use(id, "a filter"));
        }
        self.body.remove_class(id).map_err(|refusal| self.refused(refusal))?;
        self.classes.remove(&id);
        self.table.remove(id);
        Ok(())
    }
}
