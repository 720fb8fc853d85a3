//! Link sharing: which class has what no guarantee takes.
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

use super::settings::{HfscClass, HfscKey};
use super::shifted::{ShiftedCurve, moment};
use crate::sorted::SortedSet;
use quietcore_core::Nanos;

/// What a class is as a child.
#[derive(Debug)]
pub(super) struct LinkShare {
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

impl LinkShare {
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

    /// Idle, with other curves. When it joins again, they begin where it was; alone, where the idle siblings
    /// got to if that is further, which takes nothing from any of them: who joins later begins beside it.
    pub(super) fn replaced(&self, config: &HfscClass) -> Self {
        Self { virtual_time: self.virtual_time, ..self.forgotten(config) }
    }

    /// Idle, as if it had never been otherwise.
    pub(super) fn forgotten(&self, config: &HfscClass) -> Self {
        Self { periods: self.periods, ..Self::new(config) }
    }

    /// Whether it is in its parent's orders.
    pub(super) const fn has_joined(&self) -> bool {
        self.joined
    }

    /// Where it is in its parent's orders.
    fn place(&self) -> Option<ChildPlace> {
        self.joined.then_some(ChildPlace { virtual_time: self.virtual_time, fit: self.fit })
    }

    /// When its own limit and one below it let it send.
    pub(super) const fn fit(&self) -> Nanos {
        self.fit
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
        self.limit(total);
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
    }

    /// May send again when its limit reaches `total` bytes.
    fn limit(&mut self, total: u64) {
        self.own_fit = self.limit_curve.as_ref().map_or(Nanos(0), |curve| moment(curve.reaches(total)));
    }
}

/// Where a child is in its parent's orders.
#[derive(Clone, Copy)]
struct ChildPlace {
    virtual_time: u128,
    fit: Nanos,
}

/// What has become of a child.
#[derive(Debug)]
pub(super) struct ChildChange {
    /// Whether it holds packets and has a share.
    pub(super) shares: bool,
    /// Bytes that it has sent in all.
    pub(super) total: u64,
    /// Bytes that it has just sent.
    pub(super) bytes: u32,
    /// When the first of its own children may send; none of a leaf.
    pub(super) below: Option<Nanos>,
    pub(super) now: Nanos,
}

/// What a class is as a parent.
#[derive(Debug, Default)]
pub(super) struct ChildOrders {
    by_virtual_time: SortedSet<(u128, HfscKey)>,
    by_fit: SortedSet<(Nanos, HfscKey)>,
    /// The greatest virtual time of which a child was chosen.
    floor: u128,
    /// The greatest virtual time that a child stopped at.
    ceiling: u128,
}

impl ChildOrders {
    /// Whether none is backlogged.
    pub(super) fn is_idle(&self) -> bool {
        self.by_virtual_time.is_empty()
    }

    /// When the first one may send; `None` if none is backlogged.
    pub(super) fn first_fit(&self) -> Option<Nanos> {
        self.by_fit.first().map(|(fit, _)| *fit)
    }

    /// Where a class begins that becomes backlogged.
    fn system_time(&mut self) -> u128 {
        let (Some((least, _)), Some((greatest, _))) =
            (self.by_virtual_time.first(), self.by_virtual_time.last())
        else {
            return self.ceiling; // which the floor is not above, as the chosen child has stopped since
        };
        u128::midpoint(self.floor.max(*least), self.floor.max(*greatest))
    }

    /// Moves a child from where it was in the orders to where it is; nowhere is in neither.
    #[inline]
    fn place(&mut self, key: HfscKey, from: Option<ChildPlace>, to: Option<ChildPlace>) {
        let entry = |place: ChildPlace| ((place.virtual_time, key), (place.fit, key));
        match (from.map(entry), to.map(entry)) {
            (Some(from), Some(to)) => {
                if from.0 != to.0 {
                    self.by_virtual_time.replace(&from.0, to.0);
                }
                if from.1 != to.1 {
                    self.by_fit.replace(&from.1, to.1);
                }
            }
            (Some(from), None) => {
                self.by_virtual_time.remove(&from.0);
                self.by_fit.remove(&from.1);
            }
            (None, Some(to)) => {
                self.by_virtual_time.insert(to.0);
                self.by_fit.insert(to.1);
            }
            (None, None) => {}
        }
    }

    /// Puts a child where it belongs now.
    pub(super) fn settle(&mut self, key: HfscKey, share: &mut LinkShare, change: &ChildChange) {
        let before = share.place();
        if share.joined {
            if change.bytes > 0 {
                share.count(change.total, self.floor);
            }
            if !change.shares {
                self.ceiling = self.ceiling.max(share.virtual_time);
            } else if change.bytes > 0 {
                share.limit(change.total);
            }
        } else if change.shares {
            share.join(self.system_time(), change.total, change.now);
        }
        share.joined = change.shares;
        if change.shares {
            share.fit = change.below.map_or(share.own_fit, |below| share.own_fit.max(below));
        }
        self.place(key, before, share.place());
    }

    /// Takes a child out.
    pub(super) fn withdraw(&mut self, key: HfscKey, share: &mut LinkShare) {
        self.place(key, share.place(), None);
        self.ceiling = self.ceiling.max(share.virtual_time);
        share.joined = false;
    }

    /// The first child in the order of virtual times that `fits`, and its virtual time. Cost: the others are
    /// passed over one by one.
    pub(super) fn first_that(&self, fits: impl Fn(HfscKey) -> bool) -> Option<(u128, HfscKey)> {
        match self.by_virtual_time.first() {
            Some(first) if fits(first.1) => Some(*first),
            _ => self.by_virtual_time.iter().find(|(_, child)| fits(*child)).copied(),
        }
    }

    /// A child of that virtual time is chosen.
    pub(super) fn chose(&mut self, virtual_time: u128) {
        self.floor = self.floor.max(virtual_time);
    }
}
