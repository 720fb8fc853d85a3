//! Binary files of other tools made long, or made of chance behind a good front.
//!
//! Decided here: what is repeated, and at what times, so that events stay in order. The files that are
//! repeated are those of the tests.

use fastrand::Rng;
use std::io::{self, ErrorKind, Write};

const TRACE_DAT: &[u8] = include_bytes!("../../crates/cli/tests/trace-cmd/v6.dat");
const PERF_DATA: &[u8] = include_bytes!("../../fuzz/seeds-binary/perf.data");
const PAGE_BYTES: usize = 4096;
const SAMPLE: u32 = 9;
/// Where a `perf.data` says where its records are, and which features follow them.
const PERF_RECORDS_AT: usize = 40;
const PERF_FEATURES_AT: usize = 72;
/// In a sample: where its time is, behind a head, an identifier, an address and a task.
const PERF_TIME_AT: usize = 32;

/// What is behind a file's front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Events, over and over, each time later.
    Repeated,
    /// Random bytes.
    Random,
}

fn word(bytes: &[u8], at: usize) -> io::Result<u64> {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
    word.map(|word| u64::from_le_bytes(*word)).ok_or_else(|| io::Error::from(ErrorKind::InvalidData))
}

/// Writes a `trace.dat` of version 6 with two CPUs whose pages have at least `size` bytes.
pub(crate) fn write_trace_dat(contents: Contents, size: u64, out: &mut dyn Write) -> io::Result<()> {
    let flyrecord = b"flyrecord\0";
    let found = memchr::memmem::find(TRACE_DAT, flyrecord);
    let table = found.ok_or_else(|| io::Error::from(ErrorKind::InvalidData))? + flyrecord.len();
    let mut parts = Vec::new();
    for cpu in 0..2 {
        let (at, length) = (word(TRACE_DAT, table + 16 * cpu)?, word(TRACE_DAT, table + 16 * cpu + 8)?);
        parts.push(&TRACE_DAT[at as usize..(at + length) as usize]);
    }
    let times = (size / 2).div_ceil(parts[0].len() as u64) + 1;
    let mut front = TRACE_DAT[..table].to_vec();
    let mut at = (front.len() as u64 + 32).next_multiple_of(PAGE_BYTES as u64);
    let pages_at = at;
    for part in &parts {
        let length = part.len() as u64 * times;
        front.extend([at.to_le_bytes(), length.to_le_bytes()].concat());
        at += length;
    }
    front.resize(pages_at as usize, 0);
    out.write_all(&front)?;
    let mut random = Rng::with_seed(1);
    for part in parts {
        let mut pages = part.to_vec();
        for _ in 0..times {
            if contents == Contents::Random {
                random.fill(&mut pages);
            }
            out.write_all(&pages)?;
            for page in pages.chunks_exact_mut(PAGE_BYTES) {
                // A second later than the time before: the recording is shorter.
                let later = word(page, 0)?.wrapping_add(1_000_000_000);
                page[..8].copy_from_slice(&later.to_le_bytes());
            }
        }
    }
    Ok(())
}

/// Writes a `perf.data` whose records have at least `size` bytes, in one round that does not end.
pub(crate) fn write_perf_data(contents: Contents, size: u64, out: &mut dyn Write) -> io::Result<()> {
    let (at, length) =
        (word(PERF_DATA, PERF_RECORDS_AT)? as usize, word(PERF_DATA, PERF_RECORDS_AT + 8)? as usize);
    let (mut samples, mut rest) = (Vec::new(), &PERF_DATA[at..at + length]);
    while let Some(head) = rest.first_chunk::<8>() {
        let record = usize::from(u16::from_le_bytes([head[6], head[7]]));
        if u32::from_le_bytes([head[0], head[1], head[2], head[3]]) == SAMPLE {
            samples.extend_from_slice(&rest[..record]);
        }
        rest = &rest[record..];
    }
    let times = size.div_ceil(samples.len() as u64) + 1;
    let added = samples.len() as u64 * times;
    let mut front = PERF_DATA[..at + length].to_vec();
    let data_length = (length as u64 + added).to_le_bytes();
    front[PERF_RECORDS_AT + 8..PERF_RECORDS_AT + 16].copy_from_slice(&data_length);
    out.write_all(&front)?;
    let mut random = Rng::with_seed(1);
    for _ in 0..times {
        if contents == Contents::Random {
            random.fill(&mut samples);
        }
        out.write_all(&samples)?;
        if contents == Contents::Repeated {
            later(&mut samples)?;
        }
    }
    // The features behind the records, whose places move with them.
    let flags = &PERF_DATA[PERF_FEATURES_AT..PERF_FEATURES_AT + 32];
    let features = flags.iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
    let (table, contents) = PERF_DATA[at + length..].split_at(16 * features);
    let mut moved = table.to_vec();
    for entry in moved.chunks_exact_mut(16) {
        let at = (word(entry, 0)? + added).to_le_bytes();
        entry[..8].copy_from_slice(&at);
    }
    out.write_all(&moved)?;
    out.write_all(contents)
}

/// Makes all samples a second later.
fn later(samples: &mut [u8]) -> io::Result<()> {
    let mut at = 0;
    while at < samples.len() {
        let length = usize::from(u16::from_le_bytes([samples[at + 6], samples[at + 7]]));
        let time = word(samples, at + PERF_TIME_AT)?.wrapping_add(1_000_000_000).to_le_bytes();
        samples[at + PERF_TIME_AT..at + PERF_TIME_AT + 8].copy_from_slice(&time);
        at += length;
    }
    Ok(())
}
