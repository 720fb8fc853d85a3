//! The program that counts in the kernel, in a process of its own: `program/kernel.c` is a kernel of a few
//! CPUs whose events are lines. Needs a C compiler.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The program with its kernel, compiled once.
fn kernel() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program");
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("watch-program");
        let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        compiler.args(["-O1", "-Wall", "-Werror", "-Wno-unknown-pragmas", "-Wno-stringop-truncation"]);
        compiler.arg("-fsanitize=address,undefined").arg("-fno-sanitize-recover=all");
        compiler.arg("-I").arg(source.join("include")).arg("-o").arg(&built).arg(source.join("kernel.c"));
        let status = compiler.status().expect("there is a C compiler");
        assert!(status.success(), "{compiler:?}");
        built
    })
}

/// The rows after these events, on a kernel that watches some CPUs, with so many rows in a half.
fn rows_of(each: u32, is_realtime: bool, cpus: &[u32], events: &str) -> Vec<String> {
    let mut program = Command::new(kernel());
    program.arg(each.to_string()).arg(u32::from(is_realtime).to_string());
    program.args(cpus.iter().map(u32::to_string)).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = program.spawn().expect("it was built");
    child.stdin.take().expect("it is a pipe").write_all(events.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", output.status);
    let mut rows: Vec<String> =
        String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect();
    rows.sort();
    rows
}

/// The same with room for all, on CPU 1.
fn rows(events: &str) -> Vec<String> {
    rows_of(64, false, &[1], events)
}

// Kinds of things, and ways to start one, as in bpf/layout.h. 0 device, 1 processor, 2 softirq, 3 nmi, 4
// timer, 5 hrtimer, 6 work, 7 task; 1 armed, 2 sent, 3 raised, 4 woken, 5 queued.

/// Goal: each thing counts for the time in which nothing else was on top of it, and the sum of all is what
/// was taken. Method: a callback in a softirq in an interrupt in a task, with an NMI on top of all.
#[test]
fn a_thing_counts_for_its_own_time() {
    let rows = rows(
        "1 0 run 5 app 30\n\
         1 100 local_timer_entry\n\
         1 110 softirq_entry 1\n\
         1 120 timer_expire_entry 7\n\
         1 150 nmi_handler 50 4\n\
         1 180 timer_expire_exit 7\n\
         1 185 softirq_exit 1\n\
         1 200 local_timer_exit\n\
         1 300 run 0 swapper 0\n",
    );
    assert_eq!(
        rows,
        [
            "1.0: 1 0 0 ; 0 0 0 0 0 0 0 : 1 25 25 0 1*2^4",
            "1.0: 2 1 0 ; 0 0 0 0 0 0 0 : 1 15 15 0 1*2^3",
            "1.0: 3 0 50 ; 0 0 0 0 0 0 0 : 1 4 4 0 1*2^2",
            "1.0: 4 0 1007 ; 0 0 0 0 0 0 0 : 1 56 56 0 1*2^5",
            "1.0: 7 0 0 app; 0 0 0 0 0 0 0 : 1 200 200 0 1*2^7",
        ]
    );
}

/// Goal: a begin whose end is missing counts, and has no time; an end without a begin is nothing. Method:
/// both.
#[test]
fn what_is_not_whole_has_no_time() {
    let rows = rows(
        "1 10 softirq_exit 3\n\
         1 20 irq_handler_entry 9\n\
         1 30 local_timer_entry\n\
         1 40 irq_handler_exit 9\n\
         1 50 hrtimer_expire_entry 2\n",
    );
    assert_eq!(
        rows,
        [
            "1.0: 0 9 0 disk; 0 0 0 0 0 0 0 : 1 20 20 0 1*2^4",
            "1.0: 1 0 0 ; 0 0 0 0 0 0 0 : 1 0 0 0",
            "1.0: 5 0 1002 ; 0 0 0 0 0 0 0 : 1 0 0 0",
        ]
    );
}

/// Goal: nothing of CPUs that are not watched is counted, and what they start on watched ones is, with the
/// task and its group, and on whose behalf an interrupt did it. Method: a timer that a task arms elsewhere,
/// and one that an armed timer's callback arms.
#[test]
fn a_timer_has_who_armed_it() {
    let rows = rows(
        "0 0 run 6 cron 44\n\
         0 10 timer_start 3\n\
         0 11 timer_start 8\n\
         0 20 timer_expire_entry 3\n\
         0 25 timer_start 4\n\
         0 30 timer_expire_exit 3\n\
         1 100 timer_expire_entry 8\n\
         1 107 timer_expire_exit 8\n\
         1 200 timer_expire_entry 4\n\
         1 203 timer_expire_exit 4\n",
    );
    assert_eq!(
        rows,
        [
            "1.0: 4 0 1004 ; 1 4 0 0 1003 0 44 cron: 1 3 3 0 1*2^1",
            "1.0: 4 0 1008 ; 1 7 0 0 0 0 44 cron: 1 7 7 0 1*2^2",
        ]
    );
}

/// Goal: a stack is taken of who starts a function once a watched CPU has run it, four times at most. Method:
/// six rounds of a timer.
#[test]
fn the_first_starts_have_stacks() {
    let round = "0 10 timer_start 3\n1 20 timer_expire_entry 3\n1 21 timer_expire_exit 3\n";
    assert_eq!(rows(round), ["1.0: 4 0 1003 ; 1 7 0 0 0 0 0 swapper: 1 1 1 0 1*2^0"]);
    // The second start has the first stack, whose number is 0; it is kept plus 1.
    assert_eq!(rows(&round.repeat(6)), ["1.0: 4 0 1003 ; 1 7 0 0 0 0 0 swapper: 6 6 1 1 6*2^0"]);
    let others = "0 30 timer_start 3\n".repeat(9);
    let late = "1 40 timer_expire_entry 5\n1 41 timer_expire_exit 5\n0 50 timer_start 5\n1 60 timer_expire_entry 5\n";
    let rows = rows(&format!("{round}{others}{late}"));
    assert_eq!(
        rows[2], "1.0: 4 0 1005 ; 1 7 0 0 0 0 0 swapper: 1 0 0 5",
        "four of the others had one before"
    );
}

/// Goal: an interrupt has who sent it and what for: the function that was queued, the one that is called, or
/// the one that sends; of those on their way the first two are told apart, and one has one sender alone.
/// Method: each kind, twice.
#[test]
fn an_interrupt_has_its_sender() {
    let handled = |name: &str| format!("1 50 {name}_entry\n1 52 {name}_exit\n");
    let events = [
        "0 0 run 6 cron 44\n2 0 run 7 sshd 55\n",
        // A call of a queue, with its function; the queue of another CPU is none.
        "0 1 csd_queue_cpu 1 0 700\n0 2 ipi_send_cpu 1 20 999\n",
        &handled("call_function_single"),
        "0 3 csd_queue_cpu 1 0 701\n2 4 ipi_send_cpu 1 21 999\n",
        &handled("call_function_single"),
        "0 5 ipi_send_cpu 1 22 600\n",
        &handled("call_function_single"),
        &handled("call_function_single"),
        "0 6 ipi_send_cpu 1 23 0\n2 7 ipi_send_cpu 1 24 0\n2 8 ipi_send_cpu 1 25 0\n",
        &handled("reschedule"),
        &handled("reschedule"),
        &handled("reschedule"),
        // To several, of which one is watched; to itself.
        "0 9 ipi_send_cpumask 7 26 601\n",
        &handled("call_function"),
        "1 10 ipi_send_cpu 1 27 602\n",
        &handled("irq_work"),
    ];
    let row = |thing: &str, cause: &str| format!("1.0: 1 {thing} 0 ; {cause}: 1 2 2 0 1*2^1");
    let mut expected = [
        row("3", "2 7 0 0 0 700 44 cron"),
        row("3", "2 7 2 0 0 21 55 sshd"),
        row("3", "2 7 0 0 0 600 44 cron"),
        row("3", "0 0 0 0 0 0 0 "),
        row("1", "2 7 0 0 0 23 44 cron"),
        row("1", "2 7 2 0 0 25 55 sshd"),
        row("1", "0 0 0 0 0 0 0 "),
        row("2", "2 7 0 0 0 601 44 cron"),
        row("4", "2 7 1 0 0 602 0 swapper"),
    ];
    expected.sort();
    assert_eq!(rows(&events.concat()), expected);
    // What is queued for one CPU is not what another one is called for.
    let two = "0 0 run 6 cron 44\n0 3 csd_queue_cpu 1 0 701\n0 4 ipi_send_cpu 3 21 999\n\
               3 50 call_function_single_entry\n3 52 call_function_single_exit\n";
    assert_eq!(rows_of(64, false, &[1, 3], two), ["3.0: 1 3 0 ; 2 7 0 0 0 21 44 cron: 1 2 2 0 1*2^1"]);
}

/// Goal: a softirq has its last raise, once; so has a task its waking and a work item its queueing; what runs
/// in a task has it on whose behalf. Method: each twice, the second time without a start.
#[test]
fn what_is_started_has_its_start_once() {
    let rows = rows(
        "0 0 run 6 cron 44\n\
         1 1 local_timer_entry\n\
         1 2 softirq_raise 3\n\
         1 3 local_timer_exit\n\
         1 4 softirq_entry 3\n\
         1 5 softirq_exit 3\n\
         1 6 softirq_entry 3\n\
         1 7 softirq_exit 3\n\
         0 10 sched_waking 5 1\n\
         0 11 workqueue_queue_work 1 9\n\
         0 12 workqueue_queue_work 2 8\n\
         1 20 run 5 kworker/1:1 0\n\
         1 21 workqueue_execute_start 9\n\
         1 25 workqueue_execute_end 9\n\
         1 26 workqueue_execute_start 9\n\
         1 27 workqueue_execute_end 9\n\
         1 28 workqueue_execute_start 8\n\
         1 29 workqueue_execute_end 8\n\
         1 40 run 0 swapper 0\n\
         1 50 run 5 kworker/1:1 0\n\
         1 53 run 0 swapper 0\n",
    );
    assert_eq!(
        rows,
        [
            "1.0: 1 0 0 ; 0 0 0 0 0 0 0 : 1 2 2 0 1*2^1",
            "1.0: 2 3 0 ; 0 0 0 0 0 0 0 : 1 1 1 0 1*2^0",
            "1.0: 2 3 0 ; 3 1 1 0 0 0 0 : 1 1 1 0 1*2^0",
            // Queued for a CPU that is not watched, and yet here: its start was not kept.
            "1.0: 6 0 1008 ; 0 0 0 0 0 0 0 : 1 1 1 0 1*2^0",
            "1.0: 6 0 1009 ; 0 0 0 0 0 0 0 : 1 1 1 0 1*2^0",
            "1.0: 6 0 1009 ; 5 7 0 0 0 0 44 cron: 1 4 4 0 1*2^2",
            "1.0: 7 1 0 kworker/1:1; 0 0 0 0 0 0 0 : 1 3 3 0 1*2^1",
            "1.0: 7 1 0 kworker/1:1; 4 7 0 0 0 0 44 cron: 1 14 14 0 1*2^3",
        ]
    );
}

/// Goal: what a task is in the middle of when it loses its CPU goes on later, and its time is what it had in
/// all; interrupts do not outlive a switch. Method: a softirq with a callback in a thread, as PREEMPT_RT has
/// it, and an interrupt whose end is missing.
#[test]
fn what_is_in_a_task_goes_on_with_it() {
    let events = "1 0 run 5 ktimers/1 0\n\
                  1 10 softirq_entry 1\n\
                  1 20 timer_expire_entry 7\n\
                  1 22 hrtimer_expire_entry 9\n\
                  1 25 run 6 audio 0\n\
                  1 60 local_timer_entry\n\
                  1 70 run 5 ktimers/1 0\n\
                  1 72 hrtimer_expire_exit 9\n\
                  1 75 timer_expire_exit 7\n\
                  1 78 softirq_exit 1\n\
                  1 80 run 0 swapper 0\n";
    let expected = [
        "1.0: 1 0 0 ; 0 0 0 0 0 0 0 : 1 0 0 0",
        "1.0: 2 1 0 ; 0 0 0 0 0 0 0 : 1 13 13 0 1*2^3",
        "1.0: 4 0 1007 ; 0 0 0 0 0 0 0 : 1 7 7 0 1*2^2",
        "1.0: 5 0 1009 ; 0 0 0 0 0 0 0 : 1 0 0 0",
        "1.0: 7 0 0 audio; 0 0 0 0 0 0 0 : 1 35 35 0 1*2^5",
        "1.0: 7 1 0 ktimers/1; 0 0 0 0 0 0 0 : 2 12 10 0 1*2^1 1*2^3",
    ];
    assert_eq!(rows_of(64, true, &[1], events), expected);
    // A CPU that is not watched has the same stack there, for what it starts: nothing of the old task is on
    // it.
    let started = "0 0 run 5 ktimers/0 0\n\
                   0 10 softirq_entry 1\n\
                   0 20 run 6 cron 44\n\
                   0 30 timer_start 3\n\
                   1 40 timer_expire_entry 3\n";
    assert_eq!(rows_of(64, true, &[1], started), ["1.0: 4 0 1003 ; 1 7 0 0 0 0 44 cron: 1 0 0 0"]);
}

/// Goal: the half in use has what begins; what has begun before it changed ends in the new one. Method: a
/// change in the middle of a callback.
#[test]
fn an_end_counts_in_the_half_in_use() {
    let rows = rows(
        "1 0 timer_expire_entry 7\n\
         1 4 half 1\n\
         1 9 timer_expire_exit 7\n\
         1 20 timer_expire_entry 7\n\
         1 23 timer_expire_exit 7\n",
    );
    assert_eq!(
        rows,
        ["1.0: 4 0 1007 ; 0 0 0 0 0 0 0 : 1 0 0 0", "1.1: 4 0 1007 ; 0 0 0 0 0 0 0 : 1 12 9 0 1*2^1 1*2^3",]
    );
}

/// Goal: where there is no room for a cause its thing is counted without it, and a task by its kind; all of
/// that is said. Method: eight rows, more causes and more tasks than that, on the second of two watched CPUs.
#[test]
fn what_finds_no_room_is_counted_and_said() {
    let mut events = String::new();
    for round in 0..12 {
        events += &format!("0 0 run {} job{round} {}\n", round % 10 + 3, round + 100);
        events += "0 1 timer_start 3\n3 10 timer_expire_entry 3\n3 12 timer_expire_exit 3\n";
    }
    events += "3 20 run 5 app 0\n3 30 run 0 swapper 0\n";
    let rows = rows_of(8, false, &[1, 3], &events);
    let count = |row: &String| {
        let counts = row.rsplit(": ").next().expect("it has counts");
        counts.split(' ').next().expect("it has one").parse::<u64>().expect("a number")
    };
    let (lost, rows): (Vec<String>, Vec<String>) = rows.into_iter().partition(|row| row.contains("lost"));
    assert!(rows.iter().all(|row| row.starts_with("3.0")), "{rows:?}");
    let timers: Vec<&String> = rows.iter().filter(|row| row.starts_with("3.0: 4 ")).collect();
    assert_eq!(timers.iter().map(|row| count(row)).sum::<u64>(), 12);
    let plain = timers.iter().filter(|row| row.contains("; 0 0 0 0 0 0 0 : ")).map(|row| count(row));
    let named = timers.iter().filter(|row| row.contains("; 1 7 0 ")).count();
    assert_eq!((named, plain.sum::<u64>()), (8, 4));
    assert!(rows.iter().any(|row| row == "3.0: 7 0 0 ; 0 0 0 0 0 0 0 : 1 10 10 0 1*2^3"), "{rows:?}");
    assert_eq!(lost, ["3 lost: 0 5"]);
}

/// Goal: what is open is bounded, and said. Method: more interrupts within interrupts than there is room for.
#[test]
fn what_is_open_is_bounded() {
    let events: String = (0..17).map(|number| format!("1 {number} irq_handler_entry {number}\n")).collect();
    let rows = rows(&format!("{events}1 30 irq_handler_exit 16\n1 31 irq_handler_exit 3\n"));
    assert_eq!(rows.len(), 18);
    assert!(rows.contains(&"1 lost: 1 0".to_owned()), "{rows:?}");
    assert!(rows.contains(&"1.0: 0 16 0 disk; 0 0 0 0 0 0 0 : 1 14 14 0 1*2^3".to_owned()), "{rows:?}");
    assert!(rows.contains(&"1.0: 0 3 0 disk; 0 0 0 0 0 0 0 : 1 0 0 0".to_owned()), "{rows:?}");
}
