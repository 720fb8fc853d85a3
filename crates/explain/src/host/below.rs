//! Opening what is below a directory, and nothing else: the directory may be a copy of unknown origin.
//!
//! A path is looked up without opening what it leads to (`O_PATH`), so a device or a FIFO of the tree notices
//! nothing. What was found is a regular file, or it is not opened; the opening goes through the descriptor,
//! so no other file can take its place meanwhile. One device is opened: the one with a processor's registers,
//! known by its number, of the running host alone and by root alone.
//!
//! The kernel itself keeps the lookup below the root (`openat2`, Linux 5.6). Where it does not, because it is
//! older or a sandbox refuses the call, what was found is asked where it is; a tree that is changed while it
//! is read cannot lead out of the root either way.

use quietcore_core::CpuId;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::fs::{self, File, ReadDir};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// The number of the driver of processors' registers; the other half of a device's is its CPU.
const MSR_MAJOR: u32 = 202;
/// How often a lookup is tried during which a folder was renamed.
const ATTEMPTS: u32 = 8;

/// A directory, opened once.
#[derive(Debug)]
pub(super) struct RootFolder {
    folder: OwnedFd,
    /// Where it is, without links.
    path: PathBuf,
    lookup: Lookup,
}

/// What keeps a lookup below the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// The kernel, on the way.
    OnTheWay,
    /// A look at where the file is that was found.
    Afterwards,
}

/// What a path led to; not opened yet.
#[derive(Debug)]
pub(super) struct FoundFile(OwnedFd);

impl RootFolder {
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let folder = rustix::fs::open(root, LOOK | OFlags::DIRECTORY, Mode::empty())?;
        // Files are opened through /proc; without it they would all seem to be missing.
        let path = place_of(&folder).map_err(|error| {
            io::Error::other(format!("/proc of this machine is needed, to open files safely: {error}"))
        })?;
        let is_kept = on_the_way(&folder, ".").is_ok();
        let lookup = if is_kept { Lookup::OnTheWay } else { Lookup::Afterwards };
        Ok(Self { folder, path, lookup })
    }

    #[cfg(test)]
    pub(super) fn by(self, lookup: Lookup) -> Self {
        Self { lookup, ..self }
    }

    /// What `path` leads to, links followed.
    pub(super) fn find(&self, path: &str) -> io::Result<FoundFile> {
        let path = match path.trim_start_matches('/') {
            "" => ".",
            path => path,
        };
        let outside = || io::Error::other("leads out of the root");
        match self.lookup {
            Lookup::OnTheWay => match on_the_way(&self.folder, path) {
                Err(Errno::XDEV) => Err(outside()),
                found => Ok(FoundFile(found?)),
            },
            Lookup::Afterwards => {
                let found = rustix::fs::openat(&self.folder, path, LOOK, Mode::empty())?;
                if place_of(&found)?.starts_with(&self.path) { Ok(FoundFile(found)) } else { Err(outside()) }
            }
        }
    }

    /// A register of `cpu`, from its device at `path`, or from a file that has it at its place.
    pub(super) fn register(&self, path: &str, cpu: CpuId, register: u32) -> io::Result<u64> {
        let found = self.find(path)?;
        let is_running = self.path == Path::new("/") && rustix::process::geteuid().is_root();
        let file = if is_running && found.is_msr_of(cpu)? { found.opened()? } else { found.file()? };
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, register.into())?;
        Ok(u64::from_le_bytes(bytes))
    }
}

impl FoundFile {
    /// The file, to be read; refused if it is not a regular one.
    pub(super) fn file(&self) -> io::Result<File> {
        let stat = rustix::fs::fstat(&self.0)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("not a regular file"));
        }
        self.opened()
    }

    pub(super) fn is_folder(&self) -> io::Result<bool> {
        let stat = rustix::fs::fstat(&self.0)?;
        Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    }

    fn is_msr_of(&self, cpu: CpuId) -> io::Result<bool> {
        let stat = rustix::fs::fstat(&self.0)?;
        let is_device = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice;
        Ok(is_device && stat.st_rdev == rustix::fs::makedev(MSR_MAJOR, cpu.index() as u32))
    }

    fn opened(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::open(name_of(&self.0), flags, Mode::empty())?))
    }

    /// What is in the directory.
    pub(super) fn entries(&self) -> io::Result<ReadDir> {
        fs::read_dir(name_of(&self.0))
    }
}

fn on_the_way(folder: &OwnedFd, path: &str) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let look = || rustix::fs::openat2(folder, path, LOOK, Mode::empty(), resolve);
    let mut found = look();
    for _ in 1..ATTEMPTS {
        if found.as_ref().err() != Some(&Errno::AGAIN) {
            break;
        }
        found = look();
    }
    found
}

/// The name under which a descriptor's file can be opened.
fn name_of(found: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", found.as_raw_fd())
}

fn place_of(found: &OwnedFd) -> io::Result<PathBuf> {
    fs::read_link(name_of(found))
}
