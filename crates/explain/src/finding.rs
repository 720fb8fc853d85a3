//! A finding: one thing that is wrong or worth knowing, and what to do about it.
//!
//! Both the explanation of a trace and the static check-up of a host end in a list of these, in
//! the same shape, so a reader and a program need to learn it once.

use quietcore_trace::Question;
use serde::{Serialize, Serializer};
use std::fmt;

/// How much a finding matters. [`Severity::Warning`] and above make a command exit with 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing needs to change.
    Note,
    /// An isolated or real-time CPU is (or will be) disturbed.
    Warning,
    /// The configuration does not do what it says at all.
    Critical,
}

/// The lower-case word, as in the JSON.
impl fmt::Display for Severity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Critical => "critical",
        })
    }
}

/// Where a finding can be checked by eye.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Evidence {
    /// A line of the recording (1-based), and what it shows.
    Line {
        /// Line number in the input, the first line being 1.
        line: u64,
        /// What the line shows, in one sentence.
        text: String,
    },
    /// A file of the host, and what it holds.
    File {
        /// Path as seen on the host.
        path: String,
        /// Its content, or the part that matters.
        text: String,
    },
}

/// One finding. All texts are full sentences without a trailing line break.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable name, lower case with hyphens.
    pub id: &'static str,
    /// The question that it belongs to; by its name in the JSON.
    #[serde(serialize_with = "by_name")]
    pub question: Question,
    /// How much it matters.
    pub severity: Severity,
    /// What was seen.
    pub what: String,
    /// The mechanism, with the range of kernel versions it holds for.
    pub why: String,
    /// The exact command (or boot parameter) that changes it; never executed by us.
    pub change: String,
    /// What that command will do to the figures.
    pub predicted: String,
    /// The command that shows whether it did.
    pub verify: String,
    /// Lines or files that prove it.
    pub evidence: Vec<Evidence>,
}

impl Finding {
    /// A finding with its three fixed fields; the texts are added by the methods below.
    #[must_use]
    pub fn new(id: &'static str, question: Question, severity: Severity) -> Self {
        let empty = String::new;
        Self {
            id,
            question,
            severity,
            what: empty(),
            why: empty(),
            change: empty(),
            predicted: empty(),
            verify: empty(),
            evidence: Vec::new(),
        }
    }

    /// Sets what was seen.
    #[must_use]
    pub fn what(mut self, text: impl Into<String>) -> Self {
        self.what = text.into();
        self
    }

    /// Sets the mechanism and its kernel versions.
    #[must_use]
    pub fn why(mut self, text: impl Into<String>) -> Self {
        self.why = text.into();
        self
    }

    /// Sets the command that changes it.
    #[must_use]
    pub fn change(mut self, text: impl Into<String>) -> Self {
        self.change = text.into();
        self
    }

    /// Sets the predicted effect.
    #[must_use]
    pub fn predicted(mut self, text: impl Into<String>) -> Self {
        self.predicted = text.into();
        self
    }

    /// Sets the command that verifies it.
    #[must_use]
    pub fn verify(mut self, text: impl Into<String>) -> Self {
        self.verify = text.into();
        self
    }

    /// Adds a line of the recording as evidence.
    #[must_use]
    pub fn line(mut self, line: u64, text: impl Into<String>) -> Self {
        self.evidence.push(Evidence::Line { line, text: text.into() });
        self
    }

    /// Adds a file of the host as evidence.
    #[must_use]
    pub fn file(mut self, path: impl Into<String>, text: impl Into<String>) -> Self {
        self.evidence.push(Evidence::File { path: path.into(), text: text.into() });
        self
    }
}

fn by_name<S: Serializer>(question: &Question, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(question.name())
}
