//! The one error type of the command: what went wrong, where, and what to do.

use quietcore_answers::AnswerError;
use quietcore_lab::LabError;
use quietcore_trace::{OpenError, visible_path};
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
    /// An input has no answer.
    Answer(AnswerError),
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
            Self::Answer(error) => write!(out, "{error}"),
            Self::Write(path, error) => write!(out, "writing {} failed: {error}", visible_path(path)),
            Self::Usage(sentence) | Self::Live(sentence) => write!(out, "{sentence}"),
        }
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
        Self::Answer(error.into())
    }
}

impl From<AnswerError> for CliError {
    fn from(error: AnswerError) -> Self {
        Self::Answer(error)
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
    use std::io;

    /// Goal: a pipe that was closed is no error of the output. Method: that, and another error.
    #[test]
    fn a_closed_pipe_is_no_error_of_the_output() {
        assert!(matches!(CliError::from(io::Error::from(io::ErrorKind::BrokenPipe)), CliError::ClosedPipe));
        let output = CliError::from(io::Error::other("a disk failed")).to_string();
        assert_eq!(output, "writing the output failed: a disk failed");
    }
}
