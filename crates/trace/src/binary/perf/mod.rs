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
mod tests {
    use super::{RunningKernel, WAITING_BYTES_MAX, kind, read};
    use crate::binary::made::{HEADER_PAGE, format};
    use std::io::Read;

    const NUMBER: &str = "\tfield:int n;\toffset:8;\tsize:4;\tsigned:1;\n";
    /// Identifier, task, time, CPU and the event; every record is identified.
    const SAMPLE_TYPE: u64 = 1 << 16 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 10;
    const SAMPLE_ID_ALL: u64 = 1 << 18;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(8), 0);
        [&kind.to_le_bytes()[..], &[0, 0], &(body.len() as u16 + 8).to_le_bytes(), &body].concat()
    }

    /// An event of task 42 with the number `n`, of the event whose identifier is `id`.
    fn sample(id: u64, at: u64, cpu: u64, n: u8) -> Vec<u8> {
        let raw = [7, 0, 1, 0, 42, 0, 0, 0, n, 0, 0, 0];
        record(
            kind::SAMPLE,
            &[words(&[id, 42 << 32 | 7, at, cpu]), 12u32.to_le_bytes().to_vec(), raw.to_vec()].concat(),
        )
    }

    /// A record that is no sample, of CPU 3.
    fn other(kind: u32, body: &[u8], at: u64) -> Vec<u8> {
        record(kind, &[body.to_vec(), words(&[42 << 32 | 7, at, 3, 1])].concat())
    }

    fn round() -> Vec<u8> {
        record(kind::FINISHED_ROUND, b"")
    }

    fn tracing_data(print: &str) -> Vec<u8> {
        let sized = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
        let count = format("count", 7, NUMBER, print);
        let head = b"\x17\x08\x44tracing0.6\0\0\x08\0\x10\0\0".to_vec();
        let pages = [b"header_page\0", &*sized(HEADER_PAGE), b"header_event\0", &sized("")].concat();
        let formats =
            [&0u32.to_le_bytes()[..], &1u32.to_le_bytes(), b"system\0", &1u32.to_le_bytes(), &sized(&count)];
        [head, pages, formats.concat(), 0u32.to_le_bytes().to_vec()].concat()
    }

    fn file(sample_types: &[u64], records: &[Vec<u8>]) -> Vec<u8> {
        file_printing(r#""n=%d", REC->n"#, sample_types, records)
    }

    /// A file of these attributes (what their samples hold), and these records.
    fn file_printing(print: &str, sample_types: &[u64], records: &[Vec<u8>]) -> Vec<u8> {
        const HEAD: u64 = 104;
        const ATTRIBUTE: u64 = 128 + 16;
        let ids_at = HEAD + ATTRIBUTE * sample_types.len() as u64;
        let data_at = ids_at + 8 * sample_types.len() as u64;
        let data = records.concat();
        let parts = [HEAD, ids_at - HEAD, data_at, data.len() as u64, 0, 0];
        // TRACING_DATA, HOSTNAME, OSRELEASE, ARCH, NRCPUS.
        let features = [words(&[1 << 1 | 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7, 0, 0, 0])];
        let mut file =
            [b"PERFILE2".to_vec(), words(&[HEAD, ATTRIBUTE]), words(&parts), features.concat()].concat();
        for (number, sample_type) in sample_types.iter().enumerate() {
            let mut attribute = words(&[2 | 128 << 32, 7, 1, *sample_type, 0, SAMPLE_ID_ALL]);
            attribute.resize(128, 0);
            file.extend([attribute, words(&[ids_at + 8 * number as u64, 8])].concat());
        }
        file.extend((1..=sample_types.len() as u64).flat_map(u64::to_le_bytes));
        file.extend(data);
        let text = |text: &str| [&(text.len() as u32 + 1).to_le_bytes()[..], text.as_bytes(), b"\0"].concat();
        let cpus = [1u32, 4].map(u32::to_le_bytes).concat();
        let features = [tracing_data(print), text("a host"), text("6.12.107"), text("x86_64"), cpus];
        let mut at = file.len() as u64 + 16 * features.len() as u64;
        for feature in &features {
            file.extend(words(&[at, feature.len() as u64]));
            at += feature.len() as u64;
        }
        [file, features.concat()].concat()
    }

    const RUNNING: RunningKernel = RunningKernel {
        release: || "6.12.107".to_owned(),
        symbols: || "ffff0000 T _text\nffff0010 T first\nffff0020 T end\n".to_owned(),
    };

    fn text(file: Vec<u8>) -> Result<String, String> {
        let file: &'static [u8] = Box::leak(file.into_boxed_slice());
        let mut text = String::new();
        let mut reader = read(file, RUNNING).map_err(|error| error.to_string())?;
        reader.read_to_string(&mut text).map_err(|error| error.to_string())?;
        Ok(text)
    }

    /// The last word of each line behind the first.
    fn last_words(text: &str) -> Vec<&str> {
        text.lines().skip(1).map(|line| line.rsplit(' ').next().expect("a word")).collect()
    }

    /// Goal: a file gives the kernel's columns, and what it says of its machine.
    #[test]
    fn a_file_gives_the_kernels_columns() {
        let records = [record(10, b"map"), sample(1, 1_000_000_005, 3, 9)];
        let line = "           <...>-42      [003] d....     1.000000005: count: n=9\n";
        let first = "cpus=4; uname: Linux a_host 6.12.107 x86_64; functions have no names";
        assert_eq!(text(file(&[SAMPLE_TYPE], &records)), Ok(format!("{first}\n{line}")));
    }

    /// Goal: functions have names if the kernel that was recorded still runs: of the same release, at the
    /// same place. Method: that, another place, another release, a kernel that tells no addresses.
    #[test]
    fn functions_have_names_while_their_kernel_runs() {
        let place = |address: u64, name: &str| {
            let body =
                [words(&[u64::MAX, 0, u64::MAX, address]), name.as_bytes().to_vec(), b"\0".to_vec()].concat();
            record(kind::MAP, &body)
        };
        let read = |records: &[Vec<u8>], running: RunningKernel| {
            let records = [records, &[sample(1, 10, 0, 0x10)]].concat();
            let print = r#""f=%ps", REC->n + 0xffff0000"#;
            let file: &'static [u8] =
                Box::leak(file_printing(print, &[SAMPLE_TYPE], &records).into_boxed_slice());
            let mut text = String::new();
            super::read(file, running).expect("a file").read_to_string(&mut text).expect("a file");
            (text.contains("no names"), text.rsplit('=').next().expect("a name").trim().to_owned())
        };
        let (other, own) = (place(1, "/lib/x"), place(0xffff_0000, "[kernel.kallsyms]_text"));
        let unnamed = (true, "0xffff0010".to_owned());
        assert_eq!(read(&[other.clone(), own.clone()], RUNNING), (false, "first".to_owned()));
        assert_eq!(read(&[other], RUNNING), unnamed);
        assert_eq!(read(&[place(0xffff_1000, "[kernel.kallsyms]_text")], RUNNING), unnamed);
        assert_eq!(read(&[place(0xffff_0000, "[kernel.kallsyms]_stext")], RUNNING), unnamed);
        let release = || "6.12.108".to_owned();
        assert_eq!(read(std::slice::from_ref(&own), RunningKernel { release, ..RUNNING }), unnamed);
        let symbols = || "00000000 T _text\n00000000 T first\n".to_owned();
        assert_eq!(read(&[own], RunningKernel { symbols, ..RUNNING }), unnamed);
    }

    /// Goal: events come in the order of time over CPUs and rounds, and none before it is certain. Method:
    /// rounds that overlap with those before them.
    #[test]
    fn events_come_in_order() {
        let records = [
            sample(1, 10, 0, 1),
            sample(1, 30, 0, 3),
            sample(1, 20, 1, 2),
            round(),
            sample(1, 50, 0, 6),
            sample(1, 40, 1, 4),
            sample(1, 45, 1, 5),
            round(),
            sample(1, 48, 1, 55),
            round(),
            sample(1, 60, 1, 7),
        ];
        let text = text(file(&[SAMPLE_TYPE], &records)).expect("a file");
        assert_eq!(last_words(&text), ["n=1", "n=2", "n=3", "n=4", "n=5", "n=55", "n=6", "n=7"]);
    }

    /// Goal: what was lost stands where it happened, with its CPU; tasks have the names that they gave
    /// themselves, or inherited.
    #[test]
    fn losses_and_names_stand_where_they_happened() {
        let records = [
            sample(1, 10, 0, 1),
            other(kind::LOST, &words(&[99, 5]), 20),
            other(kind::LOST_SAMPLES, &words(&[6]), 21),
            other(kind::COMM, &[words(&[41 << 32 | 7]), b"new name".to_vec()].concat(), 22),
            other(kind::FORK, &words(&[7 << 32 | 7, 41 << 32 | 42, 23]), 23),
            sample(1, 30, 0, 2),
        ];
        let text = text(file(&[SAMPLE_TYPE], &records)).expect("a file");
        assert_eq!(last_words(&text), ["n=1", "EVENTS]", "EVENTS]", "n=2"]);
        assert!(
            text.contains("\nCPU:3 [LOST 5 EVENTS]\nCPU:3 [LOST 6 EVENTS]\n        new name-42"),
            "{text}"
        );
    }

    /// Goal: events of several forms are told apart by the number they begin with, or refused. Method: two
    /// attributes, of which the second has an address more.
    #[test]
    fn events_of_several_forms_are_told_apart() {
        let with_address = {
            let raw = [7, 0, 1, 0, 42, 0, 0, 0, 2, 0, 0, 0];
            let head = words(&[2, 42 << 32 | 7, 20, 0xdead, 1]);
            record(kind::SAMPLE, &[head, 12u32.to_le_bytes().to_vec(), raw.to_vec()].concat())
        };
        let types = [SAMPLE_TYPE, SAMPLE_TYPE | 1 << 3];
        let records = [sample(1, 10, 0, 1), with_address, sample(3, 15, 0, 9)];
        let text = |types: &[u64]| text(file(types, &records));
        assert_eq!(last_words(&text(&types).expect("a file")), ["n=1", "n=2"], "no event has the number 3");
        let types = types.map(|holds| holds & !(1 << 16));
        let why = "its events have records of several forms, and do not say which: perf script -i FILE";
        assert_eq!(text(&types), Err(why.to_owned()));
    }

    /// Goal: what holds no events of tracepoints, or is compressed, says so.
    #[test]
    fn what_cannot_be_read_says_why() {
        let compressed = file(&[SAMPLE_TYPE], &[record(kind::COMPRESSED, b"x")]);
        let why = "it is compressed (perf record -z), which is not read: perf script";
        assert_eq!(text(compressed), Err(why.to_owned()));
        let mut without = file(&[SAMPLE_TYPE], &[]);
        without[72] = 0;
        let why = "it holds no events of tracepoints: perf record -e 'timer:*' makes one that does";
        assert_eq!(text(without), Err(why.to_owned()));
        let mut odd = file(&[SAMPLE_TYPE], &[]);
        odd[16] = 63;
        assert_eq!(text(odd), Err("144 bytes of attributes of 63 bytes each".to_owned()));
    }

    /// Goal: memory is bounded, and nothing is lost for it. Method: one round of more than may wait, of which
    /// the last event is the earliest.
    #[test]
    fn what_waits_is_bounded() {
        let count = WAITING_BYTES_MAX / (12 + super::WAITING_BYTES_EACH) + 5;
        let mut records: Vec<_> = (0..count as u64).map(|number| sample(1, 100 + number, 0, 1)).collect();
        records.push(sample(1, 50, 0, 2));
        let text = text(file(&[SAMPLE_TYPE], &[records.concat()])).expect("a file");
        assert_eq!(text.lines().count(), 1 + count + 1);
        let place = text.lines().position(|line| line.ends_with("n=2")).expect("it is there");
        assert!((2..10).contains(&place), "after those that had no room: {place}");
    }

    /// Goal: a file that is cut or damaged is an error or a shorter text, never a panic. Method: every cut;
    /// every byte set to all ones.
    #[test]
    fn a_damaged_file_is_an_error() {
        let records =
            [sample(1, 10, 0, 1), other(kind::LOST, &words(&[99, 5]), 20), round(), sample(1, 30, 0, 2)];
        let whole = file(&[SAMPLE_TYPE, SAMPLE_TYPE | 1 << 3], &records);
        for at in 0..whole.len() {
            let _ = text(whole[..at].to_vec());
            let mut damaged = whole.clone();
            damaged[at] = 0xff;
            let _ = text(damaged);
        }
        assert!(text(whole[..100].to_vec()).is_err());
    }
}
