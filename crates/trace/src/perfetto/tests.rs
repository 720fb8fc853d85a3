//! A whole file, written a second time by hand: each field with its number in the schema.

use super::PerfettoWriter;
use crate::event::{Event, HrtimerStart, Record, SoftirqStep, TimerStart};
use crate::line::Task;
use quietcore_core::{CpuId, Nanos};
use std::io::{self, Write};

/// What is written, and how much of it was flushed.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    flushed: usize,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flushed = self.bytes.len();
        Ok(())
    }
}

fn varint(value: u64) -> Vec<u8> {
    let groups = (64 - (value | 1).leading_zeros()).div_ceil(7);
    let group = |at| (value >> (7 * at)) as u8 & 0x7f | if at + 1 < groups { 0x80 } else { 0 };
    (0..groups).map(group).collect()
}

/// A number.
fn uint(field: u64, value: u64) -> Vec<u8> {
    [varint(field * 8), varint(value)].concat()
}

/// A string.
fn text(field: u64, text: &str) -> Vec<u8> {
    [varint(field * 8 + 2), varint(text.len() as u64), text.into()].concat()
}

/// A message of such fields.
fn message(field: u64, fields: &[Vec<u8>]) -> Vec<u8> {
    let fields = fields.concat();
    [varint(field * 8 + 2), varint(fields.len() as u64), fields].concat()
}

/// A packet of the trace.
fn packet(fields: &[Vec<u8>]) -> Vec<u8> {
    message(1, fields)
}

/// The number of CPU 2.
const ROOT: u64 = (0x7175_6965_7463 << 16) + 16;

/// A track of CPU 2, counted from 0.
fn track(rank: u64, name: &str) -> Vec<u8> {
    let track = [text(2, name), uint(1, ROOT + 1 + rank), uint(5, ROOT), uint(12, rank)];
    packet(&[uint(10, 1), message(60, &track)])
}

/// The head of an event's packet.
fn at(nanos: u64) -> Vec<u8> {
    [uint(8, nanos), uint(10, 1), uint(13, 2)].concat()
}

/// A name that is used for the first time.
fn name(number: u64, name: &str) -> Vec<u8> {
    message(12, &[message(2, &[uint(1, number), text(2, name)])])
}

/// What an event says: 1 is the CPU that armed, 2 the base's, 3 the line.
fn note(number: u64, value: u64) -> Vec<u8> {
    message(4, &[uint(1, number), uint(3, value)])
}

/// The end of a slice on a track of CPU 2.
fn end(rank: u64, nanos: u64) -> Vec<u8> {
    packet(&[at(nanos), message(11, &[uint(9, 2), uint(11, ROOT + 1 + rank)])])
}

/// What happens on CPU 2, unless another one arms, at so many ns; the line is a tenth of that.
fn records() -> Vec<Record<'static>> {
    let armed = TimerStart {
        timer: 0xa,
        function: b"armed",
        expires: 1,
        timeout: 2,
        bucket_expiry: None,
        base: cpu(5),
        bucket: None,
        deferrable: false,
        pinned: false,
        irq_safe: false,
    };
    let (expires, softexpires) = (Nanos(1), Nanos(2));
    let started = HrtimerStart { hrtimer: 0xb, function: b"started", expires, softexpires, pinned: None };
    let softirq = |step| Event::Softirq { step, vector: 3 };
    let events = [
        (3, 100, Event::TimerStart(armed)),
        (2, 200, Event::TimerExpireEntry { timer: 0xa, function: b"cb", now: 1, baseclk: None }),
        (2, 260, Event::TimerExpireExit { timer: 0xa }),
        (2, 300, softirq(SoftirqStep::Raise)),
        (2, 310, softirq(SoftirqStep::Entry)),
        (2, 340, softirq(SoftirqStep::Exit)),
        (7, 350, Event::HrtimerStart(started)),
        (2, 400, Event::HrtimerExpireEntry { hrtimer: 0xb, function: b"", now: Nanos(1) }),
        (2, 450, Event::HrtimerExpireExit { hrtimer: 0xb }),
    ];
    let record = |(on, nanos, event)| Record {
        line: nanos / 10,
        task: Task { comm: b"task", pid: 1 },
        cpu: cpu(on),
        context: None,
        at: Nanos(nanos),
        event,
    };
    events.into_iter().map(record).collect()
}

fn cpu(number: u64) -> CpuId {
    CpuId::new(number).expect("a small number")
}

/// Goal: every field is the one of the schema, and says what happened. Method: a timer of CPU 5 that CPU 3
/// armed and CPU 2 pulled, a softirq and an hrtimer; all bytes, and that none is held back.
#[test]
fn every_byte() {
    let mut writer = PerfettoWriter::new(Output::default());
    for record in records() {
        writer.take(&record).expect("memory");
    }
    let names = |field, names: &[&str]| -> Vec<u8> {
        let entry = |(number, name): (u64, &&str)| message(field, &[uint(1, number), text(2, name)]);
        (1..).zip(names).flat_map(entry).collect()
    };
    let tracks = names(1, &["timers", "hrtimers", "softirqs", "pulls"]);
    let notes = names(3, &["armed_cpu", "base_cpu", "line"]);
    let on = |kind, rank: u64| [uint(9, kind), uint(11, ROOT + 1 + rank), uint(3, 1 + rank)].concat();
    let (begin, instant) = (1, 3);
    let pulled = |line| [note(1, 3), note(2, 5), note(3, line)].concat();
    let expected = [
        packet(&[uint(10, 1), uint(13, 1), message(12, &[tracks, notes])]),
        packet(&[uint(10, 1), message(60, &[text(2, "CPU 2"), uint(1, ROOT), uint(11, 3), uint(12, 2)])]),
        track(3, "pulls"),
        packet(&[
            at(200),
            name(1, "pull cb from CPU 5"),
            message(11, &[on(instant, 3), uint(10, 1), pulled(20)]),
        ]),
        track(0, "timers"),
        packet(&[at(200), name(2, "cb"), message(11, &[on(begin, 0), uint(10, 2), pulled(20)])]),
        end(0, 260),
        track(2, "softirqs"),
        packet(&[at(310), name(3, "NET_RX"), message(11, &[on(begin, 2), uint(10, 3), note(3, 31)])]),
        end(2, 340),
        track(1, "hrtimers"),
        packet(&[
            at(400),
            name(4, "(no name)"),
            message(11, &[on(begin, 1), uint(10, 4), note(1, 7), note(3, 40)]),
        ]),
        end(1, 450),
    ];
    let output = writer.finish().expect("memory");
    assert_eq!(output.bytes, expected.concat());
    assert_eq!(output.flushed, output.bytes.len());
}

/// Goal: each vector of a softirq has the name that the kernel gives its number, and one beyond them has the
/// number. Method: all ten, written out, and the next one, each as the only slice of a file.
#[test]
fn softirqs_have_the_names_of_their_numbers() {
    let names = [
        "HI",
        "TIMER",
        "NET_TX",
        "NET_RX",
        "BLOCK",
        "IRQ_POLL",
        "TASKLET",
        "SCHED",
        "HRTIMER",
        "RCU",
        "vector 10",
    ];
    for (vector, expected) in (0..).zip(names) {
        let mut writer = PerfettoWriter::new(Output::default());
        for (nanos, step) in [(310, SoftirqStep::Entry), (340, SoftirqStep::Exit)] {
            let task = Task { comm: b"task", pid: 1 };
            let event = Event::Softirq { step, vector };
            let (on, at) = (cpu(2), Nanos(nanos));
            writer.take(&Record { line: 31, task, cpu: on, context: None, at, event }).expect("memory");
        }
        let output = writer.finish().expect("memory");
        let named = name(1, expected);
        assert!(output.bytes.windows(named.len()).any(|part| part == named), "{vector}: {expected}");
    }
}
