//! The only two ways in which we change a tracing instance: write to a file of it, remove it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes to an existing file; never creates or truncates one.
pub(super) fn write(path: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// Switches the instance `path` off and removes it.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    // Both may fail for an instance that is half made; the removal below is what counts.
    let _ = write(&path.join("tracing_on"), "0");
    let _ = write(&path.join("events/enable"), "0");
    fs::remove_dir(path)
}
