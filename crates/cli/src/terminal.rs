//! What may reach a terminal: text, line breaks, tabs and our own colours; nothing else that steers it.
//!
//! Invariant: whatever is printed as text or said passes [`guarded`], so that an input that slips through
//! somewhere can neither move the cursor nor turn the text round. Names are made visible before that as well,
//! where a line break in one of them would look like a line of ours.

use quietcore_trace::visible_lines;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::OnceLock;

/// How a word is shown on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Heading,
    Good,
    Warning,
    Bad,
    Faint,
}

const ESCAPE: char = '\u{1b}';
const END: &str = "[0m";

impl Style {
    const ALL: [Self; 5] = [Self::Heading, Self::Good, Self::Warning, Self::Bad, Self::Faint];

    const fn code(self) -> &'static str {
        match self {
            Self::Heading => "[1m",
            Self::Good => "[32m",
            Self::Warning => "[33m",
            Self::Bad => "[1;31m",
            Self::Faint => "[2m",
        }
    }

    /// `text` in this style.
    pub(crate) fn of(self, text: &str) -> String {
        format!("{ESCAPE}{}{text}{ESCAPE}{END}", self.code())
    }
}

/// What `--color` said; nothing where it left it to the terminal.
static CHOSEN: OnceLock<Colours> = OnceLock::new();

/// Whether a text has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colours {
    On,
    Off,
}

impl Colours {
    /// Once, before anything is printed.
    pub(crate) fn choose(self) {
        // It is the first: `main` alone says it.
        let _ = CHOSEN.set(self);
    }

    /// What `--color` says; otherwise on a terminal, and never with NO_COLOR.
    pub(crate) fn of_stdout() -> Self {
        if let Some(chosen) = CHOSEN.get() {
            return *chosen;
        }
        let of_terminal = || Self::of_terminal(&|name| std::env::var_os(name));
        if std::io::stdout().is_terminal() { of_terminal() } else { Self::Off }
    }

    fn of_terminal(variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let no_color = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = variable("TERM").is_some_and(|value| value == "dumb");
        if no_color || is_dumb { Self::Off } else { Self::On }
    }
}

/// No page is narrower, or wider.
const WIDTHS: (usize, usize) = (40, 200);

/// The columns of standard output: what COLUMNS says, or its terminal; `None` where neither is.
pub(crate) fn width_of_stdout() -> Option<usize> {
    let stdout = std::io::stdout();
    let terminal = || rustix::termios::tcgetwinsize(&stdout).ok().map(|size| usize::from(size.ws_col));
    width(std::env::var("COLUMNS").ok().as_deref(), terminal)
}

fn width(columns: Option<&str>, terminal: impl FnOnce() -> Option<usize>) -> Option<usize> {
    let said = columns.and_then(|columns| columns.parse().ok());
    let found = said.or_else(terminal).filter(|&columns: &usize| columns > 0)?;
    Some(found.clamp(WIDTHS.0, WIDTHS.1))
}

/// `text` without anything that steers a terminal but line breaks, tabs and, if there are any, our colours.
pub(crate) fn guarded(text: &str, colours: Colours) -> String {
    if colours == Colours::Off {
        return visible_lines(text);
    }
    let mut pieces = text.split(ESCAPE);
    let mut guarded = visible_lines(pieces.next().unwrap_or_default());
    for piece in pieces {
        let mut ours = Style::ALL.into_iter().map(Style::code).chain([END]);
        guarded.push(if ours.any(|code| piece.starts_with(code)) {
            ESCAPE
        } else {
            char::REPLACEMENT_CHARACTER
        });
        guarded.push_str(&visible_lines(piece));
    }
    guarded
}

/// Columns that a line takes on a terminal, where our colours take none.
pub(crate) fn columns(line: &str) -> usize {
    let bare = |piece: &str| {
        let mut ours = Style::ALL.into_iter().map(Style::code).chain([END]);
        ours.find_map(|code| piece.strip_prefix(code)).unwrap_or(piece).chars().count()
    };
    line.split(ESCAPE).map(bare).sum()
}

#[cfg(test)]
mod tests {
    use super::{Colours, Style, guarded, width};
    use std::ffi::OsString;

    /// Goal: a terminal has colours unless its user or its kind says otherwise. Method: the two variables,
    /// set, empty and missing.
    #[test]
    fn the_environment_switches_colours_off() {
        for (no_color, term, colours) in [
            (None, None, Colours::On),
            (None, Some("xterm"), Colours::On),
            (Some(""), Some("xterm"), Colours::On),
            (Some("0"), Some("xterm"), Colours::Off),
            (None, Some("dumb"), Colours::Off),
        ] {
            let variable = |name: &str| if name == "NO_COLOR" { no_color } else { term }.map(OsString::from);
            assert_eq!(Colours::of_terminal(&variable), colours, "{no_color:?}, {term:?}");
        }
    }

    /// Goal: a page is as wide as the variable says, or the terminal, within bounds; a terminal without a
    /// size says nothing. Method: each of them.
    #[test]
    fn a_page_is_as_wide_as_its_terminal() {
        for (variable, terminal, expected) in [
            (Some("60"), Some(90), Some(60)),
            (Some("x"), Some(90), Some(90)),
            (None, Some(20), Some(40)),
            (Some("1000"), None, Some(200)),
            (None, Some(0), None),
            (Some("0"), None, None),
            (None, None, None),
        ] {
            assert_eq!(width(variable, || terminal), expected, "{variable:?}, {terminal:?}");
        }
    }

    /// Goal: what is bad looks bad, and a heading is no warning. Method: each style's sequence, written down:
    /// bold, green, yellow, bold red, faint.
    #[test]
    fn each_style_is_its_own_sequence() {
        let shown = Style::ALL.map(|style| style.of("a").replace(super::ESCAPE, "^"));
        assert_eq!(shown, ["^[1ma^[0m", "^[32ma^[0m", "^[33ma^[0m", "^[1;31ma^[0m", "^[2ma^[0m"]);
    }

    /// Goal: our colours pass where there are any, and no other sequence ever does.
    #[test]
    fn only_our_colours_pass() {
        let text = format!("{}\t\u{1b}[2J\u{9b}1m\n\u{202e}\u{1b}", Style::Bad.of("a"));
        let shown = "\u{1b}[1;31ma\u{1b}[0m\t\u{fffd}[2J\u{fffd}1m\n\u{fffd}\u{fffd}";
        assert_eq!(guarded(&text, Colours::On), shown);
        assert_eq!(guarded(&text, Colours::Off), shown.replace('\u{1b}', "\u{fffd}"));
        assert_eq!(guarded("", Colours::On), "");
    }
}
