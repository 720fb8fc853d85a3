//! Rules about any text file: no path of one machine, no overlong line in scripts.

use super::rust_source::LONGEST_LINE;
use super::source::{SourceFile, Violation};

/// Beginnings of paths that exist on one machine only; in pieces, so that this file does not have them.
const HOMES: [&str; 2] = [concat!("/", "home/"), concat!("/", "root/")];

pub(crate) fn check(source: &SourceFile) -> Vec<Violation> {
    let mut found = vec![];
    let script =
        source.path.ends_with(".py") || source.path.ends_with(".sh") || source.path.starts_with(".ci/");
    for (number, line) in source.text.lines().enumerate() {
        for home in HOMES.iter().filter(|home| has_absolute(line, home)) {
            let remedy = format!("`{home}` is a folder of one machine; use a relative path");
            found.push(Violation::error(source, number, "machine-path", remedy));
        }
        let width = line.chars().count();
        if script && width > LONGEST_LINE && !line.contains("://") {
            let remedy = format!("{width} characters; break it (at most {LONGEST_LINE})");
            found.push(Violation::error(source, number, "line-width", remedy));
        }
    }
    found
}

/// `home` stands in `line` as the beginning of a path, not inside one (`fixtures/root/proc`).
fn has_absolute(line: &str, home: &str) -> bool {
    line.match_indices(home).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/})>*~$".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        check(&SourceFile::of(path, text)).into_iter().map(|violation| violation.rule).collect()
    }

    /// Goal: absolute paths only. Method: the same folder names inside relative paths.
    #[test]
    fn paths_of_one_machine() {
        for home in HOMES {
            for text in [format!("{home}me/x"), format!("see `{home}me`"), format!("a=\"{home}b\"")] {
                assert_eq!(rules("a.md", &text), ["machine-path"], "{text}");
            }
            for text in [format!("fixtures{home}proc"), format!("..{home}proc"), format!("$D{home}x")] {
                assert!(rules("a.md", &text).is_empty(), "{text}");
            }
        }
    }

    #[test]
    fn scripts_have_a_width() {
        let long = "x".repeat(LONGEST_LINE + 1);
        assert_eq!(rules("a.py", &long), ["line-width"]);
        assert_eq!(rules(".ci/run", &long), ["line-width"]);
        assert!(rules("a.py", &long[1..]).is_empty());
        assert!(rules("a.md", &long).is_empty());
    }
}
