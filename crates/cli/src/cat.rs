//! `quietcore cat FILE`: a recording as text, for people and for scripts without zstd.

use crate::args::CatArgs;
use crate::error::CliError;
use crate::outcome::CommandOutcome;
use std::io::{self, Read, Write};

pub(crate) fn run(args: &CatArgs) -> Result<CommandOutcome, CliError> {
    let mut source = quietcore_trace::open(&args.trace)?;
    let mut out = io::stdout().lock();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = source
            .read(&mut buffer)
            .map_err(|error| CliError::Read(args.trace.clone(), quietcore_trace::ReadError::Io(error)))?;
        if count == 0 {
            out.flush()?;
            return Ok(CommandOutcome::Fine);
        }
        out.write_all(&buffer[..count])?;
    }
}
