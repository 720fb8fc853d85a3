//! What could not be learned of a host: bounded, and safe to print.

use super::files::excerpt;
use core::fmt;

/// Largest number that is kept; the first ones tell what is wrong.
const COUNT_MAX: usize = 32;

/// Something about a host's isolation that is not as it should be. It isolates nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IsolationProblem {
    /// A file is there and cannot be used.
    Unreadable {
        /// Which, on the host.
        path: String,
        /// Why.
        reason: String,
    },
    /// A partition is meant to isolate, and the kernel says that it does not.
    InvalidPartition {
        /// Its file.
        path: String,
        /// What that says.
        state: String,
    },
}

impl fmt::Display for IsolationProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, reason } => write!(out, "cannot use {path}: {reason}"),
            Self::InvalidPartition { path, state } => write!(out, "{path} isolates nothing: {state}"),
        }
    }
}

/// Those that were met, in order.
#[derive(Debug, Default)]
pub(super) struct Problems(pub(super) Vec<IsolationProblem>);

impl Problems {
    pub(super) fn unreadable(&mut self, path: &str, reason: &str) {
        self.keep(IsolationProblem::Unreadable { path: excerpt(path), reason: excerpt(reason) });
    }

    pub(super) fn invalid(&mut self, path: &str, state: &str) {
        self.keep(IsolationProblem::InvalidPartition { path: excerpt(path), state: excerpt(state) });
    }

    fn keep(&mut self, problem: IsolationProblem) {
        if self.0.len() < COUNT_MAX {
            self.0.push(problem);
        }
    }
}
