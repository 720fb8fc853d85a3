//! `cargo xtask tidy`: the rules of style that a program can check.
//!
//! Decides which files are looked at and by which rules; every rule has a file beside this one, a
//! constant for each limit, and unit tests with a text that breaks it and one that does not. A violation
//! prints as `file:line: rule: remedy`. Errors fail the run, wishes are only printed.
//!
//! Deliberately absent: what rustfmt, clippy and the compiler's own lints check already.

mod docs;
mod functions;
mod paths;
mod rust_source;
mod scan;
mod seeds;
mod tree;

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use scan::Line;

/// A rule that a file breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Path from the root, with `/`.
    file: String,
    /// Line, from 1.
    line: usize,
    rule: &'static str,
    /// What is there and what to do.
    remedy: String,
    error: bool,
}

impl Violation {
    /// A broken rule on line `line` (from 0) of `source`.
    fn error(source: &Source, line: usize, rule: &'static str, remedy: String) -> Violation {
        Violation { file: source.path.clone(), line: line + 1, rule, remedy, error: true }
    }

    /// As [`Violation::error`], but it does not fail the run.
    fn wish(source: &Source, line: usize, rule: &'static str, remedy: String) -> Violation {
        Violation { error: false, ..Violation::error(source, line, rule, remedy) }
    }

    /// It fails the run.
    pub(crate) fn is_error(&self) -> bool {
        self.error
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wish = if self.error { "" } else { " (a wish, not an error)" };
        write!(f, "{}:{}: {}: {}{wish}", self.file, self.line, self.rule, self.remedy)
    }
}

/// One text file of the tree.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Path from the root, with `/`.
    path: String,
    text: String,
    /// Scanned as Rust; empty for other files.
    lines: Vec<Line>,
}

impl Source {
    /// The file `path` with the content `text`.
    fn of(path: &str, text: &str) -> Source {
        let lines = if path.ends_with(".rs") { scan::scan(text) } else { vec![] };
        Source { path: path.to_owned(), text: text.to_owned(), lines }
    }

    /// It belongs to the tests of its crate, as a whole.
    fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        self.path.split('/').any(|part| part == "tests" || part == "benches") || name == "tests.rs"
    }
}

/// What the tree holds: every path (files and folders) from the root, and the text files' content.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Sorted; folders without a trailing `/`.
    paths: Vec<String>,
    /// Bytes of each file, in the order of the walk.
    sizes: Vec<(String, u64)>,
    sources: Vec<Source>,
}

/// Folders that are not ours to judge: built, fetched or generated things.
const SKIPPED: [&str; 6] = ["target", ".git", "node_modules", "__pycache__", "corpus", "artifacts"];

/// Hidden folders that are ours.
const HIDDEN_KEPT: [&str; 3] = [".ci", ".cargo", ".github"];

/// File name endings that are text to us.
const TEXT: [&str; 8] = ["rs", "md", "toml", "py", "sh", "yml", "c", "h"];

impl Tree {
    /// Reads the tree below `root`.
    ///
    /// # Errors
    /// When a folder or a text file cannot be read.
    pub(crate) fn read(root: &Path) -> io::Result<Tree> {
        let mut tree = Tree::default();
        tree.walk(root, "")?;
        tree.paths.sort();
        Ok(tree)
    }

    fn walk(&mut self, root: &Path, folder: &str) -> io::Result<()> {
        let mut entries = fs::read_dir(root.join(folder))?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_dir() {
                let hidden = name.starts_with('.') && !HIDDEN_KEPT.contains(&name.as_str());
                if !hidden && !SKIPPED.contains(&name.as_str()) {
                    self.paths.push(path.clone());
                    self.walk(root, &path)?;
                }
            } else if kind.is_file() {
                self.sizes.push((path.clone(), entry.metadata()?.len()));
                let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
                if TEXT.contains(&ending) || folder == ".ci" {
                    let text = String::from_utf8_lossy(&fs::read(root.join(&path))?).into_owned();
                    self.sources.push(Source::of(&path, &text));
                }
                self.paths.push(path);
            }
        }
        Ok(())
    }

    /// There is a file or a folder at `path`.
    fn has(&self, path: &str) -> bool {
        path.is_empty() || self.paths.binary_search_by(|known| known.as_str().cmp(path)).is_ok()
    }

    /// The text file at `path`.
    fn source(&self, path: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.path == path)
    }

    /// A tree of these files, for tests of rules.
    #[cfg(test)]
    fn of(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        for (path, text) in files {
            for (at, _) in path.match_indices('/') {
                tree.paths.push(path[..at].to_owned());
            }
            tree.paths.push((*path).to_owned());
            tree.sizes.push(((*path).to_owned(), text.len() as u64));
            tree.sources.push(Source::of(path, text));
        }
        tree.paths.sort();
        tree.paths.dedup();
        tree
    }

    /// Every rule over every file it is for.
    pub(crate) fn check(&self) -> Vec<Violation> {
        let mut found = vec![];
        for source in &self.sources {
            found.extend(paths::check(source));
            if is_judged_rust(&source.path) {
                found.extend(rust_source::check(source));
                found.extend(functions::check(source));
            } else if source.path.ends_with(".md") {
                found.extend(docs::check(self, source));
            }
        }
        found.extend(tree::check(self));
        found.extend(seeds::check(self));
        found
    }
}

/// Rust, and not the data of a test.
fn is_judged_rust(path: &str) -> bool {
    let data = path.split('/').any(|part| part == "data" || part == "fixtures");
    path.ends_with(".rs") && !data
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: this tree keeps its own rules. Method: the whole check; the text names every violation.
    #[test]
    fn this_tree_is_tidy() {
        let tree = Tree::read(&crate::root()).expect("the tree can be read");
        let errors: Vec<String> =
            tree.check().iter().filter(|violation| violation.is_error()).map(Violation::to_string).collect();
        assert!(errors.is_empty(), "\n{}\n", errors.join("\n"));
    }

    /// Goal: the check above looked at something. Method: files that must have been read.
    #[test]
    fn the_walk_finds_the_files() {
        let tree = Tree::read(&crate::root()).expect("the tree can be read");
        for path in ["Cargo.toml", "xtask/src/tidy/mod.rs", "docs/seeds.md", ".ci/run"] {
            assert!(tree.source(path).is_some() && tree.has(path), "{path} was not read");
        }
        assert!(tree.has("xtask/src") && !tree.has("target") && !tree.has("xtask/sr"));
    }

    /// Goal: a violation can be clicked on and tells what to do. Method: the exact text of one.
    #[test]
    fn a_violation_prints_file_line_rule_remedy() {
        let tree = Tree::of(&[("crates/core/src/a.rs", "//! A.\nfn a() { b().unwrap() }\n")]);
        let found: Vec<String> = tree.check().iter().map(Violation::to_string).collect();
        let text = "crates/core/src/a.rs:2: unwrap: return an error, or `expect` with the invariant that \
                    makes it impossible";
        assert!(found.iter().any(|violation| violation == text), "{found:?}");
    }

    /// Goal: test data is not judged as code. Method: one bad text in both places.
    #[test]
    fn data_is_not_judged() {
        assert!(is_judged_rust("crates/a/tests/b.rs") && !is_judged_rust("crates/a/tests/data/b.rs"));
        assert!(!is_judged_rust("crates/a/tests/b.txt"));
    }
}
