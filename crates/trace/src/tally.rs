//! What reading a trace came to: what was read, what could not be, and why it ended.

use crate::field::Malformed;
use quietcore_core::Nanos;
use std::fmt;
use std::io;

const EXAMPLES_MAX: usize = 5;
const EXCERPT_BYTES: usize = 80;

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedLine {
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub why: Malformed,
    /// Its first 80 bytes.
    pub excerpt: String,
}

/// `line 7: no time stamp after [CPU]: "the line"`.
impl fmt::Display for MalformedLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}: {}", self.line, self.why)?;
        if self.excerpt.is_empty() { Ok(()) } else { write!(out, ": {:?}", self.excerpt) }
    }
}

/// Where time ran back by more than [`SKEW`], for the first time: the lines are those of two recordings, or
/// they are not in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRanBack {
    /// The line of the event that is earlier than one before it.
    pub line: u64,
    /// By how much.
    pub by: Nanos,
}

/// So much earlier than the one before it an event may be: clocks of CPUs differ, and so do the moments at
/// which their buffers are read.
pub const SKEW: Nanos = Nanos(1_000_000);

/// `time runs back by 27.7 s at line 36303`.
impl fmt::Display for TimeRanBack {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "time runs back by {} at line {}", self.by, self.line)
    }
}

/// What was read, and what could not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Events, the unknown ones included.
    pub events: u64,
    /// Lines that look like events and are not readable.
    pub malformed: u64,
    /// The first of them.
    pub malformed_first: Vec<MalformedLine>,
    /// Events that the trace says were lost: its marks, or its header if that says more.
    pub lost_events: u64,
    /// How many events the header says that there are.
    pub entries: Option<u64>,
    /// Whether a mark did not say how many were lost, so that `lost_events` is a lower bound.
    pub lost_unknown: bool,
    /// Whether the time stamps have no unit (`counter` clock).
    pub clock_without_unit: bool,
    /// Whether functions are known by their addresses alone.
    pub functions_unnamed: bool,
    /// Whether the events are in the order of their times.
    pub time_ran_back: Option<TimeRanBack>,
}

/// Why a trace could not be read on.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The source failed.
    Io(io::Error),
    /// Nothing in the first lines, or in the whole input, is an event.
    NotATrace {
        /// The first line that should have been one.
        first: MalformedLine,
    },
    /// There is not a single line with anything in it, or none among the first 10,000.
    Empty,
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(out, "reading failed: {error}"),
            Self::NotATrace { first } => write!(
                out,
                "not a kernel trace: {first} (expected the text of tracefs `trace` or `trace_pipe`, of \
                 `trace-cmd report` or of `perf script`)"
            ),
            Self::Empty => write!(out, "empty input: there is no line with anything in it"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl Tally {
    /// How many of the events that the header speaks of were not read: the text was cut, or is that of one
    /// CPU. Of use once everything was read.
    #[must_use]
    pub fn absent(&self) -> u64 {
        self.entries.unwrap_or(0).saturating_sub(self.events.saturating_add(self.malformed))
    }

    /// The event in `line` is earlier than the latest so far.
    pub(crate) fn ran_back(&mut self, line: u64, by: Nanos) {
        if by > SKEW {
            self.time_ran_back = self.time_ran_back.or(Some(TimeRanBack { line, by }));
        }
    }

    /// Counts a line that could not be read, and keeps the first of them.
    pub(crate) fn note(&mut self, line: u64, why: Malformed, bytes: &[u8]) {
        self.malformed += 1;
        if self.malformed_first.len() < EXAMPLES_MAX {
            let excerpt = String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT_BYTES)]).into_owned();
            self.malformed_first.push(MalformedLine { line, why, excerpt });
        }
    }
}
