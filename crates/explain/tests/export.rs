//! The exports through their public interface: handcrafted traces read back by a reader of the
//! wire format that shares no code with the writer, and recordings against their own reports.
//!
//! The schema itself is checked elsewhere (`tests/perfetto_schema.py` at the root).

#[path = "figures/decoder.rs"]
mod decoder;

use decoder::{Shown, decode};
use quietcore_core::CpuSet;
use quietcore_explain::{Explain, ExplainOptions, Explanation, openmetrics};
use quietcore_trace::{PerfettoWriter, TraceReader, open};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;

fn write(source: impl Read, mut writer: PerfettoWriter<Vec<u8>>) -> Vec<u8> {
    let mut reader = TraceReader::new(source);
    reader.read(u64::MAX, &mut |record| writer.take(record).expect("memory")).expect("a trace");
    assert_eq!(reader.tally().malformed, 0, "{:?}", reader.tally().malformed_first);
    writer.finish().expect("memory")
}

fn shown(lines: &[&str]) -> Vec<Shown> {
    decode(&write(lines.join("\n").as_bytes(), PerfettoWriter::new(Vec::new())))
}

fn in_short(event: &Shown) -> String {
    format!("{} {} {} {}", event.track, event.at, event.kind, event.name)
}

fn short(lines: &[&str]) -> Vec<String> {
    shown(lines).iter().map(in_short).collect()
}

const START: &str =
    "a-1 [000] 1.000000: timer_start: timer=01 function=f expires=9 [timeout=1] cpu=2 idx=1 flags=";

/// Goal: a callback is a slice with where it was armed, a pull is an instant beside it.
#[test]
fn a_pulled_timer_is_a_slice_and_a_pull() {
    let shown = shown(&[
        START,
        "b-2 [001] 1.000010: timer_expire_entry: timer=01 function=f now=9 baseclk=9",
        "b-2 [001] 1.000015: timer_expire_exit: timer=01",
        "b-2 [001] 1.000020: timer_expire_entry: timer=02 function=g now=9 baseclk=9",
        "b-2 [001] 1.000021: timer_expire_exit: timer=02",
    ]);
    let lines: Vec<_> = shown.iter().map(in_short).collect();
    assert_eq!(
        lines,
        [
            "CPU 0/causes 1000000000 i arm f",
            "CPU 1/pulls 1000010000 i pull f from CPU 2",
            "CPU 1/timers 1000010000 B f",
            "CPU 1/timers 1000015000 E f",
            "CPU 1/timers 1000020000 B g",
            "CPU 1/timers 1000021000 E g",
        ]
    );
    let note = |name: &str, value| (name.to_owned(), value);
    let notes = BTreeMap::from([note("armed_cpu", 0), note("base_cpu", 2), note("line", 2)]);
    assert_eq!((&shown[1].notes, &shown[2].notes), (&notes, &notes));
    assert_eq!(shown[2].cause.as_deref(), Some("CPU 0/causes 1000000000 arm f"));
    assert_eq!(shown[4].notes, BTreeMap::from([note("line", 4)]), "its start is not in the input");
}

/// Goal: without exits a callback has no length. Method: the next entry comes a second later.
#[test]
fn callbacks_without_exits_are_instants() {
    let lines = short(&[
        START,
        "b-2 [002] 1.000010: timer_expire_entry: timer=01 function=f now=9 baseclk=9",
        "b-2 [002] 2.000000: timer_expire_entry: timer=02 function=g now=9 baseclk=9",
    ]);
    let cause = "CPU 0/causes 1000000000 i arm f";
    assert_eq!(lines, [cause, "CPU 2/timers 1000010000 i f", "CPU 2/timers 2000000000 i g"]);
}

/// Goal: what still runs at the end is closed there. Method: a softirq, a timer in it, and an
/// hrtimer that interrupted another one, when the recording stops.
#[test]
fn what_still_runs_is_closed_at_the_end() {
    let lines = short(&[
        "b-2 [000] 1.000000: hrtimer_expire_entry: hrtimer=07 function=h now=1",
        "b-2 [000] 1.000001: hrtimer_expire_exit: hrtimer=07",
        "b-2 [000] 1.000001: timer_expire_exit: timer=09",
        "b-2 [000] 1.000002: softirq_entry: vec=3 [action=NET_RX]",
        "b-2 [000] 1.000003: softirq_exit: vec=3 [action=NET_RX]",
        "b-2 [000] 1.000004: softirq_entry: vec=8 [action=HRTIMER]",
        "b-2 [000] 1.000005: timer_expire_entry: timer=01 function=f now=9 baseclk=9",
        "b-2 [000] 1.000006: hrtimer_expire_entry: hrtimer=08 function=soft now=1",
        "b-2 [000] 1.000007: hrtimer_expire_entry: hrtimer=07 function=h now=1",
        "a-1 [001] 1.000009: timer_cancel: timer=03",
    ]);
    assert_eq!(
        lines,
        [
            "CPU 0/hrtimers 1000000000 B h",
            "CPU 0/hrtimers 1000001000 E h",
            "CPU 0/softirqs 1000002000 B NET_RX",
            "CPU 0/softirqs 1000003000 E NET_RX",
            "CPU 0/hrtimers 1000006000 B soft",
            "CPU 0/timers 1000005000 B f",
            "CPU 0/timers 1000009000 E f",
            "CPU 0/hrtimers 1000007000 B h",
            "CPU 0/hrtimers 1000009000 E h",
            "CPU 0/softirqs 1000004000 B HRTIMER",
            "CPU 0/softirqs 1000009000 E HRTIMER",
            "CPU 0/hrtimers 1000009000 E soft",
        ]
    );
}

/// Goal: an interrupted hrtimer callback is around the one that interrupted it, and a lost exit
/// does not leave it open. Method: its exit there; missing, with the softirq's; with a new task.
#[test]
fn an_interrupted_hrtimer_is_the_outer_slice() {
    let begun = [
        "b-2 [000] 1.000001: hrtimer_expire_exit: hrtimer=06",
        "b-2 [000] 1.000002: hrtimer_expire_entry: hrtimer=08 function=soft now=1",
        "b-2 [000] 1.000003: hrtimer_expire_entry: hrtimer=07 function=h now=1",
        "b-2 [000] 1.000004: hrtimer_expire_exit: hrtimer=07",
    ];
    for end in [
        "b-2 [000] 1.000005: hrtimer_expire_exit: hrtimer=08",
        "b-2 [000] 1.000005: softirq_exit: vec=8 [action=HRTIMER]",
        "c-3 [000] 1.000005: timer_cancel: timer=01",
        "b-2 [000] 1.000005: timer_cancel: timer=01", // nothing proves it: closed at the end
    ] {
        let lines = short(&[&begun[..], &[end]].concat());
        let expected = [
            "CPU 0/hrtimers 1000002000 B soft",
            "CPU 0/hrtimers 1000003000 B h",
            "CPU 0/hrtimers 1000004000 E h",
            "CPU 0/hrtimers 1000005000 E soft",
        ];
        assert_eq!(lines, expected, "{end}");
    }
}

/// Goal: a trace in no sensible order still gives balanced tracks. Method: exits without entries,
/// exits of something else, entries twice, and time that goes back.
#[test]
fn a_hostile_order_stays_balanced() {
    let lines = short(&[
        "b-2 [000] 5.000000: timer_expire_exit: timer=01",
        "b-2 [000] 5.000000: softirq_exit: vec=1 [action=TIMER]",
        "b-2 [000] 5.000000: hrtimer_expire_exit: hrtimer=01",
        "b-2 [000] 5.000000: softirq_entry: vec=1 [action=TIMER]",
        "b-2 [000] 4.000000: softirq_exit: vec=1 [action=TIMER]",
        "b-2 [000] 3.000000: softirq_entry: vec=200 [action=?]",
        "b-2 [000] 6.000000: softirq_exit: vec=9 [action=RCU]",
        "b-2 [000] 7.000000: timer_expire_entry: timer=01 function=f now=9 baseclk=9",
        "b-2 [000] 7.000000: timer_expire_entry: timer=01 function=f now=9 baseclk=9",
        "b-2 [001] 2.000000: timer_expire_exit: timer=01",
        "b-2 [000] 7.000001: timer_expire_exit: timer=01",
        "b-2 [000] 7.000002: timer_expire_exit: timer=01",
    ]);
    assert_eq!(
        lines,
        [
            "CPU 0/softirqs 5000000000 B TIMER",
            "CPU 0/softirqs 5000000000 E TIMER",
            "CPU 0/softirqs 5000000000 i vector 200",
            "CPU 0/timers 7000000000 i f",
            "CPU 0/timers 7000000000 B f",
            "CPU 0/timers 7000001000 E f",
        ]
    );
}

/// Goal: any order of any events gives a file that reads back. Method: 60,000 events of four
/// identities on three CPUs, drawn by a fixed generator, into tables of two entries, with marks of lost
/// events.
#[test]
fn any_order_reads_back() {
    let mut state = 1u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    let mut text = String::new();
    for _ in 0..60_000 {
        let (pid, cpu, at, id) = (draw(2) + 1, draw(3), draw(1000), draw(4));
        let step = ["entry", "exit"][draw(2) as usize];
        let event = match draw(16) {
            0 => format!("timer_start: timer={id} function=f expires=9 [timeout=1] cpu=1 idx=1 flags="),
            1 => format!("timer_expire_entry: timer={id} function=f now=9 baseclk=9"),
            2 => format!("timer_expire_exit: timer={id}"),
            3 | 4 => format!("hrtimer_expire_entry: hrtimer={id} function=h now=1"),
            5 => format!("hrtimer_expire_exit: hrtimer={id}"),
            6 | 7 => format!("softirq_{step}: vec={} [action=X]", 7 + id),
            8 => format!("hrtimer_start: hrtimer={id} function=h expires=1 softexpires=1 mode=ABS"),
            9 => format!("ipi_send_cpu: cpu={} callsite=a+0x1/0x2 callback=0x{id}", draw(3)),
            10 => format!("ipi_raise: target_mask=0000000{} (Function call interrupts)", draw(8)),
            11 => format!("{}_{step}: vector=9", ["reschedule", "call_function_single"][id as usize % 2]),
            12 => format!("ipi_{step}: (Function call interrupts)"),
            13 => format!("workqueue_queue_work: work struct={id} function=f workqueue=e req_cpu=0 cpu=0"),
            14 => format!("workqueue_execute_start: work struct {id}: function f"),
            15 if id == 0 => format!("irq_handler_{step}: irq={id} name=n ret=handled"),
            15 if id == 1 => {
                text += &format!("CPU:{cpu} [LOST 3 EVENTS]\n");
                continue;
            }
            _ => format!("workqueue_execute_end: work struct {id}"),
        };
        text += &format!("a-{pid} [00{cpu}] 1.{at:06}: {event}\n");
    }
    let shown = decode(&write(text.as_bytes(), PerfettoWriter::with_identities_max(Vec::new(), 2)));
    let slices = shown.iter().filter(|event| event.kind == 'B').count();
    assert!(slices > 1000, "only {slices} slices: the generator tests nothing");
    let arrows = shown.iter().filter(|event| event.cause.is_some()).count();
    assert!(arrows > 100, "only {arrows} arrows: the generator tests nothing");
}

/// Goal: the output's errors come back, at whichever call they happen.
#[test]
fn an_error_of_the_output_is_handed_back() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let line = b"b-2 [000] 1.0: hrtimer_expire_entry: hrtimer=01 function=h now=1";
    let record = quietcore_trace::parse_line(line).expect("an event");
    let mut writer = PerfettoWriter::new(Full);
    let failed = (0..10_000).find_map(|_| writer.take(&record).err()).expect("a full buffer");
    assert_eq!(failed.kind(), io::ErrorKind::StorageFull);
    assert!(PerfettoWriter::new(Full).finish().is_err());
}

/// A bundled recording, explained and exported.
fn recording(name: &str, isolated: &str) -> (Explanation, Vec<Shown>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings").join(name);
    let isolated: CpuSet = isolated.parse().expect("a list");
    let mut explain = Explain::new(ExplainOptions { isolated, ..ExplainOptions::default() });
    let mut reader = TraceReader::new(open(&path).expect("the recording is in the repository"));
    reader.read(u64::MAX, &mut |record| explain.take(record)).expect("a trace");
    let file = write(open(&path).expect("as before"), PerfettoWriter::new(Vec::new()));
    (explain.finish(reader.tally()), decode(&file))
}

fn count(shown: &[Shown], track: &str, kinds: &[char]) -> u64 {
    let of_track = shown.iter().filter(|event| event.track.ends_with(track));
    of_track.filter(|event| kinds.contains(&event.kind)).count() as u64
}

fn sample(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.rsplit_once(' ').is_some_and(|(series, _)| series == name))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

/// Goal: the tracks show what the report counts. Method: the 6.12 isolation recording, which has
/// no exits: each expiry an instant, each remote one a pull, on the CPUs the report names.
#[test]
fn the_isolation_recording_agrees_with_its_report() {
    let (report, shown) = recording("g612-c16-iso.txt.zst", "1-7,9-15");
    assert_eq!(Some(count(&shown, "/pulls", &['i'])), report.remote.total);
    assert_eq!(Some(count(&shown, "/timers", &['i'])), report.timers.expired);
    assert_eq!(count(&shown, "", &['B', 'E']), 0);
    for (cpu, pulls) in report.remote.by_cpu.as_ref().expect("recorded") {
        assert_eq!(count(&shown, &format!("CPU {cpu}/pulls"), &['i']), *pulls, "CPU {cpu}");
    }
    let isolated: CpuSet = "1-7,9-15".parse().expect("a list");
    let foreign_pulls = shown.iter().filter(|event| event.track.ends_with("/pulls")).filter(|event| {
        let cpu = event.track.split(['/', ' ']).nth(1).and_then(|cpu| cpu.parse().ok());
        let cpu = quietcore_core::CpuId::new(cpu.expect("CPU N/...")).expect("in range");
        let armed = quietcore_core::CpuId::new(event.notes["armed_cpu"]).expect("in range");
        isolated.contains(cpu) && !isolated.contains(armed)
    });
    assert_eq!(Some(foreign_pulls.count() as u64), report.foreign.pulled);

    let mut text = Vec::new();
    openmetrics(&report, &mut text).expect("memory");
    let text = String::from_utf8(text).expect("UTF-8");
    assert_eq!(sample(&text, "quietcore_foreign_expiries"), Some(74));
    assert_eq!(sample(&text, "quietcore_foreign_expiries_by_cpu{cpu=\"1\"}"), Some(27));
    assert_eq!(sample(&text, "quietcore_remote_expiries"), report.remote.total);
    for line in text.lines().filter(|line| line.starts_with("quietcore_figure_recorded")) {
        let figure = line.split('"').nth(1).expect("a label");
        assert_eq!(line.ends_with(" 0"), report.not_recorded.contains(&figure), "{line}");
    }
}

/// Goal: with exits, callbacks and handlers are slices. Method: the recording with many event
/// types, in which every one of them has its exit.
#[test]
fn the_detailed_recording_agrees_with_its_report() {
    let (report, shown) = recording("h618-c2-detail.txt.zst", "");
    assert_eq!(Some(count(&shown, "/pulls", &['i'])), report.remote.total);
    assert_eq!(Some(count(&shown, "/timers", &['B', 'i'])), report.timers.expired);
    assert_eq!(Some(count(&shown, "/hrtimers", &['B', 'i'])), report.hrtimers.expired);
    let softirqs: Vec<_> = shown.iter().filter(|event| event.track.ends_with("/softirqs")).collect();
    let timer_softirqs = softirqs.iter().filter(|event| event.name == "TIMER" && event.kind == 'B');
    assert_eq!(Some(timer_softirqs.count() as u64), report.softirq.timer_entries);
    assert_eq!(count(&shown, "", &['B']), count(&shown, "", &['E']));
    let points = count(&shown, "/pulls", &['i']) + count(&shown, "/causes", &['i']);
    // Of two kinds of interrupts the recording has no exits.
    let without_exits = shown.iter().filter(|event| {
        event.kind == 'i' && ["call_function_single", "reschedule"].contains(&event.name.as_str())
    });
    let without_exits = without_exits.count() as u64;
    assert_eq!(without_exits, 1216);
    assert_eq!(count(&shown, "", &['i']), points + without_exits, "all else has its length");
    let mut arrows = 0;
    for event in shown.iter().filter(|event| event.kind == 'B' && event.track.ends_with("timers")) {
        let armed = event.notes.get("armed_cpu").map(|cpu| format!("CPU {cpu}"));
        let from = armed.filter(|cpu| !event.track.starts_with(&format!("{cpu}/")));
        let cause = event.cause.as_ref().and_then(|cause| cause.split('/').next());
        assert_eq!(cause, from.as_deref(), "{event:?}");
        arrows += u64::from(cause.is_some());
    }
    assert!(arrows > 0, "no timer ran elsewhere");
}
