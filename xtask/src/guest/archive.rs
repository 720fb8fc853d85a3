//! The archive that a kernel unpacks into its first file system.
//!
//! Source: Linux, Documentation/driver-api/early-userspace/buffer-format.rst (the format `newc`).

use std::collections::BTreeSet;

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// Files and the folders that they are in, in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    names: BTreeSet<String>,
}

impl Archive {
    /// Adds a file that can be run; one that is there already is left as it is.
    pub(super) fn program(&mut self, name: &str, content: &[u8]) {
        for (at, _) in name.match_indices('/') {
            self.entry(&name[..at], FOLDER, b"");
        }
        self.entry(name, PROGRAM, content);
    }

    /// The archive's bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, b"");
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        if !self.names.insert(name.to_owned()) {
            return;
        }
        let number = self.names.len();
        let links = if mode == FOLDER { 2 } else { 1 };
        let fields = [number, mode as usize, 0, 0, links, 0, content.len(), 0, 0, 0, 0, name.len() + 1, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    /// Both the name and the content end at a multiple of four.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::Archive;

    /// Goal: an archive has each file and folder once, where the format says. Method: its bytes.
    #[test]
    fn an_archive_has_each_file_once() {
        let mut archive = Archive::default();
        archive.program("bin/a", b"first");
        archive.program("bin/b", b"");
        archive.program("bin/a", b"second");
        let bytes = archive.finish();
        let text = String::from_utf8_lossy(&bytes);
        let names: Vec<usize> = ["bin\0", "bin/a\0", "bin/b\0", "TRAILER!!!\0"]
            .map(|name| text.find(name).expect("it is there"))
            .into();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
        assert_eq!(text.matches("070701").count(), 4);
        assert!(text.contains("first") && !text.contains("second"));
        let second = text.find("070701").and_then(|at| text[at + 6..].find("070701")).expect("one more") + 6;
        assert_eq!((second, &text[second + 54..second + 62], bytes.len() % 4), (116, "00000005", 0));
    }
}
