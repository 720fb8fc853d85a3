//! A trace as a stream of typed events, with a tally of everything that was not one.
//!
//! Invariant: every line is an event, a header or annotation, a lost-events mark, or malformed,
//! and is counted as exactly one of them. Memory does not grow with the input.

use crate::annotation::{self, Annotation};
use crate::decode::record;
use crate::event::{Event, Record};
use crate::field::Malformed;
use crate::header::Header;
use crate::line::{Columns, Prefix, Task, split, split_usual};
use crate::lines::{Lines, RawLine};
use crate::names::{NameId, NameTable};
use crate::tally::{ReadError, Tally};
use quietcore_core::Nanos;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

/// So many lines without a single event or header line, and the input is called no trace.
const HOPELESS_LINES: u64 = 10_000;

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
    state: ReaderState,
}

/// Everything but the source of lines.
struct ReaderState {
    header: Header,
    tally: Tally,
    marks_lost: u64,
    last_at: Nanos,
    names: NameTable,
    unknown: BTreeMap<NameId, u64>,
    has_structure: bool,
    /// Those of the last line that had the usual ones.
    columns: Columns,
}

impl<R> fmt::Debug for TraceReader<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReaderState { header, tally, .. } = &self.state;
        out.debug_struct("TraceReader").field("header", header).field("tally", tally).finish()
    }
}

impl<R: Read> TraceReader<R> {
    /// A reader at the beginning of `source`; allocates its one buffer (256 KiB).
    #[must_use]
    pub fn new(source: R) -> Self {
        let state = ReaderState {
            header: Header::default(),
            tally: Tally::default(),
            marks_lost: 0,
            last_at: Nanos(0),
            names: NameTable::new(),
            unknown: BTreeMap::new(),
            has_structure: false,
            columns: Columns::none(),
        };
        Self { lines: Lines::new(source), state }
    }

    /// What the trace says about itself, as far as it was read.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.state.header
    }

    /// What was read so far, and what could not be.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.state.tally
    }

    /// How many bytes of text were taken so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.lines.bytes_read()
    }

    /// Events without a type of their own, by name, in order of their names.
    #[must_use]
    pub fn unknown_events(&self) -> Vec<(String, u64)> {
        let mut events: Vec<_> =
            self.state.unknown.iter().map(|(&name, &count)| (self.state.names.text(name), count)).collect();
        events.sort();
        events
    }

    /// Reads up to the first event, which stays to be read. Needed by those who must know the
    /// header (the isolated CPUs) before the first event.
    ///
    /// # Errors
    /// As [`TraceReader::read`].
    pub fn read_header(&mut self) -> Result<(), ReadError> {
        loop {
            match self.lines.next().map_err(ReadError::Io)? {
                RawLine::Line(_, line) if split(line).is_ok() => break,
                RawLine::Line(number, line) => {
                    if let Annotation::Lost { .. } = self.state.take(number, line)? {
                        break; // it belongs to the events
                    }
                }
                RawLine::TooLong(number) => self.state.tally.note(number, Malformed::TooLong, b""),
                RawLine::WouldBlock | RawLine::End => return Ok(()),
            }
        }
        self.lines.put_back();
        Ok(())
    }

    /// Hands every event, and every mark of lost events, to `visit` in the order of the lines, until
    /// the source ends or would block, or `lines_max` lines were read (then [`Progress::Paused`]: for
    /// a progress display).
    ///
    /// # Errors
    /// [`ReadError::Io`] when the source fails, [`ReadError::NotATrace`] when nothing in the
    /// first 10,000 lines is readable or nothing in the whole input is, [`ReadError::Empty`] when these lines
    /// are empty.
    pub fn read(
        &mut self,
        lines_max: u64,
        visit: &mut dyn FnMut(&Record<'_>),
    ) -> Result<Progress, ReadError> {
        for _ in 0..lines_max {
            match self.lines.next().map_err(ReadError::Io)? {
                RawLine::Line(number, line) => self.state.line(number, line, visit)?,
                RawLine::TooLong(number) => self.state.tally.note(number, Malformed::TooLong, b""),
                RawLine::WouldBlock => return Ok(Progress::Waiting),
                RawLine::End => return self.finish(),
            }
        }
        Ok(Progress::Paused)
    }

    fn finish(&mut self) -> Result<Progress, ReadError> {
        let ReaderState { tally, has_structure, .. } = &self.state;
        if tally.events == 0 {
            if let Some(first) = tally.malformed_first.first() {
                return Err(ReadError::NotATrace { first: first.clone() });
            }
            if !has_structure {
                return Err(ReadError::Empty);
            }
        }
        Ok(Progress::Finished)
    }
}

impl ReaderState {
    /// Reads one line; an event, or a mark of lost events, goes to `visit`.
    #[inline(always)]
    fn line(
        &mut self,
        number: u64,
        line: &[u8],
        visit: &mut dyn FnMut(&Record<'_>),
    ) -> Result<(), ReadError> {
        match split_usual(line, &mut self.columns) {
            Some(prefix) => self.event(number, line, &prefix, visit),
            None => return self.unusual_line(number, line, visit),
        }
        Ok(())
    }

    #[inline(always)]
    fn event(&mut self, number: u64, line: &[u8], prefix: &Prefix<'_>, visit: &mut dyn FnMut(&Record<'_>)) {
        match record(number, prefix) {
            Ok(record) => {
                self.tally.events += 1;
                self.tally.clock_without_unit |= !prefix.at_has_unit;
                self.last_at = record.at;
                if matches!(record.event, Event::Unknown) {
                    self.count_unknown(prefix.name);
                }
                visit(&record);
            }
            Err(why) => self.tally.note(number, why, line),
        }
    }

    #[inline(never)]
    fn count_unknown(&mut self, name: &[u8]) {
        *self.unknown.entry(self.names.number(name)).or_default() += 1;
    }

    /// [`ReaderState::line`] for a line of any form.
    #[inline(never)]
    fn unusual_line(
        &mut self,
        number: u64,
        line: &[u8],
        visit: &mut dyn FnMut(&Record<'_>),
    ) -> Result<(), ReadError> {
        if let Ok(prefix) = split(line) {
            self.event(number, line, &prefix, visit);
        } else if let Annotation::Lost { cpu, count } = self.take(number, line)? {
            self.count_lost(count);
            let (task, event) = (Task { comm: b"", pid: 0 }, Event::Lost { count });
            visit(&Record { line: number, task, cpu, context: None, at: self.last_at, event });
        }
        Ok(())
    }

    /// Says what a line that is no event is.
    fn take(&mut self, number: u64, line: &[u8]) -> Result<Annotation, ReadError> {
        let annotation = annotation::read(line, &mut self.header);
        match annotation {
            Annotation::Nothing => {}
            Annotation::Structure | Annotation::Lost { .. } => self.has_structure = true,
            Annotation::Unreadable => {
                let why = split(line).err().unwrap_or(Malformed::NoTask);
                self.tally.note(number, why, line);
            }
        }
        self.tally.lost_events = self.marks_lost.max(self.header.lost_events);
        let hopeless = number >= HOPELESS_LINES && self.tally.events == 0 && !self.has_structure;
        match self.tally.malformed_first.first() {
            _ if !hopeless => Ok(annotation),
            Some(first) => Err(ReadError::NotATrace { first: first.clone() }),
            None => Err(ReadError::Empty),
        }
    }

    fn count_lost(&mut self, count: Option<u64>) {
        self.marks_lost = self.marks_lost.saturating_add(count.unwrap_or(1));
        self.tally.lost_unknown |= count.is_none();
        self.tally.lost_events = self.marks_lost.max(self.header.lost_events);
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, Progress, ReadError, Task, TraceReader};
    use crate::field::Malformed;
    use std::error::Error;
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
        let (reader, _) = read(&format!("# lost events: 3 (overrun 3)\n{marks}# tracer: nop\n{EVENT}\n"));
        assert_eq!(reader.tally().lost_events, 20);
        let (reader, _) = read(&format!("CPU:1 [LOST 12 EVENTS]\n{EVENT}\nCPU:3 [7 EVENTS DROPPED]\n"));
        assert_eq!((reader.tally().lost_events, reader.tally().lost_unknown), (19, false));
        let (reader, progress) = read("# lost events: 5 (overrun 5)\n");
        assert_eq!((progress.unwrap(), reader.tally().lost_events), (Progress::Finished, 5));
    }

    /// Goal: a mark of lost events stands where it stood: on its CPU, at the time of the event before it.
    /// Method: a mark before any event, and one behind an event.
    #[test]
    fn a_mark_has_its_place() {
        let text = format!("CPU:2 [LOST EVENTS]\n\n{EVENT}\nCPU:3 [LOST 12 EVENTS]\n");
        let mut reader = TraceReader::new(text.as_bytes());
        let mut seen = Vec::new();
        let progress = reader.read(u64::MAX, &mut |record| {
            if let Event::Lost { count } = record.event {
                assert_eq!((record.task, record.context), (Task { comm: b"", pid: 0 }, None));
                seen.push((record.line, record.cpu.index(), record.at.as_u64(), count));
            }
        });
        assert_eq!(progress.unwrap(), Progress::Finished);
        assert_eq!(seen, [(1, 2, 0, None), (4, 3, 8_000_000, Some(12))]);
        assert_eq!(reader.tally().events, 1);
    }

    /// Goal: events without a type are counted by name, in the order of the names; a reader stops after as
    /// many lines as it is told to; a clock without a unit is noticed. Method: three names, line by line; a
    /// counter.
    #[test]
    fn a_reader_counts_what_it_reads() {
        let (zoo, ant) = (EVENT.replace("timer_cancel", "zoo"), EVENT.replace("timer_cancel", "ant"));
        let text = [&zoo, &ant, EVENT, &zoo, &ant, &zoo].map(|line| format!("{line}\n")).concat();
        let mut reader = TraceReader::new(text.as_bytes());
        for count in 1..=6 {
            assert_eq!(reader.read(1, &mut |_| {}).unwrap(), Progress::Paused);
            assert_eq!(reader.tally().events, count);
        }
        assert_eq!(reader.read(1, &mut |_| {}).unwrap(), Progress::Finished);
        assert_eq!(reader.unknown_events(), [("ant".to_owned(), 2), ("zoo".to_owned(), 3)]);
        assert_eq!(reader.bytes_read(), text.len() as u64);
        assert!(!reader.tally().clock_without_unit);
        let (reader, _) = read(&format!("{EVENT}\n{}\n", EVENT.replace("0.008000", "8000")));
        assert!(reader.tally().clock_without_unit);
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

    /// Goal: the first lines decide whether it is a trace. Method: one line less than they are before the
    /// first event, and all of them; and a header, which only a trace has.
    #[test]
    fn ten_thousand_lines_decide() {
        let behind = |lines| read(&format!("{}{EVENT}\n", "lorem ipsum\n".repeat(lines)));
        let (reader, progress) = behind(9_999);
        assert_eq!(progress.unwrap(), Progress::Finished);
        assert_eq!((reader.tally().events, reader.tally().malformed), (1, 9_999));
        assert_eq!(
            reader.tally().malformed_first.iter().map(|line| line.line).collect::<Vec<_>>(),
            [1, 2, 3, 4, 5]
        );
        let error = behind(10_000).1.unwrap_err();
        let shown = "not a kernel trace: line 1: no TASK-PID [CPU] at the front: \"lorem ipsum\" (expected \
                     the text of tracefs `trace` or `trace_pipe`, or of `trace-cmd report`)";
        assert_eq!(error.to_string(), shown);
        assert_eq!(read("# tracer: nop\n").1.unwrap(), Progress::Finished);
        let garbage = "lorem ipsum\n".repeat(10_000);
        let marked = read(&format!("CPU:1 [LOST 12 EVENTS]\n{garbage}{EVENT}\n"));
        assert_eq!((marked.1.unwrap(), marked.0.tally().malformed), (Progress::Finished, 10_000));
    }

    /// Goal: a source that fails is told with its reason, and so is an input without a line.
    #[test]
    fn a_failing_source_is_told() {
        struct Broken;
        impl std::io::Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("the disk is gone"))
            }
        }
        let error = TraceReader::new(Broken).read(9, &mut |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "reading failed: the disk is gone");
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("the disk is gone"));
        let error = read("\n").1.unwrap_err();
        assert_eq!(error.to_string(), "empty input: there is no line with anything in it");
        assert!(error.source().is_none());
    }

    /// Goal: a line that is too long is told by its number alone. Method: one, between two events.
    #[test]
    fn a_line_that_is_too_long_is_told() {
        let long = "x".repeat(crate::LINE_BYTES_MAX + 1);
        let (reader, progress) = read(&format!("{EVENT}\n{long}\n{EVENT}\n"));
        assert_eq!(progress.unwrap(), Progress::Finished);
        let tally = reader.tally();
        assert_eq!((tally.events, tally.malformed), (2, 1));
        assert_eq!(tally.malformed_first[0].to_string(), "line 2: line longer than 65536 bytes");
    }

    /// Goal: what is no trace is refused early, with its first line.
    #[test]
    fn garbage_is_refused_early() {
        let (reader, progress) = read(&"lorem ipsum\n".repeat(1_000_000));
        assert!(matches!(progress, Err(ReadError::NotATrace { first }) if first.line == 1));
        assert!(reader.bytes_read() < 1_000_000, "gave up after {} bytes", reader.bytes_read());
        assert!(matches!(read("").1, Err(ReadError::Empty)));
        let (reader, progress) = read(&"\n".repeat(1_000_000));
        assert!(matches!(progress, Err(ReadError::Empty)), "{progress:?}");
        assert!(reader.bytes_read() < 1_000_000, "gave up after {} bytes", reader.bytes_read());
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
