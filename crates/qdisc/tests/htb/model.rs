//! What `Htb` should do, by another way: a list of classes that is searched, modes that follow from tokens
//! whenever they are asked for, rounds found among all leaves that may send.

use crate::common::Parcel;
use quietcore_core::Nanos;
use quietcore_qdisc::{Dequeued, HtbClass};

const SECOND: u128 = 1_000_000_000;
const MINUTE: i128 = 60_000_000_000;

/// What a class may do, for whose tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum May {
    Send,
    Borrow,
    Nothing,
}

#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) id: u32,
    pub(crate) parent: Option<u32>,
    pub(crate) told: HtbClass,
    pub(crate) queue: Vec<Parcel>,
    pub(crate) tokens: i128,
    pub(crate) ctokens: i128,
    seen: u64,
    deficits: [i64; 8],
    pub(crate) lends: u64,
    pub(crate) borrows: u64,
    pub(crate) overlimits: u64,
}

/// Where a round is held: among those that may send at a level, or those that borrow from a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TcParent {
    Row(usize, u8),
    Feed(u32, u8),
}

#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) classes: Vec<Class>,
    pub(crate) direct: Vec<Parcel>,
    /// Who is next at a place: this one or the next higher.
    cursors: Vec<(TcParent, u64)>,
}

/// A leaf that may send, and the classes from it to who lends to it.
struct Candidate {
    prio: u8,
    level: usize,
    chain: Vec<u32>,
}

fn nanos(bytes: u64, rate: u64) -> i128 {
    (u128::from(bytes) * SECOND / u128::from(rate)).min(i64::MAX as u128) as i128
}

impl Class {
    pub(crate) fn new(id: u32, parent: Option<u32>, told: HtbClass) -> Self {
        let mut class = Self {
            id,
            parent,
            told,
            queue: vec![],
            tokens: 0,
            ctokens: 0,
            seen: 0,
            deficits: [0; 8],
            lends: 0,
            borrows: 0,
            overlimits: 0,
        };
        class.begin();
        class
    }

    /// As a leaf that never sent.
    pub(crate) fn begin(&mut self) {
        self.tokens = nanos(self.told.burst.unwrap_or(1_600), self.told.rate.get());
        self.ctokens = nanos(self.told.cburst.unwrap_or(1_600), self.told.ceil.get());
        (self.seen, self.deficits) = (0, [0; 8]);
    }

    fn quantum(&self) -> i64 {
        let default = (self.told.rate.get() / 10).clamp(1_000, 200_000);
        self.told.quantum.map_or(default as i64, i64::from)
    }

    fn since(&self, now: u64) -> i128 {
        i128::from(now - self.seen).min(MINUTE)
    }

    fn may(&self, now: u64) -> May {
        match (self.ctokens + self.since(now) >= 0, self.tokens + self.since(now) >= 0) {
            (false, _) => May::Nothing,
            (true, false) => May::Borrow,
            (true, true) => May::Send,
        }
    }

    /// When it may do something else, if nothing is sent.
    fn changes(&self, now: u64) -> Option<u64> {
        let short = match self.may(now) {
            May::Nothing => -(self.ctokens + self.since(now)),
            May::Borrow => -(self.tokens + self.since(now)),
            May::Send => return None,
        };
        Some(now + short as u64)
    }
}

impl Model {
    pub(crate) fn find(&self, id: u32) -> Option<usize> {
        self.classes.iter().position(|class| class.id == id)
    }

    fn at(&self, id: u32) -> usize {
        self.find(id).expect("the model knows it")
    }

    pub(crate) fn has_children(&self, id: u32) -> bool {
        self.classes.iter().any(|class| class.parent == Some(id))
    }

    /// How far below a class without a parent.
    pub(crate) fn depth(&self, id: u32) -> usize {
        self.classes[self.at(id)].parent.map_or(0, |parent| 1 + self.depth(parent))
    }

    fn level(&self, id: u32) -> usize {
        if self.has_children(id) { 7 - self.depth(id) } else { 0 }
    }

    /// Drops a leaf; its parent may become one.
    pub(crate) fn remove(&mut self, id: u32) {
        let gone = self.classes.remove(self.at(id));
        self.forget(id);
        if let Some(parent) = gone.parent
            && !self.has_children(parent)
        {
            self.forget(parent);
            let at = self.at(parent);
            self.classes[at].begin();
        }
    }

    fn forget(&mut self, id: u32) {
        self.cursors.retain(|(place, _)| !matches!(place, TcParent::Feed(feed, _) if *feed == id));
    }

    pub(crate) fn dequeue(&mut self, now: u64) -> Dequeued<Parcel> {
        if !self.direct.is_empty() {
            return Dequeued::Packet(self.direct.remove(0));
        }
        if self.classes.iter().all(|class| class.queue.is_empty()) {
            return Dequeued::Empty;
        }
        let mut candidates: Vec<Candidate> =
            self.classes.iter().filter_map(|class| self.candidate(class, now)).collect();
        let Some((level, prio)) = candidates.iter().map(|one| (one.level, one.prio)).min() else {
            let changes = self.classes.iter().filter_map(|class| class.changes(now)).min();
            return Dequeued::Throttled(Nanos(
                changes.expect("who may not send waits").min(now + 5_000_000_000),
            ));
        };
        candidates.retain(|one| (one.level, one.prio) == (level, prio));
        let leaf = loop {
            if let Some(leaf) = self.pick(TcParent::Row(level, prio), &candidates) {
                break leaf;
            }
        };
        Dequeued::Packet(self.send(leaf, level, prio, now))
    }

    fn candidate(&self, leaf: &Class, now: u64) -> Option<Candidate> {
        if leaf.queue.is_empty() {
            return None;
        }
        let (mut class, mut chain) = (leaf, vec![leaf.id]);
        loop {
            match class.may(now) {
                May::Nothing => return None,
                May::Send => {
                    return Some(Candidate {
                        prio: leaf.told.prio.min(7),
                        level: self.level(class.id),
                        chain,
                    });
                }
                May::Borrow => {
                    class = &self.classes[self.at(class.parent?)];
                    chain.push(class.id);
                }
            }
        }
    }

    /// The leaf whose turn it is; `None` if the round was over, and has begun again.
    fn pick(&mut self, place: TcParent, candidates: &[Candidate]) -> Option<u32> {
        loop {
            let next = self.cursor(place);
            let here = |candidate: &Candidate| match place {
                TcParent::Row(..) => candidate.chain.last().copied(),
                TcParent::Feed(id, _) => {
                    let at = candidate.chain.iter().position(|&one| one == id)?;
                    Some(candidate.chain[at - 1])
                }
            };
            let member = candidates.iter().filter_map(here).filter(|&one| u64::from(one) >= next).min();
            let Some(member) = member else {
                self.set_cursor(place, 0);
                return None;
            };
            self.set_cursor(place, u64::from(member));
            if !self.has_children(member) {
                return Some(member);
            }
            let (TcParent::Row(_, prio) | TcParent::Feed(_, prio)) = place;
            if let Some(leaf) = self.pick(TcParent::Feed(member, prio), candidates) {
                return Some(leaf);
            }
            self.set_cursor(place, u64::from(member) + 1);
        }
    }

    fn cursor(&self, place: TcParent) -> u64 {
        self.cursors.iter().find(|(one, _)| *one == place).map_or(0, |(_, next)| *next)
    }

    fn set_cursor(&mut self, place: TcParent, next: u64) {
        self.cursors.retain(|(one, _)| *one != place);
        self.cursors.push((place, next));
    }

    fn send(&mut self, leaf: u32, level: usize, prio: u8, now: u64) -> Parcel {
        let at = self.at(leaf);
        let parcel = self.classes[at].queue.remove(0);
        let quantum = self.classes[at].quantum();
        self.classes[at].deficits[level] -= i64::from(parcel.bytes);
        if self.classes[at].deficits[level] < 0 {
            self.classes[at].deficits[level] += quantum;
            let place = match self.classes[at].parent {
                Some(parent) if level > 0 => TcParent::Feed(parent, prio),
                _ => TcParent::Row(level, prio),
            };
            self.set_cursor(place, u64::from(leaf) + 1);
        }
        let mut payer = Some(leaf);
        while let Some(id) = payer {
            let own = self.level(id);
            let at = self.at(id);
            let class = &mut self.classes[at];
            let before = class.may(now);
            let (since, bytes) = (class.since(now), u64::from(parcel.bytes));
            let depth = nanos(class.told.burst.unwrap_or(1_600), class.told.rate.get());
            let cdepth = nanos(class.told.cburst.unwrap_or(1_600), class.told.ceil.get());
            let least = 1 - MINUTE;
            if own >= level {
                let full = (class.tokens + since).min(depth);
                class.tokens = (full - nanos(bytes, class.told.rate.get())).max(least);
            } else {
                class.tokens += since;
            }
            let full = (class.ctokens + since).min(cdepth);
            class.ctokens = (full - nanos(bytes, class.told.ceil.get())).max(least);
            class.seen = now;
            class.lends += u64::from(own == level);
            class.borrows += u64::from(own < level);
            let came_to_ceil = before != May::Nothing && class.may(now) == May::Nothing;
            class.overlimits += u64::from(came_to_ceil);
            payer = class.parent;
        }
        parcel
    }
}
