//! How a recording is read: whole, and on several CPUs where that helps.

use crate::bundled::{bundled_recording, name_of};
use crate::error::AnswerError;
use crate::recordings::Bundled;
use quietcore_trace::{Progress, Record, Tally, TraceReader, open_bytes, open_expanding};
use std::fmt;
use std::io::Read;
use std::num::NonZero;
use std::path::Path;
use std::thread::available_parallelism;

/// So many threads decode a recording at most; the one that takes the events has enough to do then.
const DECODERS_MAX: usize = 3;

/// How many lines are read between two looks at the watch.
pub(crate) const LINES_PER_TURN: u64 = 200_000;

/// How far the reader of a recording has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadSoFar {
    /// Bytes of text that were read, decompressed.
    pub bytes: u64,
    /// Events in them.
    pub events: u64,
}

/// `3 MiB, 5 events`.
impl fmt::Display for ReadSoFar {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} MiB, {} events", self.bytes >> 20, self.events)
    }
}

impl ReadSoFar {
    pub(crate) fn of(reader: &TraceReader<impl Read>) -> Self {
        Self { bytes: reader.bytes_read(), events: reader.tally().events }
    }
}

/// Is told now and then how far reading is, and says whether to go on.
pub type ReadWatch<'a> = &'a mut dyn FnMut(ReadSoFar) -> bool;

/// Gives every event of `reader`, whose header may have been read, to `take`.
///
/// # Errors
/// [`AnswerError`]: it cannot be read, holds no event, or `watch` said no.
pub fn read_all(
    path: &Path,
    reader: &mut TraceReader<impl Read>,
    watch: ReadWatch<'_>,
    take: &mut dyn FnMut(&Record<'_>),
) -> Result<(), AnswerError> {
    let failed = |error| AnswerError::Read(path.to_owned(), error);
    while reader.read(LINES_PER_TURN, take).map_err(failed)? != Progress::Finished {
        if !watch(ReadSoFar::of(reader)) {
            return Err(AnswerError::Interrupted);
        }
    }
    refuse_empty(path, reader.tally())
}

/// A reader of the recording at `path`, which may expand so many times.
///
/// # Errors
/// [`AnswerError`]: there is no such file, or none of this name in the program.
pub fn open(path: &Path, expansion_max: u32) -> Result<TraceReader<Box<dyn Read>>, AnswerError> {
    open_with(path, expansion_max, available_parallelism().map_or(1, NonZero::get))
}

/// The same with at most so many threads, the one that takes the events among them.
///
/// # Errors
/// As [`open`].
pub fn open_with(
    path: &Path,
    expansion_max: u32,
    threads: usize,
) -> Result<TraceReader<Box<dyn Read>>, AnswerError> {
    if name_of(path).is_some() {
        return Ok(TraceReader::new(source(path, expansion_max)?));
    }
    // What comes through a pipe is read as it comes; so is what the kernel makes up, whose files are empty.
    let is_file =
        path != Path::new("-") && path.metadata().is_ok_and(|file| file.is_file() && file.len() > 0);
    let decoders = if is_file { decoders(threads.max(1)) } else { 0 };
    Ok(TraceReader::new(source(path, expansion_max)?).with_decoders(decoders))
}

/// The text of the recording at `path`, or of one that is in the program (`@NAME`).
///
/// # Errors
/// [`AnswerError`]: there is no such file, or none of this name in the program.
pub fn source(path: &Path, expansion_max: u32) -> Result<Box<dyn Read>, AnswerError> {
    match name_of(path) {
        Some(name) => {
            let Bundled { name, bytes, .. } = *bundled_recording(name)?;
            Ok(open_bytes(name, bytes)?)
        }
        None => Ok(open_expanding(path, expansion_max)?),
    }
}

/// Refuses a recording that was read to its end and holds no event: "none" would be said of what was not
/// looked at.
///
/// # Errors
/// [`AnswerError::NoEvents`].
pub fn refuse_empty(path: &Path, tally: &Tally) -> Result<(), AnswerError> {
    if tally.events == 0 { Err(AnswerError::NoEvents(path.into())) } else { Ok(()) }
}

/// How many threads help a reader that may use so many CPUs.
fn decoders(cpus: usize) -> usize {
    (cpus - 1).min(DECODERS_MAX)
}

#[cfg(test)]
mod tests {
    use super::{ReadSoFar, decoders, read_all};
    use crate::AnswerError;
    use quietcore_trace::TraceReader;

    /// Goal: a reader of one CPU has no help, and never more threads than CPUs.
    #[test]
    fn decoders_fit_the_cpus() {
        assert_eq!([1, 2, 3, 4, 5, 128].map(decoders), [0, 1, 2, 3, 3, 3]);
    }

    /// Goal: both figures are those of the reader. Method: five events in three MiB of lines.
    #[test]
    fn a_reader_says_how_far_it_is() {
        let comment = format!("# {}\n", "x".repeat(1 << 10)).repeat(3 << 10);
        let text = [&comment, "CPU:0 [LOST 3 EVENTS]\n", &"a-7 [000] 1.0: timer_cancel: timer=1\n".repeat(5)];
        let text = text.concat();
        let mut reader = TraceReader::new(text.as_bytes());
        assert_eq!(ReadSoFar::of(&reader).to_string(), "0 MiB, 0 events");
        read_all("t".as_ref(), &mut reader, &mut |_| true, &mut |_| {}).expect("a trace");
        assert_eq!(ReadSoFar::of(&reader).to_string(), "3 MiB, 5 events");
    }

    /// Goal: reading ends where the watch says so, and then there is no answer. Method: more lines than are
    /// read in one turn, and a watch that says no.
    #[test]
    fn a_watch_ends_the_reading() {
        let text = "a-7 [000] 1.0: timer_cancel: timer=1\n".repeat(super::LINES_PER_TURN as usize + 1);
        let (mut reader, mut taken) = (TraceReader::new(text.as_bytes()), 0);
        let ended = read_all("t".as_ref(), &mut reader, &mut |_| false, &mut |_| taken += 1);
        assert!(matches!(ended, Err(AnswerError::Interrupted)), "{ended:?}");
        assert_eq!(taken, super::LINES_PER_TURN);
    }
}
