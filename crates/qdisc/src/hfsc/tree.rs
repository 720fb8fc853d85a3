//! A class: what it was given, what it holds, and all classes as a tree, in which link sharing chooses.

use super::realtime::RealTime;
use super::settings::{HfscClass, HfscKey, ROOT};
use super::share::{ChildChange, ChildOrders, LinkShare};
use crate::{InnerQdisc, Packet, Statistics};
use alloc::collections::BTreeMap;
use core::fmt::Debug;
use quietcore_core::Nanos;

#[derive(Debug)]
pub(super) struct HfscNode<P> {
    /// None is the root's.
    pub(super) parent: Option<HfscKey>,
    pub(super) config: HfscClass,
    /// None of the root and of classes with children.
    pub(super) leaf: Option<HfscLeaf<P>>,
    pub(super) share: LinkShare,
    pub(super) children: ChildOrders,
    /// Bytes that it and those below it sent: what its link-share and upper-limit curves count.
    pub(super) total: u64,
    pub(super) packets: u64,
    /// Bytes that left by its guarantee: what its deadline curve counts.
    pub(super) realtime_bytes: u64,
    /// Packets that were dropped by queues that it no longer has.
    pub(super) dropped: u64,
}

impl<P> HfscNode<P> {
    pub(super) fn new(parent: Option<HfscKey>, config: HfscClass) -> Self {
        Self {
            parent,
            config,
            leaf: None,
            share: LinkShare::new(&config),
            children: ChildOrders::default(),
            total: 0,
            packets: 0,
            realtime_bytes: 0,
            dropped: 0,
        }
    }
}

impl<P: Packet + Debug> HfscNode<P> {
    /// Whether it is to take part in link sharing.
    pub(super) fn is_backlogged(&self) -> bool {
        self.leaf.as_ref().map_or(!self.children.is_idle(), |leaf| leaf.head.is_some())
    }

    /// What its own queue holds and dropped; nothing else.
    pub(super) fn queue(&self) -> Statistics {
        let mut queue = Statistics { dropped: self.dropped, ..Statistics::default() };
        self.leaf.iter().for_each(|leaf| queue.include(&leaf.child.statistics()));
        queue
    }
}

/// What only a leaf has.
#[derive(Debug)]
pub(super) struct HfscLeaf<P> {
    pub(super) child: InnerQdisc<P>,
    /// How long the packet is that leaves next; the child holds it ready.
    pub(super) head: Option<u32>,
    /// When a child is to be asked again that holds packets but gives none.
    pub(super) wake: Option<Nanos>,
    pub(super) realtime: Option<RealTime>,
}

impl<P: Packet + Debug + Send + 'static> HfscLeaf<P> {
    pub(super) fn new(config: &HfscClass) -> Self {
        let child = InnerQdisc::first();
        Self { child, head: None, wake: None, realtime: config.realtime.map(RealTime::new) }
    }
}

/// All classes, in the order of creation.
#[derive(Debug)]
pub(super) struct HfscTree<P> {
    pub(super) classes: BTreeMap<HfscKey, HfscNode<P>>,
    next: u32,
}

impl<P: Packet + Debug> HfscTree<P> {
    pub(super) fn new() -> Self {
        let root = HfscNode::new(None, HfscClass::default());
        Self { classes: BTreeMap::from([(ROOT, root)]), next: 1 }
    }

    pub(super) fn add(&mut self, class: HfscNode<P>) -> HfscKey {
        let key = HfscKey(self.next);
        self.next += 1;
        self.classes.insert(key, class);
        key
    }

    pub(super) fn class(&self, key: HfscKey) -> &HfscNode<P> {
        self.classes.get(&key).expect("keys are of classes that are there")
    }

    pub(super) fn class_mut(&mut self, key: HfscKey) -> &mut HfscNode<P> {
        self.classes.get_mut(&key).expect("keys are of classes that are there")
    }

    /// The leaf of a class that is one.
    pub(super) fn leaf_mut(&mut self, key: HfscKey) -> &mut HfscLeaf<P> {
        self.class_mut(key).leaf.as_mut().expect("only leaves are asked for packets")
    }

    pub(super) fn children(&self, parent: HfscKey) -> impl Iterator<Item = HfscKey> {
        self.classes.iter().filter(move |(_, class)| class.parent == Some(parent)).map(|(key, _)| *key)
    }

    /// 0 for a leaf.
    pub(super) fn level(&self, key: HfscKey) -> u32 {
        self.children(key).map(|child| 1 + self.level(child)).max().unwrap_or(0)
    }

    /// What a class and those below it hold and dropped.
    pub(super) fn queues(&self, key: HfscKey) -> Statistics {
        let mut queues = self.class(key).queue();
        self.children(key).for_each(|child| queues.include(&self.queues(child)));
        queues
    }

    /// Puts a class and all above it where they belong, after it sent `bytes`, began to hold packets or
    /// ceased to.
    pub(super) fn settle(&mut self, from: HfscKey, bytes: u32, now: Nanos) {
        let mut key = from;
        loop {
            let class = self.class_mut(key);
            class.total += u64::from(bytes);
            let Some(parent) = class.parent else { return };
            let mut siblings = core::mem::take(&mut self.class_mut(parent).children);
            let class = self.class_mut(key);
            let shares = class.config.link_share.is_some() && class.is_backlogged();
            let below = class.children.first_fit();
            let change = ChildChange { shares, total: class.total, bytes, below, now };
            siblings.settle(key, &mut class.share, &change);
            self.class_mut(parent).children = siblings;
            key = parent;
        }
    }

    /// Takes a class out of its parent's orders, to be settled when it was changed.
    pub(super) fn withdraw(&mut self, key: HfscKey) {
        let Some(parent) = self.class(key).parent else { return };
        if !self.class(key).share.has_joined() {
            return;
        }
        let mut siblings = core::mem::take(&mut self.class_mut(parent).children);
        siblings.withdraw(key, &mut self.class_mut(key).share);
        self.class_mut(parent).children = siblings;
    }

    /// The leaf that link sharing lets send now.
    pub(super) fn choose(&mut self, now: Nanos) -> Option<HfscKey> {
        let mut key = ROOT;
        while self.class(key).leaf.is_none() {
            let mut children = core::mem::take(&mut self.class_mut(key).children);
            let chosen = children.choose(|child| self.class(child).share.fit() <= now);
            self.class_mut(key).children = children;
            key = chosen?;
        }
        Some(key)
    }
}
