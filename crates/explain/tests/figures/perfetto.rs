//! The rules of slices and instants in docs/reference/perfetto.md, one by one, on traces of a few lines.
//!
//! A line here is `TASK CPU MICROSECONDS EVENT`; the first task is the one that the callbacks interrupt.

use crate::decoder::{Shown, decode};
use quietcore_trace::{PerfettoWriter, TraceReader};
use std::collections::BTreeMap;

const HRTIMER: &str = "CPU 0/hrtimers";

fn shown(lines: &[&str]) -> Vec<Shown> {
    let mut text = String::new();
    for line in lines {
        let (task, rest) = line.split_once(' ').expect("a task");
        let (cpu, rest) = rest.split_once(' ').expect("a CPU");
        let (micros, event) = rest.split_once(' ').expect("a time stamp");
        text += &format!("{task} [{cpu:0>3}] 1.{micros:0>6}: {event}\n");
    }
    let mut writer = PerfettoWriter::new(Vec::new());
    let mut reader = TraceReader::new(text.as_bytes());
    reader.read(u64::MAX, &mut |record| writer.take(record).expect("memory")).expect("a trace");
    assert_eq!(reader.tally().malformed, 0, "{:?}", reader.tally().malformed_first);
    decode(&writer.finish().expect("memory"))
}

/// `TRACK MICROSECONDS KIND NAME` per event.
fn short(lines: &[&str]) -> Vec<String> {
    let in_micros = |event: Shown| {
        let micros = (event.at - 1_000_000_000) / 1_000;
        format!("{} {micros} {} {}", event.track, event.kind, event.name)
    };
    shown(lines).into_iter().map(in_micros).collect()
}

fn on_hrtimers(events: &[&str]) -> Vec<String> {
    events.iter().map(|event| format!("{HRTIMER} {event}")).collect()
}

/// Goal: a callback is interrupted only by one of its own task: what runs in another task's time proves
/// that the first one ended, and its exit was lost. Method: the interrupting callback in the same task's
/// time, and in another one's.
#[test]
fn a_callback_in_the_time_of_another_task_is_no_nested_one() {
    let of = |task: &str| {
        let entry = format!("{task} 0 3 hrtimer_expire_entry: hrtimer=07 function=h now=1");
        let exit = format!("{task} 0 4 hrtimer_expire_exit: hrtimer=07");
        short(&[
            "b-2 0 1 hrtimer_expire_exit: hrtimer=06",
            "b-2 0 2 hrtimer_expire_entry: hrtimer=08 function=soft now=1",
            &entry,
            &exit,
        ])
    };
    assert_eq!(of("b-2"), on_hrtimers(&["2 B soft", "3 B h", "4 E h", "4 E soft"]));
    assert_eq!(of("c-3"), on_hrtimers(&["2 i soft", "3 B h", "4 E h"]));
}

/// Goal: only a callback in a HRTIMER softirq can be interrupted by one. Method: two entries in that
/// softirq, and in NET_RX.
#[test]
fn only_the_softirq_of_hrtimers_has_an_outer_slice() {
    let of = |vector: u8| {
        let entry = format!("b-2 0 2 softirq_entry: vec={vector} [action=X]");
        let exit = format!("b-2 0 7 softirq_exit: vec={vector} [action=X]");
        short(&[
            "b-2 0 0 softirq_exit: vec=3 [action=X]",
            "b-2 0 1 hrtimer_expire_exit: hrtimer=06",
            &entry,
            "b-2 0 3 hrtimer_expire_entry: hrtimer=08 function=soft now=1",
            "b-2 0 4 hrtimer_expire_entry: hrtimer=07 function=h now=1",
            "b-2 0 5 hrtimer_expire_exit: hrtimer=07",
            "b-2 0 6 hrtimer_expire_exit: hrtimer=08",
            &exit,
        ])
    };
    let mut nested = on_hrtimers(&["3 B soft", "4 B h", "5 E h", "6 E soft"]);
    nested.extend(["CPU 0/softirqs 2 B HRTIMER".to_owned(), "CPU 0/softirqs 7 E HRTIMER".to_owned()]);
    assert_eq!(of(8), nested);
    let mut apart = on_hrtimers(&["3 i soft", "4 B h", "5 E h"]);
    apart.extend(["CPU 0/softirqs 2 B NET_RX".to_owned(), "CPU 0/softirqs 7 E NET_RX".to_owned()]);
    assert_eq!(of(3), apart);
}

/// Goal: callbacks nest once. Method: a third one begins, so the second one has ended and its exit was
/// lost.
#[test]
fn hrtimers_nest_once() {
    let lines = short(&[
        "b-2 0 1 hrtimer_expire_exit: hrtimer=06",
        "b-2 0 2 hrtimer_expire_entry: hrtimer=08 function=soft now=1",
        "b-2 0 3 hrtimer_expire_entry: hrtimer=07 function=h now=1",
        "b-2 0 4 hrtimer_expire_entry: hrtimer=09 function=k now=1",
        "b-2 0 5 hrtimer_expire_exit: hrtimer=09",
        "b-2 0 6 hrtimer_expire_exit: hrtimer=08",
    ]);
    assert_eq!(lines, on_hrtimers(&["2 B soft", "3 i h", "4 B k", "5 E k", "6 E soft"]));
}

/// Goal: an outer slice whose exit was lost ends when its callback begins again or another task runs on its
/// CPU, and not with what happens on another CPU. Method: all three.
#[test]
fn an_outer_slice_ends_on_its_own_cpu() {
    let begun = [
        "b-2 0 1 hrtimer_expire_exit: hrtimer=06",
        "b-2 0 2 hrtimer_expire_entry: hrtimer=08 function=soft now=1",
        "b-2 0 3 hrtimer_expire_entry: hrtimer=07 function=h now=1",
        "b-2 0 4 hrtimer_expire_exit: hrtimer=07",
    ];
    let again = [
        "b-2 0 5 hrtimer_expire_entry: hrtimer=08 function=soft now=1",
        "b-2 0 6 hrtimer_expire_exit: hrtimer=08",
    ];
    assert_eq!(
        short(&[&begun[..], &again].concat()),
        on_hrtimers(&["2 B soft", "3 B h", "4 E h", "5 E soft", "5 B soft", "6 E soft"])
    );
    let other_task = ["c-3 0 5 timer_cancel: timer=01", "b-2 0 6 timer_cancel: timer=01"];
    assert_eq!(
        short(&[&begun[..], &other_task].concat()),
        on_hrtimers(&["2 B soft", "3 B h", "4 E h", "5 E soft"])
    );
    let elsewhere = ["c-3 1 5 timer_cancel: timer=01", "b-2 0 6 timer_cancel: timer=01"];
    assert_eq!(
        short(&[&begun[..], &elsewhere].concat()),
        on_hrtimers(&["2 B soft", "3 B h", "4 E h", "6 E soft"])
    );
}

/// Goal: without exits nothing has a length, nested or not. Method: two entries of hrtimers.
#[test]
fn without_exits_hrtimers_are_instants() {
    let lines = short(&[
        "b-2 0 1 hrtimer_expire_entry: hrtimer=08 function=soft now=1",
        "b-2 0 2 hrtimer_expire_entry: hrtimer=07 function=h now=1",
    ]);
    assert_eq!(lines, on_hrtimers(&["1 i soft", "2 i h"]));
}

/// Goal: only a callback's own exit ends it. Method: the exit of another timer, on the same CPU and
/// elsewhere.
#[test]
fn only_its_own_exit_ends_a_callback() {
    let lines = short(&[
        "b-2 0 1 timer_expire_entry: timer=01 function=f now=9 baseclk=9",
        "b-2 0 2 timer_expire_exit: timer=02",
        "b-2 0 3 timer_expire_entry: timer=01 function=f now=9 baseclk=9",
        "b-2 1 4 timer_expire_exit: timer=01",
        "b-2 0 5 timer_expire_exit: timer=01",
    ]);
    assert_eq!(lines, ["CPU 0/timers 1 i f", "CPU 0/timers 3 B f", "CPU 0/timers 5 E f"]);
}

/// Goal: each kind of event has its notes and no other. Method: an hrtimer with and without its start, a
/// softirq, a wheel timer on its own CPU; every number in the notes is another one.
#[test]
fn every_kind_has_its_notes() {
    let shown = shown(&[
        "a-1 3 1 hrtimer_start: hrtimer=08 function=h expires=1 softexpires=1 mode=ABS",
        "a-1 4 1 timer_start: timer=01 function=f expires=9 [timeout=1] cpu=5 idx=1 flags=",
        "b-2 0 2 hrtimer_expire_entry: hrtimer=08 function=h now=1",
        "b-2 0 3 hrtimer_expire_entry: hrtimer=09 function=k now=1",
        "b-2 0 4 softirq_entry: vec=1 [action=X]",
        "b-2 5 5 timer_expire_entry: timer=01 function=f now=9 baseclk=9",
    ]);
    let note = |track: &str, name: &str| {
        let found = shown.iter().find(|event| event.track == track && event.name == name);
        found.unwrap_or_else(|| panic!("no {name} on {track}: {shown:?}")).notes.clone()
    };
    let notes = |of: &[(&str, u64)]| -> BTreeMap<String, u64> {
        of.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
    };
    assert_eq!(note(HRTIMER, "h"), notes(&[("armed_cpu", 3), ("line", 3)]));
    assert_eq!(note(HRTIMER, "k"), notes(&[("line", 4)]), "its start is not in the input");
    assert_eq!(note("CPU 0/softirqs", "TIMER"), notes(&[("line", 5)]));
    assert_eq!(note("CPU 5/timers", "f"), notes(&[("armed_cpu", 4), ("base_cpu", 5), ("line", 6)]));
    assert_eq!(shown.len(), 4, "no pull, as it ran where its base was: {shown:?}");
}

/// Goal: names are cut at 96 bytes. Method: names of one byte more, of a callback and of a pull.
#[test]
fn long_names_are_cut() {
    let (long, cut) = ("x".repeat(97), "x".repeat(96));
    let rest = "expires=9 [timeout=1] cpu=2 idx=1 flags=";
    let start = format!("a-1 0 1 timer_start: timer=01 function={long} {rest}");
    let expiry = format!("b-2 0 2 timer_expire_entry: timer=01 function={long} now=9 baseclk=9");
    let lines = short(&[&start, &expiry]);
    assert_eq!(lines, [format!("CPU 0/pulls 2 i pull {cut} from CPU 2"), format!("CPU 0/timers 2 i {cut}")]);
}
