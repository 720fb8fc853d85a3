//! Several lines: what a shell script of `tc` commands has, without its variables and loops.

use super::command::Command;
use super::error::TcError;
use super::line::parse;
use alloc::vec::Vec;
use core::fmt;

/// Which line of a script is no command, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    line: usize,
    error: TcError,
}

impl ScriptError {
    /// The number of the line; the first is 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// What is wrong with it.
    #[must_use]
    pub const fn error(&self) -> &TcError {
        &self.error
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}:\n{}", self.line, self.error)
    }
}

impl core::error::Error for ScriptError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Reads the commands of a script, each with the number of its line, the first of which is 1.
///
/// Lines begin with `tc`, with `quietcore tc`, or with neither; empty ones and comments are skipped.
///
/// # Errors
/// [`ScriptError`] for the first line that is no command.
pub fn parse_script(text: &str) -> Result<Vec<(usize, Command)>, ScriptError> {
    let mut commands = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let begin = line.trim_start();
        if begin.is_empty() || begin.starts_with('#') {
            continue;
        }
        let line_number = at + 1;
        let command = parse(line).map_err(|error| ScriptError { line: line_number, error })?;
        commands.push((line_number, command));
    }
    Ok(commands)
}
