//! The only ways in which we change a tracing instance: write to a file of it, clear its buffers, remove it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes to an existing file; never creates or truncates one.
pub(super) fn write(path: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// Throws away what is in the buffers: so the kernel takes it when `trace` is cut.
pub(super) fn clear(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).truncate(true).open(path).map(drop)
}

/// Removes the instance `path`, which switches its events off. Nothing is switched off before:
/// an instance that a process reads is busy, and must go on recording untouched.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    fs::remove_dir(path)
}
