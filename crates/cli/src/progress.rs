//! Progress of long work: one line on standard error that is written over, only on a terminal,
//! at most once a second, and never for work that is done within the first.

use quietcore_trace::visible;
use std::io::{IsTerminal, Write};
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
