//! Why a line is no command, and where.
//!
//! An error owns the line, so that it can be shown with a mark below the word that is meant; control
//! characters of the line are shown as blanks, so that a hostile line cannot write to a terminal.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::ops::Range;

/// What is wrong with a word, or with the place behind the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TcProblem {
    /// No word of what was expected: "option of netem", "kind of qdisc".
    Unknown(&'static str),
    /// A beginning of several words of what was expected.
    Ambiguous(&'static str),
    /// The line ends where the value of this option should be.
    MissingValue(&'static str),
    /// The line ends, and something that must be told was not.
    Missing {
        /// What has to have it: "tbf", "qdisc add".
        of: &'static str,
        /// What is missing.
        what: &'static str,
    },
    /// The value is not of the form that it should have: "a time".
    Malformed(&'static str),
    /// The value has the form, and is too small or too large.
    OutOfRange {
        /// The smallest one, as it would be written.
        low: String,
        /// The largest one.
        high: String,
    },
    /// The option of this full name was given before.
    Twice(&'static str),
    /// Two options of which a command has one.
    Excludes {
        /// This one.
        option: &'static str,
        /// The one before.
        other: &'static str,
    },
    /// An option without the one that it belongs to.
    Needs {
        /// The option.
        option: &'static str,
        /// What has to be there.
        needs: &'static str,
    },
    /// `tc` knows it, this grammar does not, for this reason.
    NotSupported(&'static str),
    /// A word behind a kind of this name, which has no options.
    NoOptions(&'static str),
}

/// Why a line is not a command: the line, the place, what is wrong there and what may stand there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcError(Box<TcErrorParts>);

/// Behind a pointer: results stay small.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TcErrorParts {
    line: String,
    /// Empty: behind the last word.
    word: Range<usize>,
    problem: TcProblem,
    allowed: Vec<&'static str>,
}

impl TcError {
    pub(crate) fn new(line: &str, word: Range<usize>, problem: TcProblem, allowed: &[&'static str]) -> Self {
        Self(Box::new(TcErrorParts { line: line.to_owned(), word, problem, allowed: allowed.to_vec() }))
    }

    /// The whole line.
    #[must_use]
    pub fn line(&self) -> &str {
        &self.0.line
    }

    /// The bytes of the line that are meant; empty, and at the end of the last word, if something is missing
    /// behind it.
    #[must_use]
    pub fn position(&self) -> Range<usize> {
        self.0.word.clone()
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &TcProblem {
        &self.0.problem
    }

    /// What may stand there; empty if that is no list.
    #[must_use]
    pub fn allowed(&self) -> &[&'static str] {
        &self.0.allowed
    }

    /// What `tc` exits with for such a line: 1 where it stops at a word behind the kind, 255 where it stops
    /// before, or where the line ends too early; 2 where it would have asked the kernel.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        let is_head = |name: &str| {
            matches!(name, "dev" | "root" | "parent" | "handle" | "classid" | "est" | "protocol" | "prio")
                || matches!(name, "ingress" | "egress" | "clsact")
        };
        match &self.0.problem {
            TcProblem::MissingValue(_) | TcProblem::Unknown("action") => 255,
            // `tc` stops there at once, and behind all other options of filters when it has read the rest.
            TcProblem::Malformed(_) | TcProblem::OutOfRange { .. } | TcProblem::Twice(_)
                if self.is_behind("police") =>
            {
                255
            }
            TcProblem::Unknown(role) | TcProblem::Ambiguous(role) => match *role {
                "object" | "command" | "flag" | "word for filter show" => 255,
                "kind of qdisc" | "kind of class" | "kind of filter" => 2,
                _ => 1,
            },
            TcProblem::Missing { of, .. } => {
                let is_asked = ["qdisc ", "class ", "filter "].iter().any(|object| of.starts_with(object));
                if is_asked { 2 } else { 1 }
            }
            // Of all kinds without options, the one that `tc` knows but cannot read.
            TcProblem::NoOptions("pfifo_fast") => 255,
            TcProblem::Malformed(form)
                if form.contains("such as 1:")
                    || matches!(*form, "a protocol" | "a priority, from 0 to 65535") =>
            {
                255
            }
            TcProblem::OutOfRange { low, .. } if low == "1:" => 255,
            TcProblem::Needs { option: "handle", .. } => 255,
            TcProblem::Twice(option) if is_head(option) => 255,
            TcProblem::Excludes { option, other } if is_head(option) && is_head(other) => 255,
            _ => 1,
        }
    }

    /// Whether a word is before the one that is meant.
    fn is_behind(&self, word: &str) -> bool {
        self.0.line[..self.0.word.start].split_whitespace().any(|before| before == word)
    }

    /// The line as it can be shown, and the marks below it.
    fn write_place(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TcErrorParts { line, word, .. } = &*self.0;
        for c in line.trim_end().chars() {
            out.write_char(if c.is_control() && c != '\t' { ' ' } else { c })?;
        }
        out.write_char('\n')?;
        for c in line[..word.start].chars() {
            out.write_char(if c == '\t' { '\t' } else { ' ' })?;
        }
        if word.is_empty() && word.start > 0 {
            out.write_char(' ')?;
        }
        for _ in 0..line[word.clone()].chars().count().max(1) {
            out.write_char('^')?;
        }
        out.write_char('\n')
    }

    fn write_problem(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String =
            self.0.line[self.position()].chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        match &self.0.problem {
            TcProblem::Unknown(role) => write!(out, "unknown {role} `{shown}`"),
            TcProblem::Ambiguous(role) => write!(out, "`{shown}` begins more than one {role}"),
            TcProblem::MissingValue(option) => write!(out, "the value of `{option}` is missing"),
            TcProblem::Missing { of, what } => write!(out, "{of} lacks {what}"),
            TcProblem::Malformed(form) => write!(out, "`{shown}` is not {form}"),
            TcProblem::OutOfRange { low, high } => {
                write!(out, "`{shown}` is out of range: from {low} to {high}")
            }
            TcProblem::Twice(option) if shown == *option => write!(out, "`{option}` is given twice"),
            TcProblem::Twice(option) => write!(out, "`{shown}` sets `{option}`, which is given already"),
            TcProblem::Excludes { option, other } => {
                write!(out, "`{option}` and `{other}` exclude each other")
            }
            TcProblem::Needs { option, needs } => write!(out, "`{option}` needs {needs}"),
            TcProblem::NotSupported(why) => write!(out, "`{shown}` is not supported: {why}"),
            TcProblem::NoOptions(kind) => write!(out, "`{shown}` is too much: {kind} has no options"),
        }
    }
}

impl fmt::Display for TcError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_place(out)?;
        self.write_problem(out)?;
        for (at, word) in self.0.allowed.iter().enumerate() {
            write!(out, "{}{word}", if at == 0 { "; allowed: " } else { ", " })?;
        }
        Ok(())
    }
}

impl core::error::Error for TcError {}
