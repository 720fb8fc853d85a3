//! Where a trace comes from: a file, compressed or not, or standard input.

use crate::expansion::EXPANSION_MAX;
use crate::visible::{shell_word, visible_path};
use std::fmt;
use std::fs::File;
use std::io::{self, Chain, Cursor, Read};
use std::path::{Path, PathBuf};

const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const XZ_MAGIC: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z'];
const TRACE_DAT_MAGIC: &[u8] = &[0x17, 0x08, 0x44, b't', b'r', b'a', b'c', b'i', b'n', b'g'];
const PROBE_BYTES: usize = 10;

/// Why a trace could not be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The file could not be opened or its first bytes not be read.
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The file is of a kind that must be converted first.
    Convert {
        /// The file.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
        /// The command that converts it.
        remedy: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => write!(out, "{}: {error}", visible_path(path)),
            Self::Convert { path, kind, remedy } => {
                write!(out, "{}: this is {kind}; convert it first: {remedy}", visible_path(path))
            }
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::Convert { .. } => None,
        }
    }
}

/// Opens a trace: text, or (with the feature `zstd`) text compressed with zstd; `-` is standard input.
///
/// Memory: one buffer, and up to 32 MiB more for a compressed input. One that expands to more than
/// [`EXPANSION_MAX`] times its size is refused while it is read; see [`open_expanding`].
///
/// # Errors
/// [`OpenError::Io`] names the file; [`OpenError::Convert`] says what a binary file is and which
/// command makes text of it.
pub fn open(path: &Path) -> Result<Box<dyn Read>, OpenError> {
    open_expanding(path, EXPANSION_MAX)
}

/// As [`open`], for an input that may expand to `expansion_max` times its compressed size (16 MiB are always
/// read). Reading on fails with [`ExpansionExceeded`](crate::ExpansionExceeded) inside of the error.
///
/// # Errors
/// As [`open`].
pub fn open_expanding(path: &Path, expansion_max: u32) -> Result<Box<dyn Read>, OpenError> {
    let failed = |error| OpenError::Io { path: path.to_owned(), error };
    if path == Path::new("-") {
        return decompress(path, io::stdin(), expansion_max);
    }
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    decompress(path, file, expansion_max)
}

/// As [`open`], for bytes that are in memory already (the bundled recordings).
///
/// # Errors
/// As [`open`].
pub fn open_bytes(name: &str, bytes: &'static [u8]) -> Result<Box<dyn Read>, OpenError> {
    decompress(Path::new(name), bytes, EXPANSION_MAX)
}

fn decompress(
    path: &Path,
    mut source: impl Read + 'static,
    expansion_max: u32,
) -> Result<Box<dyn Read>, OpenError> {
    let failed = |error| OpenError::Io { path: path.to_owned(), error };
    let mut front = Vec::with_capacity(PROBE_BYTES);
    source.by_ref().take(PROBE_BYTES as u64).read_to_end(&mut front).map_err(failed)?;
    let convert = |kind, remedy: &str| {
        let remedy = remedy.replace("FILE", &shell_word(&path.to_string_lossy()));
        Err(OpenError::Convert { path: path.to_owned(), kind, remedy })
    };
    if front.starts_with(TRACE_DAT_MAGIC) {
        return convert("trace-cmd's binary trace.dat", "trace-cmd report -i FILE > trace.txt");
    }
    if front.starts_with(GZIP_MAGIC) {
        return convert("a gzip file", "zcat FILE > trace.txt");
    }
    if front.starts_with(XZ_MAGIC) {
        return convert("an xz file", "xzcat FILE > trace.txt");
    }
    let is_zstd = front.starts_with(ZSTD_MAGIC);
    let whole: Chain<Cursor<Vec<u8>>, _> = Cursor::new(front).chain(source);
    if !is_zstd {
        return Ok(Box::new(whole));
    }
    #[cfg(feature = "zstd")]
    {
        let bounded = crate::expansion::Bounded::new(whole, expansion_max).map_err(failed)?;
        Ok(Box::new(bounded))
    }
    #[cfg(not(feature = "zstd"))]
    let _ = expansion_max;
    #[cfg(not(feature = "zstd"))]
    convert("compressed with zstd, which this program cannot read", "zstd -d FILE -o trace.txt")
}

#[cfg(test)]
mod tests {
    use super::{open, open_bytes};
    use std::error::Error;
    use std::io::Read;
    use std::path::Path;

    /// Goal: a binary file is told with the command that helps. Method: each magic, and text that only ends
    /// with one.
    #[test]
    fn a_binary_file_is_told_with_its_remedy() {
        for (bytes, kind, remedy) in [
            (
                &b"\x17\x08\x44tracing\x36\0"[..],
                "trace-cmd's binary trace.dat",
                "trace-cmd report -i f > trace.txt",
            ),
            (&b"\x1f\x8b\x08"[..], "a gzip file", "zcat f > trace.txt"),
            (&b"\xfd7zXZ\0"[..], "an xz file", "xzcat f > trace.txt"),
        ] {
            let Err(error) = open_bytes("f", bytes) else { panic!("{kind}: opened") };
            assert_eq!(error.to_string(), format!("f: this is {kind}; convert it first: {remedy}"));
            assert!(error.source().is_none());
        }
        assert!(open_bytes("f", b"text \x1f\x8b").is_ok());
    }

    /// Goal: what cannot be opened is told with its name and the system's reason. Method: no file, and a
    /// folder.
    #[test]
    fn what_cannot_be_opened_is_named() {
        for (path, reason) in [("/no/such/trace.txt", "No such file"), ("/", "is a directory")] {
            let Err(error) = open(Path::new(path)) else { panic!("{path}: opened") };
            let shown = error.to_string();
            assert!(shown.starts_with(&format!("{path}: ")) && shown.contains(reason), "{shown}");
            let source = error.source().expect("the system's").to_string();
            assert_eq!(shown, format!("{path}: {source}"));
        }
    }

    /// Goal: no name of a file can become a command of the remedy, or steer the terminal. Method: a name that
    /// tries both.
    #[test]
    fn a_remedy_is_safe_to_type() {
        let Err(error) = open_bytes("g $(id)\u{1b}.gz", b"\x1f\x8b\x08") else { panic!("opened") };
        let expected = "g $(id)\u{fffd}.gz: this is a gzip file; convert it first: zcat 'g $(id)\u{fffd}.gz' > \
                        trace.txt";
        assert_eq!(error.to_string(), expected);
    }

    /// Goal: short inputs are not lost. Method: fewer bytes than the probe.
    #[test]
    fn an_input_shorter_than_the_probe_is_whole() {
        let mut text = String::new();
        open_bytes("f", b"abc").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "abc");
    }

    /// Goal: a truncated compressed file is an error, not an end.
    #[test]
    fn a_truncated_archive_is_an_error() {
        let archive = zstd::encode_all(&b"hello hello hello"[..], 1).unwrap();
        let half: &'static [u8] = Box::leak(archive[..archive.len() / 2].into());
        let mut text = String::new();
        assert!(open_bytes("f", half).unwrap().read_to_string(&mut text).is_err());
    }
}
