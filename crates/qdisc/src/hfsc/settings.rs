//! What a class is given, what it answers, and its place among all.

use super::ServiceCurve;
use crate::Statistics;

/// What a class is given.
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
    #[must_use]
    pub const fn guaranteed_share(curve: ServiceCurve) -> Self {
        Self { realtime: Some(curve), link_share: Some(curve), upper_limit: None }
    }
}

/// What a class has done, in the words of `tc -s class show`, and what it holds.
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

/// A class in the order of creation, which breaks ties, and where it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HfscKey {
    pub(super) number: u32,
    pub(super) place: u32,
}

/// The root: the link. It has no curves and is no leaf.
pub(super) const ROOT: HfscKey = HfscKey { number: 0, place: 0 };
