//! The trace whose figures are worked out by hand. CPUs 2, 3 and 9 are isolated; CPU 13 would be, if it
//! were there. No two totals are equal, so that no figure can stand in for another one.
//!
//! ```text
//! timers     started 29   expired 32   cancelled 11   unknown start 10
//!            foreign 7 = 4 pulled + 3 placed          between isolated 8 = 6 pulled + 2 placed
//!            callbacks of 2, 5 and 12 us              of 4 and 9 us; the others have no end
//!            remote 13 = 4 + 6 pulled, 2 among housekeeping CPUs, 1 of the CPU's own
//!            ping-pongs 5, in 2.5 s
//! softirqs   TIMER entered 20, empty 14: 0 us three times, 1 us, 2 us ... 11 us
//! hrtimers   expired 41, off their CPU 30, foreign 16; watchdogs 19, off their CPU 15
//! wake-ups   real-time 134, behind a softirq 125, with a delay 120: 1 us, 2 us ... 120 us
//! taken away CPU 2: TIMER 2 of 0 ns; CPU 9: below
//! idle       CPU 3: state 1 entered 3 times, 3.5 ms in all, 2.2 at a time; state 2: 5.5 ms; CPU 10: 0.7 ms
//! lost 17; unreadable 1; events 507, counted by part below
//! ```

use quietcore_explain::{Explain, ExplainOptions, Explanation};
use quietcore_trace::{KernelRelease, TraceReader};

/// Explains `text` with `options`.
pub(crate) fn explain(text: &str, options: ExplainOptions) -> Explanation {
    let mut reader = TraceReader::new(text.as_bytes());
    reader.read_header().expect("readable");
    let mut explain = Explain::new(options);
    reader.read(u64::MAX, &mut |record| explain.take(record)).expect("readable");
    explain.finish(reader.tally())
}

/// The explanation of the whole trace.
pub(crate) fn report() -> Explanation {
    explain(&text(), options())
}

/// What is known besides the trace.
pub(crate) fn options() -> ExplainOptions {
    ExplainOptions {
        isolated: "2-3,9,13".parse().expect("a list"),
        isolated_source: "recording",
        nohz_full: "3".parse().expect("a list"),
        kernel: KernelRelease::parse("6.12.30-a"),
        cpu_count: Some(12),
        timer_migration: Some(false),
        ..ExplainOptions::default()
    }
}

/// Lines 1 to 509: 507 events, a mark of lost events, and a line that is not readable.
pub(crate) fn text() -> String {
    let mut lines = Lines { text: String::new(), now_us: 10_000_000 };
    connections(&mut lines);
    timers(&mut lines);
    timer_softirqs(&mut lines);
    wakeups(&mut lines);
    hrtimers(&mut lines);
    interruptions(&mut lines);
    idle(&mut lines);
    lines.text.push_str("gibberish\n");
    lines.now_us = 12_500_000;
    lines.add(0, "tracing_mark_write: the end");
    assert_eq!(lines.text.lines().count(), 509);
    lines.text
}

/// One event of each kind that is a finding, if CPUs 1 and 2 are isolated; all at one time.
pub(crate) fn ones() -> String {
    let mut lines = Lines { text: String::new(), now_us: 1 };
    lines.timers(1, &Timer { first: 1, armed: 0, base: 0, ran: 1, function: "delayed_work_timer_fn" });
    lines.timers(1, &Timer { first: 2, armed: 0, base: 1, ran: 1, function: "neigh_timer_handler" });
    lines.timers(1, &Timer { first: 3, armed: 1, base: 1, ran: 2, function: "commit_timeout" });
    lines.hrtimers(1, "tc-60", [0, 1], "qdisc_watchdog");
    for vector in [1, 3] {
        lines.softirq("entry", 1, vector);
        lines.waking(70, if vector == 3 { 9 } else { 100 }, 1);
        lines.softirq("exit", 1, vector);
    }
    lines.text
}

/// The text so far.
struct Lines {
    text: String,
    /// The time stamp of the next line.
    now_us: u64,
}

impl Lines {
    fn add(&mut self, cpu: u16, event: &str) {
        self.of_task("task-7", cpu, event);
    }

    fn of_task(&mut self, task: &str, cpu: u16, event: &str) {
        let (seconds, micros) = (self.now_us / 1_000_000, self.now_us % 1_000_000);
        self.text += &format!("{task:>16} [{cpu:03}] d..1. {seconds}.{micros:06}: {event}\n");
    }

    fn start(&mut self, timer: u32, cpu: u16, base: u16, function: &str) {
        let rest = format!("function={function} expires=9 [timeout=1] cpu={base} idx=1 flags=");
        self.add(cpu, &format!("timer_start: timer={timer:016x} {rest}"));
    }

    fn expire(&mut self, timer: u32, cpu: u16, function: &str) {
        self.add(cpu, &format!("timer_expire_entry: timer={timer:016x} function={function} now=9 baseclk=9"));
    }

    /// The callback of a timer ends, so much later than the line before.
    fn end(&mut self, timer: u32, cpu: u16, later_us: u64) {
        self.now_us += later_us;
        self.add(cpu, &format!("timer_expire_exit: timer={timer:016x}"));
    }

    /// `count` timers, each with its start and its expiry: two lines each.
    fn timers(&mut self, count: u32, of: &Timer) {
        for timer in of.first..of.first + count {
            self.start(timer, of.armed, of.base, of.function);
            self.expire(timer, of.ran, of.function);
        }
    }

    fn softirq(&mut self, step: &str, cpu: u16, vector: u8) {
        self.add(cpu, &format!("softirq_{step}: vec={vector} [action=X]"));
    }

    fn waking(&mut self, pid: u32, priority: i32, target: u16) {
        self.add(0, &format!("sched_waking: comm=rt pid={pid} prio={priority} target_cpu={target:03}"));
    }

    fn switch(&mut self, cpu: u16, previous: u32, next: u32) {
        let from = format!("prev_comm=a prev_pid={previous} prev_prio=120 prev_state=R");
        self.add(cpu, &format!("sched_switch: {from} ==> next_comm=b next_pid={next} next_prio=9"));
    }

    fn idle(&mut self, cpu: u16, state: Option<u32>) {
        self.add(cpu, &format!("cpu_idle: state={} cpu_id={cpu}", state.unwrap_or(u32::MAX)));
    }

    /// `count` runs of one hrtimer: started by `task` on the first CPU, run on the second.
    fn hrtimers(&mut self, count: u32, task: &str, [armed, ran]: [u16; 2], function: &str) {
        let timer = format!("hrtimer=00000000000000{armed}{ran} function={function}");
        for _ in 0..count {
            self.of_task(task, armed, &format!("hrtimer_start: {timer} expires=5 softexpires=5 mode=ABS"));
            self.of_task("<idle>-0", ran, &format!("hrtimer_expire_entry: {timer} now=7"));
        }
    }
}

/// Wheel timers that are alike.
struct Timer {
    /// The identity of the first of them.
    first: u32,
    armed: u16,
    base: u16,
    ran: u16,
    function: &'static str,
}

/// Lines 1 to 5: CPUs 0, 2 and 9 are a group, and so are 1 and 3.
fn connections(lines: &mut Lines) {
    for (cpu, parent) in [(0, "aa"), (1, "bb"), (2, "aa"), (3, "bb"), (9, "aa")] {
        let rest = "lvl=0 numa=0 num_children=1";
        lines.add(0, &format!("tmigr_connect_cpu_parent: cpu={cpu} groupmask=1 parent={parent} {rest}"));
    }
}

/// Lines 6 to 74: 25 starts, 27 expiries (9 of an unknown start), 6 ends of callbacks, 11 cancels.
fn timers(lines: &mut Lines) {
    // Foreign, lines 6 to 19. Pulled: 3 by CPU 2 and 1 by CPU 9; placed: 2 on CPU 3 and 1 on CPU 2.
    lines.timers(3, &Timer { first: 0x11, armed: 0, base: 0, ran: 2, function: "process_timeout" });
    lines.timers(1, &Timer { first: 0x14, armed: 0, base: 3, ran: 9, function: "delayed_work_timer_fn" });
    lines.timers(2, &Timer { first: 0x15, armed: 1, base: 3, ran: 3, function: "neigh_timer_handler" });
    lines.timers(1, &Timer { first: 0x17, armed: 4, base: 2, ran: 2, function: "tcp_delack_timer" });
    // The last callback of each CPU ends, lines 20 to 22, after 2, 5 and 12 us.
    lines.end(0x17, 2, 2);
    lines.end(0x16, 3, 3);
    lines.end(0x14, 9, 7);
    // Between isolated CPUs, lines 23 to 40. Pulled: 6 by CPU 3; placed: 2 on CPU 9. The last ones end.
    lines.timers(6, &Timer { first: 0x21, armed: 2, base: 2, ran: 3, function: "commit_timeout" });
    lines.end(0x26, 3, 4);
    lines.timers(2, &Timer { first: 0x27, armed: 3, base: 9, ran: 9, function: "wb_timer_fn" });
    lines.end(0x28, 9, 9);
    // Remote and neither, lines 41 to 47: to a housekeeping CPU; armed where it ran.
    lines.timers(2, &Timer { first: 0x31, armed: 0, base: 0, ran: 1, function: "process_timeout" });
    lines.timers(1, &Timer { first: 0x33, armed: 2, base: 0, ran: 2, function: "process_timeout" });
    lines.end(0x33, 2, 6);
    for timer in 0x41..=0x49 {
        lines.expire(timer, 5, "process_timeout");
    }
    for timer in 0x11..=0x1b {
        lines.add(0, &format!("timer_cancel: timer={timer:016x}"));
    }
    // Five ping-pongs: three on CPU 0 and two on CPU 2, where their bases were. The sixth timer was in the
    // base of CPU 3, and its next start is not there; the one after that is.
    for (timer, cpu) in [(0x11, 0), (0x12, 0), (0x13, 0), (0x21, 2), (0x22, 2), (0x14, 0), (0x14, 3)] {
        lines.start(timer, cpu, cpu, "again");
    }
}

/// 19 entries, 13 of them empty, 4 starts, 5 expiries: 48 events, and a mark of 17 that were lost.
fn timer_softirqs(lines: &mut Lines) {
    lines.softirq("raise", 0, 1);
    for timer in 0x51..=0x54 {
        lines.softirq("entry", 0, 1);
        lines.timers(1, &Timer { first: timer, armed: 0, base: 0, ran: 0, function: "process_timeout" });
        lines.softirq("exit", 0, 1);
    }
    // Empty: two on CPU 2, the second one while a timer runs elsewhere, and eleven on CPU 6, for 1 to 11 us.
    lines.softirq("entry", 2, 1);
    lines.softirq("exit", 2, 1);
    lines.softirq("entry", 2, 1);
    lines.expire(0x4a, 5, "process_timeout");
    lines.softirq("exit", 2, 1);
    for took_us in 1..=11 {
        lines.softirq("entry", 6, 1);
        lines.now_us += took_us;
        lines.softirq("exit", 6, 1);
    }
    // Not known to be empty: an exit without an entry, an entry without an exit, events lost in between.
    lines.softirq("exit", 6, 1);
    lines.softirq("entry", 7, 1);
    lines.softirq("entry", 8, 1);
    lines.text.push_str("CPU:8 [LOST 17 EVENTS]\n");
    lines.softirq("exit", 8, 1);
}

/// 134 wake-ups of real-time tasks, 125 of them behind a softirq, and one more empty TIMER softirq: 279
/// events.
fn wakeups(lines: &mut Lines) {
    // Four of ten vectors may run long: NET_TX, NET_RX, BLOCK and IRQ_POLL. That task never runs.
    for vector in 0..10 {
        lines.softirq("entry", 5, vector);
        lines.waking(71, 98, 5);
        lines.softirq("exit", 5, vector);
    }
    lines.softirq("entry", 4, 3);
    lines.waking(73, 100, 4); // not real-time
    lines.waking(72, 98, 4); // still runs, so it does not wait
    lines.switch(4, 72, 0);
    lines.now_us += 5_000;
    lines.switch(4, 0, 72);
    for delay_us in 1..=120 {
        lines.waking(70, -1, 4);
        lines.now_us += delay_us;
        lines.switch(4, 0, 70);
    }
    lines.softirq("exit", 4, 3);
    lines.waking(74, 99, 4); // not behind: after the softirq, and towards another CPU
    lines.waking(74, -1, 4);
    lines.waking(75, 0, 6);
}

/// On CPU 9 for 100 us an interrupt of a device, on which two of the processor lie for 7 and 9 us, of which
/// the second one has a handler of 3 us on it that cannot be masked; two softirqs of 20 and 30 us; and 4 us
/// of a work item that CPU 0 queued: 14 events. On CPU 4, which is not isolated, the begin of one.
fn interruptions(lines: &mut Lines) {
    lines.add(4, "irq_handler_entry: irq=5 name=nvme0q1");
    for (later_us, event) in [
        (0, "irq_handler_entry: irq=27 name=eth0-rx"),
        (10, "local_timer_entry: vector=236"),
        (7, "local_timer_exit: vector=236"),
        (20, "local_timer_entry: vector=236"),
        (8, "nmi_handler: perf_event_nmi_handler() delta_ns: 3000 handled: 1"),
        (1, "local_timer_exit: vector=236"),
        (54, "irq_handler_exit: irq=27 ret=handled"),
        (5, "softirq_entry: vec=3 [action=NET_RX]"),
        (20, "softirq_exit: vec=3 [action=NET_RX]"),
        (5, "softirq_entry: vec=3 [action=NET_RX]"),
        (30, "softirq_exit: vec=3 [action=NET_RX]"),
    ] {
        lines.now_us += later_us;
        lines.add(9, event);
    }
    lines
        .add(0, "workqueue_queue_work: work struct=00a1 function=vmstat_update workqueue=mm req_cpu=9 cpu=9");
    lines.add(9, "workqueue_execute_start: work struct 00a1: function vmstat_update");
    lines.now_us += 4;
    lines.add(9, "workqueue_execute_end: work struct 00a1: function vmstat_update");
}

/// CPU 3 is in state 1 for 1.3 and for 2.2 ms, in state 2 for 5.5 ms, and then in state 1, which it does not
/// leave; CPU 10 leaves what it was in before, and is in state 0 for 0.7 ms: 10 events.
fn idle(lines: &mut Lines) {
    lines.idle(10, None);
    lines.idle(10, Some(0));
    lines.now_us += 700;
    lines.idle(10, None);
    for (state, micros) in [(1, 1_300), (1, 2_200), (2, 5_500)] {
        lines.idle(3, Some(state));
        lines.now_us += micros;
        lines.idle(3, None);
    }
    lines.idle(3, Some(1));
}

/// 41 expiries of 39 starts: 80 events.
fn hrtimers(lines: &mut Lines) {
    lines.hrtimers(4, "cyc-50", [0, 0], "hrtimer_wakeup");
    lines.hrtimers(12, "cyc-51", [0, 2], "hrtimer_wakeup"); // off its CPU, foreign
    lines.hrtimers(1, "<...>-52", [2, 3], "hrtimer_wakeup"); // off its CPU, between isolated CPUs
    lines.hrtimers(2, "<...>-51", [2, 4], "hrtimer_wakeup"); // off its CPU; the name is known
    lines.hrtimers(2, "<idle>-0", [1, 1], "tick_nohz_handler");
    lines.hrtimers(3, "tc-60", [4, 4], "qdisc_watchdog");
    lines.hrtimers(11, "tc-60", [4, 5], "qdisc_watchdog"); // off its CPU
    lines.hrtimers(4, "tc-60", [6, 2], "qdisc_watchdog"); // off its CPU, foreign
    // Two that were started before the recording.
    lines.add(1, "hrtimer_expire_entry: hrtimer=00000000000000f1 function=hrtimer_wakeup now=7");
    lines.add(6, "hrtimer_expire_entry: hrtimer=00000000000000f2 function=qdisc_watchdog now=7");
}
