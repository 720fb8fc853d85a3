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
                "isolated CPUs: {before} -> {wanted}; left {}, joined {}, {} timer{} moved",
                list(&report.left),
                list(&report.joined),
                report.evacuated,
                if report.evacuated == 1 { "" } else { "s" }
            ),
            Err(error) => write!(out, "isolated CPUs stay {before}, not {wanted}: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CpuSet, HostIsolation, IsolateError, IsolationChange, IsolationReport};

    /// Goal: a change says what became of which CPUs. Method: one that was made, with one timer and with two,
    /// and one that was refused; no two sets are alike.
    #[test]
    fn a_change_says_what_it_came_to() {
        let set = |list: &str| list.parse::<CpuSet>().expect("a list");
        let shown = |outcome: Result<IsolationReport, IsolateError>| {
            let (before, wanted) = (CpuSet::new(), set("2-3"));
            IsolationChange { host: HostIsolation::default(), before, wanted, outcome }.to_string()
        };
        let report = |evacuated| IsolationReport {
            evacuated,
            pinned_left: 7,
            left: set("2"),
            joined: set("4"),
            ..IsolationReport::default()
        };
        let made = "isolated CPUs: none -> 2-3; left 2, joined 4, ";
        assert_eq!(shown(Ok(report(2))), format!("{made}2 timers moved"));
        assert_eq!(shown(Ok(report(1))), format!("{made}1 timer moved"));
        let refused = shown(Err(IsolateError::NoHousekeeping));
        assert_eq!(refused, "isolated CPUs stay none, not 2-3: every CPU would be isolated");
    }
}
