//! `cbq`: classes that share a link by how idle each has been.
//!
//! A class is above its rate when the weighted average of its idle time, between its packets and less what
//! they take at its rate, is not above 0. It then borrows from the nearest class above that is under its
//! rate, unless it is bounded, and as long as no class below the `top level` needs less; else it is delayed.
//! Priorities go in order; within one, classes go in rounds, by weight.
//!
//! The link itself is the class `major:0`. It is not shaped: packets are to be taken as the link takes them,
//! or a borrower gets more than there is. `settings.rs` is what is told and asked, `node.rs` one class and
//! its estimate, `serve.rs` which class may send, `inner.rs` what is inside, `tc.rs` what `tc` types and
//! shows.
//!
//! It has two timers. The watchdog is the moment of `Throttled`. Classes that are told
//! [`CbqOverlimit::Delay`] are brought back at [`delay_timer`](Cbq::delay_timer) by
//! [`end_delays`](Qdisc::end_delays); a caller with one timer needs neither, as `Throttled` names that
//! moment too, and [`dequeue`](Qdisc::dequeue) does what is due.
//!
//! Deliberately absent: filters, estimators of rates, the strategies that drop or lower a priority. Source:
//! Linux net/sched/sch_cbq.c (until it was removed), by behaviour. Deviations: estimates change when a
//! packet leaves, not when the next one is asked for; time is in nanoseconds, and a delay is at least
//! 1,024; a class whose own queue is throttled steps aside.

mod inner;
mod node;
mod serve;
mod settings;
pub(crate) mod tc;

pub use settings::{CbqClass, CbqClassStatistics, CbqError, CbqOverlimit, CbqSettings};

use crate::{ClassId, Enqueued, InnerQdisc, Packet, Statistics};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::fmt::Debug;
use node::{ALL_LEVELS, CbqNode};
use quietcore_core::Nanos;

/// What a class sends in its turn at least: rounds are to end.
const LEAST_QUANTUM: u128 = 256;

/// Classes that share a link.
///
/// A packet goes to the class that its [priority](Packet::priority) names as a [`ClassId`], else to the
/// default class, else to the link's. Unlike `htb`'s, classes with classes below them have queues, too.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{Cbq, CbqClass, CbqSettings, ClassId, Dequeued, Qdisc, Rate};
///
/// let rate = |bytes| Rate::bytes_per_second(bytes).expect("not 0");
/// let mut cbq = Cbq::new(CbqSettings { default_class: 1, ..CbqSettings::new(rate(1_000_000)) });
/// let class = CbqClass { bounded: true, max_burst: 0, ..CbqClass::new(rate(100_000)) };
/// cbq.add_class(None, ClassId::new(1, 1), class)?;
/// for _ in 0..2 {
///     assert!(cbq.enqueue(Nanos(0), vec![0; 1_000]).is_accepted());
/// }
/// assert!(cbq.dequeue(Nanos(0)).packet().is_some());
/// // 1,000 bytes take 10 ms at its rate.
/// assert_eq!(cbq.dequeue(Nanos(1_000_000)), Dequeued::Throttled(Nanos(10_000_000)));
/// assert!(cbq.dequeue(Nanos(10_000_000)).packet().is_some());
/// # Ok::<(), quietcore_qdisc::CbqError>(())
/// ```
#[derive(Debug)]
pub struct Cbq<P> {
    settings: CbqSettings,
    link: ClassId,
    classes: BTreeMap<ClassId, CbqNode<P>>,
    /// By band, the classes that hold packets; the first has its turn.
    rounds: [VecDeque<ClassId>; 8],
    /// Classes that are out of their rounds until a moment: above their rate, or with a throttled queue.
    penalties: BTreeSet<(Nanos, ClassId)>,
    throttled: BTreeSet<(Nanos, ClassId)>,
    /// Classes of a higher level do not lend.
    top_level: u8,
    /// The earliest moment at which one that was refused may send.
    watchdog: Option<Nanos>,
    counted: Statistics,
}

impl<P: Packet + Debug + Send + 'static> Cbq<P> {
    /// A link without other classes.
    #[must_use]
    pub fn new(settings: CbqSettings) -> Self {
        let link = ClassId::new(settings.major, 0);
        let mut cbq = Self {
            settings,
            link,
            classes: BTreeMap::new(),
            rounds: Default::default(),
            penalties: BTreeSet::new(),
            throttled: BTreeSet::new(),
            top_level: ALL_LEVELS,
            watchdog: None,
            counted: Statistics::default(),
        };
        let class = CbqClass { bounded: true, isolated: true, ..CbqClass::new(settings.bandwidth) };
        cbq.classes.insert(link, CbqNode::new(None, InnerQdisc::first(), class, &settings));
        cbq.weigh();
        cbq
    }

    /// Adds a class below `parent`, or below the link, with a `pfifo` of 1,000 packets.
    ///
    /// # Errors
    /// [`CbqError`] if there is no such parent, it is 7 below the link already, or `id` is taken or not of
    /// this discipline.
    pub fn add_class(
        &mut self,
        parent: Option<ClassId>,
        id: ClassId,
        class: CbqClass,
    ) -> Result<(), CbqError> {
        if id.0 >> 16 != self.link.0 >> 16 {
            return Err(CbqError::Foreign(id));
        }
        if self.classes.contains_key(&id) {
            return Err(CbqError::Exists(id));
        }
        let parent = parent.unwrap_or(self.link);
        let (mut above, mut depth) = (Some(parent), 0);
        while let Some(one) = above {
            above = self.classes.get(&one).ok_or(CbqError::UnknownParent(parent))?.parent;
            depth += 1;
        }
        if depth >= ALL_LEVELS {
            return Err(CbqError::TooDeep(id));
        }
        self.node_mut(parent).children += 1;
        self.classes.insert(id, CbqNode::new(Some(parent), InnerQdisc::first(), class, &self.settings));
        self.measure();
        self.weigh();
        Ok(())
    }

    /// Changes what a class is told; its estimate stays.
    ///
    /// # Errors
    /// [`CbqError::Unknown`].
    pub fn change_class(&mut self, id: ClassId, class: CbqClass) -> Result<(), CbqError> {
        self.known(id)?;
        self.deactivate(id);
        let settings = self.settings;
        self.node_mut(id).tell(class, &settings);
        self.activate(id);
        self.weigh();
        Ok(())
    }

    /// Removes a class without classes below it; what is queued in it is dropped.
    ///
    /// # Errors
    /// [`CbqError::Unknown`] and [`CbqError::InUse`].
    pub fn remove_class(&mut self, id: ClassId) -> Result<(), CbqError> {
        if self.known(id)?.children > 0 || id == self.link {
            return Err(CbqError::InUse(id));
        }
        self.deactivate(id);
        self.throttled.retain(|&(_, one)| one != id);
        self.penalties.retain(|&(_, one)| one != id);
        if let Some(gone) = self.classes.remove(&id) {
            let statistics = gone.statistics().queue;
            self.counted.dropped += statistics.dropped + statistics.qlen;
            if let Some(parent) = gone.parent {
                self.node_mut(parent).children -= 1;
            }
        }
        self.measure();
        self.weigh();
        Ok(())
    }

    /// Gives a class another queue; what is queued in the old one is dropped.
    ///
    /// # Errors
    /// [`CbqError::Unknown`].
    pub fn set_inner(&mut self, id: ClassId, queue: InnerQdisc<P>) -> Result<(), CbqError> {
        self.known(id)?;
        self.deactivate(id);
        self.throttled.retain(|&(_, one)| one != id);
        let node = self.node_mut(id);
        let statistics = node.statistics().queue;
        node.counted.queue.dropped = statistics.dropped + statistics.qlen;
        node.queue = queue;
        self.activate(id);
        Ok(())
    }

    /// Takes a packet for a class, as if a filter had named it; where there is no such class, it goes where
    /// packets go that name none.
    pub fn enqueue_to(&mut self, now: Nanos, class: ClassId, packet: P) -> Enqueued {
        let default = ClassId::new(self.settings.major, self.settings.default_class);
        let named = [class, default].into_iter().find(|id| self.classes.contains_key(id));
        let id = named.unwrap_or(self.link);
        let verdict = self.node_mut(id).queue.enqueue(now, packet);
        if verdict.is_accepted() {
            // A throttled queue may have something earlier now.
            self.throttled.retain(|&(_, one)| one != id);
            self.mark_top_level(id, now);
            self.activate(id);
        }
        verdict
    }

    /// When the second timer is due, which brings back classes that are told [`CbqOverlimit::Delay`].
    #[must_use]
    pub fn delay_timer(&self) -> Option<Nanos> {
        self.penalties.first().map(|&(moment, _)| moment)
    }

    /// What a class has done; `None` of one that does not exist.
    #[must_use]
    pub fn class(&self, id: ClassId) -> Option<CbqClassStatistics> {
        self.classes.get(&id).map(CbqNode::statistics)
    }

    /// What it was told.
    #[must_use]
    pub const fn settings(&self) -> &CbqSettings {
        &self.settings
    }

    fn known(&self, id: ClassId) -> Result<&CbqNode<P>, CbqError> {
        self.classes.get(&id).ok_or(CbqError::Unknown(id))
    }

    fn node(&self, id: ClassId) -> &CbqNode<P> {
        self.classes.get(&id).expect("rounds and parents name classes that are here")
    }

    fn node_mut(&mut self, id: ClassId) -> &mut CbqNode<P> {
        self.classes.get_mut(&id).expect("rounds and parents name classes that are here")
    }

    /// Finds the levels again: a class is above the highest of those below it.
    fn measure(&mut self) {
        self.classes.values_mut().for_each(|node| node.level = 0);
        let names: alloc::vec::Vec<ClassId> = self.classes.keys().copied().collect();
        for id in names {
            let (mut above, mut level) = (self.node(id).parent, 1);
            while let Some(one) = above {
                let node = self.node_mut(one);
                node.level = node.level.max(level);
                (above, level) = (node.parent, level + 1);
            }
        }
    }

    /// Finds the quanta again: of a band, their average is what a class is allotted, by weight.
    fn weigh(&mut self) {
        let mut bands = [(0_u128, 0_u128); 8];
        for node in self.classes.values() {
            let (count, weight) = &mut bands[node.band()];
            *count += 1;
            *weight = weight.saturating_add(node.weight());
        }
        for node in self.classes.values_mut() {
            let (count, weight) = bands[node.band()];
            let allot = u128::from(node.settings.allot);
            let share = node.weight().saturating_mul(allot).saturating_mul(count) / weight;
            let most = (32 * allot).max(LEAST_QUANTUM);
            node.quantum = i64::try_from(share.clamp(LEAST_QUANTUM, most)).unwrap_or(i64::MAX);
        }
    }
}
