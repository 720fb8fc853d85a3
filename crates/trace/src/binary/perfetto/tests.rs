//! Traces made by hand: no producer of Perfetto is needed. That the numbers of fields are those of the
//! published schema is checked by `tests/perfetto_input.py`, which makes a trace with that schema.

use super::{WAITING_BYTES_MAX, begins_with_packet, read};
use crate::event::Event;
use crate::reader::TraceReader;
use std::io::{Cursor, Read};

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn uint(field: u64, value: u64) -> Vec<u8> {
    [varint(field * 8), varint(value)].concat()
}

fn bytes(field: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(field * 8 + 2), varint(bytes.len() as u64), bytes.into()].concat()
}

fn message(field: u64, fields: &[Vec<u8>]) -> Vec<u8> {
    bytes(field, &fields.concat())
}

/// A column of numbers.
fn column(field: u64, numbers: &[u64]) -> Vec<u8> {
    bytes(field, &numbers.iter().flat_map(|&number| varint(number)).collect::<Vec<_>>())
}

fn packet(fields: &[Vec<u8>]) -> Vec<u8> {
    message(1, fields)
}

/// The events of a CPU.
fn bundle(cpu: u64, rest: &[Vec<u8>]) -> Vec<u8> {
    packet(&[uint(10, 1), message(1, &[&[uint(1, cpu)], rest].concat())])
}

/// An event of task `pid`.
fn event(at: u64, pid: u64, number: u64, fields: &[Vec<u8>]) -> Vec<u8> {
    message(2, &[uint(1, at), uint(2, pid), message(number, fields)])
}

fn read_of(file: &[u8]) -> impl Read {
    read(Cursor::new(file.to_vec()), 250)
}

fn text_of(file: &[u8]) -> String {
    let mut text = String::new();
    read_of(file).read_to_string(&mut text).expect("text");
    text
}

fn error_of(file: &[u8]) -> String {
    read_of(file).read_to_end(&mut Vec::new()).expect_err("no trace").to_string()
}

/// What the machine is, the names of two functions, and each kind of event, on two CPUs.
fn whole() -> Vec<u8> {
    let symbol = |number, name: &[u8]| message(26, &[uint(1, number), bytes(2, name)]);
    let wakes = [bytes(1, b"rt"), uint(2, 9), uint(3, 98), uint(4, 1), uint(5, 1)];
    let switch =
        [bytes(1, b"a task"), uint(2, 7), uint(3, 120), uint(4, 1), bytes(5, b"rt"), uint(6, 9), uint(7, 98)];
    [
        packet(&[uint(10, 1), uint(13, 1), message(12, &[symbol(1, b"tick"), symbol(2, b"do_work")])]),
        packet(&[message(
            45,
            &[message(1, &[bytes(1, b"Linux"), bytes(3, b"6.12.1"), bytes(4, b"x86_64")])],
        )]),
        bundle(
            1,
            &[
                event(2_000_000_300, 7, 4, &switch),
                event(2_000_000_400, 9, 24, &[uint(1, 1)]),
                event(2_000_000_500, 9, 25, &[uint(1, 1)]),
                event(2_000_000_600, 9, 36, &[uint(1, 35), bytes(2, b"nic")]),
                event(2_000_000_700, 9, 37, &[uint(1, 35), uint(2, 1)]),
                event(2_000_000_800, 9, 58, &[uint(1, 0xa), uint(2, 2)]),
                event(2_000_000_900, 9, 57, &[uint(1, 0xa), uint(2, 2)]),
                event(2_000_001_000, 9, 499, &[uint(1, 1)]),
            ],
        ),
        bundle(
            0,
            &[
                event(2_000_000_100, 5, 26, &[uint(1, 1)]),
                event(2_000_000_200, 5, 20, &wakes),
                event(2_000_000_250, 5, 59, &[uint(1, 0xa), uint(2, 2), uint(4, 1), uint(5, 1)]),
                event(2_000_000_950, 5, 13, &[uint(1, 0xffff_ffff), uint(2, 0)]),
            ],
        ),
    ]
    .concat()
}

/// Goal: each event is the line that the kernel prints, in the order of time. Method: both CPUs' packets, the
/// later events first.
#[test]
fn events_are_the_kernels_lines() {
    let columns = |comm: &str, pid: u64, cpu: u64, nanos: u64| {
        format!("{comm:>16}-{pid:<7} [{cpu:03}]      2.{nanos:09}: ")
    };
    let expected = [
        "cpus=2; uname: Linux perfetto 6.12.1 x86_64".to_owned(),
        columns("<...>", 5, 0, 100) + "softirq_raise: vec=1 [action=TIMER]",
        columns("<...>", 5, 0, 200) + "sched_waking: comm=rt pid=9 prio=98 target_cpu=001",
        columns("<...>", 5, 0, 250)
            + "workqueue_queue_work: work struct=000000000000000a function=do_work req_cpu=1 cpu=1",
        columns("a task", 7, 1, 300)
            + "sched_switch: prev_comm=a task prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=rt \
               next_pid=9 next_prio=98",
        columns("rt", 9, 1, 400) + "softirq_entry: vec=1 [action=TIMER]",
        columns("rt", 9, 1, 500) + "softirq_exit: vec=1 [action=TIMER]",
        columns("rt", 9, 1, 600) + "irq_handler_entry: irq=35 name=nic",
        columns("rt", 9, 1, 700) + "irq_handler_exit: irq=35 ret=handled",
        columns("rt", 9, 1, 800) + "workqueue_execute_start: work struct 000000000000000a: function do_work",
        columns("rt", 9, 1, 900) + "workqueue_execute_end: work struct 000000000000000a: function do_work",
        columns("<...>", 5, 0, 950) + "cpu_idle: state=4294967295 cpu_id=0",
        columns("rt", 9, 1, 1000) + "perfetto_event_499:",
    ];
    assert_eq!(text_of(&whole()), expected.join("\n") + "\n");
}

/// Goal: every line is read as an event of its type, and none is malformed.
#[test]
fn every_line_is_an_event() {
    let text = text_of(&whole());
    let (mut events, mut unknown) = (0, 0);
    let mut reader = TraceReader::new(text.as_bytes());
    let mut take = |record: &crate::Record<'_>| {
        events += 1;
        unknown += u64::from(record.event == Event::Unknown);
    };
    reader.read(u64::MAX, &mut take).expect("text");
    assert_eq!(reader.tally().malformed, 0, "{:?}", reader.tally().malformed_first);
    assert_eq!((events, unknown), (12, 1), "the one without a name");
    assert_eq!(reader.header().cpu_count, Some(2));
}

/// Goal: switches and wake-ups in columns say who ran before; before that is known they are no switches.
/// Method: two switches and a wake-up after each, between them an event that names the task.
#[test]
fn columns_are_switches_and_wakeups() {
    let columns = [
        message(
            4,
            &[
                bytes(5, b"one"),
                bytes(5, b"two"),
                column(1, &[1000, 200]),
                column(2, &[0, 0x100]),
                column(3, &[11, 12]),
                column(4, &[120, 97]),
                column(6, &[0, 1]),
                column(7, &[900, 200, 200]),
                column(8, &[12, 12, 11]),
                column(9, &[3, 3, 4]),
                column(10, &[97, 97, 120]),
                column(11, &[1, 1, 0]),
            ],
        ),
        event(1050, 11, 26, &[uint(1, 3)]),
    ];
    let text = text_of(&bundle(3, &columns));
    let lines: Vec<&str> = text.lines().skip(1).map(str::trim_start).collect();
    let expected = [
        "<...>-0       [003]      0.000000900: sched_waking_by_unknown_task: comm=two pid=12 prio=97 target_cpu=003",
        "one-11      [003]      0.000001000: sched_switch_from_unknown_task: next_comm=one next_pid=11 \
         next_prio=120",
        "one-11      [003]      0.000001050: softirq_raise: vec=3 [action=NET_RX]",
        "one-11      [003]      0.000001100: sched_waking: comm=two pid=12 prio=97 target_cpu=003",
        "one-11      [003]      0.000001200: sched_switch: prev_comm=one prev_pid=11 prev_prio=120 prev_state=R+ \
         ==> next_comm=two next_pid=12 next_prio=97",
        "two-12      [003]      0.000001300: sched_waking: comm=one pid=11 prio=120 target_cpu=004",
    ];
    assert_eq!(lines, expected);
}

/// Goal: lost events are marks: where they were lost, and how many more the counts at the end say. Method: a
/// bundle that says so, after which it is not known what ran; counts at both ends of the trace.
#[test]
fn lost_events_are_marks() {
    let stats = |phase, overrun, dropped| {
        let cpu = message(2, &[uint(1, 1), uint(3, overrun), uint(8, dropped)]);
        packet(&[message(34, &[uint(1, phase), cpu])])
    };
    let sched = |at: u64| {
        let columns =
            [column(1, &[at]), column(2, &[0]), column(3, &[11]), column(4, &[120]), column(6, &[0])];
        message(4, &[&[bytes(5, b"one")], &columns[..]].concat())
    };
    let file = [
        stats(1, 5, 2),
        bundle(1, &[event(1000, 7, 26, &[uint(1, 3)])]),
        bundle(1, &[uint(3, 1), sched(2000), event(2100, 11, 26, &[uint(1, 3)])]),
        stats(2, 15, 3),
    ];
    let text = text_of(&file.concat());
    let shown: Vec<&str> =
        text.lines().skip(1).map(|line| line.split(": ").last().expect("a part")).collect();
    let shown: Vec<&str> = shown.into_iter().map(|line| line.split(' ').next().expect("a word")).collect();
    assert_eq!(shown, ["vec=3", "CPU:1", "next_comm=one", "vec=3", "CPU:1"], "{text}");
    assert!(text.contains("\nCPU:1 [LOST EVENTS]\n"), "{text}");
    assert!(text.ends_with("\nCPU:1 [LOST 10 EVENTS]\n"), "eleven, one of which was marked: {text}");
}

/// Goal: a bundle without events that says that some were lost is no silence. Method: one before other events
/// of its CPU, and one at the end.
#[test]
fn losses_of_an_empty_bundle_are_told() {
    let raise = |at| event(at, 7, 26, &[uint(1, 3)]);
    let lost = || bundle(1, &[uint(3, 1)]);
    let text = text_of(&[bundle(1, &[raise(1000)]), lost(), bundle(1, &[raise(2000)]), lost()].concat());
    let marks: Vec<bool> = text.lines().skip(1).map(|line| line == "CPU:1 [LOST EVENTS]").collect();
    assert_eq!(marks, [false, true, false, true], "{text}");
}

/// Goal: names of functions belong to a sequence, until it begins anew; one that is not known is a number,
/// and the first line says so.
#[test]
fn functions_have_the_names_of_their_sequence() {
    let names = |sequence, flags, name: &[u8]| {
        let symbols = message(12, &[message(26, &[uint(1, 1), bytes(2, name)])]);
        packet(&[uint(10, sequence), uint(13, flags), symbols])
    };
    let work = |sequence, at| {
        let start = event(at, 9, 58, &[uint(1, 0xa), uint(2, 1)]);
        packet(&[uint(10, sequence), message(1, &[uint(1, 0), start])])
    };
    let clear = packet(&[uint(10, 1), uint(13, 1)]);
    let file = [names(1, 0, b"f"), names(2, 0, b"g"), work(1, 100), work(2, 200), clear, work(1, 300)];
    let text = text_of(&file.concat());
    let functions: Vec<&str> =
        text.lines().skip(1).filter_map(|line| line.split("function ").nth(1)).collect();
    assert_eq!(functions, ["f", "g", "0x1"], "{text}");
    assert!(text.starts_with("cpus=1; functions have no names\n"), "{text}");
}

/// Goal: what has no message of its own is read where its fields are the kernel's words, and nowhere else.
#[test]
fn events_without_a_message_are_told_apart() {
    let field = |name: &[u8], value: Vec<u8>| message(2, &[bytes(1, name), value]);
    let generic =
        |at, name: &[u8], fields: &[Vec<u8>]| event(at, 9, 327, &[&[bytes(1, name)], fields].concat());
    let address = field(b"callsite", uint(5, 0xffff_ffff_8100_0000));
    let file = bundle(
        0,
        &[
            generic(100, b"local_timer_entry", &[field(b"vector", uint(4, 236))]),
            generic(
                200,
                b"ipi_send_cpu",
                &[field(b"cpu", uint(5, 1)), address, field(b"callback", uint(5, 0))],
            ),
            generic(
                300,
                b"tmigr_group_set",
                &[field(b"group", uint(5, 1 << 63)), field(b"x", bytes(3, b"y"))],
            ),
            generic(400, b"a b:\n", &[]),
        ],
    );
    let text = text_of(&file);
    let shown: Vec<&str> = text.lines().skip(1).map(|line| line.split(": ").nth(1).unwrap_or(line)).collect();
    assert_eq!(
        shown,
        [
            "local_timer_entry",
            "ipi_send_cpu",
            "tmigr_group_set_without_format",
            "perfetto_event_without_format:"
        ]
    );
    assert!(text.contains("ipi_send_cpu: cpu=1 callsite=0xffffffff81000000 callback=0x0\n"), "{text}");
    assert!(text.contains("tmigr_group_set_without_format: group=0x8000000000000000 x=y\n"), "{text}");
    assert!(text.ends_with("perfetto_event_without_format:\n"), "{text}");
}

/// Goal: packets that are compressed together are the same packets; bombs and what is compressed twice are
/// refused.
#[test]
fn compressed_packets_are_read() {
    let compressed = |bytes_of: &[u8]| {
        let mut out = Vec::new();
        flate2::read::ZlibEncoder::new(bytes_of, flate2::Compression::best())
            .read_to_end(&mut out)
            .expect("it");
        packet(&[bytes(50, &out)])
    };
    assert_eq!(text_of(&compressed(&whole())), text_of(&whole()));
    let twice = compressed(&compressed(&whole()));
    assert!(error_of(&twice).contains("no events of the kernel"), "{}", error_of(&twice));
    let bomb = compressed(&packet(&[bytes(99, &vec![0; 15 << 20])]));
    let error = error_of(&[bomb.clone(), bomb].concat());
    assert!(error.contains("expands to more than 250 times"), "{error}");
    let error = error_of(&packet(&[bytes(50, b"no zlib")]));
    assert!(!error.is_empty());
}

/// Goal: no bytes make it panic, and a cut is told. Method: every cut of a whole trace, and each byte changed
/// in three ways.
#[test]
fn damage_is_told_and_harmless() {
    let whole = whole();
    let mut told = 0;
    for end in 1..whole.len() {
        let mut text = Vec::new();
        let result = read_of(&whole[..end]).read_to_end(&mut text);
        told += u64::from(result.is_err());
    }
    // Packets end at four places; after two of them there is no event yet.
    assert_eq!(told, whole.len() as u64 - 1 - 1, "one cut leaves a whole trace with events");
    for place in 0..whole.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[place] ^= change;
            let mut text = Vec::new();
            let _ = read_of(&damaged).read_to_end(&mut text);
            assert!(text.len() < 1 << 20, "{place}, {change:#x}: {} bytes", text.len());
        }
    }
}

/// Goal: what is wrong is told with its place. Method: a length beyond all bounds, what is no packet, a
/// broken message, columns of different lengths, a CPU that no machine has, no events.
#[test]
fn what_is_wrong_has_its_place() {
    let front = packet(&[uint(10, 1)]);
    let with = |rest: &[u8]| error_of(&[&front[..], rest].concat());
    assert_eq!(
        with(b"\x0a\xff\xff\xff\xff\x0f"),
        "the packet at byte 4 has more than 16777216 bytes, which is not read"
    );
    assert_eq!(with(b"\x12\x00"), "no packet begins at byte 4, where one should");
    assert_eq!(with(b"\x0a\x09\x0a"), "it ends in the packet at byte 4");
    assert_eq!(with(b"\x0a"), "it ends at byte 5, in the length of a packet");
    assert_eq!(with(b"\x0a\x01\x0a"), "the packet that ends at byte 7 is broken");
    let uneven = bundle(0, &[message(4, &[column(1, &[1, 2]), column(2, &[0])])]);
    assert!(with(&uneven).ends_with("is broken"), "{}", with(&uneven));
    assert!(with(&bundle(99_999, &[])).ends_with("is broken"));
    assert!(with(b"").starts_with("it holds no events of the kernel"));
}

/// Goal: a trace of Perfetto is told from a text, and nothing that was read for that is lost. Method: a
/// trace, one that is cut in its first packet, texts that begin with an empty line, and what is too short;
/// with some bytes read before.
#[test]
fn a_trace_is_told_from_a_text() {
    let is_one = |bytes: &[u8]| {
        let told = [0, 1, 3, 10].map(|before| {
            let (before, mut rest) = bytes.split_at(bytes.len().min(before));
            let mut front = before.to_vec();
            let is_one = begins_with_packet(&mut rest, &mut front).expect("memory");
            assert_eq!([&front[..], rest].concat(), bytes);
            is_one
        });
        assert!(told.iter().all(|&is_one| is_one == told[0]), "{told:?}: {bytes:?}");
        told[0]
    };
    assert!(is_one(&whole()) && is_one(&packet(&[uint(10, 1)])));
    assert!(!is_one(&whole()[..20]));
    let long = |length: usize| packet(&[bytes(99, &vec![7; length])]);
    assert!(is_one(&long(1 << 19)) && !is_one(&long(1 << 20)));
    for text in [
        "",
        "\n",
        "\n\n",
        "\n# tracer: nop\n#\n",
        "\n  <idle>-0  [000] d.s2. 1.0: timer_cancel: timer=01\n",
        "\n\n\n\n",
    ] {
        assert!(!is_one(text.as_bytes()), "{text:?}");
    }
}

/// Goal: events wait in bounded memory, and all of them come out. Method: more than may wait, of one CPU
/// after the other, twice.
#[test]
fn waiting_is_bounded() {
    let count = WAITING_BYTES_MAX / super::WAITING_BYTES_EACH;
    let of_cpu = |cpu: u64| {
        let times: Vec<u64> = (0..count as u64).map(|_| 1).collect();
        let same = |number: u64| vec![number; count];
        let columns = [
            column(7, &times),
            column(8, &same(cpu + 1)),
            column(9, &same(cpu)),
            column(10, &same(120)),
            column(11, &same(0)),
        ];
        bundle(cpu, &[message(4, &[&[bytes(5, b"one")], &columns[..]].concat())])
    };
    let file = [of_cpu(0), of_cpu(1)].concat();
    let mut lines = 0;
    let mut text = read_of(&file);
    let mut piece = vec![0; 1 << 16];
    loop {
        let length = text.read(&mut piece).expect("text");
        if length == 0 {
            break;
        }
        lines += piece[..length].iter().filter(|&&byte| byte == b'\n').count();
    }
    assert_eq!(lines, 2 * count + 1);
}
