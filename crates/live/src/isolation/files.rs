//! Files of a host, or of a copy of one below another root: how much of them is read.
//!
//! What a file says is hostile until it is parsed: it has a size cap, must be text, and what is kept of it
//! for people is short and printable. A file that is not there is normal; that is `None`. Absent: what any
//! file means.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Largest file that is read, in bytes: a list of 8192 single CPUs, and some.
const FILE_BYTES_MAX: u64 = 1 << 16;
/// Largest list of mounts. Machines full of containers have long ones.
const MOUNTS_BYTES_MAX: u64 = 4 << 20;
/// Largest number of entries of one folder that are looked at.
const ENTRY_COUNT_MAX: usize = 4096;
/// Longest excerpt of a file that is shown, in characters.
const EXCERPT_CHARS_MAX: usize = 120;

/// What a reader of masks asks for, by the paths that a host has.
pub(super) trait Files {
    /// The whole file; `None` when there is none.
    ///
    /// # Errors
    /// When there is one that cannot be read, is too large, or is no text.
    fn text(&self, path: &str) -> io::Result<Option<String>>;

    /// The names of the folders in `path`, in order; without those that are no UTF-8. None when there is no
    /// such folder.
    ///
    /// # Errors
    /// When there is one that cannot be read, or has too many entries.
    fn folders(&self, path: &str) -> io::Result<Vec<String>>;

    /// Opens a file whose changes the kernel tells of: those that come after this.
    fn open_for_changes(&self, path: &str) -> Option<File>;
}

/// The files below a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Below(pub(super) PathBuf);

impl Below {
    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }
}

impl Files for Below {
    fn text(&self, path: &str) -> io::Result<Option<String>> {
        let bytes_max = if path.ends_with("/mounts") { MOUNTS_BYTES_MAX } else { FILE_BYTES_MAX };
        match read_text(&self.path(path), bytes_max) {
            Ok(text) => Ok(Some(text)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn folders(&self, path: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.path(path)) {
            Ok(entries) => entries,
            // A group that was removed meanwhile has none.
            Err(error) if is_missing(&error) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let entries = entries.take(ENTRY_COUNT_MAX + 1).collect::<io::Result<Vec<_>>>()?;
        if entries.len() > ENTRY_COUNT_MAX {
            return Err(io::Error::other(format!("more than {ENTRY_COUNT_MAX} entries")));
        }
        let folders = entries.iter().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let mut names: Vec<_> = folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn open_for_changes(&self, path: &str) -> Option<File> {
        let mut file = open(&self.path(path)).ok()?;
        // A file of the kernel is read whole by one call that has room for it; what is told is what comes
        // after that.
        let mut bytes = [0; 256];
        file.read(&mut bytes).is_ok().then_some(file)
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Without waiting for a writer, if it is a pipe.
fn open(path: &Path) -> io::Result<File> {
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(nonblock).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
}

fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("larger than {bytes_max} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8 text"))
}

/// Shortens, and replaces everything that a terminal could act on.
pub(super) fn excerpt(text: &str) -> String {
    let printable = |letter: char| match letter {
        '\n' | '\t' => ' ',
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        _ if letter.is_control() => '\u{fffd}',
        _ => letter,
    };
    let mut short: String = text.trim().chars().take(EXCERPT_CHARS_MAX).map(printable).collect();
    if text.trim().chars().nth(EXCERPT_CHARS_MAX).is_some() {
        short.push_str(" ...");
    }
    short
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::tests::Folder;
    use super::{Below, ENTRY_COUNT_MAX, FILE_BYTES_MAX, Files, excerpt};
    use std::fs;
    use std::os::unix::fs::symlink;

    /// Goal: a file of any size is read to a bound, and refused beyond it, not cut; lists of mounts have a
    /// larger one. Method: files of the size of the bound, and one byte more.
    #[test]
    fn files_have_a_bound() {
        let folder = Folder::new();
        let files = Below(folder.0.clone());
        let most = usize::try_from(FILE_BYTES_MAX).expect("small");
        for (path, size, is_read) in
            [("/a", most, true), ("/b", most + 1, false), ("/proc/self/mounts", most + 1, true)]
        {
            folder.write(path, &"x".repeat(size));
            let read = files.text(path).map(|text| text.expect("it is there").len()).ok();
            assert_eq!(read, is_read.then_some(size), "{path}");
        }
        assert!(matches!(files.text("/c"), Ok(None)), "what is not there is no error");
        assert!(matches!(files.text("/a/inside"), Ok(None)), "nor what cannot be there");
    }

    /// Goal: nothing but a regular file is read. Method: a device that is empty, and text that is none.
    #[test]
    fn what_is_no_file_of_text_is_refused() {
        let folder = Folder::new();
        let files = Below(folder.0.clone());
        symlink("/dev/null", folder.0.join("device")).expect("a folder of the test's own");
        assert!(files.text("/device").is_err());
        assert!(files.open_for_changes("/device").is_none());
        fs::write(folder.0.join("binary"), [0xff, 0xfe]).expect("a folder of the test's own");
        assert!(files.text("/binary").is_err());
    }

    /// Goal: folders are found in order, and nothing else. Method: many, made in another order, and a file.
    #[test]
    fn folders_are_in_order() {
        let folder = Folder::new();
        let mut names: Vec<_> = (0..20).map(|number| format!("g{}", number * 7 % 20 + 10)).collect();
        for name in &names {
            folder.write(&format!("/groups/{name}/file"), "");
        }
        folder.write("/groups/file", "");
        names.sort();
        let files = Below(folder.0.clone());
        assert_eq!(files.folders("/groups").expect("it is there"), names);
        assert!(files.folders("/missing").expect("normal").is_empty());
        assert!(files.folders("/groups/file").expect("normal").is_empty());
    }

    /// Goal: what cannot be looked through is an error, and has no folders left out. Method: a folder of as
    /// many entries as are looked at, and of one more; one that leads to itself.
    #[test]
    fn folders_that_cannot_be_read_are_told() {
        let folder = Folder::new();
        let files = Below(folder.0.clone());
        symlink("loop", folder.0.join("loop")).expect("a folder of the test's own");
        assert!(files.folders("/loop").is_err());
        let path = folder.0.join("many");
        fs::create_dir(&path).expect("a folder of the test's own");
        for number in 0..ENTRY_COUNT_MAX {
            fs::File::create(path.join(number.to_string())).expect("it can be made");
        }
        assert!(files.folders("/many").is_ok());
        fs::File::create(path.join("more")).expect("it can be made");
        assert!(files.folders("/many").is_err());
    }

    /// Goal: a file that can be read is opened, one that cannot is not. Method: a file, none, and the memory
    /// of this process, which has nothing at 0.
    #[test]
    fn what_cannot_be_read_is_not_opened_for_changes() {
        let folder = Folder::new();
        folder.write("/there", "member\n");
        let files = Below(folder.0.clone());
        assert!(files.open_for_changes("/there").is_some());
        assert!(files.open_for_changes("/missing").is_none());
        assert!(Below("/".into()).open_for_changes("/proc/self/mem").is_none());
    }

    /// Goal: an excerpt is one short line that no terminal acts on, and says when it is cut. Method: letters
    /// of each kind, and texts around the longest.
    #[test]
    fn excerpts_are_short_and_printable() {
        assert_eq!(excerpt(" a\tb\nc \n"), "a b c");
        assert_eq!(excerpt("\u{1b}[31m\u{7}\u{202e}\u{85}x"), "\u{fffd}[31m\u{fffd}\u{fffd}\u{fffd}x");
        let longest = "x".repeat(120);
        assert_eq!(excerpt(&longest), longest);
        assert_eq!(excerpt(&(longest.clone() + "y")), longest + " ...");
    }
}
