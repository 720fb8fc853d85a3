//! `perf.data`, the file of `perf record`, of little-endian machines: the events of tracepoints in it.
//!
//! perf writes what each CPU had recorded, round by round; a round is in order with all but the one before.
//! So what lies before the latest moment of a round is printed when the next round has ended. Memory is
//! bounded: if rounds hold more, the earliest events are printed, and time may run back, which the reader
//! tells.
//!
//! Source: Linux 6.18 tools/perf/Documentation/perf.data-file-format.txt; `PERF_RECORD_FINISHED_ROUND` in
//! tools/perf/util/session.c.

mod header;
mod records;
mod sample;

use super::bytes::{ReadAt, invalid};
use super::line_printer::LinePrinter;
use super::names::KernelNames;
use super::text_block::TextBlock;
use header::{PerfHeader, SampleForms};
use quietcore_core::CpuId;
use records::{PerfRecord, PerfRecords};
use std::collections::BTreeMap;
use std::io::{self, Read};

/// Events that wait for their turn need so many bytes at most.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// So many records at the front are looked at for the place of the kernel.
const FRONT_RECORDS: usize = 10_000;
/// What an event needs besides its own bytes.
const WAITING_BYTES_EACH: usize = 96;

/// Kinds of records.
mod kind {
    pub(super) const MAP: u32 = 1;
    pub(super) const LOST: u32 = 2;
    pub(super) const COMM: u32 = 3;
    pub(super) const FORK: u32 = 7;
    pub(super) const SAMPLE: u32 = 9;
    pub(super) const LOST_SAMPLES: u32 = 13;
    pub(super) const FINISHED_ROUND: u32 = 68;
    pub(super) const COMPRESSED: u32 = 81;
    pub(super) const COMPRESSED_2: u32 = 83;
}

/// The kernel that runs here, which knows the names of its functions, as perf files do not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunningKernel {
    /// Its release.
    pub(crate) release: fn() -> String,
    /// What it says in `/proc/kallsyms`.
    pub(crate) symbols: fn() -> String,
}

/// The text of a file. Functions have names if the file is of the kernel that still runs.
pub(crate) fn read(file: impl ReadAt + 'static, running: RunningKernel) -> io::Result<impl Read> {
    let mut header = PerfHeader::read(&file)?;
    let tracing = std::mem::take(&mut header.tracing);
    if tracing.formats.common().is_none() {
        return Err(invalid(
            "it holds no events of tracepoints: perf record -e 'timer:*' makes one that does",
        ));
    }
    let mut text = PerfText {
        records: PerfRecords::new(file, header.data.clone()),
        forms: std::mem::take(&mut header.forms),
        printer: LinePrinter::new(tracing.formats, tracing.names),
        kernel_at: None,
        waiting: Waiting::default(),
        is_over: false,
        text: TextBlock::default(),
    };
    let has_names = text.find_names(&header.release, running)?;
    Ok(io::Cursor::new(header.first_line(has_names)).chain(text))
}

/// The text of the records.
#[derive(Debug)]
struct PerfText<F> {
    records: PerfRecords<F>,
    forms: SampleForms,
    printer: LinePrinter,
    kernel_at: Option<KernelPlace>,
    waiting: Waiting,
    is_over: bool,
    text: TextBlock,
}

/// Where the recorded kernel had one of its functions.
#[derive(Debug, PartialEq, Eq)]
struct KernelPlace {
    name: String,
    address: u64,
}

/// Events that others may still come before.
#[derive(Debug, Default)]
struct Waiting {
    /// By their moments, and equal ones in the order of the file.
    events: BTreeMap<(u64, u64), Item>,
    bytes: usize,
    count: u64,
    /// The latest moment of this round, and of the one before.
    latest: u64,
    latest_before: u64,
    /// What lies before that moment can be printed.
    until: u64,
}

/// What is printed, or changes what is printed.
#[derive(Debug)]
enum Item {
    Event { cpu: CpuId, bytes: Box<[u8]> },
    Lost { cpu: CpuId, count: u64 },
    Name { pid: i32, comm: Box<[u8]> },
    Fork { pid: i32, parent: i32 },
}

impl Item {
    /// The memory that it needs.
    fn bytes(&self) -> usize {
        let own = match self {
            Self::Event { bytes, .. } => bytes.len(),
            Self::Name { comm, .. } => comm.len(),
            Self::Lost { .. } | Self::Fork { .. } => 0,
        };
        own + WAITING_BYTES_EACH
    }
}

impl Waiting {
    fn add(&mut self, at: u64, item: Item) {
        self.bytes += item.bytes();
        self.count += 1;
        self.latest = self.latest.max(at);
        self.events.insert((at, self.count), item);
    }

    fn round_is_over(&mut self) {
        self.until = self.latest_before;
        self.latest_before = self.latest;
    }

    /// The event that comes next, if it is certain that it does, or there is no room.
    fn take(&mut self) -> Option<(u64, Item)> {
        let first = self.events.first_entry()?;
        if first.key().0 > self.until && self.bytes <= WAITING_BYTES_MAX {
            return None;
        }
        let ((at, _), item) = first.remove_entry();
        self.bytes -= item.bytes();
        Some((at, item))
    }
}

impl<F: ReadAt> PerfText<F> {
    /// Takes the names of functions from the kernel that runs here if it is the one that was recorded: of
    /// that release, with its functions where they were. perf says that at the front.
    fn find_names(&mut self, release: &str, running: RunningKernel) -> io::Result<bool> {
        for _ in 0..FRONT_RECORDS {
            if self.kernel_at.is_some() || self.is_over {
                break;
            }
            self.read_record()?;
        }
        let Some(place) = &self.kernel_at else { return Ok(false) };
        if (running.release)() != release {
            return Ok(false);
        }
        let mut names = KernelNames::default();
        let is_the_same =
            names.set_symbols(&(running.symbols)()) && names.address(&place.name) == Some(place.address);
        if is_the_same {
            *self.printer.names_mut() = names;
        }
        Ok(is_the_same)
    }

    /// Makes the next piece of text, if there is any.
    fn fill(&mut self) -> io::Result<()> {
        self.text.begin();
        while !self.text.is_full() {
            match self.waiting.take() {
                Some((at, item)) => self.print(at, item),
                None if self.is_over => break,
                None => self.read_record()?,
            }
        }
        Ok(())
    }

    fn print(&mut self, at: u64, item: Item) {
        let text = self.text.text_mut();
        match item {
            Item::Event { cpu, bytes } => self.printer.print(cpu, at, &bytes, text),
            Item::Lost { cpu, count } => self.printer.print_lost(cpu, Some(count), text),
            Item::Name { pid, comm } => self.printer.names_mut().learn_task(pid, &comm),
            Item::Fork { pid, parent } => self.printer.names_mut().inherit_task(pid, parent),
        }
    }

    fn read_record(&mut self) -> io::Result<()> {
        let Self { records, forms, waiting, kernel_at, is_over, .. } = self;
        let Some(record) = records.next()? else {
            (*is_over, waiting.until) = (true, u64::MAX);
            return Ok(());
        };
        match record.kind {
            kind::FINISHED_ROUND => waiting.round_is_over(),
            kind::COMPRESSED | kind::COMPRESSED_2 => {
                return Err(invalid("it is compressed (perf record -z), which is not read: perf script"));
            }
            kind::MAP if kernel_at.is_none() => *kernel_at = KernelPlace::read(record.body),
            _ => {
                if let Some((at, item)) = item(record, forms) {
                    waiting.add(at, item);
                }
            }
        }
        Ok(())
    }
}

impl KernelPlace {
    /// Reads a record of what lies where: a process and a thread, an address and a length, the address of a
    /// function, and `[kernel.kallsyms]` with the function's name. `None` for another one.
    fn read(body: &[u8]) -> Option<Self> {
        let address = u64::from_le_bytes(*body.get(24..)?.first_chunk()?);
        let name = body.get(32..)?.strip_prefix(b"[kernel.kallsyms]")?;
        let name = &name[..memchr::memchr(0, name).unwrap_or(name.len())];
        Some(Self { name: String::from_utf8_lossy(name).into_owned(), address })
    }
}

/// What a record says, and when; `None` for what is no event of a tracepoint, or cut.
fn item(record: PerfRecord<'_>, forms: &SampleForms) -> Option<(u64, Item)> {
    let PerfRecord { kind, body } = record;
    if kind == kind::SAMPLE {
        let fields = forms.of_sample(body)?.sample(body)?;
        let (at, cpu) = (fields.at?, CpuId::new(fields.cpu?.into()).ok()?);
        return Some((at, Item::Event { cpu, bytes: fields.raw?.into() }));
    }
    if !matches!(kind, kind::LOST | kind::LOST_SAMPLES | kind::COMM | kind::FORK) {
        return None;
    }
    let (body, fields) = forms.of_others(body)?.other(body)?;
    let at = fields.at.unwrap_or(0);
    let word = |index: usize| body.get(4 * index..)?.first_chunk().copied().map(u32::from_le_bytes);
    if kind == kind::COMM {
        let (pid, comm) = (word(1)? as i32, body.get(8..)?);
        let comm = &comm[..memchr::memchr(0, comm).unwrap_or(comm.len())];
        return Some((at, Item::Name { pid, comm: comm.into() }));
    }
    if kind == kind::FORK {
        // Processes, then threads, and the child first.
        let (pid, parent) = (word(2)? as i32, word(3)? as i32);
        return Some((at, Item::Fork { pid, parent }));
    }
    // A lost record begins with the number of its event.
    let first = if kind == kind::LOST { 2 } else { 0 };
    let count = u64::from(word(first)?) | u64::from(word(first + 1)?) << 32;
    let cpu = CpuId::new(fields.cpu.unwrap_or(0).into()).ok()?;
    Some((at, Item::Lost { cpu, count }))
}

impl<F: ReadAt> Read for PerfText<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.text.is_empty() {
            self.fill()?;
        }
        Ok(self.text.hand_out(buffer))
    }
}

#[cfg(test)]
mod tests;
