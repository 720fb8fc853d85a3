//! A trace as a stream of typed events, with a tally of everything that was not one.
//!
//! Invariant: every line is an event, a header or annotation, a lost-events mark, or malformed,
//! and is counted as exactly one of them. Memory does not grow with the input.

use crate::ahead::{Ahead, Decoded, Entry, Next};
use crate::annotation::{self, Annotation};
use crate::decode::record;
use crate::event::{Event, Record};
use crate::field::Malformed;
use crate::header::Header;
use crate::line::{Columns, Task, split, split_usual};
use crate::lines::{Block, Blocks, RawLine, Refill};
use crate::names::{NameId, NameTable};
use crate::tally::{ReadError, Tally};
use quietcore_core::Nanos;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};

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
    source: Blocks<R>,
    /// The lines that come next, behind those of `decoded`.
    block: Block,
    decoded: Option<Decoded>,
    ahead: Option<Ahead>,
    /// Lines were handed out: the source may be ahead of them.
    has_begun: bool,
    state: ReaderState,
}

/// Everything but the source of lines.
struct ReaderState {
    header: Header,
    tally: Tally,
    marks_lost: u64,
    last_at: Nanos,
    latest: Nanos,
    names: NameTable,
    unknown: BTreeMap<NameId, u64>,
    has_structure: bool,
    /// How many lines were read.
    lines: u64,
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
    /// A reader at the beginning of `source`. It reads into one buffer of 256 KiB.
    #[must_use]
    pub fn new(source: R) -> Self {
        let state = ReaderState {
            header: Header::default(),
            tally: Tally::default(),
            marks_lost: 0,
            last_at: Nanos(0),
            latest: Nanos(0),
            names: NameTable::new(),
            unknown: BTreeMap::new(),
            has_structure: false,
            lines: 0,
            columns: Columns::none(),
        };
        let block = Block::default();
        Self { source: Blocks::new(source), block, decoded: None, ahead: None, has_begun: false, state }
    }

    /// Lets `decoders` threads decode what lies ahead; events are handed out as without them, in the order of
    /// the lines, on the thread that reads. For files: lines are handed out when up to
    /// `512 KiB * (decoders + 1)` behind them were read, which a source that waits makes long.
    ///
    /// Memory: up to 2 MiB for each decoder, and for the reader. The threads end with the reader; one that
    /// cannot be started is done without. A reader that has decoders keeps those.
    #[must_use]
    pub fn with_decoders(mut self, decoders: usize) -> Self {
        if self.ahead.is_none() && decoders > 0 {
            self.ahead = Some(Ahead::start(decoders));
        }
        self
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

    /// Where the text comes from.
    pub fn source_mut(&mut self) -> &mut R {
        self.source.source_mut()
    }

    /// How many bytes of text were taken so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.source.bytes_read()
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
    /// header (the isolated CPUs) before the first event. After the first [`read`](Self::read) it does
    /// nothing.
    ///
    /// # Errors
    /// As [`TraceReader::read`].
    pub fn read_header(&mut self) -> Result<(), ReadError> {
        if self.has_begun {
            return Ok(());
        }
        loop {
            let mut lines = self.block.lines();
            loop {
                let left = lines.left();
                match lines.next() {
                    Some(RawLine::Line(line)) if split(line).is_ok() => {
                        self.block.take_until(left);
                        return Ok(());
                    }
                    Some(RawLine::Line(line)) => {
                        self.state.lines += 1;
                        let annotation = self.state.take(line);
                        if let Ok(Annotation::Lost { .. }) = annotation {
                            // it belongs to the events
                            self.state.lines -= 1;
                            self.block.take_until(left);
                            return Ok(());
                        }
                        if let Err(error) = annotation {
                            let left = lines.left();
                            self.block.take_until(left);
                            return Err(error);
                        }
                    }
                    Some(RawLine::TooLong) => self.state.too_long(),
                    None => break,
                }
            }
            match self.source.next(&mut self.block).map_err(ReadError::Io)? {
                Refill::Lines => {}
                Refill::WouldBlock | Refill::End => return Ok(()),
            }
        }
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
        let mut left = lines_max;
        self.has_begun = true;
        loop {
            left -= self.read_decoded(left, visit)?;
            left -= self.read_block(left, visit)?;
            if left == 0 {
                return Ok(Progress::Paused);
            }
            match self.next_block().map_err(ReadError::Io)? {
                Refill::Lines => {}
                Refill::WouldBlock => return Ok(Progress::Waiting),
                Refill::End => return self.finish(),
            }
        }
    }

    /// Reads what was decoded ahead, at most so many lines; says how many they were.
    fn read_decoded(&mut self, lines_max: u64, visit: &mut dyn FnMut(&Record<'_>)) -> Result<u64, ReadError> {
        let Some(decoded) = &mut self.decoded else { return Ok(0) };
        decoded.for_each(lines_max, |entry| self.state.entry(entry, visit))
    }

    /// Reads the lines of the block, at most so many; says how many they were.
    fn read_block(&mut self, lines_max: u64, visit: &mut dyn FnMut(&Record<'_>)) -> Result<u64, ReadError> {
        let (mut lines, mut count) = (self.block.lines(), 0);
        let mut outcome = Ok(());
        while outcome.is_ok()
            && count < lines_max
            && let Some(line) = lines.next()
        {
            count += 1;
            match line {
                RawLine::Line(line) => outcome = self.state.line(line, visit),
                RawLine::TooLong => self.state.too_long(),
            }
        }
        let left = lines.left();
        self.block.take_until(left);
        outcome.map(|()| count)
    }

    /// Gets the next lines, of which none are left.
    fn next_block(&mut self) -> io::Result<Refill> {
        let Some(ahead) = &mut self.ahead else { return self.source.next(&mut self.block) };
        if let Some(decoded) = self.decoded.take() {
            self.block = ahead.rest_of(decoded);
            return Ok(Refill::Lines);
        }
        match ahead.next(&mut self.source, std::mem::take(&mut self.block))? {
            Next::Raw(block) => self.block = block,
            Next::Decoded(decoded) => self.decoded = Some(decoded),
            Next::Nothing(step) => return Ok(step),
        }
        Ok(Refill::Lines)
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
    fn line(&mut self, line: &[u8], visit: &mut dyn FnMut(&Record<'_>)) -> Result<(), ReadError> {
        let Some(prefix) = split_usual(line, &mut self.columns) else {
            return self.unusual_line(line, visit);
        };
        self.lines += 1;
        match record(self.lines, &prefix) {
            Ok(record) => self.event(&record, prefix.name, visit),
            Err(why) => self.tally.note(self.lines, why, line),
        }
        Ok(())
    }

    /// [`ReaderState::line`] for one that was looked at.
    fn entry(&mut self, entry: &mut Entry<'_>, visit: &mut dyn FnMut(&Record<'_>)) -> Result<(), ReadError> {
        match entry {
            Entry::Event(record, name) => {
                self.lines += 1;
                record.line = self.lines;
                self.event(record, name, visit);
            }
            Entry::Line(line) => return self.unusual_line(line, visit),
            Entry::TooLong => self.too_long(),
        }
        Ok(())
    }

    /// [`ReaderState::line`] for one of any form.
    #[inline(never)]
    fn unusual_line(&mut self, line: &[u8], visit: &mut dyn FnMut(&Record<'_>)) -> Result<(), ReadError> {
        self.lines += 1;
        if let Ok(prefix) = split(line) {
            match record(self.lines, &prefix) {
                Ok(record) => {
                    self.tally.clock_without_unit |= !prefix.at_has_unit;
                    self.event(&record, prefix.name, visit);
                }
                Err(why) => self.tally.note(self.lines, why, line),
            }
        } else if let Annotation::Lost { cpu, count } = self.take(line)? {
            self.count_lost(count);
            let (task, event) = (Task { comm: b"", pid: 0 }, Event::Lost { count });
            visit(&Record { line: self.lines, task, cpu, context: None, at: self.last_at, event });
        }
        Ok(())
    }

    fn too_long(&mut self) {
        self.lines += 1;
        self.tally.note(self.lines, Malformed::TooLong, b"");
    }

    #[inline(always)]
    fn event(&mut self, record: &Record<'_>, name: &[u8], visit: &mut dyn FnMut(&Record<'_>)) {
        self.tally.events += 1;
        self.last_at = record.at;
        if record.at < self.latest {
            self.tally.ran_back(record.line, self.latest.since(record.at));
        } else {
            self.latest = record.at;
        }
        if matches!(record.event, Event::Unknown) {
            self.count_unknown(name);
        }
        visit(record);
    }

    #[inline(never)]
    fn count_unknown(&mut self, name: &[u8]) {
        *self.unknown.entry(self.names.number(name)).or_default() += 1;
    }

    /// Says what the last line, which is no event, is.
    fn take(&mut self, line: &[u8]) -> Result<Annotation, ReadError> {
        let annotation = annotation::read(line, &mut self.header);
        match annotation {
            Annotation::Nothing => {}
            Annotation::Structure | Annotation::Lost { .. } => self.has_structure = true,
            Annotation::Unreadable => {
                let why = split(line).err().unwrap_or(Malformed::NoTask);
                self.tally.note(self.lines, why, line);
            }
        }
        self.tally.lost_events = self.marks_lost.max(self.header.lost_events);
        self.tally.functions_unnamed = self.header.functions_unnamed;
        self.tally.entries = self.header.entries;
        let hopeless = self.lines >= HOPELESS_LINES && self.tally.events == 0 && !self.has_structure;
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
    use super::{Event, Nanos, Progress, ReadError, Record, Task, TraceReader};
    use crate::TimeRanBack;
    use crate::field::Malformed;
    use std::error::Error;
    use std::io::{Cursor, Read};

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

    /// Goal: two recordings in one are noticed, at the first line of the second one; what clocks of CPUs may
    /// differ by is not. Method: an event that is earlier by a millisecond, by more, and a third one.
    #[test]
    fn time_that_runs_back_is_noticed() {
        let at = |micros: &str| EVENT.replace("0.008000", micros) + "\n";
        let (reader, _) = read(&[at("5.002000"), at("5.001000"), at("5.002000")].concat());
        assert_eq!(reader.tally().time_ran_back, None);
        let (reader, _) = read(&[at("5.002000"), at("5.000999"), at("1.000000")].concat());
        let first = TimeRanBack { line: 2, by: Nanos(1_001_000) };
        assert_eq!(reader.tally().time_ran_back, Some(first));
        assert_eq!(first.to_string(), "time runs back by 1 ms at line 2");
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

    /// Goal: decoders change nothing: events, their order and numbers, the tally, and where a reader pauses.
    /// Method: a text of several blocks with lines of every kind, one of them longer than a block; with every
    /// number of decoders the sequence of visits and pauses is that without.
    #[test]
    fn decoders_change_nothing() {
        let mut text = String::from("# tracer: nop\n");
        for number in 0..12_000 {
            let line = match number % 64 {
                7 => EVENT.replace("timer_cancel", "zoo"),
                20 => "CPU:3 [LOST 12 EVENTS]".to_owned(),
                31 => EVENT.replace("cefecd69", "xyz"),
                40 => String::new(),
                50 => EVENT.replace("0.008000", "8000"),
                _ => EVENT.replace("8000:", &format!("{number:04}:")),
            };
            text += &line;
            text += "\n";
            if number == 5_000 {
                text += &"x".repeat(700_000);
                text += "\n";
            }
            if number == 7_000 {
                text += &"\n".repeat(20_000);
            }
        }
        text += EVENT;
        let read = |decoders, lines_max| {
            let mut reader = TraceReader::new(text.as_bytes()).with_decoders(decoders);
            reader.read_header().unwrap();
            let (mut seen, mut pauses) = (Vec::new(), Vec::new());
            let mut visit = |record: &Record<'_>| seen.push(format!("{record:?}"));
            while reader.read(lines_max, &mut visit).unwrap() == Progress::Paused {
                pauses.push(reader.tally().clone());
            }
            (seen, pauses, reader.tally().clone(), reader.unknown_events(), reader.bytes_read())
        };
        for lines_max in [u64::MAX, 1_777] {
            let expected = read(0, lines_max);
            assert!(expected.0.len() > 11_000 && expected.2.malformed > 180);
            for decoders in [1, 2, 5] {
                assert!(
                    read(decoders, lines_max) == expected,
                    "{decoders} decoders, {lines_max} lines at a time"
                );
            }
        }
    }

    /// Goal: with decoders, too, what was read before a failure is handed out before the failure, and the
    /// reader goes on. Method: a source that fails once, in the middle of a line.
    #[test]
    fn a_failure_comes_behind_what_was_read() {
        let half = format!("{EVENT}\n").repeat(3_000);
        let (front, back) = half.split_at(half.len() - 9);
        let source =
            || front.as_bytes().chain(FailsOnce(false)).chain(back.as_bytes()).chain(half.as_bytes());
        for decoders in [0, 2] {
            let mut reader = TraceReader::new(source()).with_decoders(decoders);
            let error = reader.read(u64::MAX, &mut |_| {}).unwrap_err();
            assert_eq!((error.to_string().as_str(), reader.tally().events), ("reading failed: once", 2_999));
            assert_eq!(reader.read(u64::MAX, &mut |_| {}).unwrap(), Progress::Finished);
            assert_eq!((reader.tally().events, reader.tally().malformed), (6_000, 0), "{decoders} decoders");
        }
    }

    struct FailsOnce(bool);

    impl Read for FailsOnce {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            let has_failed = std::mem::replace(&mut self.0, true);
            if has_failed { Ok(0) } else { Err(std::io::Error::other("once")) }
        }
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
                     the text of tracefs `trace` or `trace_pipe`, of `trace-cmd report` or of `perf script`)";
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
