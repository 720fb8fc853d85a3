//! Where output goes: standard output in one piece, and files that appear whole or not at all.

use crate::error::CliError;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Prints `text` to standard output.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Says a line on standard error. Where it cannot be written the work goes on.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "quietcore: {text}");
}

/// Prints `value` as indented JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| CliError::Output(error.into()))?;
    text.push('\n');
    print(&text)
}

/// A file that appears under its name only when it is finished, so that no reader sees half of
/// it. Where the file system can do that (`O_TMPFILE`) it has no name until then, and even a
/// killed process leaves nothing; elsewhere it has a hidden name that a drop removes.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    file: Option<io::BufWriter<File>>,
    is_unnamed: bool,
    temporary: PathBuf,
    target: PathBuf,
}

impl AtomicFile {
    /// Refuses what is no regular file: renaming over a device or a pipe would replace it. Through
    /// a symbolic link, the file it leads to is replaced.
    pub(crate) fn create(target: &Path) -> Result<Self, CliError> {
        let failed = |error| CliError::Write(target.to_owned(), error);
        let target = &fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        if fs::symlink_metadata(target).is_ok_and(|found| !found.is_file()) {
            let why = "this is no regular file; name a file, which is then replaced";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        let Some(name) = target.file_name() else {
            return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
        };
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.tmp", std::process::id()));
        let temporary = target.with_file_name(hidden);
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
        let unnamed = rustix::fs::open(folder.unwrap_or(Path::new(".")), flags, Mode::from(0o644));
        let is_unnamed = unnamed.is_ok();
        let file = match unnamed {
            Ok(file) => File::from(file),
            Err(_) => File::options().write(true).create_new(true).open(&temporary).map_err(failed)?,
        };
        Ok(Self { file: Some(io::BufWriter::new(file)), is_unnamed, temporary, target: target.to_owned() })
    }

    pub(crate) fn finish(mut self) -> Result<(), CliError> {
        self.replace_target().map_err(|error| CliError::Write(self.target.clone(), error))
    }

    fn replace_target(&mut self) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        if self.is_unnamed {
            // A link cannot replace a file, a rename can: link beside, then rename.
            let this = format!("/proc/self/fd/{}", file.as_raw_fd());
            rustix::fs::linkat(CWD, this, CWD, &self.temporary, AtFlags::SYMLINK_FOLLOW)?;
        }
        fs::rename(&self.temporary, &self.target)
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
        // After a successful finish, or without a name, this finds nothing.
        let _ = fs::remove_file(&self.temporary);
    }
}

#[cfg(test)]
mod tests {
    use super::AtomicFile;
    use std::io::Write;

    /// Goal: only regular files are replaced; a link stays, and its file is.
    #[test]
    fn only_a_regular_file_is_replaced() {
        let folder = std::env::temp_dir().join(format!("quietcore-special-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert!(AtomicFile::create(&folder).is_err(), "a folder");
        assert!(AtomicFile::create(std::path::Path::new("/dev/null")).is_err(), "a device");
        let (file, link) = (folder.join("file"), folder.join("link"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut out = AtomicFile::create(&link).unwrap();
        out.write_all(b"new").unwrap();
        out.finish().unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Goal: the file appears whole at the end, and an abandoned one leaves nothing.
    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("quietcore-output-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let target = folder.join("metrics.prom");
        let mut abandoned = AtomicFile::create(&target).unwrap();
        abandoned.write_all(b"half").unwrap();
        drop(abandoned);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        let mut whole = AtomicFile::create(&target).unwrap();
        whole.write_all(b"whole").unwrap();
        assert!(!target.exists());
        whole.finish().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"whole");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
