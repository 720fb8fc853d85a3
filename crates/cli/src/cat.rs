//! `quietcore cat FILE`: a recording as text, for people and for scripts without zstd.
//!
//! To a pipe or a file it goes byte for byte; on a terminal, without what would steer that.

use crate::args::CatArgs;
use crate::error::CliError;
use crate::outcome::CommandOutcome;
use quietcore_answers::{AnswerError, source};
use quietcore_trace::{LINE_BYTES_MAX, ReadError, visible_lines};
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};

pub(crate) fn run(args: &CatArgs) -> Result<CommandOutcome, CliError> {
    let source = source(&args.trace, args.expansion.max_expansion)?;
    let failed = |error| CliError::from(AnswerError::Read(args.trace.clone(), ReadError::Io(error)));
    let mut source = BufReader::with_capacity(LINE_BYTES_MAX, source);
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        while let Some(line) = next_visible(&mut source).map_err(failed)? {
            out.write_all(line.as_bytes())?;
        }
    } else {
        loop {
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

/// The next line, or the next part of a very long one, without what would steer a terminal.
fn next_visible(source: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    source.take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
    Ok((!line.is_empty()).then(|| visible_lines(&String::from_utf8_lossy(&line))))
}

#[cfg(test)]
mod tests {
    use super::next_visible;

    /// Goal: on a terminal every line is shown, without what steers it. Method: a sequence, an empty line,
    /// bytes that are no UTF-8, a last line without an end.
    #[test]
    fn a_terminal_is_shown_every_line() {
        let mut source = &b"one\x1b[2J\n\ntwo\xff\nthree"[..];
        let mut next = || next_visible(&mut source).expect("nothing fails");
        for line in ["one\u{fffd}[2J\n", "\n", "two\u{fffd}\n", "three"] {
            assert_eq!(next().as_deref(), Some(line));
        }
        assert_eq!(next(), None);
    }
}
