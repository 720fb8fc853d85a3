//! Pages of a `trace.dat`, as they are or compressed in chunks.

use super::compression::DatCompression;
use super::contents::DatCpu;
use crate::binary::RingPages;
use crate::binary::bytes::{DatCursor, ReadAt, invalid};
use crate::expansion::ExpansionExceeded;
use quietcore_core::Nanos;
use std::io;

/// Chunks of all CPUs that are in memory at a time have so many bytes at most.
const CHUNKS_BYTES_MAX: usize = 96 << 20;
/// So much is expanded in any case.
const ALWAYS_EXPANDED: u64 = 16 << 20;

/// The pages of all CPUs of a buffer.
#[derive(Debug)]
pub(crate) struct DatPages<F> {
    file: F,
    compression: DatCompression,
    page_bytes: usize,
    cpus: Vec<CpuPart>,
    in_memory: usize,
    /// How much was read of compressed chunks, and how much they hold.
    compressed: u64,
    expanded: u64,
    expansion_max: u32,
}

/// What is left of a CPU's pages.
#[derive(Debug)]
struct CpuPart {
    at: u64,
    end: u64,
    /// Chunks behind the one that is in memory; `None` before the first.
    chunks: Option<u32>,
    chunk: Vec<u8>,
    taken: usize,
}

impl<F: ReadAt> DatPages<F> {
    /// The pages of `cpus`, which may expand to so many times what they are compressed to.
    pub(crate) fn new(
        file: F,
        compression: DatCompression,
        page_bytes: usize,
        cpus: &[DatCpu],
        expansion_max: u32,
    ) -> io::Result<Self> {
        let part = |cpu: &DatCpu| {
            let beyond = || invalid(format!("the pages of CPU {} end beyond all files", cpu.cpu));
            let end = cpu.at.checked_add(cpu.bytes).ok_or_else(beyond)?;
            Ok(CpuPart { at: cpu.at, end, chunks: None, chunk: Vec::new(), taken: 0 })
        };
        let cpus = cpus.iter().map(part).collect::<io::Result<_>>()?;
        let (in_memory, compressed, expanded) = (0, 0, 0);
        Ok(Self { file, compression, page_bytes, cpus, in_memory, compressed, expanded, expansion_max })
    }

    /// Reads the next chunk of a CPU into memory; false when there is none.
    fn read_chunk(&mut self, index: usize) -> io::Result<bool> {
        let cpu = &mut self.cpus[index];
        self.in_memory -= cpu.chunk.len();
        (cpu.chunk, cpu.taken) = (Vec::new(), 0);
        if cpu.at >= cpu.end {
            return Ok(false);
        }
        let mut cursor = DatCursor::new(&self.file, cpu.at);
        let chunks = match cpu.chunks {
            Some(chunks) => chunks,
            None => cursor.u32()?,
        };
        cpu.chunks = Some(chunks.saturating_sub(1));
        if chunks == 0 {
            return Ok(false);
        }
        let (compressed, expanded) = (cursor.u32()?, cursor.u32()? as usize);
        self.in_memory += expanded;
        if self.in_memory > CHUNKS_BYTES_MAX || compressed as usize > CHUNKS_BYTES_MAX {
            return Err(invalid(format!(
                "its compressed pages need more than {} MiB of memory",
                CHUNKS_BYTES_MAX >> 20
            )));
        }
        let bytes = cursor.bytes(compressed.into(), CHUNKS_BYTES_MAX as u64, "a chunk of pages")?;
        cpu.at = cursor.at;
        (self.compressed, self.expanded) =
            (self.compressed + u64::from(compressed), self.expanded + expanded as u64);
        let allowed = self.compressed.saturating_mul(u64::from(self.expansion_max)).max(ALWAYS_EXPANDED);
        if self.expanded > allowed {
            let exceeded = ExpansionExceeded { limit: self.expansion_max };
            return Err(io::Error::new(io::ErrorKind::InvalidData, exceeded));
        }
        cpu.chunk = self.compression.expand(&bytes, expanded)?;
        Ok(true)
    }
}

impl<F: ReadAt> RingPages for DatPages<F> {
    fn read_page(&mut self, index: usize, page: &mut Vec<u8>) -> io::Result<bool> {
        page.clear();
        if self.compression == DatCompression::None {
            let cpu = &mut self.cpus[index];
            let count = (cpu.end - cpu.at).min(self.page_bytes as u64);
            page.resize(count as usize, 0);
            self.file.read_whole(page, cpu.at)?;
            cpu.at += count;
            return Ok(count > 0);
        }
        while self.cpus[index].taken == self.cpus[index].chunk.len() {
            if !self.read_chunk(index)? {
                return Ok(false);
            }
        }
        let cpu = &mut self.cpus[index];
        let rest = &cpu.chunk[cpu.taken..];
        let count = rest.len().min(self.page_bytes);
        page.extend_from_slice(&rest[..count]);
        cpu.taken += count;
        Ok(true)
    }

    fn complete_until(&mut self) -> Option<Nanos> {
        None
    }
}
