//! Where a trace comes from: a file, compressed or not, or standard input.

use crate::binary::{
    ReadAt, RunningKernel, begins_with_packet, read_perf_data, read_perfetto, read_trace_dat,
};
use crate::expansion::EXPANSION_MAX;
#[cfg(feature = "compression")]
use crate::expansion::{Bounded, FileCompression};
use crate::visible::{shell_word, visible_path};
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Chain, Cursor, Read};
use std::path::{Path, PathBuf};

const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const XZ_MAGIC: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z'];
const TRACE_DAT_MAGIC: &[u8] = &[0x17, 0x08, 0x44, b't', b'r', b'a', b'c', b'i', b'n', b'g'];
const PERF_DATA_MAGIC: &[u8] = b"PERFILE2";
const PERF_DATA_BIG_ENDIAN_MAGIC: &[u8] = b"2ELIFREP";
const PROBE_BYTES: usize = 10;

const RUNNING: RunningKernel = RunningKernel {
    release: || read_or_nothing("/proc/sys/kernel/osrelease").trim_end().to_owned(),
    symbols: || read_or_nothing("/proc/kallsyms"),
};

fn read_or_nothing(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

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
    /// Files of this kind are not read.
    NotRead {
        /// The file.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
        /// What to do instead.
        remedy: &'static str,
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
            Self::NotRead { path, kind, remedy } => {
                write!(out, "{}: this is {kind}, which is not read: {remedy}", visible_path(path))
            }
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
            Self::Convert { .. } | Self::NotRead { .. } => None,
        }
    }
}

/// Opens a trace: text; text compressed with gzip, xz or zstd (feature `compression`); a `trace.dat` of
/// trace-cmd, a `perf.data` of perf or a trace of Perfetto, which may be compressed like text. `-` is
/// standard input, where a `trace.dat` and a `perf.data` cannot be read.
///
/// Memory: one buffer, up to 80 MiB more for a compressed input, up to 256 MiB for a binary file. An input
/// that expands to more than [`EXPANSION_MAX`] times its size is refused while it is read; see
/// [`open_expanding`].
///
/// # Errors
/// [`OpenError::Io`] names the file; [`OpenError::Convert`] says what a file is that is not read, and which
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
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(folder(path));
    }
    let mut front = [0; PROBE_BYTES];
    // Others can be read once, from the front.
    if metadata.is_file() && ReadAt::read_at(&file, &mut front, 0).map_err(failed)? == PROBE_BYTES {
        if front.starts_with(TRACE_DAT_MAGIC) {
            return binary(path, read_trace_dat(file, expansion_max));
        }
        if front.starts_with(PERF_DATA_MAGIC) {
            return binary(path, read_perf_data(file, RUNNING));
        }
    }
    decompress(path, file, expansion_max)
}

fn folder(path: &Path) -> OpenError {
    if path.join("metadata").exists() {
        return OpenError::NotRead {
            path: path.to_owned(),
            kind: "a folder of the Common Trace Format",
            remedy: "record with trace-cmd, perf, or quietcore explain --live",
        };
    }
    OpenError::Io { path: path.to_owned(), error: io::Error::from(io::ErrorKind::IsADirectory) }
}

/// As [`open`], for bytes that are in memory already (the bundled recordings).
///
/// # Errors
/// As [`open`].
pub fn open_bytes(name: &str, bytes: impl Into<Cow<'static, [u8]>>) -> Result<Box<dyn Read>, OpenError> {
    let (path, bytes) = (Path::new(name), bytes.into());
    if bytes.starts_with(TRACE_DAT_MAGIC) {
        return binary(path, read_trace_dat(bytes, EXPANSION_MAX));
    }
    if bytes.starts_with(PERF_DATA_MAGIC) {
        return binary(path, read_perf_data(bytes, RUNNING));
    }
    decompress(path, Cursor::new(bytes), EXPANSION_MAX)
}

/// A command about `path`, safe to type.
fn naming(path: &Path, command: &str) -> String {
    command.replace("FILE", &shell_word(&path.to_string_lossy()))
}

/// The text of a binary file, or why there is none; its commands name the file.
fn binary(path: &Path, text: io::Result<impl Read + 'static>) -> Result<Box<dyn Read>, OpenError> {
    match text {
        Ok(text) => Ok(Box::new(text)),
        Err(error) => {
            let what = naming(path, &error.to_string());
            Err(OpenError::Io { path: path.to_owned(), error: io::Error::new(error.kind(), what) })
        }
    }
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
        let remedy = naming(path, remedy);
        Err(OpenError::Convert { path: path.to_owned(), kind, remedy })
    };
    if front.starts_with(PERF_DATA_BIG_ENDIAN_MAGIC) {
        return convert("a perf.data of a big-endian machine", "perf script --ns -i FILE > trace.txt");
    }
    if front.starts_with(PERF_DATA_MAGIC) {
        let kind = "a perf.data in a pipe, and only a file can be read";
        return convert(kind, "perf script --ns -i FILE > trace.txt");
    }
    if front.starts_with(TRACE_DAT_MAGIC) {
        return convert(
            "a trace.dat in a pipe, and only a file can be read",
            "trace-cmd report -i FILE > trace.txt",
        );
    }
    let is_compressed = [GZIP_MAGIC, XZ_MAGIC, ZSTD_MAGIC].iter().position(|magic| front.starts_with(magic));
    let whole: Chain<Cursor<Vec<u8>>, _> = Cursor::new(front).chain(source);
    let Some(compression) = is_compressed else {
        return text_or_packets(whole, expansion_max).map_err(failed);
    };
    #[cfg(feature = "compression")]
    {
        let compression = [FileCompression::Gzip, FileCompression::Xz, FileCompression::Zstd][compression];
        let expanded = Bounded::new(whole, compression, expansion_max);
        expanded.and_then(|expanded| text_or_packets(expanded, expansion_max)).map_err(failed)
    }
    #[cfg(not(feature = "compression"))]
    {
        let remedy =
            ["zcat FILE > trace.txt", "xzcat FILE > trace.txt", "zstd -d FILE -o trace.txt"][compression];
        convert("compressed, which this program cannot read", remedy)
    }
}

/// What can be read from the front: text, or the packets of Perfetto, which are made text.
fn text_or_packets(mut source: impl Read + 'static, expansion_max: u32) -> io::Result<Box<dyn Read>> {
    let mut front = Vec::new();
    let is_perfetto = begins_with_packet(&mut source, &mut front)?;
    let whole = Cursor::new(front).chain(source);
    Ok(if is_perfetto { Box::new(read_perfetto(whole, expansion_max)) } else { Box::new(whole) })
}

#[cfg(test)]
mod tests {
    use super::{open, open_bytes};
    use std::error::Error;
    use std::io::Read;
    use std::path::Path;

    /// Goal: compressed text is read as text, whatever it was compressed with. Method: each of them, and text
    /// that only ends with a magic.
    #[test]
    fn compressed_text_is_read() {
        let text = b"a-7 [000] 1.0: x: y\n".repeat(100);
        let (mut gzip, mut xz) = (Vec::new(), Vec::new());
        flate2::read::GzEncoder::new(&*text, flate2::Compression::fast()).read_to_end(&mut gzip).unwrap();
        liblzma::read::XzEncoder::new(&*text, 1).read_to_end(&mut xz).unwrap();
        let twice = [gzip.clone(), gzip.clone()].concat();
        let zstd = zstd::encode_all(&*text, 1).unwrap();
        let plain = [&text, &b"\x1f\x8b"[..]].concat();
        for (bytes, length) in [(gzip, 2000), (twice, 4000), (xz, 2000), (zstd, 2000), (plain, 2002)] {
            let mut read = Vec::new();
            open_bytes("f", bytes).unwrap().read_to_end(&mut read).unwrap();
            assert!(read.len() == length && read.starts_with(&text), "{} bytes", read.len());
        }
    }

    /// Goal: a `trace.dat` that comes through a pipe is told with the command that helps, and what one lacks
    /// with its own name.
    #[test]
    fn a_trace_dat_is_told_with_its_remedy() {
        let bytes = &b"\x17\x08\x44tracing6\0\x01\x08"[..];
        let Err(error) = super::decompress(Path::new("-"), bytes, 250) else { panic!("opened") };
        let expected = "-: this is a trace.dat in a pipe, and only a file can be read; convert it first: \
                        trace-cmd report -i - > trace.txt";
        assert_eq!(error.to_string(), expected);
        assert!(error.source().is_none());
        let Err(error) = open_bytes("a b.dat", bytes) else { panic!("opened") };
        let expected =
            "a b.dat: it is of a big-endian machine, which is not read: trace-cmd report -i 'a b.dat'";
        assert_eq!(error.to_string(), expected);
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
        let name = Path::new("g $(id)\u{1b}.dat");
        let Err(error) = super::decompress(name, super::TRACE_DAT_MAGIC, 250) else { panic!("opened") };
        let expected = "g $(id)\u{fffd}.dat: this is a trace.dat in a pipe, and only a file can be read; convert \
                        it first: trace-cmd report -i 'g $(id)\u{fffd}.dat' > trace.txt";
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
        let half = archive[..archive.len() / 2].to_vec();
        let mut text = String::new();
        assert!(open_bytes("f", half).unwrap().read_to_string(&mut text).is_err());
    }
}
