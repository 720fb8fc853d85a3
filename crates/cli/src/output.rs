//! Where text and JSON go: standard output in one piece, standard error line by line.
//!
//! Invariant: nothing that is written here steers a terminal, whatever the input held.

use crate::error::CliError;
use crate::terminal::{Colours, guarded};
use quietcore_trace::is_steering;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

/// To the upper left corner, and nothing behind it.
const CLEAR: &[u8] = b"\x1b[H\x1b[J";

/// Prints `text` to standard output.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(guarded(text, Colours::of_stdout()).as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Says a line on standard error. Where it cannot be written the work goes on.
pub(crate) fn say(text: &str) {
    say_as_it_is(&format!("quietcore: {text}\n"));
}

/// Writes `text` to standard error, where the name of this program is in it or not wanted.
pub(crate) fn say_as_it_is(text: &str) {
    let _ = io::stderr().lock().write_all(guarded(text, Colours::Off).as_bytes());
}

/// Prints `text` in place of what a terminal showed before; behind it, where standard output is none.
pub(crate) fn print_over(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        out.write_all(CLEAR)?;
    }
    out.write_all(guarded(text, Colours::of_stdout()).as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints `value` as a line of JSON, as [`json`] has it but for the indentation.
pub(crate) fn print_json_line(value: &impl Serialize) -> Result<(), CliError> {
    print(&escaped(&serde_json::to_string(value).map_err(|error| CliError::Output(error.into()))?))
}

/// Prints `value` as indented JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    print(&json(value)?)
}

/// `value` as indented JSON that is safe on a terminal: what would steer it is escaped, as JSON's own rules
/// have it for the lowest 32 characters only.
pub(crate) fn json(value: &impl Serialize) -> Result<String, CliError> {
    let plain = serde_json::to_string_pretty(value).map_err(|error| CliError::Output(error.into()))?;
    Ok(escaped(&plain))
}

fn escaped(plain: &str) -> String {
    let mut text = String::with_capacity(plain.len() + 1);
    for letter in plain.chars() {
        if letter != '\n' && is_steering(letter) {
            // All of them have four digits at most.
            let _ = write!(text, "\\u{:04x}", u32::from(letter));
        } else {
            text.push(letter);
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::json;

    /// Goal: JSON is the same value, and cannot steer a terminal. Method: one character of each kind, read
    /// back.
    #[test]
    fn json_escapes_what_steers() {
        let value = ["a\u{1b}\u{7f}\u{9b}\u{202e}\u{2028}\u{61c}\n\"\\b ß"];
        let text = json(&value).unwrap();
        assert_eq!(text, "[\n  \"a\\u001b\\u007f\\u009b\\u202e\\u2028\\u061c\\n\\\"\\\\b ß\"\n]\n");
        let back: Vec<String> = serde_json::from_str(&text).unwrap();
        assert_eq!(back, value);
    }
}
