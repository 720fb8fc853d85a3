//! Files that a command reads: scenarios and costs.

use std::io::{self, Read};
use std::path::Path;

/// The longest scenario or costs file that is read, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// A file that is not longer than it should be.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "longer than 1 MiB"));
    }
    Ok(text)
}
