//! What is inside a class: looked at, and changed while it runs.

use super::settings::HfscKey;
use super::{Hfsc, HfscClass};
use crate::{Child, ClassId, Delays, Packet, Verdict};
use alloc::vec::Vec;
use core::fmt::Debug;
use quietcore_core::Nanos;

impl<P: Packet + Debug + Send + 'static> Hfsc<P> {
    /// The class of packets whose priority names no leaf.
    ///
    /// ```
    /// # use quietcore_qdisc::Hfsc;
    /// assert_eq!(Hfsc::<Vec<u8>>::new().default_class(), None);
    /// ```
    #[must_use]
    pub const fn default_class(&self) -> Option<ClassId> {
        self.default
    }

    /// What a class was given; `None` of one that does not exist.
    ///
    /// ```
    /// # use quietcore_qdisc::{ClassId, Hfsc};
    /// assert_eq!(Hfsc::<Vec<u8>>::new().class(ClassId::new(1, 1)), None);
    /// ```
    #[must_use]
    pub fn class(&self, name: ClassId) -> Option<&HfscClass> {
        self.key(name).ok().map(|key| &self.tree.class(key).config)
    }

    /// Takes a packet for a class as if a filter had named it: where that is no leaf, for the default class.
    ///
    /// ```
    /// # use quietcore_core::Nanos;
    /// # use quietcore_qdisc::{ClassId, Hfsc, HfscClass, HfscError, ServiceCurve, Verdict};
    /// let (mut queue, class): (Hfsc<Vec<u8>>, _) = (Hfsc::new(), ClassId::new(1, 1));
    /// queue.add_class(None, class, HfscClass::guaranteed_share(ServiceCurve::linear(1_000)))?;
    /// queue.set_default_class(Some(class));
    /// assert_eq!(queue.enqueue_filtered(Nanos(0), ClassId::new(1, 2), vec![0; 60]), Verdict::Queued);
    /// # Ok::<(), HfscError>(())
    /// ```
    pub fn enqueue_filtered(&mut self, now: Nanos, class: ClassId, packet: P) -> Verdict {
        match self.leaf_of(class).or_else(|| self.leaf_of(self.default?)) {
            Some(key) => self.enqueue_leaf(now, key, packet),
            None => self.refuse(),
        }
    }

    /// The queue of a leaf.
    ///
    /// ```
    /// # use quietcore_qdisc::{ClassId, Hfsc};
    /// assert!(Hfsc::<Vec<u8>>::new().inner(ClassId::new(1, 1)).is_none());
    /// ```
    #[must_use]
    pub fn inner(&self, name: ClassId) -> Option<&Child<P>> {
        let key = self.key(name).ok()?;
        self.tree.class(key).leaf.as_ref().map(|leaf| &leaf.child)
    }

    /// Changes the queue of a leaf at `now`; who waited for it looks again.
    ///
    /// ```
    /// # use quietcore_core::Nanos;
    /// # use quietcore_qdisc::{ClassId, Hfsc, HfscClass, HfscError, ServiceCurve};
    /// let (mut queue, class): (Hfsc<Vec<u8>>, _) = (Hfsc::new(), ClassId::new(1, 1));
    /// queue.add_class(None, class, HfscClass::guaranteed_share(ServiceCurve::linear(1_000)))?;
    /// assert_eq!(queue.with_inner(Nanos(0), class, |queue| queue.kind()), Some("pfifo"));
    /// # Ok::<(), HfscError>(())
    /// ```
    pub fn with_inner<R>(
        &mut self,
        now: Nanos,
        name: ClassId,
        change: impl FnOnce(&mut Child<P>) -> R,
    ) -> Option<R> {
        let key = self.key(name).ok()?;
        let leaf = self.tree.class_mut(key).leaf.as_mut()?;
        let answer = change(&mut leaf.child);
        // What was looked at is held; only who waits may have something earlier than it said.
        if leaf.head.is_none() {
            self.refresh(key, now);
        }
        Some(answer)
    }

    pub(super) fn inner_delays(&self) -> Delays {
        let leaves = self.tree.classes.values().filter_map(|class| class.leaf.as_ref());
        leaves.fold(Delays::Absent, |delays, leaf| delays.and(leaf.child.delays()))
    }

    pub(super) fn end_inner_delays(&mut self, now: Nanos) {
        let is_due = |key: &HfscKey| {
            let leaf = self.tree.class(*key).leaf.as_ref();
            leaf.and_then(|leaf| leaf.child.delays().until()).is_some_and(|until| until <= now)
        };
        let due: Vec<ClassId> =
            self.names.iter().filter(|(_, key)| is_due(key)).map(|(name, _)| *name).collect();
        for name in due {
            self.with_inner(now, name, |queue| queue.end_delays(now));
        }
    }
}
