//! `quietcore doctor --collect FILE`: what the check-up reads of a host, packed to examine it elsewhere.
//!
//! Invariants: the archive appears whole or not at all, and has what was read and nothing else; a new one is
//! for its owner alone if it has something that not every user of the host may read.

use crate::atomic_file::{AtomicFile, OutputContent};
use crate::error::CliError;
use crate::text::Page;
use crate::typed::program;
use flate2::Compression;
use flate2::write::GzEncoder;
use quietcore_explain::{CopiedEntry, Facts, HostCopy};
use quietcore_trace::{shell_word, visible, visible_path};
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use tar::{Builder, EntryType, Header};

/// Permissions of what is unpacked.
const FOLDER_MODE: u32 = 0o755;
const PUBLIC_MODE: u32 = 0o644;
const PRIVATE_MODE: u32 = 0o600;

/// Packs the host below `root` into `file`, and says how to go on.
pub(crate) fn collect(root: &Path, file: &Path) -> Result<(), CliError> {
    let (facts, copy) = Facts::read_and_copy(root)
        .map_err(|error| CliError::Usage(format!("--collect {}: {error}", visible_path(file))))?;
    let content = if copy.is_public() { OutputContent::Ordinary } else { OutputContent::Live };
    let archive = AtomicFile::create(file, content)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    pack(&copy, now, archive).map_err(|error| CliError::Write(file.to_owned(), error))?.finish()?;
    Page::print(|page| show(page, file, &facts, &copy))
}

/// Writes `copy` as a tar archive, compressed with gzip; `now` is the time that its files get.
fn pack<W: Write>(copy: &HostCopy, now: u64, out: W) -> io::Result<W> {
    let mut archive = Builder::new(GzEncoder::new(out, Compression::default()));
    for (path, entry) in copy.entries() {
        let (kind, mode, bytes) = match entry {
            CopiedEntry::Folder => (EntryType::Directory, FOLDER_MODE, &[][..]),
            CopiedEntry::File { bytes, is_public: true } => (EntryType::Regular, PUBLIC_MODE, &bytes[..]),
            CopiedEntry::File { bytes, is_public: false } => (EntryType::Regular, PRIVATE_MODE, &bytes[..]),
        };
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_mtime(now);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, path, bytes)?;
    }
    archive.into_inner()?.finish()
}

fn show(page: &mut Page, file: &Path, facts: &Facts, copy: &HostCopy) {
    let count = copy.entries().filter(|(_, entry)| **entry != CopiedEntry::Folder).count();
    let readers = if copy.is_public() {
        "every user of this host may read them all"
    } else {
        "not every user of this host may read them all, so a new archive is for you alone"
    };
    page.line(&format!("{}: {count} files; {readers}", visible_path(file)));
    for (path, why) in facts.unreadable.iter().filter(|(path, _)| !copy.holds(path)) {
        page.item(2, "left out", 8, &visible(&format!("{path}: {why}")));
    }
    page.line("To examine it, also on another machine:");
    let packed = shell_word(&file.to_string_lossy());
    page.line(&format!("  $ mkdir host && tar -xzf {packed} -C host && {} doctor --root host", program()));
}

#[cfg(test)]
mod tests {
    use super::pack;
    use quietcore_explain::Facts;
    use std::io::{self, Write};
    use std::path::Path;

    /// Takes so many bytes, then fails.
    struct FullDisk(usize);

    impl Write for FullDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.len() > self.0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Goal: an archive that could not be written to its end is an error. Method: a disk that is full at
    /// once, and one byte before the end.
    #[test]
    fn an_archive_that_has_no_end_is_an_error() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../explain/tests/hosts/telco-6.12");
        let (_, copy) = Facts::read_and_copy(&root).expect("it is small");
        let whole = pack(&copy, 7, Vec::new()).expect("memory").len();
        assert!(whole > 500, "{whole} bytes");
        for room in [0, whole - 1] {
            let failed = pack(&copy, 7, FullDisk(room)).err().map(|error| error.kind());
            assert_eq!(failed, Some(io::ErrorKind::StorageFull), "room for {room} of {whole} bytes");
        }
        assert!(pack(&copy, 7, FullDisk(whole)).is_ok());
    }
}
