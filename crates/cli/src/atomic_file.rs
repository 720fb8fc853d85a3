//! The one writer of output files: a file that appears under its name whole, or not at all.
//!
//! Invariants, as the writer may be root and the folder another user's: the folder is looked up once, and
//! every later step goes through its descriptor, so a path that is swapped meanwhile leads nowhere new. A
//! symbolic link at the name is followed only if it is this user's. A file that is replaced gives its mode
//! and owner to the new one. A temporary name that is taken is left alone, and only one that was made here
//! is removed.

use crate::error::CliError;
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// As the kernel: so many links lead to a file, not more.
const LINKS_MAX: u32 = 40;
/// So many temporary names are tried.
const NAMES_MAX: u32 = 100;
/// Permissions: those of a new file before the umask, and those of one that only its owner reads.
const SHARED_MODE: u32 = 0o666;
const PRIVATE_MODE: u32 = 0o600;
const PERMISSIONS: u32 = 0o777;
const OTHERS_WRITE: u32 = 0o002;

/// What a file is to hold, which decides who may read a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputContent {
    /// Nothing that its reader could not find out: the umask decides.
    Ordinary,
    /// Recorded from the running kernel, with tasks of all users, or read with rights that not every user
    /// has: for its owner alone.
    Live,
}

/// See the module. Where the file system can do that (`O_TMPFILE`) the file has no name until it is
/// finished, and even a killed process leaves nothing; elsewhere it has a hidden name that a drop removes.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    file: Option<BufWriter<File>>,
    place: Place,
    /// The name that it was given here, until it has its own.
    temporary: Option<String>,
    /// As the user wrote it.
    target: PathBuf,
}

impl AtomicFile {
    /// Refuses what is no regular file: renaming over a device or a pipe would replace it.
    pub(crate) fn create(target: &Path, content: OutputContent) -> Result<Self, CliError> {
        Self::begin(target, content).map_err(|error| CliError::Write(target.to_owned(), error))
    }

    fn begin(target: &Path, content: OutputContent) -> io::Result<Self> {
        let (place, replaced) = Place::of(target)?;
        let mode = match (&replaced, content) {
            (None, OutputContent::Ordinary) => SHARED_MODE,
            _ => PRIVATE_MODE,
        };
        let (file, temporary) = match unnamed(&place.folder, mode) {
            Ok(file) => (file, None),
            Err(_) => named(&place.folder, mode).map(|(file, name)| (file, Some(name)))?,
        };
        let file = File::from(file);
        let begun = Self { file: Some(BufWriter::new(file)), place, temporary, target: target.to_owned() };
        if let (Some(replaced), Some(file)) = (&replaced, &begun.file) {
            keep_owner_and_mode(file.get_ref(), replaced)?;
        }
        Ok(begun)
    }

    pub(crate) fn finish(mut self) -> Result<(), CliError> {
        self.replace_target().map_err(|error| CliError::Write(self.target.clone(), error))
    }

    fn replace_target(&mut self) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        let Place { folder, name } = &self.place;
        if self.temporary.is_none() {
            // A link cannot replace a file, a rename can: link beside, then rename.
            let this = format!("/proc/self/fd/{}", file.as_raw_fd());
            let link =
                |name: &str| rustix::fs::linkat(CWD, this.as_str(), folder, name, AtFlags::SYMLINK_FOLLOW);
            self.temporary = Some(under_free_name(link)?.1);
        }
        if let Some(temporary) = &self.temporary {
            rustix::fs::renameat(folder, temporary.as_str(), folder, name.as_os_str())?;
        }
        self.temporary = None;
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // It may be gone with its folder; there is nothing else to do about it.
            let _ = rustix::fs::unlinkat(&self.place.folder, temporary.as_str(), AtFlags::empty());
        }
    }
}

/// A folder that was opened once, and a name in it.
#[derive(Debug)]
struct Place {
    folder: OwnedFd,
    name: OsString,
}

impl Place {
    /// Where `target` is to be, and what is there now if that is to be replaced.
    fn of(target: &Path) -> io::Result<(Self, Option<Stat>)> {
        let mut place = Self::open(CWD, target)?;
        for _ in 0..LINKS_MAX {
            let Some((found, stat)) = place.look()? else { return Ok((place, None)) };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => {
                    place.refuse_planted(&stat)?;
                    return Ok((place, Some(stat)));
                }
                FileType::Symlink if !is_own(&stat) => {
                    let why = format!(
                        "this is a symbolic link of another user (uid {}), which is not followed; remove it, or \
                         name the file that it leads to",
                        stat.st_uid
                    );
                    return Err(refusal(why));
                }
                FileType::Symlink => {
                    let text = rustix::fs::readlinkat(&found, "", Vec::new())?;
                    place = Self::open(&place.folder, Path::new(OsStr::from_bytes(text.as_bytes())))?;
                }
                _ => {
                    let why = "this is no regular file; name a file, which is then replaced";
                    return Err(refusal(why.to_owned()));
                }
            }
        }
        Err(Errno::LOOP.into())
    }

    /// `path` as seen from the folder `from`.
    fn open(from: impl AsFd, path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_owned();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(from, folder.unwrap_or(Path::new(".")), flags, Mode::empty())?;
        Ok(Self { folder, name })
    }

    /// What has the name now, without following a link and without opening a device.
    fn look(&self) -> io::Result<Option<(OwnedFd, Stat)>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.folder, self.name.as_os_str(), flags, Mode::empty()) {
            Ok(found) => {
                let stat = rustix::fs::fstat(&found)?;
                Ok(Some((found, stat)))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Where all users can write, a file of another user may have been left to be filled: the new file would
    /// be that user's to read.
    fn refuse_planted(&self, found: &Stat) -> io::Result<()> {
        let folder = rustix::fs::fstat(&self.folder)?;
        if is_own(found) || folder.st_mode & OTHERS_WRITE == 0 {
            return Ok(());
        }
        Err(refusal(format!(
            "this file is of another user (uid {}), in a folder in which all users can write; remove it, or name \
             a file in a folder of your own",
            found.st_uid
        )))
    }
}

fn refusal(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

fn is_own(found: &Stat) -> bool {
    found.st_uid == rustix::process::geteuid().as_raw()
}

/// The mode of `replaced`, and its owner where that is another.
fn keep_owner_and_mode(file: &File, replaced: &Stat) -> io::Result<()> {
    let made = rustix::fs::fstat(file)?;
    let owner = (made.st_uid != replaced.st_uid).then(|| Uid::from_raw(replaced.st_uid));
    let group = (made.st_gid != replaced.st_gid).then(|| Gid::from_raw(replaced.st_gid));
    if owner.is_some() || group.is_some() {
        rustix::fs::fchown(file, owner, group).map_err(|error| {
            let (owner, group) = (replaced.st_uid, replaced.st_gid);
            let kept = format!("its owner (uid {owner}, gid {group}) cannot be kept: {error}");
            refusal(format!("{kept}; remove it first, or name another file"))
        })?;
    }
    // After the owner, whose change takes bits away.
    rustix::fs::fchmod(file, Mode::from_raw_mode(replaced.st_mode & PERMISSIONS))?;
    Ok(())
}

/// A file without a name, where the file system has such.
fn unnamed(folder: &OwnedFd, mode: u32) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    rustix::fs::openat(folder, ".", flags, Mode::from_raw_mode(mode))
}

/// A new file with a hidden name.
fn named(folder: &OwnedFd, mode: u32) -> rustix::io::Result<(OwnedFd, String)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    under_free_name(|name| rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(mode)))
}

/// Does `act` with the first temporary name that is not taken.
fn under_free_name<T>(mut act: impl FnMut(&str) -> rustix::io::Result<T>) -> rustix::io::Result<(T, String)> {
    for attempt in 0..NAMES_MAX {
        let name = temporary_name(attempt);
        match act(&name) {
            Err(Errno::EXIST) => {}
            done => return done.map(|done| (done, name)),
        }
    }
    Err(Errno::EXIST)
}

fn temporary_name(attempt: u32) -> String {
    format!(".quietcore-{}-{attempt}.tmp", std::process::id())
}

#[cfg(test)]
mod tests;
