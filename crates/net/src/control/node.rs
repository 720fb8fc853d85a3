//! A discipline that `Control` made: what it was told, its classes, its filters, its estimates. It is itself
//! a discipline, so all of that is where the packets are: under the lock of the queue.
//!
//! Invariant: a class is in `classes` exactly when the discipline has it; `cbq`'s link, and what netem and
//! tbf have inside, are classes that no line made, and are not.

use super::TcControlError;
use super::filter::{Classified, Filters};
use super::order::ClassTable;
use core::any::Any;
use core::fmt::Debug;
use quietcore_live::Nanos;
use quietcore_qdisc::tc::{ClassOptions, Estimation, QdiscOptions, TcDescription, TcRefusal};
use quietcore_qdisc::{
    ClassId, Classful, DelayTimer, Dequeued, Enqueued, Estimator, EstimatorError, Packet, Qdisc, Statistics,
};
use std::collections::BTreeMap;

/// A class may hand a packet on by filters of its own, so often at most.
const LEVELS: usize = 8;

/// An estimate of rates.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    pub(super) estimator: Estimator,
}

impl Estimate {
    pub(super) fn new(asked: Estimation, now: Nanos) -> Result<Self, EstimatorError> {
        Estimator::new(asked.interval, asked.time_constant, now).map(|estimator| Self { estimator })
    }

    /// Takes what was sent in all; says when it is to be told again.
    pub(super) fn take(&mut self, now: Nanos, sent: &Statistics) -> Nanos {
        self.estimator.take(now, sent.sent_bytes, sent.sent_packets);
        self.estimator.next()
    }
}

/// A class that a line made.
#[derive(Debug)]
pub(super) struct MadeClass {
    pub(super) parent: Option<ClassId>,
    pub(super) options: ClassOptions,
    pub(super) estimate: Option<Estimate>,
}

#[derive(Debug)]
pub(super) struct QdiscNode<P> {
    /// Its major number.
    pub(super) handle: u16,
    pub(super) options: QdiscOptions,
    /// Of netem's numbers: named by a line, or drawn.
    pub(super) seed: u64,
    pub(super) body: Box<dyn Classful<P>>,
    pub(super) estimate: Option<Estimate>,
    pub(super) classes: BTreeMap<ClassId, MadeClass>,
    /// In which order they are listed.
    pub(super) table: ClassTable,
    /// How many disciplines were made before it.
    pub(super) birth: u64,
    /// The parent that its line named: `1:` may stand for `1:1`.
    pub(super) named_parent: Option<ClassId>,
    pub(super) filters: Filters,
    /// Packets that its filters dropped.
    pub(super) filtered: u64,
}

/// The node that a discipline is, if `Control` made it.
pub(super) fn node<P: Packet + Debug + Send>(qdisc: &dyn Qdisc<P>) -> Option<&QdiscNode<P>> {
    (qdisc as &dyn Any).downcast_ref()
}

/// The same, to be changed.
pub(super) fn node_mut<P: Packet + Debug + Send>(qdisc: &mut dyn Qdisc<P>) -> Option<&mut QdiscNode<P>> {
    (qdisc as &mut dyn Any).downcast_mut()
}

impl<P: Packet + Debug + Send> QdiscNode<P> {
    /// Its own name.
    pub(super) const fn id(&self) -> ClassId {
        ClassId::new(self.handle, 0)
    }

    /// The class of what netem and tbf have inside, whatever they would call it.
    const fn only_slot(&self) -> ClassId {
        ClassId::new(self.handle, 1)
    }

    /// All its classes, in order, those included that no line made.
    pub(super) fn all_classes(&self) -> Vec<ClassId> {
        if self.body.wraps_one() { vec![self.only_slot()] } else { self.body.classes() }
    }

    /// The same as they are listed; the discipline itself among them, if it is one of them.
    pub(super) fn listed_classes(&self) -> Vec<ClassId> {
        let listed: Vec<ClassId> = self.table.all().collect();
        // Classes that no line made, as those of prio, are in no table.
        let others = self.all_classes().into_iter().filter(|class| !listed.contains(class));
        others.chain(listed.iter().copied()).collect()
    }

    /// The classes that can have a discipline inside, in order.
    pub(super) fn slots(&self) -> Vec<ClassId> {
        if self.body.wraps_one() { vec![self.only_slot()] } else { self.body.slots() }
    }

    /// The slot that a command's `parent` names.
    pub(super) fn slot(&self, named: ClassId) -> Option<ClassId> {
        // `1:` is as good as `1:1` where there is one.
        let any = self.body.wraps_one() && named == self.id();
        let named = if any { self.only_slot() } else { named };
        self.slots().into_iter().find(|slot| *slot == named)
    }

    /// What `tc` shows of it.
    pub(super) fn describe(&self) -> TcDescription {
        self.options.describe(&*self.body)
    }

    /// What `tc` shows of a class.
    pub(super) fn describe_class(&self, id: ClassId) -> TcDescription {
        match self.classes.get(&id) {
            Some(class) => class.options.describe(&*self.body, id),
            None => self.body.describe_class(id),
        }
    }

    /// What it says of a class, where that is refused.
    pub(super) fn refused(&self, refusal: TcRefusal) -> TcControlError {
        TcControlError::refused(refusal, self.class_names())
    }

    /// What a line put into a class.
    pub(super) fn child(&self, class: ClassId) -> Option<&Self> {
        node(self.body.inner(class)?.qdisc())
    }

    /// Shows it and all below it, each with its place, from the top.
    pub(super) fn walk<'a>(
        &'a self,
        place: Option<ClassId>,
        visit: &mut dyn FnMut(Option<ClassId>, &'a Self),
    ) {
        visit(place, self);
        for slot in self.slots() {
            if let Some(child) = self.child(slot) {
                child.walk(Some(slot), visit);
            }
        }
    }

    fn holds(&self, handle: u16) -> bool {
        let mut found = false;
        self.walk(None, &mut |_, node| found |= node.handle == handle);
        found
    }

    /// Changes the one with that handle, itself or one below; those above look again at what they have
    /// inside.
    pub(super) fn with(&mut self, now: Nanos, handle: u16, change: &mut dyn FnMut(&mut Self)) {
        if self.handle == handle {
            return change(self);
        }
        let below =
            self.slots().into_iter().find(|slot| self.child(*slot).is_some_and(|it| it.holds(handle)));
        let Some(slot) = below else { return };
        self.body.change_inner(now, slot, &mut |inner| {
            if let Some(node) = node_mut(inner.qdisc_mut()) {
                node.with(now, handle, change);
            }
        });
    }

    /// The same for each one.
    pub(super) fn with_all(&mut self, now: Nanos, change: &mut dyn FnMut(&mut Self)) {
        change(self);
        for slot in self.slots() {
            if self.child(slot).is_some() {
                self.body.change_inner(now, slot, &mut |inner| {
                    if let Some(node) = node_mut(inner.qdisc_mut()) {
                        node.with_all(now, change);
                    }
                });
            }
        }
    }

    /// Tells the estimates what was sent; the first moment at which one is to be told again.
    pub(super) fn sample(&mut self, now: Nanos) -> Option<Nanos> {
        let mut next = Vec::new();
        let sent = self.body.statistics();
        next.extend(self.estimate.as_mut().map(|estimate| estimate.take(now, &sent)));
        let estimated = self.classes.iter().filter(|(_, class)| class.estimate.is_some());
        let names: Vec<ClassId> = estimated.map(|(name, _)| *name).collect();
        for name in names {
            let sent = self.body.class_statistics(name).unwrap_or_default();
            let estimate = self.classes.get_mut(&name).and_then(|class| class.estimate.as_mut());
            next.extend(estimate.map(|estimate| estimate.take(now, &sent)));
        }
        next.into_iter().min()
    }

    /// What filters say of a packet.
    fn classify(&mut self, now: Nanos, packet: &P) -> Classified {
        let mut said = self.filters.first(self.id(), packet, now);
        for _ in 0..LEVELS {
            let Classified::Class(class) = said else { break };
            if self.filters.of(class).is_none() || !self.body.hands_on(class) {
                break;
            }
            match self.filters.first(class, packet, now) {
                Classified::Unknown => break,
                next => said = next,
            }
        }
        said
    }
}

impl<P: Packet + Debug + Send> Qdisc<P> for QdiscNode<P> {
    fn kind(&self) -> &'static str {
        self.body.kind()
    }

    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        match self.classify(now, &packet) {
            Classified::Class(class) => self.body.enqueue_filtered(now, class, packet),
            Classified::Unknown => self.body.enqueue(now, packet),
            // No filter of a discipline sends packets elsewhere.
            Classified::Drop | Classified::Stolen => {
                self.filtered += u64::from(packet.packets());
                Enqueued::Dropped
            }
        }
    }

    fn head(&self) -> Option<u32> {
        self.body.head()
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        self.body.dequeue(now)
    }

    fn reset(&mut self, now: Nanos) {
        self.body.reset(now);
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = self.body.statistics();
        statistics.dropped += self.filtered;
        statistics
    }

    fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// A filter may look at what each packet has of its own, as its length.
    fn keeps_whole(&self) -> bool {
        self.filters.is_empty() && self.body.keeps_whole()
    }

    fn delays(&self) -> DelayTimer {
        self.body.delays()
    }

    fn end_delays(&mut self, now: Nanos) {
        self.body.end_delays(now);
    }
}
