//! What is inside a class: looked at, and changed while it runs.

use super::Htb;
use crate::{Child, ClassId, Delays, Packet};
use core::fmt::Debug;
use quietcore_core::Nanos;

impl<P: Packet + Debug + Send + 'static> Htb<P> {
    /// Whether `class` is there and has a queue: whether packets can be put into it.
    ///
    /// ```
    /// # use quietcore_qdisc::{ClassId, Htb, HtbSettings};
    /// assert!(!Htb::<Vec<u8>>::new(HtbSettings::default()).is_leaf(ClassId::new(1, 1)));
    /// ```
    #[must_use]
    pub fn is_leaf(&self, class: ClassId) -> bool {
        self.inner(class).is_some()
    }

    /// The queue of a leaf.
    ///
    /// ```
    /// # use quietcore_qdisc::{Child, ClassId, Htb, HtbClass, HtbError, HtbSettings, Rate};
    /// # let mut htb = Htb::<Vec<u8>>::new(HtbSettings::default());
    /// let leaf = ClassId::new(1, 2);
    /// htb.add_class(None, leaf, HtbClass::new(Rate::bytes_per_second(1_000).expect("not 0")))?;
    /// assert_eq!(htb.inner(leaf).map(Child::kind), Some("pfifo"));
    /// # Ok::<(), HtbError>(())
    /// ```
    #[must_use]
    pub fn inner(&self, class: ClassId) -> Option<&Child<P>> {
        self.tree.classes.get(&class)?.queue.as_ref()
    }

    /// Changes the queue of a leaf; who waited for it looks again.
    ///
    /// ```
    /// # use quietcore_core::Nanos;
    /// # use quietcore_qdisc::{ClassId, Htb, HtbClass, HtbError, HtbSettings, Rate};
    /// # let mut htb = Htb::<Vec<u8>>::new(HtbSettings::default());
    /// let leaf = ClassId::new(1, 2);
    /// htb.add_class(None, leaf, HtbClass::new(Rate::bytes_per_second(1_000).expect("not 0")))?;
    /// assert_eq!(htb.with_inner(leaf, |queue| queue.kind()), Some("pfifo"));
    /// # Ok::<(), HtbError>(())
    /// ```
    pub fn with_inner<R>(&mut self, class: ClassId, change: impl FnOnce(&mut Child<P>) -> R) -> Option<R> {
        let node = self.tree.classes.get_mut(&class)?;
        let answer = change(node.queue.as_mut()?);
        let is_empty = node.is_empty();
        // It may give a packet earlier than it said.
        self.tree.deactivate(class);
        if !is_empty {
            self.tree.activate(class);
        }
        Some(answer)
    }

    pub(super) fn inner_delays(&self) -> Delays {
        let queues = self.tree.classes.values().filter_map(|node| node.queue.as_ref());
        queues.fold(Delays::Absent, |delays, queue| delays.and(queue.delays()))
    }

    pub(super) fn end_inner_delays(&mut self, now: Nanos) {
        let is_due = |queue: &Child<P>| queue.delays().until().is_some_and(|until| until <= now);
        let due = |(&id, node): (&ClassId, &super::node::HtbNode<P>)| {
            node.queue.as_ref().filter(|queue| is_due(queue)).map(|_| id)
        };
        let due: alloc::vec::Vec<ClassId> = self.tree.classes.iter().filter_map(due).collect();
        for class in due {
            self.with_inner(class, |queue| queue.end_delays(now));
        }
    }
}
