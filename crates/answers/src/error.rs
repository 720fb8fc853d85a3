//! Why there is no answer, in the sentences that people are shown.

use quietcore_trace::{ExpansionExceeded, OpenError, ReadError, visible_path};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why an input has no answer. Its text is a sentence without a full stop that names the input and, where
/// there is one, the remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnswerError {
    /// An input could not be opened.
    Open(OpenError),
    /// An input could not be read on.
    Read(PathBuf, ReadError),
    /// A recording in which nothing happens.
    NoEvents(PathBuf),
    /// What was asked does not go together with the input; the sentence says which and what to do.
    Usage(String),
    /// The [`ReadWatch`](crate::ReadWatch) said to end before there was an answer.
    Interrupted,
}

impl fmt::Display for AnswerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => write!(out, "{error}"),
            Self::Read(path, error) => write!(out, "{}: {error}{}", visible_path(path), remedy(error)),
            Self::NoEvents(path) => write!(
                out,
                "{}: there is no event in it, so it shows nothing of a kernel; record while its tracepoints are \
                 on, and read `trace` before `trace_pipe`, which empties it",
                visible_path(path)
            ),
            Self::Usage(sentence) => write!(out, "{sentence}"),
            Self::Interrupted => write!(out, "interrupted"),
        }
    }
}

impl std::error::Error for AnswerError {}

/// What the reader of a recording can do about it.
fn remedy(error: &ReadError) -> &'static str {
    match error {
        ReadError::Io(error) if is_expansion(error) => {
            "; if you trust it, allow more with --max-expansion TIMES"
        }
        _ => "",
    }
}

fn is_expansion(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<ExpansionExceeded>())
}

impl From<OpenError> for AnswerError {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

#[cfg(test)]
mod tests {
    use super::AnswerError;
    use quietcore_trace::{ExpansionExceeded, ReadError};
    use std::io;

    /// Goal: only a reader that was stopped at the limit is told how to raise it. Method: errors of reads.
    #[test]
    fn an_error_names_its_own_remedy() {
        let read = |error: io::Error| AnswerError::Read("t.zst".into(), ReadError::Io(error)).to_string();
        let remedy = "; if you trust it, allow more with --max-expansion TIMES";
        let limit = read(io::Error::other(ExpansionExceeded { limit: 7 }));
        assert!(limit.starts_with("t.zst: ") && limit.contains("more than 7 times"), "{limit}");
        assert!(limit.ends_with(remedy), "{limit}");
        for error in [io::Error::other("a disk failed"), io::Error::from(io::ErrorKind::PermissionDenied)] {
            let other = read(error);
            assert!(other.starts_with("t.zst: ") && !other.contains("--max-expansion"), "{other}");
        }
    }
}
