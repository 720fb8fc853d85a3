//! Why a scenario was refused: which file, line and key, and what would be allowed there.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A scenario that cannot be run; nothing of it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, as it was named.
    pub file: PathBuf,
    /// The line, from 1; 0 when the whole file is meant.
    pub line: usize,
    /// The key, or the table, that is wrong; empty when no single one is.
    pub key: String,
    /// What is wrong, and what is allowed.
    pub problem: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.file.display())?;
        if self.line > 0 {
            write!(out, ":{}", self.line)?;
        }
        if !self.key.is_empty() {
            write!(out, ": {}", self.key)?;
        }
        write!(out, ": {}", self.problem)
    }
}

impl std::error::Error for ScenarioError {}

/// A problem at a place of the text; the file is added by who knows it.
#[derive(Debug)]
pub(crate) struct ScenarioProblem {
    pub(crate) span: Range<usize>,
    pub(crate) problem: String,
}

impl ScenarioProblem {
    pub(crate) fn at<T>(place: &toml::Spanned<T>, problem: impl Into<String>) -> Self {
        Self { span: place.span(), problem: problem.into() }
    }

    pub(crate) fn in_file(self, file: &Path, text: &str) -> ScenarioError {
        let start = self.span.start.min(text.len());
        let before = text.get(..start).unwrap_or_default();
        let (line, key) = if self.span.is_empty() && start == 0 {
            (0, String::new())
        } else {
            (before.matches('\n').count() + 1, key_at(text, start))
        };
        ScenarioError { file: file.to_owned(), line, key, problem: self.problem }
    }
}

impl From<toml::de::Error> for ScenarioProblem {
    fn from(error: toml::de::Error) -> Self {
        Self { span: error.span().unwrap_or(0..0), problem: error.message().trim_end().to_owned() }
    }
}

/// The key whose value begins at or after byte `start` of its line, or the header of a table.
fn key_at(text: &str, start: usize) -> String {
    let begin = text.get(..start).unwrap_or_default().rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(begin..).unwrap_or_default().lines().next().unwrap_or_default();
    if line.trim_start().starts_with('[') {
        return line.trim().chars().take(60).collect();
    }
    // In an inline table the nearest key counts: the one before the place.
    let upto = line.get(..start - begin).unwrap_or(line);
    let nearest = upto.rsplit([',', '{', '[']).find(|part| part.contains('=')).unwrap_or(line);
    let key = nearest.split('=').next().unwrap_or_default().trim().trim_matches('"');
    key.chars().filter(|char| !char.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::key_at;

    /// Goal: the key a reader would name. Method: values in lines, headers and inline tables.
    #[test]
    fn the_nearest_key_is_named() {
        for (text, place, key) in [
            ("policy = \"pul\"\n", "\"pul\"", "policy"),
            ("[machine]\ncpus = 4\n", "[machine]", "[machine]"),
            ("[cost]\ntick = { ns = -1, source = \"x\" }\n", "-1", "ns"),
            ("[cost]\ntick = { ns = 1, source = 2 }\n", "2 }", "source"),
            ("  spaced   =   1", "1", "spaced"),
        ] {
            let start = text.find(place).unwrap();
            assert_eq!(key_at(text, start), key, "{text:?} at {place:?}");
        }
    }
}
