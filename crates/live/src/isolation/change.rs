//! What the host changed, and what the machine made of it.

use super::host::HostIsolation;
use crate::lane::IsolateError;
use core::fmt;
use quietcore_core::{CpuSet, IsolationReport};

/// A change of the host's isolation, and what the machine made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IsolationChange {
    /// What the host says.
    pub host: HostIsolation,
    /// CPUs of the machine that were isolated at run time before.
    pub before: CpuSet,
    /// Those that should be.
    pub wanted: CpuSet,
    /// What was done; after an error it is as before.
    pub outcome: Result<IsolationReport, IsolateError>,
}

impl fmt::Display for IsolationChange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |set: &CpuSet| if set.is_empty() { "none".to_owned() } else { set.to_string() };
        let (before, wanted) = (list(&self.before), list(&self.wanted));
        match &self.outcome {
            Ok(report) => write!(
                out,
                "isolated CPUs: {before} -> {wanted}; left {}, joined {}, {} timers moved",
                list(&report.left),
                list(&report.joined),
                report.evacuated
            ),
            Err(error) => write!(out, "isolated CPUs stay {before}, not {wanted}: {error}"),
        }
    }
}
