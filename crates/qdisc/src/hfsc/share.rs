//! Link sharing: which class has what nobody is guaranteed.
//!
//! Every parent's backlogged children are in the order of their virtual times, which say how much each had of
//! its share; the link's first child that its upper limit lets send is asked for its first such child, down
//! to a leaf. A class that becomes backlogged begins at the system's virtual time, the mean of the least and
//! the greatest one of its siblings, or where it was if that is later; the first of all begins at the
//! greatest one that there was.
//!
//! A class that waits for its upper limit falls behind, though it cannot use what it would have a right to.
//! So a parent remembers the greatest virtual time of which it chose a child: none is less once it was
//! served, nor is the system's virtual time. Without upper limits there is no difference, for the least is
//! chosen.
//!
//! Invariants: a class is in its parent's orders exactly while it is backlogged and has a share; both orders
//! have the same classes; a parent's `fit` is not before its own limit's nor its first child's.

use super::HfscClass;
use super::class::{Class, Key, ROOT, Tree};
use super::shifted::ShiftedCurve;
use crate::Packet;
use alloc::collections::BTreeSet;
use core::fmt::Debug;
use quietcore_core::Nanos;

/// A moment as a curve gives it; never is the end of time.
pub(super) fn moment(at: Option<u128>) -> Nanos {
    Nanos(at.and_then(|at| u64::try_from(at).ok()).unwrap_or(u64::MAX))
}

/// What a class is as a child.
#[derive(Debug)]
pub(super) struct Share {
    /// Bytes by virtual time.
    virtual_curve: Option<ShiftedCurve>,
    /// Bytes by time.
    limit_curve: Option<ShiftedCurve>,
    /// Whether it is in its parent's orders.
    joined: bool,
    virtual_time: u128,
    /// When its own limit lets it send.
    own_fit: Nanos,
    /// When that and a child's limit do.
    fit: Nanos,
    pub(super) periods: u64,
}

impl Share {
    pub(super) fn new(config: &HfscClass) -> Self {
        Self {
            virtual_curve: config.link_share.map(ShiftedCurve::new),
            limit_curve: config.upper_limit.map(ShiftedCurve::new),
            joined: false,
            virtual_time: 0,
            own_fit: Nanos(0),
            fit: Nanos(0),
            periods: 0,
        }
    }

    /// Idle, with other curves that are to begin where it was.
    pub(super) fn replaced(&self, config: &HfscClass) -> Self {
        Self { virtual_time: self.virtual_time, ..self.forgotten(config) }
    }

    /// Idle, as if it had never been otherwise.
    pub(super) fn forgotten(&self, config: &HfscClass) -> Self {
        Self { periods: self.periods, ..Self::new(config) }
    }

    /// Becomes backlogged, at this virtual time or later.
    fn join(&mut self, virtual_time: u128, total: u64, now: Nanos) {
        self.periods += 1;
        if let Some(curve) = &mut self.virtual_curve {
            curve.begin(self.virtual_time.max(virtual_time), total);
        }
        if let Some(curve) = &mut self.limit_curve {
            curve.begin(now.0.into(), total);
        }
        self.count(total, 0);
    }

    /// Has had `total` bytes, and is not behind `floor`.
    fn count(&mut self, total: u64, floor: u128) {
        if let Some(curve) = &mut self.virtual_curve {
            self.virtual_time = curve.reaches(total).expect("a share does not end in a rate of 0");
            if self.virtual_time < floor {
                curve.delay(floor - self.virtual_time);
                self.virtual_time = floor;
            }
        }
        self.own_fit = self.limit_curve.as_ref().map_or(Nanos(0), |curve| moment(curve.reaches(total)));
    }
}

/// What a class is as a parent.
#[derive(Debug, Default)]
pub(super) struct Children {
    by_virtual_time: BTreeSet<(u128, Key)>,
    by_fit: BTreeSet<(Nanos, Key)>,
    /// The greatest virtual time of which a child was chosen.
    floor: u128,
    /// The greatest virtual time that a child stopped at.
    ceiling: u128,
}

impl Children {
    /// Whether none is backlogged.
    pub(super) fn is_idle(&self) -> bool {
        self.by_virtual_time.is_empty()
    }

    /// When the first one may send; `None` if none is backlogged.
    pub(super) fn first_fit(&self) -> Option<Nanos> {
        self.by_fit.first().map(|(fit, _)| *fit)
    }

    /// Forgets who is backlogged.
    pub(super) fn clear(&mut self) {
        self.ceiling = self.by_virtual_time.last().map_or(self.ceiling, |(last, _)| self.ceiling.max(*last));
        self.by_virtual_time.clear();
        self.by_fit.clear();
    }

    /// Where a class begins that becomes backlogged.
    fn system_time(&mut self) -> u128 {
        let (Some((least, _)), Some((greatest, _))) =
            (self.by_virtual_time.first(), self.by_virtual_time.last())
        else {
            return self.ceiling; // which the floor is not above, as who was chosen has stopped since
        };
        u128::midpoint(self.floor.max(*least), self.floor.max(*greatest))
    }

    fn insert(&mut self, key: Key, share: &Share) {
        self.by_virtual_time.insert((share.virtual_time, key));
        self.by_fit.insert((share.fit, key));
    }

    fn remove(&mut self, key: Key, share: &Share) {
        self.by_virtual_time.remove(&(share.virtual_time, key));
        self.by_fit.remove(&(share.fit, key));
    }

    /// Puts a child where it belongs now, after it sent `bytes`.
    fn settle<P: Packet + Debug>(&mut self, key: Key, class: &mut Class<P>, bytes: u32, now: Nanos) {
        let wanted = class.config.link_share.is_some() && class.is_backlogged();
        if class.share.joined {
            self.remove(key, &class.share);
            if bytes > 0 {
                class.share.count(class.total, self.floor);
            }
            if !wanted {
                self.ceiling = self.ceiling.max(class.share.virtual_time);
            }
        } else if wanted {
            class.share.join(self.system_time(), class.total, now);
        }
        class.share.joined = wanted;
        if wanted {
            let below = class.children.first_fit(); // none is a leaf's
            class.share.fit = below.map_or(class.share.own_fit, |below| class.share.own_fit.max(below));
            self.insert(key, &class.share);
        }
    }
}

impl<P: Packet + Debug> Tree<P> {
    /// Puts a class and all above it where they belong, after it sent `bytes`, began to hold packets or
    /// ceased to.
    pub(super) fn settle(&mut self, from: Key, bytes: u32, now: Nanos) {
        let mut key = from;
        loop {
            let class = self.class_mut(key);
            class.total += u64::from(bytes);
            let Some(parent) = class.parent else { return };
            let mut siblings = core::mem::take(&mut self.class_mut(parent).children);
            siblings.settle(key, self.class_mut(key), bytes, now);
            self.class_mut(parent).children = siblings;
            key = parent;
        }
    }

    /// Takes a class out of its parent's orders, to be settled when it was changed.
    pub(super) fn withdraw(&mut self, key: Key) {
        let Some(parent) = self.class(key).parent else { return };
        if !self.class(key).share.joined {
            return;
        }
        let mut siblings = core::mem::take(&mut self.class_mut(parent).children);
        let share = &mut self.class_mut(key).share;
        siblings.remove(key, share);
        siblings.ceiling = siblings.ceiling.max(share.virtual_time);
        share.joined = false;
        self.class_mut(parent).children = siblings;
    }

    /// The leaf that link sharing lets send now. Cost: children that their limits hold back are passed over
    /// one by one.
    pub(super) fn choose(&mut self, now: Nanos) -> Option<Key> {
        let mut key = ROOT;
        while self.class(key).leaf.is_none() {
            let mut order = self.class(key).children.by_virtual_time.iter();
            let (virtual_time, child) = *order.find(|(_, child)| self.class(*child).share.fit <= now)?;
            let children = &mut self.class_mut(key).children;
            children.floor = children.floor.max(virtual_time);
            key = child;
        }
        Some(key)
    }
}
