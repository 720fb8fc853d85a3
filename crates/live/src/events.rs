//! Events for people who follow a program with `tracing`.

use crate::IsolationChange;

/// The host's isolation changed.
pub(crate) fn host_isolation_changed(_change: &IsolationChange) {}
