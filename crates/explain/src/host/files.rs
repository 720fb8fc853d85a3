//! Bounded reading below a root: what of a host (or of a copy of one) may be looked at, and how much.
//!
//! Invariants: every path is taken below `root`, and one that leads out of it is refused (`below.rs`); only
//! regular files are opened, and only for reading; a file, a directory and the whole examination have a size
//! cap. A missing file is normal (`None`); every other failure is kept in `unreadable` and is never an error.
//! A copy, if one is wanted, has all that was read (`copy.rs`).
//! Not here: what any file means.

use super::below::RootFolder;
use super::copy::{CopiedEntry, HostCopy};
use quietcore_core::{CpuId, CpuSet};
use quietcore_trace::is_steering;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;

/// Largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Largest number of entries of one directory that are looked at.
const ENTRY_COUNT_MAX: usize = 4096;
/// Largest number of files and directories opened in one examination.
const OPEN_COUNT_MAX: u32 = 65_536;
/// Largest number of remembered failures.
const UNREADABLE_COUNT_MAX: usize = 256;
/// Longest excerpt of a file kept as evidence, in characters.
const EXCERPT_CHARS_MAX: usize = 300;
/// Most processes whose names are looked at.
const PROCESS_COUNT_MAX: usize = 32_768;
/// Longest name of a process, with its line end and one byte more.
const NAME_BYTES_MAX: u64 = 17;
/// The permission of every user to read a file.
const OTHERS_READ: u32 = 0o004;

/// One value of the host, with the file that proves it.
#[derive(Clone, Debug)]
pub(crate) struct Fact<T> {
    /// Path as seen on the host, not below the root.
    pub(crate) path: String,
    /// What the file holds, shortened.
    pub(crate) text: String,
    /// What that means.
    pub(crate) value: T,
}

impl<T> Fact<T> {
    pub(crate) fn new(path: impl Into<String>, text: &str, value: T) -> Self {
        Self { path: path.into(), text: excerpt(text), value }
    }
}

/// Reads files below a root and remembers what it could not read.
#[derive(Debug)]
pub(crate) struct Reader {
    /// `None` if it cannot be opened.
    root: Option<RootFolder>,
    /// Path and reason, in the order met. Written by [`Reader::refuse`] only.
    unreadable: Vec<(String, String)>,
    open_count: u32,
    /// What was read, if that is wanted.
    copy: Option<HostCopy>,
}

impl Reader {
    pub(crate) fn new(root: &Path) -> Self {
        let mut reader = Self { root: None, unreadable: Vec::new(), open_count: 0, copy: None };
        match RootFolder::open(root) {
            Ok(root) => reader.root = Some(root),
            Err(error) => reader.refuse("/", error.to_string()),
        }
        reader
    }

    /// One that keeps a copy of all that it reads.
    pub(crate) fn copying(root: &Path) -> Self {
        Self { copy: Some(HostCopy::default()), ..Self::new(root) }
    }

    /// Remembers that `path` could not be used. Texts come from the host: made printable here.
    pub(crate) fn refuse(&mut self, path: &str, reason: impl AsRef<str>) {
        if self.unreadable.len() < UNREADABLE_COUNT_MAX {
            self.unreadable.push((excerpt(path), excerpt(reason.as_ref())));
        }
    }

    /// What could not be used, and the copy of one that keeps it.
    pub(crate) fn into_parts(self) -> (Vec<(String, String)>, HostCopy) {
        (self.unreadable, self.copy.unwrap_or_default())
    }

    /// Whether `path` is there at all (any kind of file).
    pub(crate) fn exists(&mut self, path: &str) -> bool {
        let exists = self.with_root(path, |root| root.find(path)).is_some();
        if exists {
            self.keep(path, || CopiedEntry::File { bytes: Vec::new(), is_public: true });
        }
        exists
    }

    /// Whether `path` is a folder.
    pub(crate) fn is_folder(&mut self, path: &str) -> bool {
        let is_folder = self.with_root(path, |root| root.find(path)?.is_folder()) == Some(true);
        if is_folder {
            self.keep(path, || CopiedEntry::Folder);
        }
        is_folder
    }

    /// The whole file as text; `None` when it is missing or refused.
    pub(crate) fn text(&mut self, path: &str) -> Option<String> {
        self.text_up_to(path, FILE_BYTES_MAX)
    }

    /// As [`Reader::text`] with another cap, for the few files that grow with the machine.
    pub(crate) fn text_up_to(&mut self, path: &str, bytes_max: u64) -> Option<String> {
        let (bytes, is_public) = self.bytes(path, bytes_max + 1)?;
        self.keep(path, || CopiedEntry::File { bytes: bytes.clone(), is_public });
        self.decoded(path, bytes, bytes_max)
    }

    /// What `pick` takes of the text of a file. A copy has no more of it.
    pub(crate) fn part(&mut self, path: &str, pick: impl FnOnce(&str) -> String) -> Option<String> {
        let (bytes, is_public) = self.bytes(path, FILE_BYTES_MAX + 1)?;
        let part = pick(&self.decoded(path, bytes, FILE_BYTES_MAX)?);
        self.keep(path, || CopiedEntry::File { bytes: part.clone().into_bytes(), is_public });
        Some(part)
    }

    /// The first `bytes_max` bytes; what follows is not missed, and bad bytes are replaced.
    pub(crate) fn head(&mut self, path: &str, bytes_max: u64) -> Option<String> {
        let (bytes, is_public) = self.bytes(path, bytes_max)?;
        self.keep(path, || CopiedEntry::File { bytes: bytes.clone(), is_public });
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The trimmed file as a value of `T`, by `parse`.
    pub(crate) fn fact<T, E: ToString>(
        &mut self,
        path: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<Fact<T>> {
        let text = self.text(path)?;
        match parse(text.trim()) {
            Ok(value) => Some(Fact::new(path, text.trim(), value)),
            Err(error) => {
                self.refuse(path, error.to_string());
                None
            }
        }
    }

    /// A file that holds a kernel list (`0-3,8`).
    pub(crate) fn list(&mut self, path: &str) -> Option<Fact<CpuSet>> {
        self.fact(path, CpuSet::from_str)
    }

    /// A file that holds a kernel mask (`ff,0000000f`).
    pub(crate) fn mask(&mut self, path: &str) -> Option<Fact<CpuSet>> {
        self.fact(path, CpuSet::from_mask)
    }

    /// A file that holds one decimal number.
    pub(crate) fn number(&mut self, path: &str) -> Option<Fact<i64>> {
        self.fact(path, i64::from_str)
    }

    /// A file that holds a word or a line.
    pub(crate) fn word(&mut self, path: &str) -> Option<Fact<String>> {
        self.fact(path, |text| Ok::<_, String>(text.to_owned()))
    }

    /// The names of the directories in `path`, in order (`2` before `10`).
    pub(crate) fn dirs(&mut self, path: &str) -> Vec<String> {
        let opened = self.with_root(path, |root| root.find(path)?.entries());
        let Some(entries) = opened else { return Vec::new() };
        let mut names = Vec::new();
        for (at, entry) in entries.enumerate() {
            if at == ENTRY_COUNT_MAX {
                self.refuse(path, format!("more than {ENTRY_COUNT_MAX} entries; the rest was not looked at"));
                break;
            }
            let Ok(entry) = entry else { continue };
            // Links count: /sys/class is made of them. Each is checked when something below is read.
            let kind = entry.file_type();
            if kind.is_ok_and(|kind| kind.is_dir() || kind.is_symlink()) {
                match entry.file_name().into_string() {
                    Ok(name) => names.push(name),
                    Err(name) => {
                        self.refuse(&format!("{path}/{}", name.to_string_lossy()), "not a UTF-8 name")
                    }
                }
            }
        }
        names.sort_by_key(|name| (name.parse::<u64>().unwrap_or(u64::MAX), name.clone()));
        for name in &names {
            self.keep(&format!("{path}/{name}"), || CopiedEntry::Folder);
        }
        names
    }

    /// Whether a process has this name, and the file that says so; `None` where that is not known. Of the
    /// others only the first one is kept in a copy.
    pub(crate) fn process(&mut self, name: &str) -> Option<Fact<bool>> {
        let ids = self.process_ids();
        for id in ids.iter().take(PROCESS_COUNT_MAX) {
            let path = format!("/proc/{id}/comm");
            // A process that ended meanwhile, or is hidden, is no file that cannot be read.
            let mut comm = String::new();
            let file = self.root.as_ref()?.find(&path).and_then(|found| found.file());
            let is_read = file.is_ok_and(|file| file.take(NAME_BYTES_MAX).read_to_string(&mut comm).is_ok());
            if is_read && comm.trim_end_matches('\n') == name {
                let fact = self.word(&path)?;
                return Some(Fact::new(path, &fact.text, true));
            }
        }
        let first = self.word("/proc/1/comm")?;
        (ids.len() <= PROCESS_COUNT_MAX).then(|| Fact::new(first.path, &first.text, false))
    }

    fn process_ids(&mut self) -> Vec<u32> {
        let entries = self.with_root("/proc", |root| root.find("/proc")?.entries());
        let ids =
            entries.into_iter().flatten().filter_map(|one| one.ok()?.file_name().to_str()?.parse().ok());
        let mut ids: Vec<u32> = ids.take(PROCESS_COUNT_MAX + 1).collect();
        ids.sort_unstable();
        ids
    }

    /// A register of the processor, from `/dev/cpu/N/msr` of the running host as root, or from a copy of it;
    /// `None` where it cannot be had.
    pub(crate) fn register(&mut self, cpu: CpuId, register: u32) -> Option<Fact<u64>> {
        let path = format!("/dev/cpu/{cpu}/msr");
        let value = self.root.as_ref()?.register(&path, cpu, register).ok()?;
        self.keep(&path, || {
            let mut bytes = vec![0; register as usize];
            bytes.extend(value.to_le_bytes());
            CopiedEntry::File { bytes, is_public: false }
        });
        Some(Fact::new(path, &value.to_string(), value))
    }

    /// The first `bytes_max` bytes, and whether every user may read the file.
    fn bytes(&mut self, path: &str, bytes_max: u64) -> Option<(Vec<u8>, bool)> {
        self.with_root(path, |root| {
            let file = root.find(path)?.file()?;
            let is_public = file.metadata()?.mode() & OTHERS_READ != 0;
            let mut bytes = Vec::new();
            file.take(bytes_max).read_to_end(&mut bytes)?;
            Ok((bytes, is_public))
        })
    }

    /// `bytes` as text, unless they are more than `bytes_max` or none.
    fn decoded(&mut self, path: &str, bytes: Vec<u8>, bytes_max: u64) -> Option<String> {
        if bytes.len() as u64 > bytes_max {
            self.refuse(path, format!("larger than {bytes_max} bytes"));
            return None;
        }
        String::from_utf8(bytes).map_err(|_| self.refuse(path, "not UTF-8 text")).ok()
    }

    fn keep(&mut self, path: &str, entry: impl FnOnce() -> CopiedEntry) {
        if let Some(copy) = &mut self.copy {
            copy.keep(path, entry());
        }
    }

    /// What `act` comes to with the root; `None` if `path` is missing, refused or one too many.
    fn with_root<T>(&mut self, path: &str, act: impl FnOnce(&RootFolder) -> io::Result<T>) -> Option<T> {
        self.open_count = self.open_count.saturating_add(1);
        if self.open_count == OPEN_COUNT_MAX + 1 {
            self.refuse(
                path,
                format!("{OPEN_COUNT_MAX} files looked at; this one and all later ones were not"),
            );
        }
        if self.open_count > OPEN_COUNT_MAX {
            return None;
        }
        match act(self.root.as_ref()?) {
            Ok(done) => Some(done),
            // A queue without a mapping answers ENOENT on open; that is a missing file as well.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => None,
            Err(error) => {
                self.refuse(path, error.to_string());
                None
            }
        }
    }
}

/// Shortens, and replaces everything a terminal could act on.
pub(crate) fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().take(EXCERPT_CHARS_MAX).map(printable).collect();
    if text.chars().nth(EXCERPT_CHARS_MAX).is_some() {
        short.push_str(" ...");
    }
    short
}

/// A line break or tab becomes a blank, what steers a terminal becomes U+FFFD.
pub(crate) fn printable(letter: char) -> char {
    match letter {
        '\n' | '\t' => ' ',
        _ if is_steering(letter) => char::REPLACEMENT_CHARACTER,
        _ => letter,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Reader, RootFolder, excerpt};
    use crate::host::below::Lookup;
    use rustix::fs::{CWD, FileType, Mode, inotify, mknodat};
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    /// Readers of `root` that keep below it in each way.
    fn readers(root: &Path) -> [Reader; 2] {
        [Lookup::OnTheWay, Lookup::Afterwards].map(|lookup| {
            let below = RootFolder::open(root).unwrap().by(lookup);
            Reader { root: Some(below), ..Reader::new(root) }
        })
    }

    pub(crate) fn scratch(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("quietcore-files-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("inner")).unwrap();
        root
    }

    /// Goal: only what is below the root is read. Method: links in, out and to nowhere, a path that climbs,
    /// and a link that leads out through this process; in each way of looking.
    #[test]
    fn a_link_out_of_the_root_is_refused() {
        let root = scratch("link");
        fs::write(root.join("inner/value"), "7\n").unwrap();
        symlink("inner/value", root.join("near")).unwrap();
        symlink("inner/../near", root.join("roundabout")).unwrap();
        symlink("/etc/passwd", root.join("out")).unwrap();
        symlink("../..", root.join("inner/up")).unwrap();
        symlink("/proc/self/root/etc/passwd", root.join("magic")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        for mut reader in readers(&root) {
            assert_eq!(reader.number("/near").map(|fact| fact.value), Some(7));
            assert_eq!(reader.number("/roundabout").map(|fact| fact.value), Some(7));
            assert!(reader.text("/out").is_none() && !reader.exists("/out"));
            assert!(reader.text("/../../../../../../etc/passwd").is_none());
            assert!(reader.text("/magic").is_none());
            assert!(reader.dirs("/inner/up").is_empty());
            assert_eq!(reader.dirs("/"), ["dangling", "inner", "magic", "near", "out", "roundabout"]);
            assert!(reader.text("/dangling").is_none());
            let unreadable = reader.into_parts().0;
            assert_eq!(unreadable.len(), 5, "{unreadable:?}");
            assert!(unreadable.iter().all(|(_, reason)| reason == "leads out of the root"), "{unreadable:?}");
        }
        fs::remove_dir_all(root).unwrap();
    }

    /// Goal: what is no regular file is not even opened: a device may act, and a FIFO's writer would go on.
    /// Method: the kernel tells who opens a FIFO, a device (as root) and, to show that it does, a file.
    #[test]
    fn a_device_or_fifo_is_never_opened() {
        let root = scratch("kinds");
        fs::write(root.join("file"), "7\n").unwrap();
        mknodat(CWD, root.join("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let null = rustix::fs::makedev(1, 3);
        let made = mknodat(CWD, root.join("device"), FileType::CharacterDevice, Mode::RUSR, null);
        if let Err(error) = made {
            quietcore_testing::left_out("the device of a_device_or_fifo_is_never_opened", error);
            fs::write(root.join("device"), "7\n").unwrap();
        }
        for name in ["file", "fifo", "device"] {
            for mut reader in readers(&root) {
                let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
                inotify::add_watch(&watch, root.join(name), inotify::WatchFlags::OPEN).unwrap();
                let is_regular = name == "file" || (name == "device" && made.is_err());
                assert_eq!(reader.text(&format!("/{name}")).is_some(), is_regular, "{name}");
                let was_opened = rustix::io::read(&watch, &mut [0; 256]).is_ok();
                assert_eq!(was_opened, is_regular, "{name}");
            }
        }
        fs::remove_dir_all(root).unwrap();
    }

    /// Goal: size and kind are bounded, where docs/reference/doctor.md says. Method: a file at the cap and
    /// one over it, junk as content and as name, a directory as file, and a file as root.
    #[test]
    fn large_binary_and_irregular_files_are_refused() {
        let root = scratch("large");
        fs::write(root.join("most"), vec![b'1'; 1 << 20]).unwrap();
        fs::write(root.join("large"), vec![b'1'; (1 << 20) + 1]).unwrap();
        fs::write(root.join("junk"), [0xff, 0xfe, 0]).unwrap();
        fs::create_dir(root.join(OsStr::from_bytes(b"inner/x\xff"))).unwrap();
        let mut reader = Reader::new(&root);
        assert_eq!(reader.text("/most").map(|text| text.len()), Some(1 << 20));
        for (path, reason) in [
            ("/large", "larger than 1048576 bytes"),
            ("/junk", "not UTF-8 text"),
            ("/inner", "not a regular file"),
        ] {
            assert!(reader.text(path).is_none(), "{path}");
            assert_eq!(reader.unreadable.pop(), Some((path.to_owned(), reason.to_owned())));
        }
        assert_eq!(reader.head("/most", 3).as_deref(), Some("111"));
        assert!(reader.dirs("/inner").is_empty());
        assert_eq!(reader.unreadable, [("/inner/x\u{fffd}".to_owned(), "not a UTF-8 name".to_owned())]);
        let file = Reader::new(&root.join("most"));
        assert_eq!(file.unreadable, [("/".to_owned(), "Not a directory (os error 20)".to_owned())]);
        fs::remove_dir_all(root).unwrap();
    }

    /// Goal: the number of entries, files and failures is bounded, and what is left out is told once.
    /// Method: one more of each than docs/reference/doctor.md allows, and 256 failures.
    #[test]
    fn what_is_too_many_is_told_once() {
        let root = scratch("many");
        for entry in 0..4096 {
            fs::create_dir(root.join(format!("inner/{entry}"))).unwrap();
        }
        let mut reader = Reader::new(&root);
        let names = reader.dirs("/inner");
        assert_eq!((names.len(), names[2].as_str(), names[10].as_str()), (4096, "2", "10"));
        assert_eq!(reader.unreadable, []);
        fs::create_dir(root.join("inner/4096")).unwrap();
        assert_eq!(reader.dirs("/inner").len(), 4096);
        fs::write(root.join("file"), "7").unwrap();
        reader.open_count = 65_535;
        assert!(reader.exists("/inner"), "the last one");
        assert!(!reader.exists("/file") && !reader.exists("/other") && reader.text("/file").is_none());
        let told = [
            ("/inner", "more than 4096 entries; the rest was not looked at"),
            ("/file", "65536 files looked at; this one and all later ones were not"),
        ];
        assert_eq!(reader.unreadable, told.map(|(path, why)| (path.to_owned(), why.to_owned())));
        for _ in 2..300 {
            reader.refuse("/x", "y");
        }
        assert_eq!(reader.into_parts().0.len(), 256);
        fs::remove_dir_all(root).unwrap();
    }

    /// Goal: a terminal is safe from the host's file names. Method: an escape and a long text.
    #[test]
    fn an_excerpt_is_short_and_printable() {
        assert_eq!(excerpt("a\u{1b}[2Jb\nc\u{202e}\u{9b}"), "a\u{fffd}[2Jb c\u{fffd}\u{fffd}");
        assert_eq!(excerpt(&"x".repeat(300)), "x".repeat(300));
        assert_eq!(excerpt(&"x".repeat(301)), "x".repeat(300) + " ...");
    }
}
