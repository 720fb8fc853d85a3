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
