//! The one error type of the command: what went wrong, where, and what to do.

use quietcore_lab::LabError;
use quietcore_trace::{ExpansionExceeded, OpenError, ReadError, visible_path};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Ends a command with exit code 2 (0 for a closed pipe).
#[derive(Debug)]
pub(crate) enum CliError {
    /// The reader of our output went away.
    ClosedPipe,
    /// Standard output failed.
    Output(io::Error),
    /// An input could not be opened.
    Open(OpenError),
    /// An input could not be read on.
    Read(PathBuf, ReadError),
    /// A recording in which nothing happens.
    NoEvents(PathBuf),
    /// An output file could not be written.
    Write(PathBuf, io::Error),
    /// Arguments that do not go together; the sentence says which and what to do.
    Usage(String),
    /// Live recording is not possible; the sentence says what is needed.
    Live(String),
}

impl fmt::Display for CliError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClosedPipe => write!(out, "the output was closed"),
            Self::Output(error) => write!(out, "writing the output failed: {error}"),
            Self::Open(error) => write!(out, "{error}"),
            Self::Read(path, error) => write!(out, "{}: {error}{}", visible_path(path), remedy(error)),
            Self::NoEvents(path) => write!(
                out,
                "{}: there is no event in it, so it shows nothing of a kernel; record while its tracepoints are \
                 on, and read `trace` before `trace_pipe`, which empties it",
                visible_path(path)
            ),
            Self::Write(path, error) => write!(out, "writing {} failed: {error}", visible_path(path)),
            Self::Usage(sentence) | Self::Live(sentence) => write!(out, "{sentence}"),
        }
    }
}

/// What the reader of a recording can do about it.
fn remedy(error: &ReadError) -> &'static str {
    match error {
        ReadError::Io(error) if error.get_ref().is_some_and(|error| error.is::<ExpansionExceeded>()) => {
            "; if you trust it, allow more with --max-expansion TIMES"
        }
        _ => "",
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Output(error),
        }
    }
}

impl From<OpenError> for CliError {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

impl From<LabError> for CliError {
    fn from(error: LabError) -> Self {
        Self::Live(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::CliError;
    use quietcore_trace::{ExpansionExceeded, ReadError};
    use std::io;

    /// Goal: only a reader that was stopped at the limit is told how to raise it, and a pipe that was closed
    /// is no error of the output. Method: errors of reads and writes.
    #[test]
    fn an_error_names_its_own_remedy() {
        let read = |error: io::Error| CliError::Read("t.zst".into(), ReadError::Io(error)).to_string();
        let remedy = "; if you trust it, allow more with --max-expansion TIMES";
        let limit = read(io::Error::other(ExpansionExceeded { limit: 7 }));
        assert!(limit.starts_with("t.zst: ") && limit.contains("more than 7 times"), "{limit}");
        assert!(limit.ends_with(remedy), "{limit}");
        for error in [io::Error::other("a disk failed"), io::Error::from(io::ErrorKind::PermissionDenied)] {
            let other = read(error);
            assert!(other.starts_with("t.zst: ") && !other.contains("--max-expansion"), "{other}");
        }
        assert!(matches!(CliError::from(io::Error::from(io::ErrorKind::BrokenPipe)), CliError::ClosedPipe));
        let output = CliError::from(io::Error::other("a disk failed")).to_string();
        assert_eq!(output, "writing the output failed: a disk failed");
    }
}
