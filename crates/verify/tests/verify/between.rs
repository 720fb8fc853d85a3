//! Lines of another context between two steps of a timer softirq: each that explains something, and the same
//! input with one thing changed, which stays a mismatch.

use crate::trace::{JIFFIES, Start, Trace, start};
use quietcore_verify::{Check, Verification};

const SWITCH: &str = "sched_switch: prev_comm=ktimers/0 prev_pid=15 prev_prio=98 prev_state=R+ ==> \
                      next_comm=tload next_pid=9 next_prio=19";
const TICK_STOP: &str = "tick_stop: success=0 dependency=SCHED";

/// Timers 1 to 3 in one bucket, due at JIFFIES + 5, with these flags; then lines of CPU 0, each
/// `TASK-PID FLAGS EVENT`.
fn trace(flags: &'static str, lines: &[String]) -> Trace {
    let mut trace = Trace::new();
    for timer in 1..=3 {
        trace.start(Start { flags, ..start(timer, JIFFIES + 4, JIFFIES) });
    }
    for line in lines {
        let parts: Vec<&str> = line.splitn(3, ' ').collect();
        let begin = trace.text.len();
        trace.line(0, parts[1], parts[2]);
        let written = trace.text[begin..].replacen("task-7", parts[0], 1);
        trace.text.replace_range(begin.., &written);
    }
    trace
}

/// `TASK-PID FLAGS` and the two lines of an expiry, with what stands between them.
fn expiry(task: &str, timer: u64, between: &[&str]) -> Vec<String> {
    let mut lines = vec![format!("{task} d.s2. timer_cancel: timer={timer:02x}")];
    lines.extend(between.iter().map(|line| (*line).to_owned()));
    let [now, baseclk] = [JIFFIES + 5; 2];
    let event = format!("timer_expire_entry: timer={timer:02x} function=f now={now} baseclk={baseclk}");
    lines.push(format!("{task} ..s1. {event}"));
    lines
}

/// All of a bucket: 3 with `between` between its two lines, then 2 and 1, then a line of the task.
fn run(task: &str, between: &[&str]) -> Vec<String> {
    let rest = [expiry(task, 2, &[]), expiry(task, 1, &[]), vec![format!("{task} d..2. {SWITCH}")]];
    [expiry(task, 3, between), rest.concat()].concat()
}

fn notes(verification: &Verification) -> [u64; 2] {
    [verification.notes.interrupt_exit, verification.notes.preempted]
}

/// That `lines` contradict nothing, and what explains them is counted once, as `[interrupt_exit, preempted]`.
fn assert_explained(lines: &[String], counted: [u64; 2]) {
    let verification = trace("", lines).verify();
    assert!(verification.ok, "{lines:#?}: {:?}", verification.first_mismatch);
    assert_eq!((notes(&verification), verification.expiries.exact), (counted, 4), "{lines:#?}");
}

/// That the first line that contradicts is the `at`th of `lines`.
fn assert_mismatch(flags: &'static str, lines: &[String], at: usize) {
    let first_line = trace(flags, &[]).next_line();
    let found = trace(flags, lines).verify().first_mismatch.unwrap_or_else(|| panic!("{lines:#?}"));
    assert_eq!((found.line, found.kind), (first_line + at as u64, Check::TimerExpireEntry), "{lines:#?}");
}

/// The same lines with the `at`th changed.
fn changed(lines: &[String], at: usize, change: [&str; 2]) -> Vec<String> {
    let mut lines = lines.to_vec();
    assert!(lines[at].contains(change[0]), "{}", lines[at]);
    lines[at] = lines[at].replacen(change[0], change[1], 1);
    lines
}

/// Goal: the exit of an interrupt on a nohz_full CPU explains its `tick_stop`, nothing else. Method: the
/// lines as the kernel writes them; a number, the timer, the event, the flags and the kind of timer changed.
#[test]
fn an_interrupt_exit_between_the_two_lines() {
    let tick_stop = format!("tload-9 dBs2. {TICK_STOP}");
    let lines = run("tload-9", &[&tick_stop, &tick_stop]);
    assert_explained(&lines, [1, 0]);
    let (right, wrong) = (format!("baseclk={}", JIFFIES + 5), format!("baseclk={}", JIFFIES + 4));
    assert_mismatch("", &changed(&lines, 3, [&right, &wrong]), 3);
    assert_mismatch("", &changed(&lines, 3, ["timer=03", "timer=02"]), 3);
    assert_mismatch("", &changed(&lines, 2, ["tick_stop", "hrtimer_stop"]), 3);
    assert_mismatch("", &changed(&lines, 2, ["dBs2.", "dB.2."]), 3);
    assert_mismatch("I", &lines, 3);
}

/// Goal: tasks that preempt ktimers/0 explain that its two lines are apart, nothing else. Method: as above;
/// in addition the thread's name and CPU, and another task that expires the timer.
#[test]
fn a_preemption_between_the_two_lines() {
    let switch = format!("ktimers/0-15 d.s2. {SWITCH}");
    let between = [switch.as_str(), "tload-9 d..1. x: 1", "tload-9 ..s1. x: 2", "tload-9 d.h1. x: 3"];
    let lines = run("ktimers/0-15", &between);
    assert_explained(&lines, [0, 1]);
    let (right, wrong) = (format!("baseclk={}", JIFFIES + 5), format!("baseclk={}", JIFFIES + 4));
    assert_mismatch("", &changed(&lines, 5, [&right, &wrong]), 5);
    assert_mismatch("", &changed(&lines, 5, ["timer=03", "timer=02"]), 5);
    assert_mismatch("", &changed(&lines, 5, ["ktimers/0-15", "tload-9"]), 5);
    assert_mismatch("", &changed(&lines, 1, ["sched_switch", "sched_stay"]), 5);
    assert_mismatch("", &changed(&lines, 3, ["tload-9", "ktimers/0-15"]), 5);
    assert_mismatch("", &changed(&lines, 4, ["tload-9", "<idle>-0"]), 5);
    assert_mismatch("I", &lines, 5);
    for task in ["ktimers/1-15", "ksoftirqd/0-15", "<...>-15"] {
        assert_mismatch("", &run(task, &between[1..]), 4);
    }
}

/// Goal: tasks that preempt ktimers/0 do not end its run, and what they cancel is cancelled; the thread's own
/// next line outside of softirqs ends it. Method: another task between two expiries, with and without the
/// cancel of the timer that does not expire; the order changed.
#[test]
fn a_preemption_in_a_run() {
    let task = "ktimers/0-15";
    let cancel = "tload-9 d.s1. timer_cancel: timer=01".to_owned();
    let end = format!("{task} d..2. {SWITCH}");
    let middle = vec!["<idle>-0 d..1. x: 1".to_owned(), cancel];
    let lines = [expiry(task, 3, &[]), middle, expiry(task, 2, &[]), vec![end]].concat();
    let verification = trace("", &lines).verify();
    assert!(verification.ok, "{:?}", verification.first_mismatch);
    assert_eq!((notes(&verification), verification.expiries.exact), ([0, 1], 3));

    let kept = changed(&lines, 3, ["timer_cancel: timer=01", "x: 2"]);
    let found = trace("", &kept).verify().first_mismatch.expect("timer 1 is left");
    let line = trace("", &kept).next_line() - 1;
    assert_eq!((found.line, found.kind, found.expected.as_str()), (line, Check::Run, "1 more expiry"));
    let order = changed(&changed(&kept, 4, ["timer=02", "timer=01"]), 5, ["timer=02", "timer=01"]);
    assert_mismatch("", &order, 5);
    let another = run("ksoftirqd/0-15", &[]);
    let other_task = [&another[..2], &["tload-9 d..1. x: 1".to_owned()], &another[2..]].concat();
    let found = trace("", &other_task).verify().first_mismatch.expect("only ktimers/0 is preempted there");
    assert_eq!((found.line, found.kind), (trace("", &other_task[..2]).next_line(), Check::Run));
}
