//! Progress of long work: one line on standard error that is written over, only on a terminal,
//! at most once a second, and never for work that is done within the first.

use quietcore_trace::{TraceReader, visible};
use std::io::{IsTerminal, Read, Write};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub(crate) struct Display {
    next: Option<Instant>,
    is_dirty: bool,
}

impl Display {
    pub(crate) fn new() -> Self {
        let on_terminal = std::io::stderr().is_terminal();
        Self { next: on_terminal.then(|| Instant::now() + EVERY), is_dirty: false }
    }

    /// Shows what `text` returns, if it is time.
    pub(crate) fn show(&mut self, text: impl FnOnce() -> String) {
        let now = Instant::now();
        if self.next.is_some_and(|next| next <= now) {
            self.next = Some(now + EVERY);
            self.is_dirty = true;
            // A terminal that went away shows no progress.
            let _ = write!(std::io::stderr().lock(), "\r  {:<60}", visible(&text()));
        }
    }

    /// Wipes the line.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_dirty) {
            let _ = write!(std::io::stderr().lock(), "\r{:62}\r", "");
        }
    }
}

/// How far the reader of a recording has come.
pub(crate) fn read_so_far(reader: &TraceReader<impl Read>) -> String {
    format!("{} MiB, {} events", reader.bytes_read() >> 20, reader.tally().events)
}

#[cfg(test)]
mod tests {
    use super::read_so_far;
    use quietcore_trace::{Progress, TraceReader};

    /// Goal: both figures are those of the reader. Method: five events in three MiB of lines.
    #[test]
    fn a_reader_says_how_far_it_is() {
        let comment = format!("# {}\n", "x".repeat(1 << 10)).repeat(3 << 10);
        let text = [&comment, "CPU:0 [LOST 3 EVENTS]\n", &"a-7 [000] 1.0: timer_cancel: timer=1\n".repeat(5)];
        let text = text.concat();
        let mut reader = TraceReader::new(text.as_bytes());
        assert_eq!(read_so_far(&reader), "0 MiB, 0 events");
        assert_eq!(reader.read(u64::MAX, &mut |_| {}).expect("a trace"), Progress::Finished);
        assert_eq!(read_so_far(&reader), "3 MiB, 5 events");
    }
}
