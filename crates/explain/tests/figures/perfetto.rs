//! The rules of slices and instants in docs/reference/perfetto.md, one by one, on traces of a few lines.
//!
//! A line here is `TASK CPU MICROSECONDS EVENT`, or a mark of lost events; the first task is the one that the
//! callbacks interrupt.

use crate::decoder::{Shown, decode};
use quietcore_trace::{PerfettoWriter, TraceReader};
use std::collections::BTreeMap;

const HRTIMER: &str = "CPU 0/hrtimers";

fn shown(lines: &[&str]) -> Vec<Shown> {
    let mut text = String::new();
    for line in lines {
        if line.starts_with("CPU:") {
            text += &format!("{line}\n");
            continue;
        }
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
    assert_eq!(note("CPU 3/causes", "arm h"), notes(&[("line", 1)]));
    assert_eq!(note("CPU 4/causes", "arm f"), notes(&[("line", 2)]));
    assert_eq!(shown.len(), 6, "no pull, as it ran where its base was: {shown:?}");
}

/// `TRACK MICROSECONDS KIND NAME` per event but causes, with ` < TRACK MICROSECONDS NAME` of its cause.
fn with_causes(lines: &[&str]) -> Vec<String> {
    let micros = |nanos: u64| (nanos - 1_000_000_000) / 1_000;
    let effects = shown(lines).into_iter().filter(|event| !event.track.ends_with("/causes"));
    let text = |event: Shown| {
        let cause = event.cause.map(|cause| {
            let words: Vec<&str> = cause.splitn(4, ' ').collect();
            let at = micros(words[2].parse().expect("a time"));
            format!(" < {} {} {at} {}", words[0], words[1], words[3])
        });
        let (track, at, kind, name) = (&event.track, micros(event.at), event.kind, &event.name);
        format!("{track} {at} {kind} {name}{}", cause.unwrap_or_default())
    };
    effects.map(text).collect()
}

/// Goal: an arrow comes from the last start of a timer, where that was on another CPU. Method: a wheel timer
/// that is armed again, elsewhere; an hrtimer; one of each that runs where it was armed; a callback without
/// exits.
#[test]
fn an_arrow_comes_from_the_last_start() {
    let rest = "expires=9 [timeout=1] cpu=2 idx=1 flags=";
    let lines = with_causes(&[
        &format!("a-1 3 1 timer_start: timer=01 function=f {rest}"),
        &format!("a-1 4 2 timer_start: timer=01 function=f {rest}"),
        &format!("a-1 2 3 timer_start: timer=02 function=g {rest}"),
        "a-1 3 4 hrtimer_start: hrtimer=08 function=h expires=1 softexpires=1 mode=ABS",
        "a-1 2 5 hrtimer_start: hrtimer=09 function=k expires=1 softexpires=1 mode=ABS",
        "b-2 2 6 timer_expire_entry: timer=01 function=f now=9 baseclk=9",
        "b-2 2 7 timer_expire_exit: timer=01",
        "b-2 2 8 timer_expire_entry: timer=02 function=g now=9 baseclk=9",
        "b-2 2 9 timer_expire_exit: timer=02",
        "b-2 2 10 hrtimer_expire_entry: hrtimer=08 function=h now=1",
        "b-2 2 11 hrtimer_expire_entry: hrtimer=09 function=k now=1",
    ]);
    assert_eq!(
        lines,
        [
            "CPU 2/timers 6 B f < CPU 4/causes 2 arm f",
            "CPU 2/timers 7 E f",
            "CPU 2/timers 8 B g",
            "CPU 2/timers 9 E g",
            "CPU 2/hrtimers 10 i h < CPU 3/causes 4 arm h",
            "CPU 2/hrtimers 11 i k",
        ]
    );
}

/// Goal: an interrupt has the cause of its kind, once, and is called after the function that says most.
/// Method: a call and a reschedule on their way at once; a second interrupt of the kind; a queued function;
/// one that CPU 2 sends to itself; one to several CPUs.
#[test]
fn an_interrupt_has_the_cause_of_its_kind() {
    let queue = "callback=generic_smp_call_function_single_interrupt+0x0/0x20";
    let entry = |micros: u64, name: &str| format!("b-2 2 {micros} {name}_entry: vector=251");
    let exit = |micros: u64, name: &str| format!("b-2 2 {micros} {name}_exit: vector=251");
    let of = |lines: &[&str], name: &str| {
        let (entry, exit) = (entry(8, name), exit(9, name));
        let shown = with_causes(&[lines, &[&entry, &exit]].concat());
        assert_eq!(shown.last(), Some(&format!("CPU 2/interrupts 9 E {name}")));
        let begun = format!("CPU 2/interrupts 8 B {name}");
        shown[shown.len() - 2].strip_prefix(&begun).expect("it begins").to_owned()
    };
    let call = "a-1 3 1 ipi_send_cpu: cpu=2 callsite=at+0x1/0x2 callback=f+0x0/0x20";
    let schedule = "a-1 4 2 ipi_send_cpu: cpu=2 callsite=ttwu+0x1/0x2 callback=0x0";
    assert_eq!(of(&[call, schedule], "call_function_single"), " < CPU 3/causes 1 send f");
    assert_eq!(of(&[call, schedule], "reschedule"), " < CPU 4/causes 2 send ttwu");
    assert_eq!(of(&[call, schedule], "local_timer"), "");
    let (first, over) = (entry(3, "call_function_single"), exit(4, "call_function_single"));
    assert_eq!(of(&[call, &first, &over], "call_function_single"), "");
    let queued = "a-1 3 1 csd_queue_cpu: cpu=2 callsite=at+0x1/0x2 func=g csd=0000000000000001";
    let sent = format!("a-1 3 2 ipi_send_cpu: cpu=2 callsite=at+0x1/0x2 {queue}");
    assert_eq!(of(&[queued, &sent], "call_function_single"), " < CPU 3/causes 2 send g");
    assert_eq!(of(&[&sent], "call_function_single"), " < CPU 3/causes 2 send at");
    let own = "a-1 2 1 ipi_send_cpu: cpu=2 callsite=at+0x1/0x2 callback=f+0x0/0x20";
    assert_eq!(of(&[own], "irq_work"), "");
    let several = "a-1 3 1 ipi_send_cpumask: cpumask=00000007 callsite=at+0x1/0x2 callback=f+0x0/0x20";
    assert_eq!(of(&[several], "call_function"), " < CPU 3/causes 1 send f");
}

/// Goal: an interrupt that is sent to several CPUs has an arrow to each, all from one moment.
#[test]
fn each_receiver_has_its_arrow() {
    let shown = shown(&[
        "a-1 3 1 ipi_send_cpumask: cpumask=00000007 callsite=at+0x1/0x2 callback=f+0x0/0x20",
        "b-2 0 2 call_function_entry: vector=252",
        "b-3 1 3 call_function_entry: vector=252",
        "b-3 1 4 call_function_exit: vector=252",
        "b-2 0 5 call_function_exit: vector=252",
    ]);
    let causes: Vec<_> = shown.iter().filter(|event| event.track == "CPU 3/causes").collect();
    let whens: Vec<_> = causes.iter().map(|cause| (cause.at, &*cause.name)).collect();
    assert_eq!(whens, [(1_000_001_000, "send f"); 2], "CPU 2 took none");
}

/// Goal: handlers that share a device's interrupt are apart, and only an interrupt's own exit ends it.
#[test]
fn handlers_of_one_interrupt_are_apart() {
    let lines = short(&[
        "b-2 0 1 irq_handler_entry: irq=35 name=one",
        "b-2 0 2 irq_handler_exit: irq=35 ret=unhandled",
        "b-2 0 3 irq_handler_entry: irq=35 name=two",
        "b-2 0 4 irq_handler_exit: irq=35 ret=handled",
        "b-2 0 5 ipi_entry: (Function call interrupts)",
        "b-2 0 6 ipi_exit: (Rescheduling interrupts)",
        "b-2 0 7 local_timer_entry: vector=236",
        "b-2 0 8 local_timer_exit: vector=236",
    ]);
    let expected = [
        "1 B 35 one",
        "2 E 35 one",
        "3 B 35 two",
        "4 E 35 two",
        "5 i Function call interrupts",
        "7 B local_timer",
        "8 E local_timer",
    ];
    assert_eq!(lines, expected.map(|event| format!("CPU 0/interrupts {event}")));
}

/// Goal: an interrupt that runs when the recording ends reaches to its end, if its own exits are recorded,
/// and not those of another interrupt. Method: both.
#[test]
fn only_its_own_exits_give_an_interrupt_a_length() {
    let lines = short(&[
        "b-2 0 1 local_timer_entry: vector=236",
        "b-2 0 2 local_timer_exit: vector=236",
        "b-2 0 3 local_timer_entry: vector=236",
        "b-2 1 4 reschedule_entry: vector=253",
        "b-2 2 5 timer_cancel: timer=01",
    ]);
    assert_eq!(
        lines,
        [
            "CPU 0/interrupts 1 B local_timer",
            "CPU 0/interrupts 2 E local_timer",
            "CPU 0/interrupts 3 B local_timer",
            "CPU 0/interrupts 5 E local_timer",
            "CPU 1/interrupts 4 i reschedule",
        ]
    );
}

/// Goal: a work item has an arrow from where it was queued, and ends where its worker loses the CPU, if ends
/// are recorded. Method: one that was queued elsewhere and waits; one that goes on when another task runs,
/// and the switch is not in the input; a worker that leaves before any end was seen.
#[test]
fn a_work_item_ends_where_its_worker_loses_the_cpu() {
    let start = "kworker/0:1-9 0 3 workqueue_execute_start: work struct 0a: function f";
    let end =
        |micros: u64| format!("kworker/0:1-9 0 {micros} workqueue_execute_end: work struct 0a: function f");
    let away = "kworker/0:1-9 0 5 sched_switch: prev_comm=kworker/0:1 prev_pid=9 prev_prio=120 prev_state=D \
                ==> next_comm=b next_pid=2 next_prio=120";
    let queue = "a-1 1 2 workqueue_queue_work: work struct=0a function=f workqueue=e req_cpu=0 cpu=0";
    let known = end(1);
    assert_eq!(
        with_causes(&[&known, queue, start, away, &end(7)]),
        ["CPU 0/work 3 B f < CPU 1/causes 2 queue f", "CPU 0/work 5 E f"]
    );
    let other = "b-2 0 6 timer_cancel: timer=01";
    assert_eq!(with_causes(&[&known, start, other, &end(7)]), ["CPU 0/work 3 i f"]);
    assert_eq!(with_causes(&[start, away]), ["CPU 0/work 3 i f"]);
    assert_eq!(with_causes(&[queue, start, &end(7)])[0], "CPU 0/work 3 B f < CPU 1/causes 2 queue f");
}

/// Goal: nothing outlasts lost events: what is open on their CPU has no length, and what was started before
/// them has no cause. Method: each kind, with and without a mark; an outer slice, which ends at the mark.
#[test]
fn nothing_outlasts_lost_events() {
    let begun = [
        "a-1 1 1 timer_start: timer=01 function=f expires=9 [timeout=1] cpu=1 idx=1 flags=",
        "a-1 1 1 hrtimer_start: hrtimer=08 function=h expires=1 softexpires=1 mode=ABS",
        "a-1 1 1 ipi_send_cpu: cpu=0 callsite=at+0x1/0x2 callback=f+0x0/0x20",
        "a-1 1 1 workqueue_queue_work: work struct=0a function=w workqueue=e req_cpu=0 cpu=0",
    ];
    let runs = [
        "b-2 0 2 timer_expire_entry: timer=01 function=f now=9 baseclk=9",
        "b-2 0 3 hrtimer_expire_entry: hrtimer=08 function=h now=1",
        "b-2 0 4 call_function_single_entry: vector=251",
        "b-2 0 5 workqueue_execute_start: work struct 0a: function w",
    ];
    let ends = [
        "b-2 0 6 timer_expire_exit: timer=01",
        "b-2 0 7 hrtimer_expire_exit: hrtimer=08",
        "b-2 0 8 call_function_single_exit: vector=251",
        "b-2 0 9 workqueue_execute_end: work struct 0a: function w",
    ];
    let count = |shown: &[String], part: &str| shown.iter().filter(|line| line.contains(part)).count();
    let whole = with_causes(&[&begun[..], &runs, &ends].concat());
    assert_eq!((count(&whole, " < "), count(&whole, " B "), count(&whole, " i ")), (4, 4, 1), "{whole:#?}");
    for lost in [0, 7] {
        let mark = format!("CPU:{lost} [LOST 3 EVENTS]");
        let before = with_causes(&[&begun[..], &[&mark], &runs, &ends].concat());
        let counts = (count(&before, " < "), count(&before, " B "), count(&before, "/pulls"));
        assert_eq!(counts, (0, 4, 0), "{before:#?}");
    }
    let within = with_causes(&[&begun[..], &runs, &["CPU:0 [LOST 3 EVENTS]"], &ends].concat());
    assert_eq!((count(&within, " < "), count(&within, " i ")), (4, 5), "{within:#?}");
    let elsewhere = with_causes(&[&begun[..], &runs, &["CPU:7 [LOST 3 EVENTS]"], &ends].concat());
    assert_eq!((count(&elsewhere, " < "), count(&elsewhere, " B ")), (4, 4), "{elsewhere:#?}");
    let outer = short(&[
        "b-2 0 1 hrtimer_expire_exit: hrtimer=06",
        "b-2 0 2 hrtimer_expire_entry: hrtimer=08 function=soft now=1",
        "b-2 0 3 hrtimer_expire_entry: hrtimer=07 function=h now=1",
        "b-2 0 4 timer_cancel: timer=01",
        "CPU:0 [LOST 3 EVENTS]",
        "b-2 0 6 hrtimer_expire_exit: hrtimer=08",
    ]);
    assert_eq!(outer, on_hrtimers(&["2 B soft", "3 i h", "4 E soft"]));
}

/// Goal: no arrow goes back in time. Method: a start whose stamp lies after the callback's.
#[test]
fn no_arrow_goes_back_in_time() {
    let lines = with_causes(&[
        "a-1 3 9 hrtimer_start: hrtimer=08 function=h expires=1 softexpires=1 mode=ABS",
        "b-2 2 4 hrtimer_expire_entry: hrtimer=08 function=h now=1",
    ]);
    assert_eq!(lines, ["CPU 2/hrtimers 4 i h"]);
}

/// Goal: names are cut at 96 bytes. Method: names of one byte more, of a cause, a pull and a callback.
#[test]
fn long_names_are_cut() {
    let (long, cut) = ("x".repeat(97), "x".repeat(96));
    let rest = "expires=9 [timeout=1] cpu=2 idx=1 flags=";
    let start = format!("a-1 1 1 timer_start: timer=01 function={long} {rest}");
    let expiry = format!("b-2 0 2 timer_expire_entry: timer=01 function={long} now=9 baseclk=9");
    let expected = [
        format!("CPU 1/causes 1 i arm {cut}"),
        format!("CPU 0/pulls 2 i pull {cut} from CPU 2"),
        format!("CPU 0/timers 2 i {cut}"),
    ];
    assert_eq!(short(&[&start, &expiry]), expected);
}
