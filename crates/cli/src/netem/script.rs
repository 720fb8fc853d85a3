//! Scripts of `tc` lines: all of them are read before the first one is carried out.
//!
//! As in a shell, a line that ends with `2>/dev/null` may fail without a word; any other failure ends the
//! script, with the number of its line.

use crate::error::CliError;
use quietcore_qdisc::tc::{Command, parse_script};
use quietcore_trace::{visible, visible_path};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The longest script that is read, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// A script: its lines that are commands.
#[derive(Debug)]
pub(crate) struct Script {
    /// What it is called in messages.
    source: String,
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    number: usize,
    text: String,
    command: Command,
}

impl Script {
    /// Reads a file, or standard input if it is called `-`.
    pub(crate) fn read(path: &Path) -> Result<Self, CliError> {
        let source = if path == Path::new("-") { "standard input".into() } else { visible_path(path) };
        let failed = |error: std::io::Error| CliError::Live(format!("{source}: {error}"));
        let mut text = String::new();
        let reader: Box<dyn Read> = match path.to_str() {
            Some("-") => Box::new(std::io::stdin().lock()),
            _ => Box::new(File::open(path).map_err(failed)?),
        };
        let count = reader.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
        if count as u64 > BYTES_MAX {
            return Err(CliError::Usage(format!("{source}: a script has at most {BYTES_MAX} bytes")));
        }
        Self::parse(source, &text)
    }

    fn parse(source: String, text: &str) -> Result<Self, CliError> {
        let all: Vec<&str> = text.lines().collect();
        let commands = parse_script(text).map_err(|error| CliError::Usage(format!("{source}, {error}")))?;
        let line = |(number, command): (usize, Command)| Line {
            number,
            text: all.get(number - 1).map_or_else(String::new, |line| line.trim().to_owned()),
            command,
        };
        Ok(Self { source, lines: commands.into_iter().map(line).collect() })
    }

    /// Carries it out, line by line; what the lines print comes back.
    pub(crate) fn run(
        &self,
        mut execute: impl FnMut(&Command, &str) -> Result<Result<String, String>, CliError>,
    ) -> Result<String, CliError> {
        let mut printed = String::new();
        for (before, line) in self.lines.iter().enumerate() {
            match execute(&line.command, &line.text)? {
                Ok(text) => printed.push_str(&text),
                Err(_) if is_silenced(&line.text) => {}
                Err(why) => {
                    let Self { source, .. } = self;
                    let (number, text) = (line.number, visible(&line.text));
                    crate::output::print(&printed)?;
                    let before = if before > 0 { "\nWhat the lines before it did stays." } else { "" };
                    return Err(CliError::Live(format!("{source}, line {number}: {text}\n{why}{before}")));
                }
            }
        }
        Ok(printed)
    }
}

/// Whether the shell that the line was written for would throw its errors away.
fn is_silenced(line: &str) -> bool {
    let words = line.split_whitespace().take_while(|word| !word.starts_with('#'));
    words.last() == Some("2>/dev/null")
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, Script};

    const TEXT: &str = "\
## a discipline
tc qd del dev eth1 root 2>/dev/null

tc qd add dev eth1 root handle 1: mq
  tc -s qd show dev eth1
tc qd del dev eth1 root
tc qd add dev eth1 root fq
";

    fn run(text: &str) -> (Vec<String>, Result<String, String>) {
        let mut asked = Vec::new();
        let script = Script::parse("a script".to_owned(), text);
        let result = script.and_then(|script| {
            script.run(|_, line| {
                asked.push(line.to_owned());
                Ok(if line.contains("del") { Err("there is none".into()) } else { Ok("done\n".into()) })
            })
        });
        (asked, result.map_err(|error| error.to_string()))
    }

    /// Goal: lines are carried out in order; one that is silenced may fail, another ends the script.
    #[test]
    fn a_failure_ends_a_script() {
        let (asked, result) = run(TEXT);
        assert_eq!(asked.len(), 4, "{asked:?}");
        let expected = "a script, line 6: tc qd del dev eth1 root\nthere is none\n\
                        What the lines before it did stays.";
        assert_eq!(result, Err(expected.to_owned()));
        let (asked, result) = run(TEXT.split_once("tc qd del dev eth1 root\n").unwrap().0);
        assert_eq!((asked.len(), result.as_deref()), (3, Ok("done\ndone\n")));
    }

    /// Goal: a line is silenced as in a shell. Method: by its last word, before a comment, in a comment, not.
    #[test]
    fn a_line_is_silenced_as_in_a_shell() {
        for (more, is_silenced) in [
            ("2>/dev/null", true),
            ("2>/dev/null # as before", true),
            ("# no 2>/dev/null", false),
            ("", false),
        ] {
            let (_, result) = run(&format!("tc qd del dev eth1 root {more}\n"));
            assert_eq!(result.is_ok(), is_silenced, "{more:?}: {result:?}");
        }
    }

    /// Goal: a script is read whole or refused, and its file is named. Method: as long as allowed, a byte
    /// more, no file.
    #[test]
    fn a_script_is_read_whole_or_refused() {
        let path = std::env::temp_dir().join(format!("quietcore-script-{}", std::process::id()));
        let line = "tc qd add dev eth1 root fq\n";
        let text = "\n".repeat(BYTES_MAX as usize - line.len()) + line;
        std::fs::write(&path, &text).unwrap();
        let read = || Script::read(&path).map(|script| script.lines.len()).map_err(|error| error.to_string());
        assert_eq!(read(), Ok(1));
        std::fs::write(&path, text + "\n").unwrap();
        assert_eq!(read(), Err(format!("{}: a script has at most 1048576 bytes", path.display())));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(), Err(format!("{}: No such file or directory (os error 2)", path.display())));
    }

    /// Goal: nothing is carried out if a line is no command.
    #[test]
    fn a_line_that_is_none_is_told_first() {
        let (asked, result) = run("tc qd add dev eth1 root handle 1: mq\ntc qd add dev eth1 root nettem\n");
        assert_eq!(asked.len(), 0);
        assert!(result.as_ref().is_err_and(|why| why.starts_with("a script, line 2:\n")), "{result:?}");
    }
}
