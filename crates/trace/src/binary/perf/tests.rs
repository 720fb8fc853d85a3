//! Files of perf, made here: their order, their losses and names, what is refused, what is damaged.

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

/// A record of where something lies: of the kernel, or of another file.
fn place(address: u64, name: &str) -> Vec<u8> {
    let head = words(&[u64::MAX, 0, u64::MAX, address]);
    record(kind::MAP, &[head, name.as_bytes().to_vec(), b"\0".to_vec()].concat())
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
        // Where the kernel lies is looked for ahead; here that ends at once.
        place(0, "[kernel.kallsyms]_text"),
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
    assert!(text.contains("\nCPU:3 [LOST 5 EVENTS]\nCPU:3 [LOST 6 EVENTS]\n        new name-42"), "{text}");
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
