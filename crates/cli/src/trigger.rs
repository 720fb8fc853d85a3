//! `record --trigger`: waits for a stretch in which an isolated CPU is taken away for too long.

use quietcore_core::{CpuSet, Nanos};
use quietcore_explain::{Explain, ExplainOptions, Gap};
use quietcore_trace::Record;
use std::time::Duration;

/// What ends a recording, and how long before it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TriggerRequest {
    pub(crate) longer_than: Nanos,
    pub(crate) before: Duration,
}

/// Looks at events until it has happened.
#[derive(Debug)]
pub(crate) struct Trigger(Explain);

impl Trigger {
    pub(crate) fn new(request: TriggerRequest, isolated: &CpuSet) -> Self {
        let gap = Some(request.longer_than);
        Self(Explain::new(ExplainOptions { isolated: isolated.clone(), gap, ..ExplainOptions::default() }))
    }

    pub(crate) fn take(&mut self, record: &Record<'_>) {
        if self.0.gap().is_none() {
            self.0.take(record);
        }
    }

    /// The stretch that was too long.
    pub(crate) fn gap(&self) -> Option<Gap> {
        self.0.gap()
    }
}
