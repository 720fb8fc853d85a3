//! Files that commands of ours read and write, with errors that name them.

use crate::workspace::Failure;
use std::fs;
use std::io::Error;
use std::path::Path;

/// # Errors
/// When it cannot be read.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| failed(path, &error))
}

/// # Errors
/// When it cannot be read, or is no UTF-8.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| failed(path, &error))
}

/// With the folders above it.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).and_then(|()| fs::write(path, content)).map_err(|error| failed(path, &error))
}

/// An empty folder: what was in it is removed.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn empty(folder: &Path) -> Result<(), Failure> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| failed(folder, &error))?;
    }
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))
}

pub(crate) fn failed(path: &Path, error: &Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()), "is it there, is there room, and may we write?")
}
