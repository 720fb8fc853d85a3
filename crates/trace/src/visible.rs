//! Texts that others wrote, made safe to show: on a terminal, and as a word of a shell.
//!
//! Names of tasks, files and devices hold any characters. The only list of those that must not be printed is
//! here; a terminal that gets one of them moves its cursor, changes its title or turns the text round.

use std::path::Path;

/// Whether `letter` steers a terminal, or the direction of the text, instead of being shown: control
/// characters (C0, DEL, C1), bidirectional controls, and the separators of lines and paragraphs.
#[must_use]
pub fn is_steering(letter: char) -> bool {
    let is_direction = matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || is_direction || matches!(letter, '\u{2028}'..='\u{202e}')
}

/// `text` with U+FFFD for everything that steers, line breaks too: one line, that can be seen.
///
/// ```
/// assert_eq!(quietcore_trace::visible("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
/// ```
#[must_use]
pub fn visible(text: &str) -> String {
    text.chars()
        .map(|letter| if is_steering(letter) { char::REPLACEMENT_CHARACTER } else { letter })
        .collect()
}

/// As [`visible`], but line feeds and tabs stay.
#[must_use]
pub fn visible_lines(text: &str) -> String {
    let is_kept = |letter| matches!(letter, '\n' | '\t') || !is_steering(letter);
    text.chars().map(|letter| if is_kept(letter) { letter } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// A file's name, [`visible`].
#[must_use]
pub fn visible_path(path: &Path) -> String {
    visible(&path.to_string_lossy())
}

/// One word of a shell command: as it is if that is safe, else in single quotes.
///
/// ```
/// assert_eq!(quietcore_trace::shell_word("$(reboot)"), "'$(reboot)'");
/// ```
#[must_use]
pub fn shell_word(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:@%+,=".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    // A line break in a name would begin a command of its own.
    format!("'{}'", visible(text).replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::{is_steering, shell_word, visible, visible_lines};

    /// Goal: what steers is replaced, and what is text is not. Method: both ends of every range, and their
    /// neighbours.
    #[test]
    fn what_steers_is_not_shown() {
        let steering = "\u{0}\u{1b}\u{1f}\u{7f}\u{80}\u{9b}\u{9f}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\
                        \u{202e}\u{2066}\u{2069}";
        steering.chars().for_each(|letter| assert!(is_steering(letter), "{:x}", u32::from(letter)));
        let text = " ~\u{a0}\u{61b}\u{61d}\u{200d}\u{2010}\u{2027}\u{202f}\u{2065}\u{206a}\u{fffd}ß漢";
        assert_eq!(visible(text), text);
        assert_eq!(
            (visible("a\n\tb\r"), visible_lines("a\n\tb\r")),
            ("a\u{fffd}\u{fffd}b\u{fffd}".to_owned(), "a\n\tb\u{fffd}".to_owned())
        );
    }

    /// Goal: no name can become a command.
    #[test]
    fn odd_names_are_quoted() {
        assert_eq!(shell_word("/sys/fs/cgroup/a.slice"), "/sys/fs/cgroup/a.slice");
        assert_eq!(shell_word("$(reboot)"), "'$(reboot)'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word("a\nreboot"), "'a\u{fffd}reboot'");
        assert_eq!(shell_word(""), "''");
    }
}
