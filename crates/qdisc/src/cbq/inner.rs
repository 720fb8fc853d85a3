//! What is inside a class: looked at, and changed while it runs.

use super::Cbq;
use crate::{CbqOverlimit, Child, ClassId, Delays, Packet};
use core::fmt::Debug;
use quietcore_core::Nanos;

impl<P: Packet + Debug + Send + 'static> Cbq<P> {
    /// What it was told.
    ///
    /// ```
    /// # use quietcore_qdisc::{Cbq, CbqSettings, Rate};
    /// let settings = CbqSettings::new(Rate::bytes_per_second(1_000).expect("not 0"));
    /// assert_eq!(Cbq::<Vec<u8>>::new(settings).settings(), &settings);
    /// ```
    #[must_use]
    pub const fn settings(&self) -> &super::CbqSettings {
        &self.settings
    }

    /// The queue of a class; that of the link itself is `major:0`'s.
    ///
    /// ```
    /// # use quietcore_qdisc::{Cbq, CbqSettings, Child, ClassId, Rate};
    /// # let cbq = Cbq::<Vec<u8>>::new(CbqSettings::new(Rate::bytes_per_second(1_000).expect("not 0")));
    /// assert_eq!(cbq.inner(ClassId::new(1, 0)).map(Child::kind), Some("pfifo"));
    /// ```
    #[must_use]
    pub fn inner(&self, class: ClassId) -> Option<&Child<P>> {
        self.classes.get(&class).map(|node| &node.queue)
    }

    /// Changes the queue of a class; who waited for it looks again.
    ///
    /// ```
    /// # use quietcore_qdisc::{Cbq, CbqSettings, ClassId, Rate};
    /// # let mut cbq = Cbq::<Vec<u8>>::new(CbqSettings::new(Rate::bytes_per_second(1_000).expect("not 0")));
    /// assert_eq!(cbq.with_inner(ClassId::new(1, 0), |queue| queue.is_empty()), Some(true));
    /// ```
    pub fn with_inner<R>(&mut self, class: ClassId, change: impl FnOnce(&mut Child<P>) -> R) -> Option<R> {
        let answer = change(&mut self.classes.get_mut(&class)?.queue);
        // It may give a packet earlier than it said.
        self.throttled.retain(|&(_, one)| one != class);
        self.activate(class);
        Some(answer)
    }

    /// The moment at which a delayed class comes back, its own or one inside.
    pub(super) fn all_delays(&self) -> Delays {
        let is_delayed = |node: &super::CbqNode<P>| node.settings.overlimit == CbqOverlimit::Delay;
        let own = match self.delay_timer() {
            Some(moment) => Delays::Until(moment),
            None if self.classes.values().any(is_delayed) => Delays::Idle,
            None => Delays::Absent,
        };
        self.classes.values().fold(own, |delays, node| delays.and(node.queue.delays()))
    }

    pub(super) fn end_inner_delays(&mut self, now: Nanos) {
        let is_due = |queue: &Child<P>| queue.delays().until().is_some_and(|until| until <= now);
        let due = |(&id, node): (&ClassId, &super::CbqNode<P>)| is_due(&node.queue).then_some(id);
        let due: alloc::vec::Vec<ClassId> = self.classes.iter().filter_map(due).collect();
        for class in due {
            self.with_inner(class, |queue| queue.end_delays(now));
        }
    }
}
