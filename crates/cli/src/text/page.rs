//! A page of text: 100 columns, colours only on a terminal (and never with NO_COLOR).

use crate::error::CliError;
use crate::output;
use crate::terminal::{Colours, Style, columns};
use quietcore_trace::visible;
use std::fmt::Write;

/// Width of everything we print.
pub(crate) const COLUMNS: usize = 100;

/// A growing page of text.
#[derive(Debug)]
pub(crate) struct Page {
    text: String,
    colours: Colours,
}

impl Page {
    /// Prints the page that `write` fills.
    pub(crate) fn print(write: impl FnOnce(&mut Self)) -> Result<(), CliError> {
        let mut page = Self::for_stdout();
        write(&mut page);
        output::print(&page.into_text())
    }

    /// A page for standard output.
    pub(crate) fn for_stdout() -> Self {
        Self { text: String::new(), colours: Colours::of_stdout() }
    }

    /// A page for files and for standard error.
    pub(crate) fn plain() -> Self {
        Self { text: String::new(), colours: Colours::Off }
    }

    #[cfg(test)]
    pub(crate) fn coloured() -> Self {
        Self { text: String::new(), colours: Colours::On }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// `text` in `style`, if there are colours.
    pub(crate) fn styled(&self, style: Style, text: &str) -> String {
        match self.colours {
            Colours::On => style.of(text),
            Colours::Off => text.to_owned(),
        }
    }

    /// How many events a recording lacks.
    pub(crate) fn lost(&self, events: u64) -> String {
        match events {
            0 => "none lost".to_owned(),
            lost => self.styled(Style::Bad, &format!("{lost} LOST")),
        }
    }

    /// A line as it is.
    pub(crate) fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    /// A line in `style`.
    pub(crate) fn styled_line(&mut self, style: Style, text: &str) {
        let text = self.styled(style, text);
        self.line(&text);
    }

    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    pub(crate) fn heading(&mut self, text: &str) {
        self.blank();
        wrap(text, COLUMNS).iter().for_each(|line| self.styled_line(Style::Heading, line));
    }

    /// `label` and `text` beside it, wrapped; later lines are indented under the text.
    pub(crate) fn item(&mut self, indent: usize, label: &str, label_width: usize, text: &str) {
        let left = indent + label_width + 1;
        let padding = label_width.saturating_sub(columns(label));
        let mut first = true;
        for paragraph in text.split('\n') {
            // A command must be copied whole, so it is never broken.
            let is_command = paragraph.starts_with("$ ");
            let width = if is_command { usize::MAX } else { COLUMNS.saturating_sub(left) };
            for wrapped in wrap(paragraph, width) {
                if first {
                    let _ = writeln!(self.text, "{:indent$}{label}{:padding$} {wrapped}", "", "");
                } else {
                    let _ = writeln!(self.text, "{:left$}{wrapped}", "");
                }
                first = false;
            }
        }
    }
}

/// Words of `text` in lines of at most `width` columns; a longer word stands alone.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += length;
        }
    }
    lines
}

/// Lines with nothing but their ends that steers a terminal.
pub(crate) fn in_lines(lines: &[String]) -> String {
    lines.iter().map(|line| visible(line)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{Page, Style, wrap};

    /// Goal: no line is longer than asked, unless one word is.
    #[test]
    fn lines_are_wrapped_at_words() {
        let text = "a two three four five six seven";
        for width in 1..40 {
            let lines = wrap(text, width);
            assert_eq!(lines.join(" "), text, "width {width}");
            for line in lines {
                assert!(line.len() <= width || !line.contains(' '), "width {width}: {line:?}");
            }
        }
    }

    /// Goal: an item hangs under its label, with colours as without.
    #[test]
    fn an_item_hangs_under_its_label() {
        let mut page = Page::plain();
        page.item(2, "why", 6, &"word ".repeat(30));
        let text = page.into_text();
        assert!(text.starts_with("  why    word"), "{text:?}");
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("         word")), "{text:?}");
        let mut page = Page::coloured();
        page.item(2, &page.styled(Style::Bad, "why"), 6, "word");
        assert_eq!(page.into_text(), "  \u{1b}[1;31mwhy\u{1b}[0m    word\n");
    }
}
