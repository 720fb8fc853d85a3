//! How a recording is read: whole, and on several CPUs where that helps.

use crate::bundled::{name_of, recording};
use crate::error::CliError;
use crate::recordings::Bundled;
use quietcore_trace::{Tally, TraceReader, open_bytes, open_expanding};
use std::io::Read;
use std::num::NonZero;
use std::path::Path;
use std::thread::available_parallelism;

/// So many threads decode a recording at most; the one that takes the events has enough to do then.
const DECODERS_MAX: usize = 3;

/// A reader of the recording at `path`, which may expand so many times.
pub(crate) fn open(path: &Path, expansion_max: u32) -> Result<TraceReader<Box<dyn Read>>, CliError> {
    if name_of(path).is_some() {
        return Ok(TraceReader::new(source(path, expansion_max)?));
    }
    // What comes through a pipe is read as it comes; so is what the kernel makes up, whose files are empty.
    let is_file =
        path != Path::new("-") && path.metadata().is_ok_and(|file| file.is_file() && file.len() > 0);
    let decoders = if is_file { decoders(available_parallelism().map_or(1, NonZero::get)) } else { 0 };
    Ok(TraceReader::new(source(path, expansion_max)?).with_decoders(decoders))
}

/// The text of the recording at `path`, or of one that is in the program (`@NAME`).
pub(crate) fn source(path: &Path, expansion_max: u32) -> Result<Box<dyn Read>, CliError> {
    match name_of(path) {
        Some(name) => {
            let Bundled { name, bytes, .. } = *recording(name)?;
            Ok(open_bytes(name, bytes)?)
        }
        None => Ok(open_expanding(path, expansion_max)?),
    }
}

/// Refuses a recording that was read to its end and holds no event: "none" would be said of what was not
/// looked at.
pub(crate) fn refuse_empty(path: &Path, tally: &Tally) -> Result<(), CliError> {
    if tally.events == 0 { Err(CliError::NoEvents(path.into())) } else { Ok(()) }
}

/// How many threads help a reader that may use so many CPUs.
fn decoders(cpus: usize) -> usize {
    (cpus - 1).min(DECODERS_MAX)
}

#[cfg(test)]
mod tests {
    use super::decoders;

    /// Goal: a reader of one CPU has no help, and never more threads than CPUs.
    #[test]
    fn decoders_fit_the_cpus() {
        assert_eq!([1, 2, 3, 4, 5, 128].map(decoders), [0, 1, 2, 3, 3, 3]);
    }
}
