//! A whole file, written a second time by hand: each field with its number in the schema.

use super::PerfettoWriter;
use crate::event::{
    Event, HrtimerStart, IpiPurpose, Record, SoftirqStep, SpanStep, SystemInterrupt, TimerStart,
};
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

/// A number of 64 bits.
fn fixed(field: u64, value: u64) -> Vec<u8> {
    [varint(field * 8 + 1), value.to_le_bytes().into()].concat()
}

/// The number of CPU 0, and of the first arrow.
const BASE: u64 = 0x7175_6965_7463 << 17;

/// The number of CPU 2.
const ROOT: u64 = root(2);

const fn root(cpu: u64) -> u64 {
    BASE + cpu * 16
}

/// A CPU without its tracks.
fn described_cpu(cpu: u64) -> Vec<u8> {
    let name = text(2, &format!("CPU {cpu}"));
    packet(&[uint(10, 1), message(60, &[name, uint(1, root(cpu)), uint(11, 3), uint(12, cpu)])])
}

/// A track of a CPU, counted from 0.
fn track_of(cpu: u64, rank: u64, name: &str) -> Vec<u8> {
    let track = [text(2, name), uint(1, root(cpu) + 1 + rank), uint(5, root(cpu)), uint(12, rank)];
    packet(&[uint(10, 1), message(60, &track)])
}

/// A track of CPU 2.
fn track(rank: u64, name: &str) -> Vec<u8> {
    track_of(2, rank, name)
}

/// The first packet: the names of tracks and notes.
fn first() -> Vec<u8> {
    let names = |field, names: &[&str]| -> Vec<u8> {
        let entry = |(number, name): (u64, &&str)| message(field, &[uint(1, number), text(2, name)]);
        (1..).zip(names).flat_map(entry).collect()
    };
    let tracks = names(1, &["timers", "hrtimers", "softirqs", "interrupts", "work", "pulls", "causes"]);
    let notes = names(3, &["armed_cpu", "base_cpu", "line"]);
    packet(&[uint(10, 1), uint(13, 1), message(12, &[tracks, notes])])
}

/// A beginning (1) or an instant (3) on a track of a CPU: the fields before its name.
fn on(cpu: u64, rank: u64, kind: u64) -> Vec<u8> {
    [uint(9, kind), uint(11, root(cpu) + 1 + rank), uint(3, 1 + rank)].concat()
}

/// An instant among the causes of a CPU, from which an arrow goes, counted from 0.
fn cause(cpu: u64, nanos: u64, named: (u64, &str), arrow: u64) -> Vec<u8> {
    let from = [on(cpu, 6, 3), uint(10, named.0), note(3, nanos / 10), fixed(47, BASE + arrow)];
    packet(&[at(nanos), name(named.0, named.1), message(11, &from)])
}

/// The end of an arrow.
fn arrives(arrow: u64) -> Vec<u8> {
    fixed(48, BASE + arrow)
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
    recorded(events)
}

/// What happens on which CPU, at how many ns; the line is a tenth of that.
fn recorded<'a>(events: impl IntoIterator<Item = (u64, u64, Event<'a>)>) -> Vec<Record<'a>> {
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

fn written(records: &[Record<'_>]) -> Output {
    let mut writer = PerfettoWriter::new(Output::default());
    for record in records {
        writer.take(record).expect("memory");
    }
    writer.finish().expect("memory")
}

fn cpu(number: u64) -> CpuId {
    CpuId::new(number).expect("a small number")
}

/// Goal: every field is the one of the schema, and says what happened. Method: a timer of CPU 5 that CPU 3
/// armed and CPU 2 pulled, a softirq and an hrtimer; all bytes, and that none is held back.
#[test]
fn every_byte() {
    let (begin, instant) = (1, 3);
    let pulled = |line| [note(1, 3), note(2, 5), note(3, line)].concat();
    let expected = [
        first(),
        described_cpu(3),
        track_of(3, 6, "causes"),
        cause(3, 100, (1, "arm cb"), 0),
        described_cpu(2),
        track(5, "pulls"),
        packet(&[
            at(200),
            name(2, "pull cb from CPU 5"),
            message(11, &[on(2, 5, instant), uint(10, 2), pulled(20)]),
        ]),
        track(0, "timers"),
        packet(&[
            at(200),
            name(3, "cb"),
            message(11, &[on(2, 0, begin), uint(10, 3), pulled(20), arrives(0)]),
        ]),
        end(0, 260),
        track(2, "softirqs"),
        packet(&[at(310), name(4, "NET_RX"), message(11, &[on(2, 2, begin), uint(10, 4), note(3, 31)])]),
        end(2, 340),
        described_cpu(7),
        track_of(7, 6, "causes"),
        cause(7, 350, (5, "arm (no name)"), 1),
        track(1, "hrtimers"),
        packet(&[
            at(400),
            name(6, "(no name)"),
            message(11, &[on(2, 1, begin), uint(10, 6), note(1, 7), note(3, 40), arrives(1)]),
        ]),
        end(1, 450),
    ];
    let output = written(&records());
    assert_eq!(output.bytes, expected.concat());
    assert_eq!(output.flushed, output.bytes.len());
}

/// Goal: interrupts and work items, and the arrows to them. Method: CPU 3 sends to CPU 2 in both ways and
/// queues a work item, CPU 2 another one, which has no arrow; and a device's interrupt; all bytes.
#[test]
fn every_byte_of_interrupts_and_work() {
    use SpanStep::{Entry, Exit};
    let purpose = |callback, reason| IpiPurpose { callsite: b"at", callback, reason };
    let system = |step, interrupt| Event::SystemInterrupt { step, interrupt };
    let single = |step| system(step, SystemInterrupt::CallFunctionSingle);
    let ipi = |step| Event::IpiHandled { step, reason: b"Rescheduling interrupts" };
    let queued = |work| Event::WorkQueue { work, function: b"f", cpu: None };
    let resched = IpiPurpose { reason: b"Rescheduling interrupts", ..IpiPurpose::default() };
    let events = [
        (3, 100, Event::IpiSendCpu { to: cpu(2), purpose: purpose(b"called", b"") }),
        (2, 110, single(Entry)),
        (2, 120, single(Exit)),
        (3, 130, Event::IpiSendMask { to: "2".parse().expect("a list"), purpose: resched }),
        (2, 140, ipi(Entry)),
        (2, 150, ipi(Exit)),
        (2, 160, Event::DeviceInterrupt { step: Entry, number: 35, name: b"nic" }),
        (2, 170, Event::DeviceInterrupt { step: Exit, number: 35, name: b"" }),
        (3, 180, queued(0xc)),
        (2, 190, queued(0xd)),
        (2, 200, Event::WorkStart { work: 0xc, function: b"f" }),
        (2, 210, Event::WorkEnd { work: 0xc }),
        (2, 220, Event::WorkStart { work: 0xd, function: b"f" }),
        (2, 230, Event::WorkEnd { work: 0xd }),
    ];
    let interrupt = |nanos, named: (u64, &str), more: Vec<u8>| {
        let begins = [on(2, 3, 1), uint(10, named.0), note(3, nanos / 10), more];
        packet(&[at(nanos), name(named.0, named.1), message(11, &begins)])
    };
    let expected = [
        first(),
        described_cpu(3),
        track_of(3, 6, "causes"),
        cause(3, 100, (1, "send called"), 0),
        described_cpu(2),
        track(3, "interrupts"),
        interrupt(110, (2, "call_function_single"), arrives(0)),
        end(3, 120),
        cause(3, 130, (3, "send Rescheduling interrupts"), 1),
        interrupt(140, (4, "Rescheduling interrupts"), arrives(1)),
        end(3, 150),
        interrupt(160, (5, "35 nic"), Vec::new()),
        end(3, 170),
        cause(3, 180, (6, "queue f"), 2),
        track(4, "work"),
        packet(&[at(200), name(7, "f"), message(11, &[on(2, 4, 1), uint(10, 7), note(3, 20), arrives(2)])]),
        end(4, 210),
        packet(&[at(220), message(11, &[on(2, 4, 1), uint(10, 7), note(3, 22)])]),
        end(4, 230),
    ];
    assert_eq!(written(&recorded(events)).bytes, expected.concat());
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
