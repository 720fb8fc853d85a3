//! The tree as the rules see it: every path, every text file, and what a broken rule says.

use super::scan::{SourceLine, scan};
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Path from the root, with `/`.
    pub(super) file: String,
    /// From 1.
    pub(super) line: usize,
    pub(super) rule: &'static str,
    /// What is there and what to do.
    pub(super) remedy: String,
    error: bool,
}

impl Violation {
    /// A broken rule on line `line` (from 0) of `source`.
    pub(super) fn error(source: &SourceFile, line: usize, rule: &'static str, remedy: String) -> Violation {
        Violation { file: source.path.clone(), line: line + 1, rule, remedy, error: true }
    }

    /// As [`Violation::error`], but it does not fail the run.
    pub(super) fn wish(source: &SourceFile, line: usize, rule: &'static str, remedy: String) -> Violation {
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

#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    /// Path from the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// Scanned as Rust; empty for other files.
    pub(super) lines: Vec<SourceLine>,
}

impl SourceFile {
    /// The file `path` with the content `text`.
    pub(super) fn of(path: &str, text: &str) -> SourceFile {
        let lines = if path.ends_with(".rs") { scan(text) } else { vec![] };
        SourceFile { path: path.to_owned(), text: text.to_owned(), lines }
    }

    /// It belongs to the tests of its crate, as a whole.
    pub(super) fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        self.path.split('/').any(|part| part == "tests" || part == "benches") || name == "tests.rs"
    }
}

/// What the tree holds: every path (files and folders) from the root, and the text files' content.
#[derive(Debug, Default)]
pub(crate) struct SourceTree {
    /// Sorted; folders without a trailing `/`.
    pub(super) paths: Vec<String>,
    /// Bytes of each file, in the order of the walk.
    pub(super) sizes: Vec<(String, u64)>,
    pub(super) sources: Vec<SourceFile>,
}

/// Folders that are not ours to judge: built, fetched or generated things.
const SKIPPED: [&str; 6] = ["target", ".git", "node_modules", "__pycache__", "corpus", "artifacts"];

/// Hidden folders that are ours.
const HIDDEN_KEPT: [&str; 3] = [".ci", ".cargo", ".github"];

/// File name endings that are text to us.
const TEXT: [&str; 8] = ["rs", "md", "toml", "py", "sh", "yml", "c", "h"];

impl SourceTree {
    /// Reads the tree below `root`.
    ///
    /// # Errors
    /// When a folder or a text file cannot be read.
    pub(crate) fn read(root: &Path) -> io::Result<SourceTree> {
        let mut tree = SourceTree::default();
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
                    self.sources.push(SourceFile::of(&path, &text));
                }
                self.paths.push(path);
            }
        }
        Ok(())
    }

    /// There is a file or a folder at `path`.
    pub(super) fn has(&self, path: &str) -> bool {
        path.is_empty() || self.paths.binary_search_by(|known| known.as_str().cmp(path)).is_ok()
    }

    pub(super) fn source(&self, path: &str) -> Option<&SourceFile> {
        self.sources.iter().find(|source| source.path == path)
    }

    /// A tree of these files, for tests of rules.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> SourceTree {
        let mut tree = SourceTree::default();
        for (path, text) in files {
            for (at, _) in path.match_indices('/') {
                tree.paths.push(path[..at].to_owned());
            }
            tree.paths.push((*path).to_owned());
            tree.sizes.push(((*path).to_owned(), text.len() as u64));
            tree.sources.push(SourceFile::of(path, text));
        }
        tree.paths.sort();
        tree.paths.dedup();
        tree
    }
}
