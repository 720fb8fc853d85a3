//! `quietcore cat FILE`: a recording as text, for people and for scripts without zstd.
//!
//! To a pipe or a file it goes byte for byte; on a terminal, without what would steer that.

use crate::args::CatArgs;
use crate::error::CliError;
use crate::outcome::CommandOutcome;
use quietcore_trace::{LINE_BYTES_MAX, ReadError, visible_lines};
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};

pub(crate) fn run(args: &CatArgs) -> Result<CommandOutcome, CliError> {
    let source = quietcore_trace::open_expanding(&args.trace, args.expansion.max_expansion)?;
    let failed = |error| CliError::Read(args.trace.clone(), ReadError::Io(error));
    let mut source = BufReader::with_capacity(LINE_BYTES_MAX, source);
    let mut out = io::stdout().lock();
    let is_terminal = out.is_terminal();
    loop {
        if is_terminal {
            let mut line = Vec::new();
            source.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line).map_err(failed)?;
            if line.is_empty() {
                break;
            }
            out.write_all(visible_lines(&String::from_utf8_lossy(&line)).as_bytes())?;
        } else {
            let bytes = source.fill_buf().map_err(failed)?;
            let count = bytes.len();
            if count == 0 {
                break;
            }
            out.write_all(bytes)?;
            source.consume(count);
        }
    }
    out.flush()?;
    Ok(CommandOutcome::Fine)
}
