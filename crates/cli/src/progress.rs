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
        self.show_on(&mut std::io::stderr(), Instant::now(), text);
    }

    fn show_on(&mut self, terminal: &mut impl Write, now: Instant, text: impl FnOnce() -> String) {
        if self.next.is_some_and(|next| next <= now) {
            self.next = Some(now + EVERY);
            self.is_dirty = true;
            // A terminal that went away shows no progress.
            let _ = write!(terminal, "\r  {:<60}", visible(&text()));
        }
    }

    /// Wipes the line.
    pub(crate) fn clear(&mut self) {
        self.clear_on(&mut std::io::stderr());
    }

    fn clear_on(&mut self, terminal: &mut impl Write) {
        if std::mem::take(&mut self.is_dirty) {
            let _ = write!(terminal, "\r{:62}\r", "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Display, EVERY};
    use std::time::{Duration, Instant};

    /// Goal: a line is shown once a second at most, and wiped once. Method: moments around the first second
    /// and after it.
    #[test]
    fn a_line_is_shown_once_a_second() {
        let first = Instant::now();
        let mut display = Display { next: Some(first), is_dirty: false };
        let mut terminal = Vec::new();
        display.clear_on(&mut terminal);
        let nearly = first + EVERY - Duration::from_nanos(1);
        for (now, text) in [(first, "one"), (nearly, "early"), (first + EVERY, "\u{1b}two")] {
            display.show_on(&mut terminal, now, || text.to_owned());
        }
        display.clear_on(&mut terminal);
        display.clear_on(&mut terminal);
        let [one, two] =
            ["one", "\u{fffd}two"].map(|text| format!("\r  {text}{}", " ".repeat(60 - text.chars().count())));
        let wiped = format!("\r{}\r", " ".repeat(62));
        assert_eq!(String::from_utf8(terminal).expect("text"), [one, two, wiped].concat());
    }
}
