//! Files that a command reads: scenarios and costs.

use std::io::{self, Read};
use std::path::Path;

/// The longest scenario or costs file that is read, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// The text of a file that is not longer than 1 MiB: a scenario, or costs.
///
/// # Errors
/// Those of reading, and of one that is longer.
pub fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "longer than 1 MiB"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, read};

    /// Goal: a file is read whole or refused. Method: one that is as long as allowed, and a byte more.
    #[test]
    fn a_file_is_read_whole_or_refused() {
        let path = std::env::temp_dir().join(format!("quietcore-input-{}", std::process::id()));
        let text = "a".repeat(BYTES_MAX as usize);
        std::fs::write(&path, &text).expect("a file");
        assert!(read(&path).expect("it is not too long") == text);
        std::fs::write(&path, text + "b").expect("a file");
        let refused = read(&path).expect_err("it is too long");
        std::fs::remove_file(&path).expect("it is ours");
        assert_eq!(refused.to_string(), "longer than 1 MiB");
    }
}
