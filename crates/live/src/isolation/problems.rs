//! What could not be learned of a host: bounded, and safe to print.

use super::files::excerpt;
use core::fmt;

/// Largest number that is kept: the first ones tell what is wrong. One that nothing could be learned from is
/// among them, if there is any.
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
        let is_unreadable = |kept: &IsolationProblem| matches!(kept, IsolationProblem::Unreadable { .. });
        if self.0.len() < COUNT_MAX {
            self.0.push(problem);
        } else if is_unreadable(&problem) && !self.0.iter().any(is_unreadable) {
            self.0[COUNT_MAX - 1] = problem;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{COUNT_MAX, IsolationProblem, Problems};

    /// Goal: as many are kept as is said, and those that came first. Method: one more than that.
    #[test]
    fn the_first_problems_are_kept() {
        let mut problems = Problems::default();
        (0..=COUNT_MAX).for_each(|number| problems.unreadable(&format!("/file{number}"), "why"));
        let texts: Vec<String> = problems.0.iter().map(ToString::to_string).collect();
        assert_eq!((texts.len(), texts[0].as_str()), (32, "cannot use /file0: why"));
        assert_eq!(texts[31], "cannot use /file31: why");
    }

    /// Goal: that something could not be read is known, however many problems came before. Method: partitions
    /// that isolate nothing, as many as are kept, and then files that cannot be read.
    #[test]
    fn what_could_not_be_read_is_kept() {
        let mut problems = Problems::default();
        (0..COUNT_MAX).for_each(|number| problems.invalid(&format!("/partition{number}"), "why"));
        (0..2).for_each(|number| problems.unreadable(&format!("/file{number}"), "why"));
        problems.invalid("/partition", "why");
        let is_file = |problem: &&IsolationProblem| matches!(problem, IsolationProblem::Unreadable { .. });
        let texts: Vec<String> = problems.0.iter().filter(is_file).map(ToString::to_string).collect();
        assert_eq!((problems.0.len(), texts), (COUNT_MAX, vec!["cannot use /file0: why".to_owned()]));
    }
}
