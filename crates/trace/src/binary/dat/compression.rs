//! How the parts of a `trace.dat` are compressed.

use crate::binary::bytes::invalid;
use std::io;

/// How the parts of a file are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DatCompression {
    #[default]
    None,
    #[cfg(feature = "compression")]
    Zstd,
    #[cfg(feature = "compression")]
    Zlib,
}

impl DatCompression {
    /// The one of this name.
    pub(crate) fn of(name: &str) -> io::Result<Self> {
        match name {
            "none" | "" => Ok(Self::None),
            #[cfg(feature = "compression")]
            "zstd" => Ok(Self::Zstd),
            #[cfg(feature = "compression")]
            "zlib" => Ok(Self::Zlib),
            other => {
                let other = other.escape_debug();
                Err(invalid(format!(
                    "its parts are compressed with {other}, which is not read: trace-cmd report -i FILE"
                )))
            }
        }
    }

    /// Expands `bytes` to exactly so many.
    pub(crate) fn expand(self, bytes: &[u8], count: usize) -> io::Result<Vec<u8>> {
        let expanded = match self {
            Self::None => bytes.to_vec(),
            #[cfg(feature = "compression")]
            Self::Zstd => zstd::bulk::decompress(bytes, count)?,
            #[cfg(feature = "compression")]
            Self::Zlib => {
                use std::io::Read;
                let (mut expanded, limit) = (Vec::with_capacity(count), count as u64 + 1);
                flate2::read::ZlibDecoder::new(bytes).take(limit).read_to_end(&mut expanded)?;
                expanded
            }
        };
        if expanded.len() != count {
            let length = expanded.len();
            return Err(invalid(format!("a part has {length} bytes where {count} are announced")));
        }
        Ok(expanded)
    }
}
