//! `filter add`, `change`, `replace` and `del` for the filters of one parent.
//!
//! A line names a priority and may name a handle in it. `add` wants the handle to be free, `change` to be
//! taken, `replace` changes or makes. Source: Linux 6.12 net/sched/cls_api.c, by behaviour.

use super::super::action::ActionChain;
use super::body::{FilterBody, ToldFilter};
use super::error::TcFilterError;
use super::{FilterBlock, FilterPriority};
use quietcore_qdisc::filter::U32Tables;
use quietcore_qdisc::tc::{Classifier, FilterCommand, FilterHandle, Protocol, TcVerb};

/// What a filter without a priority gets, if no filter is at or behind [`AUTO_FROM`].
const AUTO_PRIO: u16 = 0xc000;
/// Filters without a priority are put before the first one of this or a higher priority.
const AUTO_FROM: u16 = 0x8000;

/// What a line says is to be done.
pub(in crate::control) struct FilterOrder<'a> {
    verb: TcVerb,
    protocol: Option<Protocol>,
    /// Nothing if it says 0.
    prio: Option<u16>,
    handle: Option<FilterHandle>,
    classifier: Option<&'a Classifier>,
    /// What the classifier's actions are.
    actions: ActionChain,
}

impl<'a> FilterOrder<'a> {
    pub(in crate::control) fn new(command: &'a FilterCommand, actions: ActionChain) -> Self {
        let FilterCommand { verb, protocol, prio, handle, classifier, .. } = command;
        Self {
            verb: *verb,
            protocol: *protocol,
            prio: prio.filter(|prio| *prio != 0),
            handle: *handle,
            classifier: classifier.as_ref(),
            actions,
        }
    }

    /// Whether a filter is there afterwards.
    pub(in crate::control) fn adds(&self) -> bool {
        self.verb != TcVerb::Delete
    }

    pub(super) fn carry_out(&self, block: &mut FilterBlock) -> Result<(), TcFilterError> {
        if self.verb == TcVerb::Delete { self.remove(block) } else { self.put(block) }
    }

    /// Where filters of a priority are, or would be.
    fn find(block: &FilterBlock, prio: u16) -> Result<usize, usize> {
        block.priorities.binary_search_by_key(&prio, |priority| priority.prio)
    }

    /// The priority of a filter that names none.
    fn auto(block: &FilterBlock) -> Result<u16, TcFilterError> {
        let behind = block.priorities.iter().find(|priority| priority.prio >= AUTO_FROM);
        let prio = behind.map_or(AUTO_PRIO, |behind| behind.prio - 1);
        // Right behind the last one of the others there is none left.
        if Self::find(block, prio).is_ok() { Err(TcFilterError::NoPriorityLeft) } else { Ok(prio) }
    }

    /// Complains if the priority is of another protocol, or kind.
    fn fits(&self, priority: &FilterPriority, protocol: Option<Protocol>) -> Result<(), TcFilterError> {
        if protocol.is_some_and(|protocol| protocol != priority.protocol) {
            let found = priority.protocol;
            return Err(TcFilterError::OtherProtocol { prio: priority.prio, found });
        }
        if self.classifier.is_some_and(|classifier| classifier.kind() != priority.body.kind()) {
            let found = priority.body.kind();
            return Err(TcFilterError::OtherFilterKind { prio: priority.prio, found });
        }
        Ok(())
    }

    fn put(&self, block: &mut FilterBlock) -> Result<(), TcFilterError> {
        let protocol = self.protocol.unwrap_or(Protocol::ALL);
        let prio = match self.prio {
            Some(prio) => prio,
            None if self.verb == TcVerb::Change => return Err(TcFilterError::NoPriority),
            None => Self::auto(block)?,
        };
        let place = Self::find(block, prio);
        if let Ok(at) = place {
            self.fits(&block.priorities[at], Some(protocol))?;
        } else if self.verb == TcVerb::Change {
            return Err(TcFilterError::NothingToChange);
        }
        let Some(classifier) = self.classifier else { return Err(TcFilterError::NoKind) };
        let FilterBlock { priorities, tables } = block;
        let at = match place {
            Ok(at) => at,
            Err(at) => {
                let body = FilterBody::empty(classifier, prio, tables)?;
                priorities.insert(at, FilterPriority { prio, protocol, body });
                at
            }
        };
        let done = self.put_one(classifier, prio, &mut priorities[at].body, tables);
        if done.is_err() && place.is_err() {
            priorities.remove(at);
            tables.remove_root(prio);
        }
        done
    }

    fn put_one(
        &self,
        classifier: &Classifier,
        prio: u16,
        body: &mut FilterBody,
        tables: &mut U32Tables<ActionChain>,
    ) -> Result<(), TcFilterError> {
        let told = ToldFilter { classifier, actions: &self.actions };
        match self.handle.filter(|handle| body.holds(*handle, prio, tables)) {
            Some(handle) if self.verb == TcVerb::Add => Err(TcFilterError::FilterExists(handle)),
            Some(handle) => body.change(told, handle, prio, tables),
            None if self.verb == TcVerb::Change => Err(TcFilterError::NothingToChange),
            None => body.add(told, self.handle, prio, tables),
        }
    }

    fn remove(&self, block: &mut FilterBlock) -> Result<(), TcFilterError> {
        let Some(prio) = self.prio else {
            if self.protocol.is_some() || self.handle.is_some() || self.classifier.is_some() {
                return Err(TcFilterError::CannotFlush);
            }
            *block = FilterBlock::default();
            return Ok(());
        };
        let Ok(at) = Self::find(block, prio) else {
            let known = block.priorities.iter().map(|priority| priority.prio).collect();
            return Err(TcFilterError::UnknownPriority { named: prio, known });
        };
        let FilterBlock { priorities, tables } = block;
        self.fits(&priorities[at], self.protocol)?;
        let is_last = match self.handle {
            Some(handle) => priorities[at].body.remove(handle, prio, tables)?,
            None => true,
        };
        if is_last {
            priorities.remove(at);
            tables.remove_root(prio);
        }
        Ok(())
    }
}
