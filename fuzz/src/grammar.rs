//! What must hold for any text as a script of `tc`.
//!
//! Not here: what a line means; that is in the tests of the crate.

use quietcore_qdisc::tc::{parse, parse_script};

/// Reads `bytes` as a script, and each of its lines alone; what is not UTF-8 is replaced.
pub fn check_script(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match parse_script(&text) {
        Ok(commands) => {
            let mut last = 0;
            for (line, command) in commands {
                assert!(line > last && line <= text.lines().count(), "line {line} after {last}");
                let alone = text.lines().nth(line - 1).expect("it is not above the count");
                assert_eq!(parse(alone).as_ref(), Ok(&command), "{alone:?}");
                last = line;
            }
        }
        Err(error) => {
            let alone = text.lines().nth(error.line() - 1).expect("the line of an error exists");
            assert_eq!(parse(alone).as_ref(), Err(error.error()), "{alone:?}");
        }
    }
    text.lines().for_each(check_line);
}

/// A command's text is that command; an error's position is in its line, and its text fit for a terminal.
fn check_line(line: &str) {
    match parse(line) {
        Ok(command) => {
            let written = command.to_string();
            assert_eq!(parse(&written), Ok(command), "{line:?} is written as {written:?}");
        }
        Err(error) => {
            assert!(line.get(error.position()).is_some(), "{:?} of {line:?}", error.position());
            let shown = error.to_string();
            let plain = |c: char| !c.is_control() || c == '\n' || c == '\t';
            assert!(shown.lines().count() == 3 && shown.chars().all(plain), "{shown:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check_script;

    /// Goal: the checks accept the bundled script. Method: whole, each line, and each beginning of it.
    #[test]
    fn the_checks_accept_the_bundled_script() {
        let script = include_str!("../tc_lines.txt");
        assert!(quietcore_qdisc::tc::parse_script(script).is_ok());
        for end in 0..script.len() {
            check_script(&script.as_bytes()[..end]);
        }
    }
}
