//! A recording's timers, replayed through our wheel; a watch may end it early and keep what there is.

use crate::error::AnswerError;
use crate::reader::{ReadSoFar, ReadWatch, open, refuse_empty};
use quietcore_trace::Progress;
use quietcore_verify::{Verification, Verify};
use std::path::Path;

/// How many lines are read between two looks at the watch.
const LINES_PER_TURN: u64 = 100_000;

/// What a verification came to, and whether the input was read to its end.
#[derive(Clone, Debug)]
pub struct VerifyEnd {
    /// Of what was read.
    pub verification: Verification,
    /// Whether the watch ended it before.
    pub is_early: bool,
}

/// Verifies the recording at `path`, which may expand so many times. Hundreds of ns per event.
///
/// # Errors
/// [`AnswerError`].
pub fn verify(path: &Path, expansion_max: u32, watch: ReadWatch<'_>) -> Result<VerifyEnd, AnswerError> {
    let failed = |error| AnswerError::Read(path.to_owned(), error);
    let mut reader = open(path, expansion_max)?;
    reader.read_header().map_err(failed)?;
    let mut verify = Verify::new(reader.header());
    let mut is_early = false;
    while !is_early && verify.read(&mut reader, LINES_PER_TURN).map_err(failed)? != Progress::Finished {
        is_early = !watch(ReadSoFar::of(&reader));
    }
    if !is_early {
        refuse_empty(path, reader.tally())?;
    }
    Ok(VerifyEnd { verification: verify.finish(&reader), is_early })
}
