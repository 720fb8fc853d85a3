//! A peer as a row of the report, its type forgotten.

use super::audit::{self, Audit};
use super::measure;
use super::peer::{Answer, Peer, Role};
use super::plan::{Plan, Workload};
use crate::versions::locked;

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
    pub(super) const fn of<P: Peer>() -> Self {
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
