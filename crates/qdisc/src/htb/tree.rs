//! Which class may send: rows of classes that can, feeds of classes that want to borrow, and when that
//! changes.
//!
//! A leaf that takes part is in the row of level 0 if it [can send](HtbMode::CanSend). If it may borrow, it
//! is in its parent's feed, and the parent, as long as a class feeds it, is where its own mode puts it: so
//! the row of a level has the classes that lend to leaves so many levels below them. Leaves of a lower level
//! and then of a lower priority go first.
//!
//! Invariants: a class other than one that can send is in `wait` by the exact moment of its next change; a
//! bit of `activity` is set exactly when the feed is not empty; a bit of `priorities` exactly when the row
//! is not.

use super::node::{HtbMode, HtbNode, LEVELS, PRIORITIES};
use super::round_robin::RoundRobin;
use crate::class_map::ClassMap;
use crate::sorted::SortedSet;
use crate::{ClassId, InnerQdisc, Packet, PacketSize};
use core::fmt::Debug;
use quietcore_core::Nanos;

#[derive(Debug)]
pub(super) struct HtbTree<P> {
    pub(super) classes: ClassMap<HtbNode<P>>,
    /// By level, then by priority.
    rows: [[RoundRobin; PRIORITIES]; LEVELS],
    /// By level, a bit for each priority.
    priorities: [u8; LEVELS],
    /// When which class's mode changes.
    wait: SortedSet<(Nanos, ClassId)>,
    /// When which leaf's throttled queue may have a packet.
    throttled: SortedSet<(Nanos, ClassId)>,
    /// How many leaves take part or are throttled.
    busy: usize,
    /// How often a class reached its ceil.
    pub(super) overlimits: u64,
}

impl<P: Packet + Debug> HtbTree<P> {
    pub(super) fn new() -> Self {
        Self {
            classes: ClassMap::new(),
            rows: Default::default(),
            priorities: [0; LEVELS],
            wait: SortedSet::new(),
            throttled: SortedSet::new(),
            busy: 0,
            overlimits: 0,
        }
    }

    pub(super) fn node(&self, id: ClassId) -> &HtbNode<P> {
        self.classes.get(id).expect("rows, feeds and children name classes that are here")
    }

    pub(super) fn node_mut(&mut self, id: ClassId) -> &mut HtbNode<P> {
        self.classes.get_mut(id).expect("rows, feeds and children name classes that are here")
    }

    /// Whether no leaf has anything.
    pub(super) fn is_idle(&self) -> bool {
        self.busy == 0
    }

    /// A leaf that took no part has something to send.
    pub(super) fn activate(&mut self, leaf: ClassId) {
        self.wake(leaf);
        let node = self.node_mut(leaf);
        node.activity = node.priority_bit();
        let mask = node.activity;
        self.busy += 1;
        self.attach(leaf, mask);
    }

    /// A leaf has nothing to send.
    pub(super) fn deactivate(&mut self, leaf: ClassId) {
        self.wake(leaf);
        let mask = core::mem::take(&mut self.node_mut(leaf).activity);
        if mask != 0 {
            self.detach(leaf, mask);
            self.busy -= 1;
        }
    }

    /// A leaf has nothing to send before `until`.
    pub(super) fn throttle(&mut self, leaf: ClassId, until: Nanos) {
        self.deactivate(leaf);
        self.node_mut(leaf).throttled_until = Some(until);
        self.throttled.insert((until, leaf));
        self.busy += 1;
    }

    fn wake(&mut self, leaf: ClassId) {
        if let Some(until) = self.node_mut(leaf).throttled_until.take() {
            self.throttled.remove(&(until, leaf));
            self.busy -= 1;
        }
    }

    /// Puts a class that has `mask` to send where its mode belongs, and those above it that this concerns.
    fn attach(&mut self, id: ClassId, mask: u8) {
        let (mut id, mut mask) = (id, mask);
        while mask != 0 {
            let node = self.node(id);
            match (node.mode, node.parent) {
                (HtbMode::CanSend, _) => {
                    let level = usize::from(node.level);
                    for prio in bits(mask) {
                        self.rows[level][prio].insert(id);
                    }
                    self.priorities[level] |= mask;
                    return;
                }
                (HtbMode::CantSend, _) | (HtbMode::MayBorrow, None) => return,
                (HtbMode::MayBorrow, Some(parent)) => {
                    let lender = self.node_mut(parent);
                    for prio in bits(mask) {
                        lender.feeds[prio].insert(id);
                    }
                    mask &= !lender.activity;
                    lender.activity |= mask;
                    id = parent;
                }
            }
        }
    }

    /// The reverse: it has `mask` no more to send, or not where its mode is.
    fn detach(&mut self, id: ClassId, mask: u8) {
        let (mut id, mut mask) = (id, mask);
        while mask != 0 {
            let node = self.node(id);
            match (node.mode, node.parent) {
                (HtbMode::CanSend, _) => {
                    let level = usize::from(node.level);
                    for prio in bits(mask) {
                        self.rows[level][prio].remove(id);
                        if self.rows[level][prio].is_empty() {
                            self.priorities[level] &= !(1 << prio);
                        }
                    }
                    return;
                }
                (HtbMode::CantSend, _) | (HtbMode::MayBorrow, None) => return,
                (HtbMode::MayBorrow, Some(parent)) => {
                    let lender = self.node_mut(parent);
                    for prio in bits(mask) {
                        lender.feeds[prio].remove(id);
                        if !lender.feeds[prio].is_empty() {
                            mask &= !(1 << prio);
                        }
                    }
                    lender.activity &= !mask;
                    id = parent;
                }
            }
        }
    }

    /// Finds out what a class may do at `now`, puts it where that belongs, and remembers when it changes.
    fn review(&mut self, id: ClassId, now: Nanos) {
        let node = self.node(id);
        let (mode, event) = node.mode_at(now);
        if (mode, event) == (node.mode, node.event) {
            return;
        }
        if mode != node.mode {
            let mask = node.activity;
            self.detach(id, mask);
            self.node_mut(id).mode = mode;
            self.attach(id, mask);
            if mode == HtbMode::CantSend {
                self.node_mut(id).counted.queue.overlimits += 1;
                self.overlimits += 1;
            }
        }
        self.set_event(id, event);
    }

    fn set_event(&mut self, id: ClassId, event: Option<Nanos>) {
        let before = core::mem::replace(&mut self.node_mut(id).event, event);
        if before == event {
            return;
        }
        match (before, event) {
            (Some(before), Some(event)) => self.wait.replace(&(before, id), (event, id)),
            (Some(before), None) => _ = self.wait.remove(&(before, id)),
            (None, Some(event)) => self.wait.insert((event, id)),
            (None, None) => {}
        }
    }

    /// Does what is due: modes that change, and leaves whose queues may have something again. Each class
    /// changes once at most, as its next change is later than `now`.
    pub(super) fn run_events(&mut self, now: Nanos) {
        while let Some(&(moment, id)) = self.wait.first()
            && moment <= now
        {
            self.review(id, now);
        }
        while let Some(&(moment, leaf)) = self.throttled.first()
            && moment <= now
        {
            self.activate(leaf);
        }
    }

    /// The earliest moment at which [`run_events`](Self::run_events) has something to do.
    pub(super) fn next_event(&self) -> Option<Nanos> {
        let first = |events: &SortedSet<(Nanos, ClassId)>| events.first().map(|&(moment, _)| moment);
        [first(&self.wait), first(&self.throttled)].into_iter().flatten().min()
    }

    /// The lowest level at which a class may send, and the lowest priority at it.
    pub(super) fn first_row(&self) -> Option<(u8, usize)> {
        let level = self.priorities.iter().position(|&mask| mask != 0)?;
        Some((level as u8, self.priorities[level].trailing_zeros() as usize))
    }

    /// The leaf whose turn it is in a row that is not empty. Where a feed's round is over, the turn of its
    /// class is, too.
    pub(super) fn leaf_in_turn(&mut self, level: u8, prio: usize) -> ClassId {
        let mut lender = None;
        loop {
            match self.round(lender, level, prio).current() {
                Some(id) if self.node(id).level == 0 => return id,
                Some(id) => lender = Some(id),
                None => {
                    self.round(lender, level, prio).rewind();
                    if let Some(id) = lender {
                        lender = self.lender_of(id, level);
                        self.round(lender, level, prio).pass(id);
                    }
                }
            }
        }
    }

    /// The class whose feed a class is in that takes part at `level`; none if it is in the row.
    fn lender_of(&self, id: ClassId, level: u8) -> Option<ClassId> {
        let node = self.node(id);
        if node.level == level { None } else { node.parent }
    }

    /// The feed of `lender`, or the row.
    fn round(&mut self, lender: Option<ClassId>, level: u8, prio: usize) -> &mut RoundRobin {
        match lender {
            Some(id) => &mut self.node_mut(id).feeds[prio],
            None => &mut self.rows[usize::from(level)][prio],
        }
    }

    /// A packet of `bytes` leaves from `leaf`, whose turn it was in a row: which classes pay, and is the turn
    /// over?
    pub(super) fn sent(&mut self, leaf: ClassId, row: (u8, usize), size: PacketSize, now: Nanos) {
        let (level, prio) = row;
        let node = self.node_mut(leaf);
        let quantum = i64::from(node.quantum);
        let is_empty = node.is_empty();
        let deficit = &mut node.deficits[usize::from(level)];
        *deficit = deficit.saturating_sub(i64::from(size.bytes));
        if *deficit < 0 {
            *deficit = deficit.saturating_add(quantum);
            let lender = self.lender_of(leaf, level);
            self.round(lender, level, prio).pass(leaf);
        }
        if is_empty {
            self.deactivate(leaf);
        }
        let mut payer = Some(leaf);
        while let Some(id) = payer {
            let node = self.node_mut(id);
            node.charge(level, size, now);
            payer = node.parent;
            self.review(id, now);
        }
    }

    /// A leaf becomes a class that has classes below it, at `level`; it holds nothing.
    pub(super) fn leaf_to_parent(&mut self, id: ClassId, level: u8) {
        self.deactivate(id);
        let node = self.node_mut(id);
        node.replace_queue(None);
        node.level = level;
    }

    /// A class without classes below it becomes a leaf that has never sent.
    pub(super) fn parent_to_leaf(&mut self, id: ClassId, queue: InnerQdisc<P>) {
        self.set_event(id, None);
        let node = self.node_mut(id);
        node.fill(Nanos(0));
        node.level = 0;
        node.queue = Some(queue);
    }

    /// A leaf goes, with what is queued in it.
    pub(super) fn remove_leaf(&mut self, id: ClassId) -> Option<HtbNode<P>> {
        self.deactivate(id);
        self.set_event(id, None);
        self.classes.remove(id)
    }

    /// Changes a class's settings; a leaf that takes part does so by its new priority.
    pub(super) fn change(&mut self, id: ClassId, change: impl FnOnce(&mut HtbNode<P>)) {
        let node = self.node(id);
        let takes_part = node.level == 0 && node.activity != 0;
        if takes_part {
            self.deactivate(id);
        }
        change(self.node_mut(id));
        if takes_part {
            self.activate(id);
        }
    }

    /// Nothing is queued, and no bucket is in debt.
    pub(super) fn reset(&mut self, now: Nanos) {
        self.rows = Default::default();
        self.priorities = [0; LEVELS];
        self.wait.clear();
        self.throttled.clear();
        self.busy = 0;
        for node in self.classes.values_mut() {
            node.fill(now);
            if let Some(queue) = &mut node.queue {
                queue.reset(now);
            }
        }
    }
}

/// The numbers of the bits that are set, from the lowest.
fn bits(mask: u8) -> impl Iterator<Item = usize> {
    let following = |mask: &u8| Some(mask & (mask - 1)).filter(|mask| *mask != 0);
    core::iter::successors(Some(mask).filter(|mask| *mask != 0), following)
        .map(|mask| mask.trailing_zeros() as usize)
}
