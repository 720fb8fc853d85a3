//! A page of text: as wide as the terminal (or COLUMNS says, or 100), colours only on a terminal (and never
//! with NO_COLOR).

use crate::error::CliError;
use crate::output;
use crate::terminal::{Colours, Style, columns, width_of_stdout};
use quietcore_trace::visible;
use std::fmt::Write;

/// Width of everything we print, where nothing says another.
pub(crate) const COLUMNS: usize = 100;

/// A text beside its label has so many columns at least; otherwise it goes below it.
const BESIDE_MIN: usize = 24;

/// A growing page of text.
#[derive(Debug)]
pub(crate) struct Page {
    text: String,
    colours: Colours,
    width: usize,
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
        Self {
            text: String::new(),
            colours: Colours::of_stdout(),
            width: width_of_stdout().unwrap_or(COLUMNS),
        }
    }

    /// A page for files and for standard error.
    pub(crate) fn plain() -> Self {
        Self { text: String::new(), colours: Colours::Off, width: COLUMNS }
    }

    #[cfg(test)]
    pub(crate) fn coloured() -> Self {
        Self { text: String::new(), colours: Colours::On, width: COLUMNS }
    }

    #[cfg(test)]
    pub(crate) fn of_width(width: usize) -> Self {
        Self { width, ..Self::plain() }
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
        wrap(text, self.width).iter().for_each(|line| self.styled_line(Style::Heading, line));
    }

    /// `label` and `text` beside it, wrapped; later lines are indented under the text.
    pub(crate) fn item(&mut self, indent: usize, label: &str, label_width: usize, text: &str) {
        let mut left = indent + label_width + 1;
        let padding = label_width.saturating_sub(columns(label));
        let mut first = true;
        if self.width.saturating_sub(left) < BESIDE_MIN && columns(text) > self.width.saturating_sub(left) {
            left = indent + 2;
            first = false;
            self.line(&format!("{:indent$}{label}", ""));
        }
        for paragraph in text.split('\n') {
            // A command must be copied whole, so it is never broken.
            let is_command = paragraph.starts_with("$ ");
            let width = if is_command { usize::MAX } else { self.width.saturating_sub(left) };
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

    /// Goal: a page is as wide as it may be, and a text that has no room beside its label goes below it.
    /// Method: a narrow and a wide page.
    #[test]
    fn a_page_keeps_its_width() {
        let words = "word ".repeat(30);
        for width in [40, 60, 150, 200] {
            let mut page = Page::of_width(width);
            page.heading(&words);
            page.item(2, "why", 6, &words);
            page.item(2, "a label that takes nearly all of it", 36, &words);
            let text = page.into_text();
            let longest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(longest <= width && longest + 10 > width.min(160), "{width}: {longest}\n{text}");
            let below = text.lines().any(|line| line == "  a label that takes nearly all of it");
            assert_eq!(below, width < 63, "{width}\n{text}");
        }
        let mut page = Page::of_width(40);
        page.item(2, "a label that takes nearly", 26, "few words");
        assert_eq!(page.into_text(), "  a label that takes nearly  few words\n");
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
