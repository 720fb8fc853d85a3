//! Disciplines that have others inside, by class: reached and changed where they run.

use crate::refusal::TcRefusal;
use crate::tc::TcProperties;
use crate::{ClassId, DelayTimer, Enqueued, InnerQdisc, Packet, Qdisc, Statistics};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;
use quietcore_core::Nanos;

/// What `tc` shows of a discipline or of a class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TcDescription {
    /// What it was told, with defaults; what only `-d` shows is among it.
    pub options: TcProperties,
    /// What `-s` adds: what it has counted besides what all disciplines count. Its text has the blanks that
    /// its lines begin with, and the ends of all lines but the last.
    pub figures: TcProperties,
}

/// What `tc` shows of a discipline's classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassListing {
    /// No line.
    Hidden,
    /// A line; not even with `-s` what was counted.
    Named,
    /// What is queued, too, but not what was sent.
    Queued,
    /// What was counted, too.
    Counted,
}

/// A discipline as `tc` sees it: with its classes, and with what is inside of them.
///
/// A discipline without classes needs none of the methods. Names of classes have the discipline's handle as
/// their major number.
pub trait Classful<P: Packet + Debug>: Qdisc<P> {
    /// Whether it has one discipline inside, whatever the class is called that this is in.
    fn wraps_one(&self) -> bool {
        false
    }

    /// All its classes, in order, those included that no line made; none of a discipline that wraps one.
    fn classes(&self) -> Vec<ClassId> {
        Vec::new()
    }

    /// The classes that can have a discipline inside, in order.
    fn slots(&self) -> Vec<ClassId> {
        self.classes()
    }

    /// What is inside a class.
    fn inner(&self, class: ClassId) -> Option<&InnerQdisc<P>> {
        let _ = class;
        None
    }

    /// Changes what is inside a class, if anything is; the discipline then looks again at what may leave.
    fn change_inner(&mut self, now: Nanos, class: ClassId, change: &mut dyn FnMut(&mut InnerQdisc<P>)) {
        let _ = (now, class, change);
    }

    /// Puts a discipline into a class, or the default one; what the one before held is dropped. Says whether
    /// the class can have one.
    fn graft_inner(&mut self, now: Nanos, class: ClassId, inner: Option<Box<dyn Qdisc<P>>>) -> bool {
        let _ = (now, class, inner);
        false
    }

    /// Takes a packet that a filter has sent to a class.
    fn enqueue_filtered(&mut self, now: Nanos, class: ClassId, packet: P) -> Enqueued {
        let _ = class;
        self.enqueue(now, packet)
    }

    /// Whether filters can choose between its classes.
    fn has_filters(&self) -> bool {
        false
    }

    /// Whether a class can have filters of its own.
    fn classes_have_filters(&self) -> bool {
        true
    }

    /// Whether its classes come with it: lines change them, and add or remove none.
    fn has_fixed_classes(&self) -> bool {
        false
    }

    /// Whether filters of the class itself are asked where to send a packet on.
    fn hands_on(&self, class: ClassId) -> bool {
        let _ = class;
        true
    }

    /// What a class has done, and holds.
    fn class_statistics(&self, class: ClassId) -> Option<Statistics> {
        self.inner(class).map(InnerQdisc::statistics)
    }

    /// What `tc` shows of a class that no line made.
    fn describe_class(&self, class: ClassId) -> TcDescription {
        let _ = class;
        TcDescription::default()
    }

    /// What `tc` shows of its classes.
    fn listing(&self) -> ClassListing {
        ClassListing::Counted
    }

    /// What `tc` shows of the discipline itself, if it lists that among its classes.
    fn describe_root_class(&self) -> Option<TcDescription> {
        None
    }

    /// Whether `tc` shows a class without a parent as one of the root, not of the discipline.
    fn top_is_root(&self) -> bool {
        false
    }

    /// Removes a class.
    ///
    /// # Errors
    /// [`TcRefusal`], where it is used or does not exist.
    fn remove_class(&mut self, class: ClassId) -> Result<(), TcRefusal> {
        Err(TcRefusal::UnknownClass(class))
    }
}

/// The second timers of all that is inside.
pub(crate) fn inner_delays<P: Packet + Debug>(queue: &dyn Classful<P>) -> DelayTimer {
    let slots = queue.slots();
    let inside = slots.iter().filter_map(|class| queue.inner(*class));
    inside.fold(DelayTimer::Absent, |delays, inner| delays.and(inner.delays()))
}

/// Does what is due at `now` of what the second timers inside are for.
pub(crate) fn end_inner_delays<P: Packet + Debug>(queue: &mut dyn Classful<P>, now: Nanos) {
    for class in queue.slots() {
        let until = queue.inner(class).and_then(|inner| inner.delays().until());
        if until.is_some_and(|until| until <= now) {
            queue.change_inner(now, class, &mut |inner| inner.end_delays(now));
        }
    }
}
