//! A class: what it was given, what it holds, and all classes as a tree.

use super::ServiceCurve;
use super::realtime::RealTime;
use super::share::{Children, Share};
use crate::{Child, Fifo, Limit, Packet, Statistics};
use alloc::collections::BTreeMap;
use core::fmt::Debug;
use quietcore_core::Nanos;

/// What a class is given.
///
/// ```
/// use quietcore_qdisc::{HfscClass, ServiceCurve};
///
/// // Shares with its siblings as 1 with whatever they have, up to a rate.
/// let class = HfscClass {
///     link_share: Some(ServiceCurve::linear(1)),
///     upper_limit: Some(ServiceCurve::linear(125_000)),
///     ..HfscClass::default()
/// };
/// assert_eq!(class.realtime, None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HfscClass {
    /// `rt`: what a leaf is guaranteed, whatever its siblings and ancestors do. An inner class's has no
    /// effect.
    pub realtime: Option<ServiceCurve>,
    /// `ls`: its part of what its parent has, compared with its siblings'. It must not end in a rate of 0.
    pub link_share: Option<ServiceCurve>,
    /// `ul`: how much it has at most, since it was backlogged, by link sharing; the guarantee is not limited.
    /// What its siblings kept it from, or its children's limits, it may make up for.
    pub upper_limit: Option<ServiceCurve>,
}

impl HfscClass {
    /// `sc`: one curve as guarantee and as share.
    ///
    /// ```
    /// # use quietcore_qdisc::{HfscClass, ServiceCurve};
    /// let class = HfscClass::guaranteed_share(ServiceCurve::linear(1_000));
    /// assert_eq!((class.realtime, class.upper_limit), (class.link_share, None));
    /// ```
    #[must_use]
    pub const fn guaranteed_share(curve: ServiceCurve) -> Self {
        Self { realtime: Some(curve), link_share: Some(curve), upper_limit: None }
    }
}

/// What a class has done, in the words of `tc -s class show`, and what it holds.
///
/// ```
/// assert_eq!(quietcore_qdisc::HfscStatistics::default().realtime_bytes, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HfscStatistics {
    /// What the class and those below it sent, dropped and hold.
    pub queue: Statistics,
    /// `rtwork`: bytes of this leaf that left by its guarantee.
    pub realtime_bytes: u64,
    /// `period`: how often it took up link sharing.
    pub periods: u64,
    /// `level`: 0 for a leaf, otherwise one more than its highest child.
    pub level: u32,
}

/// The place of a class in the order of creation, which breaks ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(pub(super) u32);

/// The root: the link. It has no curves and is no leaf.
pub(super) const ROOT: Key = Key(0);

#[derive(Debug)]
pub(super) struct Class<P> {
    /// None is the root's.
    pub(super) parent: Option<Key>,
    pub(super) config: HfscClass,
    /// None of the root and of classes with children.
    pub(super) leaf: Option<Leaf<P>>,
    pub(super) share: Share,
    pub(super) children: Children,
    /// Bytes that it and those below it sent: what its link-share and upper-limit curves count.
    pub(super) total: u64,
    pub(super) packets: u64,
    /// Bytes that left by its guarantee: what its deadline curve counts.
    pub(super) realtime_bytes: u64,
    /// Packets that were dropped by queues that it no longer has.
    pub(super) dropped: u64,
}

impl<P> Class<P> {
    pub(super) fn new(parent: Option<Key>, config: HfscClass) -> Self {
        Self {
            parent,
            config,
            leaf: None,
            share: Share::new(&config),
            children: Children::default(),
            total: 0,
            packets: 0,
            realtime_bytes: 0,
            dropped: 0,
        }
    }
}

impl<P: Packet + Debug> Class<P> {
    /// Whether it is to take part in link sharing.
    pub(super) fn is_backlogged(&self) -> bool {
        self.leaf.as_ref().map_or(!self.children.is_idle(), |leaf| leaf.head.is_some())
    }

    /// What its own queue holds and dropped; nothing else.
    pub(super) fn queue(&self) -> Statistics {
        let queue = self.leaf.as_ref().map_or_else(Statistics::default, |leaf| leaf.child.statistics());
        let dropped = queue.dropped + self.dropped;
        Statistics { dropped, backlog: queue.backlog, qlen: queue.qlen, ..Statistics::default() }
    }
}

/// What only a leaf has.
#[derive(Debug)]
pub(super) struct Leaf<P> {
    pub(super) child: Child<P>,
    /// How long the packet is that leaves next; the child holds it ready.
    pub(super) head: Option<u32>,
    /// When a child is to be asked again that holds packets but gives none.
    pub(super) wake: Option<Nanos>,
    pub(super) realtime: Option<RealTime>,
}

/// How many packets the queue of a leaf holds that was given none.
const DEFAULT_LIMIT: u32 = 1_000;

impl<P: Packet + Debug + Send + 'static> Leaf<P> {
    pub(super) fn new(config: &HfscClass) -> Self {
        let child = Child::new(Fifo::new(Limit::Packets(DEFAULT_LIMIT)));
        Self { child, head: None, wake: None, realtime: config.realtime.map(RealTime::new) }
    }
}

/// All classes, in the order of creation.
#[derive(Debug)]
pub(super) struct Tree<P> {
    pub(super) classes: BTreeMap<Key, Class<P>>,
    next: u32,
}

impl<P: Packet + Debug> Tree<P> {
    pub(super) fn new() -> Self {
        let root = Class::new(None, HfscClass::default());
        Self { classes: BTreeMap::from([(ROOT, root)]), next: 1 }
    }

    pub(super) fn add(&mut self, class: Class<P>) -> Key {
        let key = Key(self.next);
        self.next += 1;
        self.classes.insert(key, class);
        key
    }

    pub(super) fn class(&self, key: Key) -> &Class<P> {
        self.classes.get(&key).expect("keys are of classes that are there")
    }

    pub(super) fn class_mut(&mut self, key: Key) -> &mut Class<P> {
        self.classes.get_mut(&key).expect("keys are of classes that are there")
    }

    /// The leaf of a class that is one.
    pub(super) fn leaf_mut(&mut self, key: Key) -> &mut Leaf<P> {
        self.class_mut(key).leaf.as_mut().expect("only leaves are asked for packets")
    }

    pub(super) fn children(&self, parent: Key) -> impl Iterator<Item = Key> {
        self.classes.iter().filter(move |(_, class)| class.parent == Some(parent)).map(|(key, _)| *key)
    }

    /// 0 for a leaf.
    pub(super) fn level(&self, key: Key) -> u32 {
        self.children(key).map(|child| 1 + self.level(child)).max().unwrap_or(0)
    }

    /// What a class and those below it hold and dropped.
    pub(super) fn queues(&self, key: Key) -> Statistics {
        let mut queues = self.class(key).queue();
        for below in self.children(key).map(|child| self.queues(child)) {
            queues.dropped += below.dropped;
            queues.backlog += below.backlog;
            queues.qlen += below.qlen;
        }
        queues
    }
}
