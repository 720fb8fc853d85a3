//! A trace as a stream of typed events, with a tally of everything that was not one.
//!
//! Invariant: every line is an event, a header or annotation, a lost-events mark, or malformed,
//! and is counted as exactly one of them. Memory does not grow with the input.

use crate::decode::record;
use crate::event::{Event, Record};
use crate::field::{Malformed, unsigned};
use crate::header::Header;
use crate::line::split;
use crate::lines::{Lines, RawLine};
use crate::names::{Name, Names};
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read};

/// So many lines without a single event or header line, and the input is called no trace.
const HOPELESS_LINES: u64 = 10_000;
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
    /// Whether a mark did not say how many were lost, so that `lost_events` is a lower bound.
    pub lost_unknown: bool,
    /// Whether the time stamps have no unit (`counter` clock).
    pub clock_without_unit: bool,
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
    /// There is not a single line.
    Empty,
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(out, "reading failed: {error}"),
            Self::NotATrace { first } => write!(
                out,
                "not a kernel trace: {first} (expected the text of tracefs `trace` or `trace_pipe`, or of \
                 `trace-cmd report`)"
            ),
            Self::Empty => write!(out, "empty input: there is not a single line"),
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

/// Whether there may be more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The source is at its end.
    Finished,
    /// A source that does not block has nothing more for now; call again later.
    Waiting,
    /// The visitor asked to stop for a moment (see [`TraceReader::read`]).
    Paused,
}

/// Reads typed events from text. See [`crate::open`] for files.
///
/// ```
/// use quietcore_trace::{Event, TraceReader};
///
/// let text = b"          <idle>-0  [001] d.s2.  0.008000: timer_cancel: timer=00000000cefecd69\n";
/// let mut reader = TraceReader::new(&text[..]);
/// let mut cancels = 0;
/// reader.read(u64::MAX, &mut |record| {
///     cancels += u32::from(matches!(record.event, Event::TimerCancel { .. }));
/// })?;
/// assert_eq!((cancels, reader.tally().events), (1, 1));
/// # Ok::<(), quietcore_trace::ReadError>(())
/// ```
pub struct TraceReader<R> {
    lines: Lines<R>,
    header: Header,
    tally: Tally,
    marks_lost: u64,
    names: Names,
    unknown: HashMap<Name, u64>,
    has_structure: bool,
}

impl<R> fmt::Debug for TraceReader<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TraceReader").field("header", &self.header).field("tally", &self.tally).finish()
    }
}

impl<R: Read> TraceReader<R> {
    /// A reader at the beginning of `source`; allocates its one buffer (256 KiB).
    ///
    /// ```
    /// let reader = quietcore_trace::TraceReader::new(std::io::empty());
    /// assert_eq!(reader.tally().events, 0);
    /// ```
    #[must_use]
    pub fn new(source: R) -> Self {
        Self {
            lines: Lines::new(source),
            header: Header::default(),
            tally: Tally::default(),
            marks_lost: 0,
            names: Names::new(),
            unknown: HashMap::new(),
            has_structure: false,
        }
    }

    /// What the trace says about itself, as far as it was read.
    ///
    /// ```
    /// let mut reader = quietcore_trace::TraceReader::new(&b"cpus=2\n"[..]);
    /// reader.read_header()?;
    /// assert_eq!(reader.header().cpu_count, Some(2));
    /// # Ok::<(), quietcore_trace::ReadError>(())
    /// ```
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What was read so far, and what could not be.
    ///
    /// ```
    /// assert_eq!(quietcore_trace::TraceReader::new(std::io::empty()).tally().malformed, 0);
    /// ```
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// How many bytes of text were taken so far.
    ///
    /// ```
    /// assert_eq!(quietcore_trace::TraceReader::new(std::io::empty()).bytes_read(), 0);
    /// ```
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.lines.bytes_read()
    }

    /// Events without a type of their own, by name, in order of their names.
    ///
    /// ```
    /// let mut reader = quietcore_trace::TraceReader::new(&b"a-1 [000] 1.0: sys_enter: NR 1\n"[..]);
    /// reader.read(u64::MAX, &mut |_| {})?;
    /// assert_eq!(reader.unknown_events(), [("sys_enter".to_owned(), 1)]);
    /// # Ok::<(), quietcore_trace::ReadError>(())
    /// ```
    #[must_use]
    pub fn unknown_events(&self) -> Vec<(String, u64)> {
        let mut events: Vec<_> =
            self.unknown.iter().map(|(&name, &count)| (self.names.text(name), count)).collect();
        events.sort();
        events
    }

    /// Reads up to the first event, which stays to be read. Needed by those who must know the
    /// header (the isolated CPUs) before the first event.
    ///
    /// # Errors
    /// As [`TraceReader::read`].
    ///
    /// ```
    /// let mut reader = quietcore_trace::TraceReader::new(&b"# isolated: 3\n"[..]);
    /// reader.read_header()?;
    /// assert_eq!(reader.header().isolated.as_ref().map(|set| set.len()), Some(1));
    /// # Ok::<(), quietcore_trace::ReadError>(())
    /// ```
    pub fn read_header(&mut self) -> Result<(), ReadError> {
        loop {
            match self.lines.next().map_err(ReadError::Io)? {
                RawLine::Line(_, line) if split(line).is_ok() => break,
                RawLine::Line(number, line) => {
                    let (header, line) = (&mut self.header, (number, line));
                    let taken =
                        Annotations { header, marks_lost: &mut self.marks_lost, tally: &mut self.tally };
                    self.has_structure |= taken.take(line);
                    check_hope(&self.tally, self.has_structure, number)?;
                }
                RawLine::TooLong(number) => note(&mut self.tally, number, Malformed::TooLong, b""),
                RawLine::WouldBlock | RawLine::End => return Ok(()),
            }
        }
        self.lines.put_back();
        Ok(())
    }

    /// Hands every event to `visit` in the order of the lines, until the source ends or would
    /// block, or `lines_max` lines were read (then [`Progress::Paused`]: for a progress display).
    ///
    /// # Errors
    /// [`ReadError::Io`] when the source fails, [`ReadError::NotATrace`] when nothing in the
    /// first 10,000 lines is readable or nothing in the whole input is, [`ReadError::Empty`].
    ///
    /// ```
    /// let error = quietcore_trace::TraceReader::new(&b"garbage\n"[..]).read(u64::MAX, &mut |_| {});
    /// assert!(error.unwrap_err().to_string().contains("line 1"));
    /// ```
    pub fn read(
        &mut self,
        lines_max: u64,
        visit: &mut dyn FnMut(&Record<'_>),
    ) -> Result<Progress, ReadError> {
        for _ in 0..lines_max {
            match self.lines.next().map_err(ReadError::Io)? {
                RawLine::Line(number, line) => {
                    let prefix = match split(line) {
                        Ok(prefix) => prefix,
                        Err(_) => {
                            let (header, tally) = (&mut self.header, &mut self.tally);
                            let taken = Annotations { header, marks_lost: &mut self.marks_lost, tally };
                            self.has_structure |= taken.take((number, line));
                            check_hope(&self.tally, self.has_structure, number)?;
                            continue;
                        }
                    };
                    match record(number, &prefix) {
                        Ok(record) => {
                            self.tally.events += 1;
                            self.tally.clock_without_unit |= !prefix.at_has_unit;
                            if record.event == Event::Unknown {
                                *self.unknown.entry(self.names.number(prefix.name)).or_default() += 1;
                            }
                            visit(&record);
                        }
                        Err(why) => note(&mut self.tally, number, why, line),
                    }
                }
                RawLine::TooLong(number) => note(&mut self.tally, number, Malformed::TooLong, b""),
                RawLine::WouldBlock => return Ok(Progress::Waiting),
                RawLine::End => return self.finish(),
            }
        }
        Ok(Progress::Paused)
    }

    fn finish(&mut self) -> Result<Progress, ReadError> {
        self.tally.lost_events = self.marks_lost.max(self.header.lost_events);
        if self.tally.events == 0 {
            if let Some(first) = self.tally.malformed_first.first() {
                return Err(ReadError::NotATrace { first: first.clone() });
            }
            if self.lines.bytes_read() == 0 {
                return Err(ReadError::Empty);
            }
        }
        Ok(Progress::Finished)
    }
}

/// Where a line that is no event may leave something.
struct Annotations<'a> {
    header: &'a mut Header,
    marks_lost: &'a mut u64,
    tally: &'a mut Tally,
}

impl Annotations<'_> {
    /// Takes a header, a lost-events mark, a stack line or an empty line; anything else is
    /// malformed. True when the line shows that the input is a trace.
    fn take(self, (number, line): (u64, &[u8])) -> bool {
        if line.trim_ascii().is_empty() || line.starts_with(b" => ") {
            return false;
        }
        if line.starts_with(b"CPU:") || line.starts_with(b"CPU ") {
            match lost_count(line) {
                Some(Some(count)) => *self.marks_lost = self.marks_lost.saturating_add(count),
                Some(None) => {
                    *self.marks_lost = self.marks_lost.saturating_add(1);
                    self.tally.lost_unknown = true;
                }
                None => {}
            }
            self.tally.lost_events = (*self.marks_lost).max(self.header.lost_events);
            return true;
        }
        if self.header.take(line) {
            self.tally.lost_events = (*self.marks_lost).max(self.header.lost_events);
            return true;
        }
        let why = split(line).err().unwrap_or(Malformed::NoTask);
        note(self.tally, number, why, line);
        false
    }
}

/// `CPU:1 [LOST 12 EVENTS]`, `CPU:1 [12 EVENTS DROPPED]`: the count, if the mark gives one.
fn lost_count(line: &[u8]) -> Option<Option<u64>> {
    let is_mark = |word: &[u8]| memchr::memmem::find(line, word).is_some();
    if !is_mark(b"LOST") && !is_mark(b"DROPPED") {
        return None;
    }
    let inside = line.split(|byte| matches!(byte, b' ' | b'[' | b']')).skip(1);
    Some(inside.filter_map(unsigned).next())
}

fn note(tally: &mut Tally, line: u64, why: Malformed, bytes: &[u8]) {
    tally.malformed += 1;
    if tally.malformed_first.len() < EXAMPLES_MAX {
        let excerpt = String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT_BYTES)]).into_owned();
        tally.malformed_first.push(MalformedLine { line, why, excerpt });
    }
}

fn check_hope(tally: &Tally, has_structure: bool, line: u64) -> Result<(), ReadError> {
    let hopeless = line >= HOPELESS_LINES && tally.events == 0 && !has_structure;
    match tally.malformed_first.first() {
        Some(first) if hopeless => Err(ReadError::NotATrace { first: first.clone() }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, ReadError, TraceReader};
    use crate::field::Malformed;
    use std::io::Cursor;

    const EVENT: &str =
        "          <idle>-0       [001] d.s2.     0.008000: timer_cancel: timer=00000000cefecd69";

    fn read(text: &str) -> (TraceReader<Cursor<Vec<u8>>>, Result<Progress, ReadError>) {
        let mut reader = TraceReader::new(Cursor::new(text.as_bytes().to_vec()));
        let progress = reader.read(u64::MAX, &mut |_| {});
        (reader, progress)
    }

    /// Goal: lost events are added up over all marks, and never less than the header says.
    #[test]
    fn lost_events_are_added_up() {
        let marks = "CPU:1 [LOST 12 EVENTS]\nCPU:0 [LOST EVENTS]\nCPU:3 [7 EVENTS DROPPED]\n";
        let (reader, progress) = read(&format!("{marks}{EVENT}\n"));
        assert_eq!(progress.unwrap(), Progress::Finished);
        assert_eq!((reader.tally().lost_events, reader.tally().lost_unknown), (20, true));
        let (reader, _) = read(&format!("# lost events: 99 (overrun 99)\n{marks}{EVENT}\n"));
        assert_eq!(reader.tally().lost_events, 99);
    }

    /// Goal: a malformed line is named and costs only itself.
    #[test]
    fn a_malformed_line_is_named() {
        let bad = EVENT.replace("cefecd69", "xyz");
        let (reader, progress) = read(&format!("{EVENT}\n{bad}\n{EVENT}\n"));
        assert_eq!(progress.unwrap(), Progress::Finished);
        let tally = reader.tally();
        assert_eq!((tally.events, tally.malformed), (2, 1));
        let first = &tally.malformed_first[0];
        assert_eq!((first.line, first.why), (2, Malformed::NotAPointer("timer=")));
        assert!(first.excerpt.contains("<idle>-0"));
    }

    /// Goal: what is no trace is refused early, with its first line.
    #[test]
    fn garbage_is_refused_early() {
        let (reader, progress) = read(&"lorem ipsum\n".repeat(1_000_000));
        assert!(matches!(progress, Err(ReadError::NotATrace { first }) if first.line == 1));
        assert!(reader.bytes_read() < 1_000_000, "gave up after {} bytes", reader.bytes_read());
        assert!(matches!(read("").1, Err(ReadError::Empty)));
    }

    /// Goal: after the header, the first event is still there and keeps its line number.
    #[test]
    fn the_header_leaves_the_first_event() {
        let text = format!("# trace: x\n# isolated: 1-3; nohz_full: -\n{EVENT}\n");
        let mut reader = TraceReader::new(text.as_bytes());
        reader.read_header().unwrap();
        assert_eq!(reader.header().isolated.as_ref().map(ToString::to_string).as_deref(), Some("1-3"));
        let mut lines = Vec::new();
        reader.read(u64::MAX, &mut |record| lines.push(record.line)).unwrap();
        assert_eq!(lines, [3]);
    }
}
