//! A simulated runtime that broke a promise, from its seed to the smallest that does, too.

use quietcore_sim::{RuntimePlan, RuntimeRun, run_runtime, smallest_failure, tell_runtime};
use serde::Serialize;

/// A run that broke a promise.
#[derive(Debug, Serialize)]
pub(crate) struct RuntimeFailure {
    pub(crate) plan: RuntimePlan,
    /// Which promise, and at which simulated moment.
    pub(crate) what: String,
    pub(crate) at_ns: u64,
    /// The smallest plan that was found to break one, too.
    pub(crate) smallest: RuntimePlan,
    pub(crate) smallest_what: String,
    /// What happened in that one, oldest first.
    pub(crate) events: Vec<String>,
}

impl RuntimeFailure {
    pub(crate) fn of(seed: u64) -> Option<Self> {
        let plan = RuntimePlan::draw(seed);
        let (at_ns, what) = run_runtime(&plan).violation?;
        let smallest = smallest_failure(&plan);
        let RuntimeRun { violation, log: events, .. } = tell_runtime(&smallest);
        let (_, smallest_what) = violation?;
        Some(Self { plan, what, at_ns, smallest, smallest_what, events })
    }
}
