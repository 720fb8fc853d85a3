//! Classes come, change and go.

use super::settings::{HfscKey, ROOT};
use super::tree::{HfscLeaf, HfscNode};
use super::{Hfsc, HfscClass, HfscStatistics};
use crate::{ClassId, InnerQdisc, Packet, Qdisc};
use alloc::boxed::Box;
use core::fmt;
use quietcore_core::Nanos;

/// Why a class of [`Hfsc`] cannot be as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HfscError {
    /// There is one of that name.
    Exists(ClassId),
    /// There is none of that name.
    Unknown(ClassId),
    /// It has neither guarantee nor share, and would never send.
    NoCurve(ClassId),
    /// One of its curves never gives anything, or its share ends in a rate of 0.
    ZeroCurve(ClassId),
    /// It has an upper limit but no share that this would limit.
    NoShare(ClassId),
    /// A parent must share, else its children could not.
    ParentWithoutShare(ClassId),
    /// It has children, and holds no packets itself.
    HasChildren(ClassId),
    /// It is below more classes than a packet should pass.
    TooDeep(ClassId),
}

impl fmt::Display for HfscError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists(class) => write!(out, "there is a class {class}"),
            Self::Unknown(class) => write!(out, "there is no class {class}"),
            Self::NoCurve(class) => write!(out, "class {class} has neither a guarantee nor a share"),
            Self::ZeroCurve(class) => write!(out, "class {class} has a curve that gives nothing"),
            Self::NoShare(class) => write!(out, "class {class} has an upper limit of no share"),
            Self::ParentWithoutShare(class) => write!(out, "class {class} has no share to give to children"),
            Self::HasChildren(class) => write!(out, "class {class} has children"),
            Self::TooDeep(class) => write!(out, "class {class} would be below {DEPTH_MAX} others"),
        }
    }
}

impl core::error::Error for HfscError {}

/// Classes above a class: each packet that leaves passes them all.
const DEPTH_MAX: usize = 64;

/// Whether a class can be given this.
fn check(name: ClassId, config: &HfscClass) -> Result<(), HfscError> {
    if config.realtime.is_none() && config.link_share.is_none() {
        return Err(if config.upper_limit.is_some() {
            HfscError::NoShare(name)
        } else {
            HfscError::NoCurve(name)
        });
    }
    if config.link_share.is_none() && config.upper_limit.is_some() {
        return Err(HfscError::NoShare(name));
    }
    let curves = [config.realtime, config.link_share, config.upper_limit];
    let ends = config.link_share.is_some_and(|share| share.m2 == 0);
    if ends || curves.iter().flatten().any(super::ServiceCurve::is_zero) {
        return Err(HfscError::ZeroCurve(name));
    }
    Ok(())
}

impl<P: Packet + fmt::Debug + Send + 'static> Hfsc<P> {
    /// Adds a class below `parent`, or below the link; it is a leaf with a `pfifo` of 1000 packets. A parent
    /// that was a leaf is one no more, and drops what it held.
    ///
    /// # Errors
    /// If there is one of that name, no such parent, or if it cannot be given `class`.
    pub fn add_class(
        &mut self,
        parent: Option<ClassId>,
        name: ClassId,
        class: HfscClass,
    ) -> Result<(), HfscError> {
        check(name, &class)?;
        if self.names.contains_key(name) {
            return Err(HfscError::Exists(name));
        }
        let above = match parent {
            None => ROOT,
            Some(parent) => {
                let above = self.key(parent)?;
                if self.tree.class(above).config.link_share.is_none() {
                    return Err(HfscError::ParentWithoutShare(parent));
                }
                above
            }
        };
        let parent_of = |class: &HfscKey| self.tree.class(*class).parent;
        if core::iter::successors(Some(above), parent_of).count() > DEPTH_MAX {
            return Err(HfscError::TooDeep(name));
        }
        self.purge(above);
        let mut added = HfscNode::new(Some(above), class);
        added.leaf = Some(HfscLeaf::new(&class));
        let key = self.tree.add(added);
        self.names.insert(name, key);
        Ok(())
    }

    /// Gives a class other curves. They begin at `now`, and its share where it was; what it holds stays.
    ///
    /// # Errors
    /// If there is none, or if it cannot be given `class`.
    pub fn change_class(&mut self, now: Nanos, name: ClassId, class: HfscClass) -> Result<(), HfscError> {
        check(name, &class)?;
        let key = self.key(name)?;
        if class.link_share.is_none() && self.tree.class(key).leaf.is_none() {
            return Err(HfscError::ParentWithoutShare(name));
        }
        self.tree.withdraw(key);
        let changed = self.tree.class_mut(key);
        changed.share = changed.share.replaced(&class);
        changed.config = class;
        if let Some(leaf) = &mut changed.leaf {
            if let Some(realtime) = &leaf.realtime {
                self.agenda.remove(key, realtime);
            }
            leaf.realtime = class.realtime.map(super::realtime::RealTime::new);
            leaf.head = None; // so that the new curves begin
            self.refresh(key, now);
        } else {
            self.tree.settle(key, None, now);
        }
        Ok(())
    }

    /// Removes a class, and drops what it holds. A parent whose last child it was is a leaf again.
    ///
    /// # Errors
    /// If there is none, or if it has children.
    pub fn remove_class(&mut self, name: ClassId) -> Result<(), HfscError> {
        let key = self.key(name)?;
        if self.tree.class(key).leaf.is_none() {
            return Err(HfscError::HasChildren(name));
        }
        self.purge(key);
        self.names.remove(name);
        let Some(removed) = self.tree.remove(key) else { return Ok(()) };
        self.statistics.dropped += removed.dropped;
        let above =
            removed.parent.filter(|above| *above != ROOT && self.tree.children(*above).next().is_none());
        if let Some(above) = above.map(|above| self.tree.class_mut(above)) {
            above.leaf = Some(HfscLeaf::new(&above.config));
        }
        Ok(())
    }

    /// Gives a leaf another queue. What the old one holds is dropped.
    ///
    /// # Errors
    /// If there is none, or if it is no leaf.
    pub fn set_leaf(&mut self, now: Nanos, name: ClassId, queue: Box<dyn Qdisc<P>>) -> Result<(), HfscError> {
        let key = self.key(name)?;
        if self.tree.class(key).leaf.is_none() {
            return Err(HfscError::HasChildren(name));
        }
        self.purge(key);
        let class = self.tree.class_mut(key);
        class.leaf = Some(HfscLeaf { child: InnerQdisc::boxed(queue), ..HfscLeaf::new(&class.config) });
        self.refresh(key, now);
        Ok(())
    }

    /// What a class has done, and holds.
    #[must_use]
    pub fn class_statistics(&self, name: ClassId) -> Option<HfscStatistics> {
        self.key(name).ok().map(|key| self.statistics_of(key))
    }

    /// The same of the link: of it all that is below, though itself it sends nothing.
    pub(super) fn root_statistics(&self) -> HfscStatistics {
        self.statistics_of(ROOT)
    }

    fn statistics_of(&self, key: HfscKey) -> HfscStatistics {
        let class = self.tree.class(key);
        let mut queue = self.tree.queues(key);
        (queue.sent_bytes, queue.sent_packets) = (class.total, class.packets);
        let (realtime_bytes, periods) = (class.realtime_bytes, class.share.periods);
        HfscStatistics { queue, realtime_bytes, periods, level: self.tree.level(key) }
    }

    pub(super) fn key(&self, name: ClassId) -> Result<HfscKey, HfscError> {
        self.names.get(name).copied().ok_or(HfscError::Unknown(name))
    }

    /// Makes a leaf none, and drops what it held; nothing if it is none.
    fn purge(&mut self, key: HfscKey) {
        let class = self.tree.class_mut(key);
        let Some(leaf) = class.leaf.take() else { return };
        if let Some(realtime) = &leaf.realtime {
            self.agenda.remove(key, realtime);
        }
        if let Some(wake) = leaf.wake {
            self.dormant.remove(&(wake, key));
        }
        let held = leaf.child.statistics();
        class.dropped += held.dropped + held.qlen;
        // It and those above cease to be backlogged; nothing begins, so that the moment does not matter.
        self.tree.settle(key, None, Nanos(0));
    }
}
