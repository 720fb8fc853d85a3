//! Which peers there are. To add one is its file and one line in [`ENTRIES`].

use super::audit::{self, Audit};
use super::plan::{Plan, Workload};
use super::quietcore;
use super::{Answer, Peer, Role, measure};
use super::{baseline, binary_heap, bitwheel, btree_map, delay_queue, hash_wheel, mio_extras, nexus};
use crate::versions::locked;

/// All rows of the report, in its order.
pub const ENTRIES: &[Entry] = &[
    Entry::of::<quietcore::Intrusive>(),
    Entry::of::<quietcore::Precise>(),
    Entry::of::<quietcore::Keyed>(),
    Entry::of::<nexus::Nexus>(),
    Entry::of::<nexus::Forgetful>(),
    Entry::of::<hash_wheel::HashWheel>(),
    Entry::of::<bitwheel::Bitwheel>(),
    Entry::of::<mio_extras::MioExtras>(),
    Entry::of::<delay_queue::Queue>(),
    Entry::of::<binary_heap::LazyHeap>(),
    Entry::of::<btree_map::OrderedMap>(),
    Entry::of::<baseline::Touch>(),
    Entry::of::<baseline::TouchNeighbours>(),
    Entry::of::<baseline::TouchInTurn>(),
    Entry::of::<baseline::SystemClock>(),
    Entry::of::<baseline::TokioClock>(),
    Entry::of::<baseline::Empty>(),
];

/// Those whose numbers all others are divided by, in order of preference.
pub const REFERENCES: &[&str] = &["quietcore", "nexus-timer"];

/// A peer, its type forgotten.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub name: &'static str,
    pub package: Option<&'static str>,
    pub note: &'static str,
    pub role: Role,
    pub answer: Answer,
    absent: fn(Workload) -> Option<&'static str>,
    measure: fn(&Plan) -> f64,
    audit: fn(&Plan) -> Option<Audit>,
}

impl Entry {
    const fn of<P: Peer>() -> Self {
        Self {
            name: P::NAME,
            package: P::PACKAGE,
            note: P::NOTE,
            role: P::ROLE,
            answer: P::ANSWER,
            absent: P::absent,
            measure: measure::run::<P>,
            audit: audit::run::<P>,
        }
    }

    /// Why this peer cannot do `workload`; `None` if it can.
    #[must_use]
    pub fn absent(&self, workload: Workload) -> Option<&'static str> {
        let asks = matches!(workload, Workload::NextRandom | Workload::NextFirst);
        if asks && self.answer == Answer::Absent && self.role == Role::Peer {
            return Some("no public call says when the next timer is due");
        }
        (self.absent)(workload)
    }

    /// Nanoseconds per operation of the plan.
    ///
    /// # Panics
    /// If an operation did not have the effect it must have.
    #[must_use]
    pub fn measure(&self, plan: &Plan) -> f64 {
        (self.measure)(plan)
    }

    /// How exact the peer is in this workload, if that is a question.
    ///
    /// # Panics
    /// If an answer breaks the peer's own promise.
    #[must_use]
    pub fn audit(&self, plan: &Plan) -> Option<Audit> {
        (self.audit)(plan)
    }

    /// The version of the package that was compiled in.
    #[must_use]
    pub fn version(&self) -> Option<&'static str> {
        locked(self.package?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: names tell the rows apart, and every package is found. Method: the whole table.
    #[test]
    fn names_are_unique_and_versions_known() {
        for (at, entry) in ENTRIES.iter().enumerate() {
            assert!(ENTRIES[..at].iter().all(|other| other.name != entry.name), "{}", entry.name);
            assert_eq!(entry.version().is_some(), entry.package.is_some(), "{}", entry.name);
            assert!(!entry.note.is_empty(), "{}", entry.name);
        }
    }
}
