//! How far a compressed recording may expand, so that a small file cannot keep a reader busy for hours.
//!
//! The text of a kernel's trace is about 20 times its compressed size. What is far beyond that is no
//! recording, or one whose reader has to say so.

use std::fmt;

/// So many times its compressed size a recording may have, unless its reader says otherwise.
pub const EXPANSION_MAX: u32 = 250;

/// So much is always read, in bytes: a short recording of one event may be very regular.
#[cfg(feature = "compression")]
const ALWAYS_READ: u64 = 16 << 20;

/// A compressed input expands further than its reader allows; in the [`io::Error`](std::io::Error) of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpansionExceeded {
    /// So many times its compressed size was allowed.
    pub limit: u32,
}

impl fmt::Display for ExpansionExceeded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.limit;
        write!(
            out,
            "it expands to more than {limit} times its compressed size; recordings expand about 20 times"
        )
    }
}

impl std::error::Error for ExpansionExceeded {}

#[cfg(feature = "compression")]
pub(crate) use bounded::{Bounded, FileCompression};

#[cfg(feature = "compression")]
mod bounded {
    use super::{ALWAYS_READ, ExpansionExceeded};
    use std::cell::Cell;
    use std::io::{self, ErrorKind, Read};
    use std::rc::Rc;

    /// Largest window of a file compressed with zstd, as a power of two: 32 MiB of memory.
    const ZSTD_WINDOW_LOG_MAX: u32 = 25;
    /// The memory that a file compressed with xz may need: 65 MiB for its strongest level.
    const XZ_BYTES_MAX: u64 = 80 << 20;

    /// How a file is compressed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum FileCompression {
        Gzip,
        Xz,
        Zstd,
    }

    /// Expands its source, as far as that is allowed.
    pub(crate) struct Bounded {
        decoder: Box<dyn Read>,
        taken: Rc<Cell<u64>>,
        limit: u32,
        expanded: u64,
    }

    impl Bounded {
        pub(crate) fn new(
            source: impl Read + 'static,
            compression: FileCompression,
            limit: u32,
        ) -> io::Result<Self> {
            let taken = Rc::new(Cell::new(0));
            let counted = Counted { source, taken: taken.clone() };
            let decoder: Box<dyn Read> = match compression {
                FileCompression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(counted)),
                FileCompression::Xz => {
                    let stream = liblzma::stream::Stream::new_stream_decoder(
                        XZ_BYTES_MAX,
                        liblzma::stream::CONCATENATED,
                    )?;
                    Box::new(liblzma::read::XzDecoder::new_stream(counted, stream))
                }
                FileCompression::Zstd => {
                    let mut decoder = zstd::Decoder::new(counted)?;
                    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                    Box::new(decoder)
                }
            };
            Ok(Self { decoder, taken, limit, expanded: 0 })
        }
    }

    impl Read for Bounded {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.decoder.read(into)?;
            self.expanded += count as u64;
            if self.expanded > ALWAYS_READ.max(self.taken.get().saturating_mul(u64::from(self.limit))) {
                return Err(io::Error::new(ErrorKind::InvalidData, ExpansionExceeded { limit: self.limit }));
            }
            Ok(count)
        }
    }

    /// Counts what is taken from its source.
    struct Counted<R> {
        source: R,
        taken: Rc<Cell<u64>>,
    }

    impl<R: Read> Read for Counted<R> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.source.read(into)?;
            self.taken.set(self.taken.get() + count as u64);
            Ok(count)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ALWAYS_READ, Bounded, ExpansionExceeded, FileCompression};
    use std::io::{Read, sink};

    /// Goal: what expands too far is refused at the limit, and a reader may allow it. Method: 64 MiB of empty
    /// lines, which compress some ten thousand times; and the 16 MiB that are always read.
    #[test]
    fn a_small_file_cannot_be_endless() {
        let bounded = |archive: Vec<u8>, limit| {
            Bounded::new(std::io::Cursor::new(archive), FileCompression::Zstd, limit).unwrap()
        };
        let archive = |bytes: u64| zstd::encode_all(std::io::repeat(b'\n').take(bytes), 1).unwrap();
        let large = archive(4 * ALWAYS_READ);
        let needed = u32::try_from((4 * ALWAYS_READ).div_ceil(large.len() as u64)).unwrap();
        for limit in [250, needed - 1] {
            let mut text = Vec::new();
            let error = bounded(large.clone(), limit).read_to_end(&mut text).unwrap_err();
            let found = error.get_ref().and_then(|error| error.downcast_ref::<ExpansionExceeded>());
            assert_eq!(found, Some(&ExpansionExceeded { limit }));
            let most = ALWAYS_READ.max(u64::from(limit) * large.len() as u64);
            assert!(text.len() as u64 <= most, "gave up after {} bytes", text.len());
        }
        let shown = "it expands to more than 250 times its compressed size; recordings expand about 20 times";
        assert_eq!(ExpansionExceeded { limit: 250 }.to_string(), shown);
        for (archive, limit, bytes) in
            [(large, needed, 4 * ALWAYS_READ), (archive(ALWAYS_READ), 1, ALWAYS_READ)]
        {
            assert_eq!(std::io::copy(&mut bounded(archive, limit), &mut sink()).unwrap(), bytes);
        }
    }
}
