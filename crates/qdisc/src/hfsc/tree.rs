//! A class: what it was given, what it holds, and all classes as a tree, in which link sharing chooses.

use super::realtime::RealTime;
use super::settings::{HfscClass, HfscKey, ROOT};
use super::share::{ChildChange, ChildOrders, LinkShare};
use crate::{InnerQdisc, Packet, Statistics};
use alloc::vec;
use alloc::vec::Vec;
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

/// All classes.
#[derive(Debug)]
pub(super) struct HfscTree<P> {
    /// By the places that their keys name, with those keys.
    classes: Vec<Option<(HfscKey, HfscNode<P>)>>,
    /// Places without a class.
    free: Vec<u32>,
    next: u32,
}

impl<P: Packet + Debug> HfscTree<P> {
    pub(super) fn new() -> Self {
        let root = HfscNode::new(None, HfscClass::default());
        Self { classes: vec![Some((ROOT, root))], free: Vec::new(), next: 1 }
    }

    pub(super) fn add(&mut self, class: HfscNode<P>) -> HfscKey {
        // Less than 2^32 at a time: some names are no class's.
        let place = self.free.pop().unwrap_or(self.classes.len() as u32);
        let key = HfscKey { number: self.next, place };
        self.next += 1;
        match self.classes.get_mut(place as usize) {
            Some(free) => *free = Some((key, class)),
            None => self.classes.push(Some((key, class))),
        }
        key
    }

    pub(super) fn remove(&mut self, key: HfscKey) -> Option<HfscNode<P>> {
        let (_, removed) = self.classes.get_mut(key.place as usize)?.take()?;
        self.free.push(key.place);
        Some(removed)
    }

    pub(super) fn classes(&self) -> impl Iterator<Item = &HfscNode<P>> {
        self.classes.iter().flatten().map(|(_, class)| class)
    }

    pub(super) fn classes_mut(&mut self) -> impl Iterator<Item = &mut HfscNode<P>> {
        self.classes.iter_mut().flatten().map(|(_, class)| class)
    }

    pub(super) fn class(&self, key: HfscKey) -> &HfscNode<P> {
        let class = self.classes.get(key.place as usize).and_then(Option::as_ref);
        class.map(|(_, class)| class).expect("keys are of classes that are there")
    }

    pub(super) fn class_mut(&mut self, key: HfscKey) -> &mut HfscNode<P> {
        let class = self.classes.get_mut(key.place as usize).and_then(Option::as_mut);
        class.map(|(_, class)| class).expect("keys are of classes that are there")
    }

    /// The leaf of a class that is one.
    pub(super) fn leaf_mut(&mut self, key: HfscKey) -> &mut HfscLeaf<P> {
        self.class_mut(key).leaf.as_mut().expect("only leaves are asked for packets")
    }

    pub(super) fn children(&self, parent: HfscKey) -> impl Iterator<Item = HfscKey> {
        let all = self.classes.iter().flatten();
        all.filter(move |(_, class)| class.parent == Some(parent)).map(|(key, _)| *key)
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

    /// Puts a class and all above it where they belong, after it sent a packet of so many bytes, began to
    /// hold packets or ceased to.
    pub(super) fn settle(&mut self, from: HfscKey, sent: Option<u32>, now: Nanos) {
        let bytes = sent.unwrap_or(0);
        let mut key = from;
        loop {
            let class = self.class_mut(key);
            class.total += u64::from(bytes);
            class.packets += u64::from(sent.is_some());
            let Some(parent) = class.parent else { return };
            let [class, above] = self.with_parent(key, parent);
            let shares = class.config.link_share.is_some() && class.is_backlogged();
            let below = class.children.first_fit();
            let change = ChildChange { shares, total: class.total, bytes, below, now };
            above.children.settle(key, &mut class.share, &change);
            key = parent;
        }
    }

    fn with_parent(&mut self, key: HfscKey, parent: HfscKey) -> [&mut HfscNode<P>; 2] {
        let both = self.classes.get_disjoint_mut([key.place as usize, parent.place as usize]);
        match both {
            Ok([Some((_, class)), Some((_, parent))]) => [class, parent],
            _ => unreachable!("keys are of classes that are there, and none is its own parent"),
        }
    }

    /// Takes a class out of its parent's orders, to be settled when it was changed.
    pub(super) fn withdraw(&mut self, key: HfscKey) {
        let Some(parent) = self.class(key).parent else { return };
        if !self.class(key).share.has_joined() {
            return;
        }
        let [class, above] = self.with_parent(key, parent);
        above.children.withdraw(key, &mut class.share);
    }

    /// The leaf that link sharing lets send now.
    pub(super) fn choose(&mut self, now: Nanos) -> Option<HfscKey> {
        let mut key = ROOT;
        while self.class(key).leaf.is_none() {
            let fits = |child| self.class(child).share.fit() <= now;
            let (virtual_time, chosen) = self.class(key).children.first_that(fits)?;
            self.class_mut(key).children.chose(virtual_time);
            key = chosen;
        }
        Some(key)
    }
}
