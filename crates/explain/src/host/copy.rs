//! What an examination read of a host, kept so that it can be examined again elsewhere.
//!
//! Invariants: what was read is in it, as it was then, and nothing else; of a file of which some lines
//! matter, those. What could not be opened is not in it. Bounded in memory, whatever the host holds.
//! Not here: how it is packed, and who may read that.

use std::collections::BTreeMap;
use std::fmt;

/// Most bytes that are kept, of all files together.
const COPY_BYTES_MAX: usize = 64 << 20;

/// Files and folders of a host, by their path below its root (`proc/cmdline`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostCopy {
    entries: BTreeMap<String, CopiedEntry>,
    byte_count: usize,
    /// The first file for which no room was left.
    left_out: Option<String>,
}

/// What is at one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopiedEntry {
    /// A folder. What was read below it has its own path.
    Folder,
    /// A file.
    File {
        /// What was read of it.
        bytes: Vec<u8>,
        /// Whether every user of the host may read it.
        is_public: bool,
    },
}

/// There is more to copy than is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyTooLarge {
    /// The first file for which no room was left.
    pub path: String,
}

impl fmt::Display for CopyTooLarge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = COPY_BYTES_MAX >> 20;
        write!(out, "more than {most} MiB would have to be copied; there was no room for /{}", self.path)
    }
}

impl std::error::Error for CopyTooLarge {}

impl HostCopy {
    /// Each path with what is there, in order: a folder comes before what is in it.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &CopiedEntry)> {
        self.entries.iter().map(|(path, entry)| (path.as_str(), entry))
    }

    /// Whether every user of the host may read all of it.
    #[must_use]
    pub fn is_public(&self) -> bool {
        let private = |entry: &CopiedEntry| matches!(entry, CopiedEntry::File { is_public: false, .. });
        !self.entries.values().any(private)
    }

    /// Whether something of this path of the host (`/proc/cmdline`) was read.
    #[must_use]
    pub fn holds(&self, path: &str) -> bool {
        self.entries.contains_key(below_root(path))
    }

    /// What is read twice is kept as it was the first time; a file counts more than a folder of its name.
    pub(super) fn keep(&mut self, path: &str, entry: CopiedEntry) {
        let path = below_root(path);
        let byte_count = match &entry {
            CopiedEntry::Folder if self.entries.contains_key(path) => return,
            CopiedEntry::Folder => 0,
            CopiedEntry::File { bytes, .. } => bytes.len(),
        };
        if matches!(self.entries.get(path), Some(CopiedEntry::File { .. })) {
            return;
        }
        if self.byte_count + byte_count > COPY_BYTES_MAX {
            self.left_out.get_or_insert_with(|| path.to_owned());
            return;
        }
        self.byte_count += byte_count;
        self.entries.insert(path.to_owned(), entry);
    }

    pub(super) fn whole(self) -> Result<Self, CopyTooLarge> {
        match self.left_out {
            Some(path) => Err(CopyTooLarge { path }),
            None => Ok(self),
        }
    }
}

fn below_root(path: &str) -> &str {
    path.trim_start_matches('/')
}

#[cfg(test)]
mod tests {
    use super::{COPY_BYTES_MAX, CopiedEntry, HostCopy};

    fn file(bytes: &[u8], is_public: bool) -> CopiedEntry {
        CopiedEntry::File { bytes: bytes.to_vec(), is_public }
    }

    /// Goal: a path has one state, the first, and a file is not hidden by a folder. Method: each order of two
    /// entries.
    #[test]
    fn the_first_state_of_a_file_is_kept() {
        let mut copy = HostCopy::default();
        copy.keep("/a", CopiedEntry::Folder);
        copy.keep("/a", file(b"1", true));
        copy.keep("a", file(b"2", true));
        copy.keep("/a", CopiedEntry::Folder);
        copy.keep("//b", CopiedEntry::Folder);
        assert_eq!(
            copy.entries().collect::<Vec<_>>(),
            [("a", &file(b"1", true)), ("b", &CopiedEntry::Folder)]
        );
        assert!(copy.holds("/a") && copy.holds("/b") && !copy.holds("/c"));
    }

    /// Goal: a copy is public if every part of it is. Method: one file more.
    #[test]
    fn one_private_file_makes_a_copy_private() {
        let mut copy = HostCopy::default();
        copy.keep("/a", file(b"1", true));
        copy.keep("/b", CopiedEntry::Folder);
        assert!(copy.is_public());
        copy.keep("/b/c", file(b"", false));
        assert!(!copy.is_public());
    }

    /// Goal: memory is bounded, and what did not fit is named. Method: a copy that is full, and one byte
    /// more.
    #[test]
    fn a_copy_is_bounded() {
        let mut copy = HostCopy::default();
        copy.keep("/most", CopiedEntry::File { bytes: vec![0; COPY_BYTES_MAX], is_public: true });
        assert!(copy.clone().whole().is_ok());
        copy.keep("/proc/one", file(b"1", true));
        copy.keep("/proc/two", file(b"2", true));
        let error = copy.whole().expect_err("it is too much");
        let told = "more than 64 MiB would have to be copied; there was no room for /proc/one";
        assert_eq!(error.to_string(), told);
    }
}
