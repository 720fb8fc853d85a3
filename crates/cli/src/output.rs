//! Where output goes: standard output in one piece, and files that appear whole or not at all.

use crate::error::CliError;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Prints `text` to standard output.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints `value` as indented JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| CliError::Output(error.into()))?;
    text.push('\n');
    print(&text)
}

/// A file that is written beside its place and renamed into it at the end, so that a reader (or
/// an interrupt) never sees half of it. Dropped without [`AtomicFile::finish`], it vanishes.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    file: Option<io::BufWriter<File>>,
    temporary: PathBuf,
    target: PathBuf,
}

impl AtomicFile {
    pub(crate) fn create(target: &Path) -> Result<Self, CliError> {
        let failed = |error| CliError::Write(target.to_owned(), error);
        let Some(name) = target.file_name() else {
            return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
        };
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.tmp", std::process::id()));
        let temporary = target.with_file_name(hidden);
        let file = File::options().write(true).create_new(true).open(&temporary).map_err(failed)?;
        Ok(Self { file: Some(io::BufWriter::new(file)), temporary, target: target.to_owned() })
    }

    pub(crate) fn finish(mut self) -> Result<(), CliError> {
        let write = self.file.take().map_or(Ok(()), |file| {
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all()
        });
        write
            .and_then(|()| fs::rename(&self.temporary, &self.target))
            .map_err(|error| CliError::Write(self.target.clone(), error))
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
        // After a successful finish the temporary name is gone and this finds nothing.
        let _ = fs::remove_file(&self.temporary);
    }
}

#[cfg(test)]
mod tests {
    use super::AtomicFile;
    use std::io::Write;

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
