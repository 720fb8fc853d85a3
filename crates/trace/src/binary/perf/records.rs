//! The records of a `perf.data`, in the order in which perf wrote them.

use crate::binary::bytes::{ReadAt, invalid};
use std::io;
use std::ops::Range;

/// So much is read at a time; no record is longer than 64 KiB.
const BLOCK_BYTES: usize = 256 * 1024;
const HEAD_BYTES: usize = 8;
/// A record whose contents follow it.
const AUX_TRACE: u32 = 71;

/// Reads records.
#[derive(Debug)]
pub(crate) struct PerfRecords<F> {
    file: F,
    /// What was not read yet.
    left: Range<u64>,
    block: Vec<u8>,
    taken: usize,
}

/// A record: its kind, and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PerfRecord<'a> {
    pub(crate) kind: u32,
    pub(crate) body: &'a [u8],
}

impl<F: ReadAt> PerfRecords<F> {
    pub(crate) fn new(file: F, data: Range<u64>) -> Self {
        Self { file, left: data, block: Vec::new(), taken: 0 }
    }

    /// The next record.
    pub(crate) fn next(&mut self) -> io::Result<Option<PerfRecord<'_>>> {
        if self.block.len() - self.taken < HEAD_BYTES + usize::from(u16::MAX) {
            self.fill()?;
        }
        let rest = &self.block[self.taken..];
        if rest.is_empty() {
            return Ok(None);
        }
        let at = self.left.start - rest.len() as u64;
        let cut = || invalid(format!("the record at byte {at} ends behind the others"));
        let head: &[u8; HEAD_BYTES] = rest.first_chunk().ok_or_else(cut)?;
        let [k0, k1, k2, k3, _, _, l0, l1] = *head;
        let (kind, length) =
            (u32::from_le_bytes([k0, k1, k2, k3]), usize::from(u16::from_le_bytes([l0, l1])));
        if length < HEAD_BYTES {
            return Err(invalid(format!("the record at byte {at} is shorter than its head")));
        }
        if length > rest.len() {
            return Err(cut());
        }
        let from = self.taken;
        self.taken += length;
        if kind == AUX_TRACE {
            let contents = self.block[from + HEAD_BYTES..from + length].first_chunk().ok_or_else(cut)?;
            self.skip(u64::from_le_bytes(*contents))?;
            return Ok(Some(PerfRecord { kind, body: &[] }));
        }
        Ok(Some(PerfRecord { kind, body: &self.block[from + HEAD_BYTES..from + length] }))
    }

    /// Passes over what follows a record.
    fn skip(&mut self, count: u64) -> io::Result<()> {
        let in_block = (self.block.len() - self.taken) as u64;
        if count <= in_block {
            self.taken += count as usize;
            return Ok(());
        }
        let start = self.left.start.checked_add(count - in_block).filter(|&start| start <= self.left.end);
        self.left.start = start.ok_or_else(|| invalid("a record's contents end behind the others"))?;
        self.taken = self.block.len();
        Ok(())
    }

    fn fill(&mut self) -> io::Result<()> {
        self.block.drain(..self.taken);
        self.taken = 0;
        let kept = self.block.len();
        let more = (self.left.end - self.left.start).min((BLOCK_BYTES - kept) as u64) as usize;
        self.block.resize(kept + more, 0);
        self.file.read_whole(&mut self.block[kept..], self.left.start)?;
        self.left.start += more as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{AUX_TRACE, BLOCK_BYTES, PerfRecords};

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = (body.len() + 8) as u16;
        [&kind.to_le_bytes()[..], &[0, 0], &length.to_le_bytes(), body].concat()
    }

    fn kinds(file: &[u8]) -> Result<Vec<(u32, usize)>, String> {
        let mut records = PerfRecords::new(file, 0..file.len() as u64);
        let mut kinds = Vec::new();
        while let Some(record) = records.next().map_err(|error| error.to_string())? {
            kinds.push((record.kind, record.body.len()));
        }
        Ok(kinds)
    }

    /// Goal: every record comes once, whole, over the blocks that are read, and contents that follow one are
    /// passed over. Method: records of many lengths, more than two blocks of them, with short contents and
    /// long ones between.
    #[test]
    fn every_record_comes_once() {
        let (mut file, mut expected) = (Vec::new(), Vec::new());
        for number in 100..300u32 {
            let length = (number as usize * 7919) % 30_000;
            file.extend(record(number, &vec![0; length]));
            expected.push((number, length));
            if number % 50 == 0 {
                let contents = if number == 150 { 2 * BLOCK_BYTES } else { 100 };
                file.extend(record(AUX_TRACE, &(contents as u64).to_le_bytes()));
                file.extend(vec![0xff; contents]);
                expected.push((AUX_TRACE, 0));
            }
        }
        assert_eq!(kinds(&file), Ok(expected));
    }

    /// Goal: a record that is cut or damaged is told with its place.
    #[test]
    fn a_damaged_record_is_told() {
        let good = [record(1, b"abcd"), record(2, b"efgh")].concat();
        assert_eq!(kinds(&good), Ok(vec![(1, 4), (2, 4)]));
        assert_eq!(kinds(&good[..12]), Ok(vec![(1, 4)]));
        for cut in 13..24 {
            assert_eq!(kinds(&good[..cut]), Err("the record at byte 12 ends behind the others".to_owned()));
        }
        let short = [1u8, 0, 0, 0, 0, 0, 7, 0];
        assert_eq!(kinds(&short), Err("the record at byte 0 is shorter than its head".to_owned()));
        let beyond = record(AUX_TRACE, &u64::MAX.to_le_bytes());
        assert_eq!(kinds(&beyond), Err("a record's contents end behind the others".to_owned()));
    }
}
