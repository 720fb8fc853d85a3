//! What took CPUs away and why, from events by hand.

use super::{CallbackOf, InterruptionCounts, ROWS_MAX, RecordedMoment};
use crate::figures::report::{Cause, Interruption, NearSpan};
use quietcore_core::{CpuId, CpuSet, Nanos};
use quietcore_trace::{
    Event, InterruptContext, IpiPurpose, NameTable, Record, SoftirqStep, SpanStep, SystemInterrupt, Task,
    WakeStep,
};

const ENTRY: SpanStep = SpanStep::Entry;
const EXIT: SpanStep = SpanStep::Exit;
const IDLE: Task<'static> = Task { comm: b"<idle>", pid: 0 };
const CRON: Task<'static> = Task { comm: b"cron", pid: 10 };
const SPIN: Task<'static> = Task { comm: b"spin", pid: 20 };
const WORKER: Task<'static> = Task { comm: b"kworker/1:0", pid: 30 };

fn cpu(number: u64) -> CpuId {
    CpuId::new(number).expect("a small number")
}

/// An event of a task, in the line that has the number of its nanosecond.
fn by(task: Task<'static>, of: u64, at: u64, event: Event<'static>) -> Record<'static> {
    Record { line: at, task, cpu: cpu(of), context: None, at: Nanos(at), event }
}

fn inside(context: InterruptContext, record: Record<'static>) -> Record<'static> {
    Record { context: Some(context), ..record }
}

fn device(step: SpanStep) -> Event<'static> {
    Event::DeviceInterrupt { step, number: 27, name: b"eth0" }
}

fn interrupt(step: SpanStep, interrupt: SystemInterrupt) -> Event<'static> {
    Event::SystemInterrupt { step, interrupt }
}

fn timer(step: SpanStep) -> Event<'static> {
    interrupt(step, SystemInterrupt::LocalTimer)
}

fn softirq(step: SoftirqStep) -> Event<'static> {
    Event::Softirq { step, vector: 3 }
}

fn called(step: SpanStep) -> Event<'static> {
    Event::IpiHandled { step, reason: b"Function call interrupts" }
}

fn switch(previous: Task<'static>, next: Task<'static>) -> Event<'static> {
    Event::SchedSwitch { previous, next, next_priority: 120 }
}

fn waking(task: Task<'static>) -> Event<'static> {
    Event::SchedWake { step: WakeStep::Waking, task, priority: 120, target: cpu(1) }
}

fn expiry() -> Event<'static> {
    Event::TimerExpireEntry { timer: 7, function: b"f", now: 0, baseclk: None }
}

/// The counts after all events. A timer is armed by the last `TimerInit` before it expires, as the tables of
/// timers are not in here.
fn report(isolated: &str, events: &[Record<'static>]) -> Vec<Interruption> {
    let isolated: CpuSet = isolated.parse().expect("a list");
    let (mut counts, mut names) = (InterruptionCounts::new(isolated, None), NameTable::new());
    let mut armed = None;
    for record in events {
        match record.event {
            Event::Lost { .. } => counts.forget(record),
            Event::TimerInit { .. } => armed = Some(counts.initiator(record, &mut names)),
            Event::TimerExpireEntry { function, .. } => {
                let callback = CallbackOf::Wheel(names.number(function));
                counts.take_callback(record, callback, armed);
            }
            Event::HrtimerExpireEntry { function, .. } => {
                let callback = CallbackOf::HighResolution(names.number(function));
                counts.take_callback(record, callback, armed);
            }
            _ => counts.take(record, &mut names),
        }
    }
    counts.report(&names, |_| true)
}

/// `cpu source name: count, total, longest at line` of each row; `own` before that of what the CPU is for.
fn rows(isolated: &str, events: &[Record<'static>]) -> Vec<String> {
    let row = |row: Interruption| {
        let Interruption { cpu, source, name, count, own, .. } = row;
        let own = if own { "own " } else { "" };
        let measured = (row.total_ns, row.max_ns, row.max_line);
        let (Some(total), Some(max), Some(line)) = measured else {
            assert_eq!((measured, row.p99_ns), ((None, None, None), None));
            return format!("{own}{cpu} {source} {name}: {count}");
        };
        format!("{own}{cpu} {source} {name}: {count}, {total}, {max} at {line}")
    };
    report(isolated, events).into_iter().map(row).collect()
}

/// `source name: how cpu source name [function], ...` of each cause, with how often and how long.
fn causes(events: &[Record<'static>]) -> Vec<String> {
    let mut found = Vec::new();
    for row in report("1", events) {
        for Cause { count, total_ns, steps } in row.causes {
            let step = |step: crate::figures::report::CauseStep| {
                let function = step.function.map_or(String::new(), |function| format!(" for {function}"));
                format!("{} {} {} {}{function}", step.how, step.cpu, step.source, step.name)
            };
            let steps: Vec<String> = steps.into_iter().map(step).collect();
            let total = total_ns.map_or("-".to_owned(), |total| total.to_string());
            found.push(format!("{} {}: {} ({count}, {total})", row.source, row.name, steps.join(", ")));
        }
    }
    found
}

fn on_one(events: &[(u64, u64, Event<'static>)]) -> Vec<Record<'static>> {
    events.iter().map(|(cpu, at, event)| by(IDLE, *cpu, *at, event.clone())).collect()
}

/// Goal: each counts for the time in which nothing else was on top of it. Method: a softirq, in it an
/// interrupt of a device, in that a handler of what cannot be masked; and a second softirq.
#[test]
fn what_is_on_top_is_not_counted_below() {
    let events = on_one(&[
        (1, 1_000, softirq(SoftirqStep::Raise)),
        (1, 1_000, softirq(SoftirqStep::Entry)),
        (1, 1_300, device(ENTRY)),
        (1, 1_450, Event::NmiHandled { handler: b"watchdog", took: Nanos(40) }),
        (1, 1_500, device(EXIT)),
        (1, 2_000, softirq(SoftirqStep::Exit)),
        (1, 3_000, softirq(SoftirqStep::Entry)),
        (1, 3_900, softirq(SoftirqStep::Exit)),
    ]);
    let expected = [
        "1 device 27 eth0: 1, 160, 160 at 1500",
        "1 nmi watchdog: 1, 40, 40 at 1450",
        "1 softirq NET_RX: 2, 1700, 900 at 3900",
    ];
    assert_eq!(rows("1", &events), expected);
}

/// Goal: what has no begin is not counted; what has no end, or lost events before it, has no time; either
/// leaves what is around it as it is. Method: each of them, on one of two CPUs.
#[test]
fn what_is_not_whole_has_no_time() {
    let events = on_one(&[
        (1, 1_000, device(EXIT)), // began earlier
        (1, 2_000, timer(ENTRY)),
        (1, 2_100, device(ENTRY)), // its end is missing
        (1, 2_400, timer(EXIT)),
        (2, 3_000, timer(ENTRY)),
        (1, 3_000, called(ENTRY)),
        (1, 3_500, Event::Lost { count: None }),
        (1, 4_000, called(EXIT)),
        (2, 4_000, timer(EXIT)),
        (1, 5_000, called(ENTRY)),
        (1, 6_000, called(ENTRY)), // the end of the one before is missing
        (1, 6_020, called(EXIT)),
        (1, 7_000, called(ENTRY)),
        (1, 8_000, switch(SPIN, IDLE)), // it cannot be open here
        (1, 9_000, called(EXIT)),
        (1, 9_500, called(ENTRY)), // open at the end
    ]);
    let expected = [
        "1 device 27 eth0: 1",
        "1 processor Function call interrupts: 5, 20, 20 at 6020",
        "1 processor local_timer: 1, 400, 400 at 2400",
        "2 processor local_timer: 1, 1000, 1000 at 4000",
    ];
    assert_eq!(rows("1-2", &events), expected);
}

/// Goal: handlers that share an interrupt have a row each. Method: two of one number, in turn.
#[test]
fn handlers_share_an_interrupt() {
    let handler = |name| Event::DeviceInterrupt { step: ENTRY, number: 9, name };
    let leave = || Event::DeviceInterrupt { step: EXIT, number: 9, name: b"" };
    let events =
        on_one(&[(1, 10, handler(b"acpi")), (1, 14, leave()), (1, 14, handler(b"i2c")), (1, 20, leave())]);
    assert_eq!(rows("1", &events), ["1 device 9 acpi: 1, 4, 4 at 14", "1 device 9 i2c: 1, 6, 6 at 20"]);
}

/// Goal: isolated CPUs are watched, and all where none is; then not for tasks and work items. Method:
/// an interrupt, a task and a work item on each of two.
#[test]
fn isolated_cpus_are_watched_or_all() {
    let of = |cpu| {
        [
            by(IDLE, cpu, 10, called(ENTRY)),
            by(IDLE, cpu, 30 + cpu, called(EXIT)),
            by(IDLE, cpu, 40, switch(IDLE, WORKER)),
            by(WORKER, cpu, 50, Event::WorkStart { work: 1, function: b"w" }),
            by(WORKER, cpu, 57, Event::WorkEnd { work: 1 }),
            by(WORKER, cpu, 60, switch(WORKER, IDLE)),
        ]
    };
    let events = [0, 1].map(of).concat();
    let [first, second] = [
        "0 processor Function call interrupts: 1, 20, 20 at 30",
        "1 processor Function call interrupts: 1, 21, 21 at 31",
    ];
    let tasks = ["1 work w: 1, 7, 7 at 57", "1 task kworker/1:0: 1, 13, 13 at 60"];
    let mut found = rows("1", &events);
    found.sort_by_key(|row| row.contains("task"));
    assert_eq!(found, [second, tasks[0], tasks[1]]);
    assert_eq!(rows("", &events), [first, second]);
}

/// Goal: a hostile input does not make the tables long. Method: more begins than lie on top of each other,
/// more names than rows, and more causes than a row tells apart.
#[test]
fn tables_are_bounded() {
    let begins =
        (0..100).map(|number| (1, number, Event::Softirq { step: SoftirqStep::Entry, vector: number as u8 }));
    let begins: Vec<_> = begins.chain([(1, 200, softirq(SoftirqStep::Exit))]).collect();
    assert!(rows("1", &on_one(&begins)).contains(&"1 softirq NET_RX: 1".to_owned()), "it was forgotten");
    let names: Vec<String> = (0..ROWS_MAX + 5).map(|number| format!("handler_{number}")).collect();
    let nmi = |name: &'_ String| {
        (1, 7, Event::NmiHandled { handler: name.as_bytes().to_vec().leak(), took: Nanos(3) })
    };
    let many: Vec<_> = names.iter().map(nmi).collect();
    let rows = rows("1", &on_one(&many));
    assert_eq!(rows.len(), ROWS_MAX + 1);
    assert!(rows.contains(&"1 nmi (other): 5, 15, 3 at 7".to_owned()), "{:?}", rows.first());
    let woken = (2..40).map(|from| [by(CRON, from, 1, waking(SPIN)), by(IDLE, 1, 2, switch(IDLE, SPIN))]);
    assert_eq!(causes(&woken.flatten().collect::<Vec<_>>()).len(), 16);
}

/// Goal: tasks count for the time in which nothing was on top of them, and the one that has a CPU longest and
/// is not the kernel's is its own. Method: a task beside the kernel's worker that has it longer, and another
/// one; an interrupt in the first.
#[test]
fn a_cpu_has_a_task_of_its_own() {
    let events = [
        by(CRON, 1, 5, switch(CRON, SPIN)), // the begin of cron is not there
        by(SPIN, 1, 100, timer(ENTRY)),
        by(SPIN, 1, 140, timer(EXIT)),
        by(SPIN, 1, 1_005, switch(SPIN, CRON)),
        by(CRON, 1, 1_025, switch(CRON, WORKER)),
        by(WORKER, 1, 9_025, switch(WORKER, IDLE)),
        by(IDLE, 1, 9_100, switch(IDLE, SPIN)), // open at the end
        by(SPIN, 0, 9_200, switch(SPIN, CRON)), // that CPU is not asked about
    ];
    let expected = [
        "1 processor local_timer: 1, 40, 40 at 140",
        "1 task cron: 1, 20, 20 at 1025",
        "1 task kworker/1:0: 1, 8000, 8000 at 9025",
        "own 1 task spin: 2, 960, 960 at 1005",
    ];
    assert_eq!(rows("1", &events), expected);
}

/// Goal: what a task was in the middle of goes on with it: work items, and softirqs where they run in tasks;
/// not interrupts, nor what events were lost in. Method: each of them, around a switch to another task.
#[test]
fn a_task_goes_on_with_what_it_was_in() {
    let start = || Event::WorkStart { work: 1, function: b"w" };
    let end = || Event::WorkEnd { work: 1 };
    let away = |at| [by(WORKER, 1, at, switch(WORKER, SPIN)), by(SPIN, 1, at + 100, switch(SPIN, WORKER))];
    let mut events = vec![
        by(IDLE, 1, 1_000, switch(IDLE, WORKER)),
        by(WORKER, 1, 1_010, start()),
        by(WORKER, 1, 1_020, softirq(SoftirqStep::Entry)),
    ];
    events.extend(away(1_050)); // 10 of the work item, 30 of the softirq
    events.push(by(WORKER, 1, 1_155, softirq(SoftirqStep::Exit))); // 5
    events.push(by(WORKER, 1, 1_160, end())); // 5
    events.extend([by(WORKER, 1, 1_170, start()), by(WORKER, 1, 1_171, called(ENTRY))]);
    events.extend(away(1_180));
    events.extend([by(WORKER, 1, 1_281, called(EXIT)), by(WORKER, 1, 1_290, Event::Lost { count: None })]);
    events.push(by(WORKER, 1, 1_300, end()));
    let expected = [
        "1 processor Function call interrupts: 1",
        "1 softirq NET_RX: 1, 35, 35 at 1155",
        "own 1 task spin: 2, 200, 100 at 1280",
        "1 work w: 2, 15, 15 at 1160",
    ];
    let found: Vec<_> = rows("1", &events).into_iter().filter(|row| !row.contains("kworker")).collect();
    let mut sorted = found.clone();
    sorted.sort();
    let mut expected = expected.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(sorted, expected);
}

/// Goal: a cause is followed through all that the input shows. Method: a timer that a task armed on another
/// CPU runs in a softirq that the CPU's timer raised, and queues work, for which it wakes a worker.
#[test]
fn a_cause_is_followed_to_the_task_that_began_it() {
    let work = |event| by(WORKER, 1, 90, event);
    let events = [
        by(IDLE, 1, 1, Event::TimerExpireExit { timer: 9 }), // ends are recorded
        by(CRON, 0, 5, Event::TimerInit { timer: 7 }),
        by(SPIN, 1, 10, timer(ENTRY)),
        by(SPIN, 1, 12, softirq(SoftirqStep::Raise)),
        by(SPIN, 1, 14, timer(EXIT)),
        by(SPIN, 1, 15, softirq(SoftirqStep::Entry)),
        by(SPIN, 1, 20, expiry()),
        by(SPIN, 1, 22, Event::WorkQueue { work: 1, function: b"w", cpu: Some(cpu(1)) }),
        by(SPIN, 1, 24, waking(WORKER)),
        by(SPIN, 1, 26, Event::TimerExpireExit { timer: 7 }),
        by(SPIN, 1, 27, waking(SPIN)),
        by(SPIN, 1, 30, softirq(SoftirqStep::Exit)),
        by(SPIN, 1, 31, softirq(SoftirqStep::Entry)), // without a raise
        by(SPIN, 1, 33, softirq(SoftirqStep::Exit)),
        by(SPIN, 1, 40, switch(SPIN, WORKER)),
        work(Event::WorkStart { work: 1, function: b"w" }),
        work(Event::WorkEnd { work: 1 }),
        by(WORKER, 1, 100, switch(WORKER, SPIN)),
    ];
    let expected = [
        "softirq NET_RX: raised 1 processor local_timer (1, 9)",
        "timer f: armed 0 task cron (1, 6)",
        "work w: queued 1 timer f, armed 0 task cron (1, 0)",
        "task kworker/1:0: woken 1 timer f, armed 0 task cron (1, 60)",
        "task spin: woken 1 softirq NET_RX, raised 1 processor local_timer (1, -)",
    ];
    let mut found = causes(&events);
    found.sort();
    let mut expected = expected.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(found, expected);
}

/// Goal: a cause that finds no room is counted. Method: more wakers than there is room for.
#[test]
fn a_cause_without_room_is_counted() {
    let isolated: CpuSet = "1".parse().expect("a list");
    let (mut counts, mut names) = (InterruptionCounts::new(isolated, None), NameTable::new());
    for waker in 0..16_390u32 {
        let task = Task { comm: waker.to_be_bytes().to_vec().leak(), pid: 5 };
        counts.take(&by(task, 0, 1, waking(SPIN)), &mut names);
        counts.take(&by(IDLE, 1, 2, switch(IDLE, SPIN)), &mut names);
        assert_eq!(counts.causes_missed(), u64::from((waker + 1).saturating_sub(16_384)));
    }
}

/// Goal: what was open around a moment is told, with what still is, and nothing else. Method: a task, in it
/// an interrupt before, one around and one after the moment, a handler in it, one on another CPU, and one
/// that does not end.
#[test]
fn what_was_open_around_a_moment_is_told() {
    let moment = RecordedMoment { at: Nanos(1_000), around: Nanos(100) };
    let isolated: CpuSet = "1".parse().expect("a list");
    let (mut counts, mut names) = (InterruptionCounts::new(isolated, Some(moment)), NameTable::new());
    let mut take = |of, at, event| counts.take(&by(SPIN, of, at, event), &mut names);
    take(1, 500, switch(IDLE, SPIN));
    for (begin, end) in [(850, 899), (860, 900), (1_000, 1_010), (1_100, 1_150), (1_101, 1_150)] {
        take(1, begin, device(ENTRY));
        take(0, begin, device(ENTRY));
        if begin == 1_000 {
            take(1, 1_005, Event::NmiHandled { handler: b"watchdog", took: Nanos(4) });
        }
        take(1, end, device(EXIT));
        take(0, end, device(EXIT));
    }
    take(1, 1_160, timer(ENTRY));
    take(1, 1_170, softirq(SoftirqStep::Entry));
    take(1, 5_000, switch(SPIN, IDLE));
    take(1, 6_000, called(ENTRY));
    let report = counts.report_moment(&names).expect("a moment was asked for");
    let span = |span: &NearSpan| {
        format!("{} {} {}: {:?} {:?}", span.cpu, span.source, span.begin_ns, span.end_ns, span.own_ns)
    };
    let expected = [
        "1 task 500: Some(5000) Some(462)",
        "1 device 860: Some(900) Some(40)",
        "1 device 1000: Some(1010) Some(6)",
        "1 nmi 1001: Some(1005) Some(4)",
        "1 device 1100: Some(1150) Some(50)",
    ];
    assert_eq!(report.spans.iter().map(span).collect::<Vec<_>>(), expected);
    assert_eq!((report.at_ns, report.around_ns, report.more), (1_000, 100, 0));
}

/// Goal: an open span is near although its end is far or missing, and what finds no room is counted. Method:
/// one that began before the moment and goes on, then more handlers than are kept.
#[test]
fn what_is_still_open_is_told_and_the_list_is_bounded() {
    let moment = RecordedMoment { at: Nanos(1_000), around: Nanos(0) };
    let isolated: CpuSet = "1".parse().expect("a list");
    let (mut counts, mut names) = (InterruptionCounts::new(isolated, Some(moment)), NameTable::new());
    let mut take = |at, event| counts.take(&by(SPIN, 1, at, event), &mut names);
    take(900, device(ENTRY));
    for _ in 0..256 {
        take(1_001, Event::NmiHandled { handler: b"watchdog", took: Nanos(2) });
    }
    take(1_001, Event::NmiHandled { handler: b"watchdog", took: Nanos(0) });
    let report = counts.report_moment(&names).expect("a moment was asked for");
    assert_eq!((report.spans.len(), report.more), (256, 1));
    let ends: Vec<_> = report.spans.iter().map(|span| span.end_ns).collect();
    assert!(ends.iter().all(|end| *end == Some(1_001)), "{ends:?}");
}

/// Goal: nothing that may have happened among lost events is a cause or goes on. Method: a task that is
/// woken, a softirq that is raised, a work item that is queued, and one whose worker is away, before a mark
/// of another CPU; then the same without it.
#[test]
fn nothing_outlasts_lost_events() {
    let events = |between| {
        [
            by(IDLE, 1, 1, switch(IDLE, WORKER)),
            by(WORKER, 1, 2, Event::WorkStart { work: 1, function: b"w" }),
            by(WORKER, 1, 4, switch(WORKER, IDLE)),
            by(CRON, 0, 5, waking(SPIN)),
            by(CRON, 1, 5, softirq(SoftirqStep::Raise)),
            by(CRON, 0, 5, Event::WorkQueue { work: 2, function: b"v", cpu: None }),
            by(CRON, 0, 6, between),
            by(IDLE, 1, 7, softirq(SoftirqStep::Entry)),
            by(IDLE, 1, 8, softirq(SoftirqStep::Exit)),
            by(IDLE, 1, 10, switch(IDLE, SPIN)),
            by(SPIN, 1, 11, switch(SPIN, WORKER)),
            by(WORKER, 1, 14, Event::WorkEnd { work: 1 }),
            by(WORKER, 1, 15, Event::WorkStart { work: 2, function: b"v" }),
        ]
    };
    let work = |between| {
        let found = rows("1", &events(between));
        found.into_iter().find(|row| row.contains("work w")).expect("it began")
    };
    let lost = || Event::Lost { count: Some(3) };
    assert_eq!((work(lost()).as_str(), causes(&events(lost()))), ("1 work w: 1", vec![]));
    let nothing = || waking(CRON);
    assert_eq!(work(nothing()), "1 work w: 1, 5, 5 at 14");
    assert_eq!(causes(&events(nothing())).len(), 3);
}

/// Goal: an interrupt has the sender of its kind. Method: one of each kind to CPU 1, with and without the
/// function; then each again, which was not sent.
#[test]
fn an_interrupt_has_its_sender() {
    let purpose = |callsite, callback, reason| IpiPurpose { callsite, callback, reason };
    let send = |purpose| Event::IpiSendCpu { to: cpu(1), purpose };
    let several = |purpose| Event::IpiSendMask { to: [cpu(0), cpu(1)].into_iter().collect(), purpose };
    let queue: &[u8] = b"generic_smp_call_function_single_interrupt";
    let kinds = [
        SystemInterrupt::Reschedule,
        SystemInterrupt::CallFunctionSingle,
        SystemInterrupt::CallFunction,
        SystemInterrupt::IrqWork,
    ];
    let mut events = vec![
        by(CRON, 0, 2, send(purpose(b"wakeup_preempt", b"0x0", b""))),
        by(SPIN, 2, 2, Event::CallQueued { to: cpu(1), function: b"not_that" }),
        by(CRON, 0, 3, Event::CallQueued { to: cpu(1), function: b"flush_tlb_func" }),
        by(CRON, 0, 3, send(purpose(b"on_each_cpu", queue, b""))),
        by(CRON, 2, 3, several(purpose(b"membarrier", b"ipi_mb", b""))),
        by(SPIN, 1, 4, send(purpose(b"perf", b"wake_up", b""))),
    ];
    for round in 0..2 {
        for (at, kind) in kinds.into_iter().enumerate() {
            let at = 10 + 100 * round + 10 * at as u64;
            events.extend([by(SPIN, 1, at, interrupt(ENTRY, kind))]);
            events.extend([by(SPIN, 1, at + 5, interrupt(EXIT, kind))]);
        }
    }
    let expected = [
        "processor call_function: sent 2 task cron for ipi_mb (1, 5)",
        "processor call_function_single: sent 0 task cron for flush_tlb_func (1, 5)",
        "processor irq_work: sent 1 task spin for wake_up (1, 5)",
        "processor reschedule: sent 0 task cron for wakeup_preempt (1, 5)",
    ];
    assert_eq!(causes(&events), expected);
    // The queue's function is not known where nothing was queued from there, nor after lost events.
    let one = |event| {
        causes(&[
            by(SPIN, 2, 1, Event::CallQueued { to: cpu(1), function: b"not_that" }),
            by(CRON, 0, 2, send(purpose(b"on_each_cpu", queue, b""))),
            by(CRON, 0, 3, event),
            by(IDLE, 1, 4, interrupt(ENTRY, SystemInterrupt::CallFunctionSingle)),
        ])
    };
    let sent = "processor call_function_single: sent 0 task cron for on_each_cpu (1, -)";
    assert_eq!(one(waking(SPIN)), [sent]);
    assert_eq!(one(Event::Lost { count: None }), [""; 0]);
}

/// Goal: of several interrupts on their way, the first one is the next handler's, the last one that of the
/// handler that follows, unless another one is sent meanwhile. Method: one to three of them, a handler; one
/// more or none; handlers until there is no cause.
#[test]
fn one_interrupt_waits_behind_another() {
    let send = |at: u64, callsite| {
        let purpose = IpiPurpose { callsite, callback: b"0x0", reason: b"" };
        by(CRON, 0, at, Event::IpiSendCpu { to: cpu(1), purpose })
    };
    let senders = |before: &[&'static [u8]], between: &[&'static [u8]]| {
        let mut events: Vec<_> = before.iter().zip(1..).map(|(callsite, at)| send(at, callsite)).collect();
        events.push(by(SPIN, 1, 10, interrupt(ENTRY, SystemInterrupt::Reschedule)));
        events.push(by(SPIN, 1, 11, interrupt(EXIT, SystemInterrupt::Reschedule)));
        events.extend(between.iter().map(|callsite| send(15, callsite)));
        for at in [20, 30] {
            events.push(by(SPIN, 1, at, interrupt(ENTRY, SystemInterrupt::Reschedule)));
            events.push(by(SPIN, 1, at + 1, interrupt(EXIT, SystemInterrupt::Reschedule)));
        }
        let name = |cause: &String| Some(cause.split(" for ").nth(1)?.split(' ').next()?.to_owned());
        causes(&events).iter().filter_map(name).collect::<Vec<_>>()
    };
    let none: [&[u8]; 0] = [];
    let names = |list: &[&str]| -> Vec<String> { list.iter().map(|&name| name.to_owned()).collect() };
    assert_eq!(senders(&[b"a"], &none), names(&["a"]));
    assert_eq!(senders(&[b"a", b"b"], &none), names(&["a", "b"]));
    assert_eq!(senders(&[b"a", b"b", b"c"], &none), names(&["a", "c"]));
    assert_eq!(senders(&[b"a"], &[b"d"]), names(&["a", "d"]));
    assert_eq!(senders(&[b"a", b"b"], &[b"d"]), names(&["a", "d"]));
}

/// Goal: where the processor's events name a reason, the sender is the one that gave it; what names functions
/// besides is kept. Method: each reason, of two CPUs.
#[test]
fn an_interrupt_with_a_reason_has_its_sender() {
    let reasons: [&'static [u8]; 3] =
        [b"Rescheduling interrupts", b"Function call interrupts", b"IRQ work interrupts"];
    let mut events = Vec::new();
    for reason in reasons {
        let purpose = IpiPurpose { reason, ..IpiPurpose::default() };
        let to = [cpu(1)].into_iter().collect();
        events.push(by(CRON, 0, 1, Event::IpiSendMask { to, purpose }));
        events.push(by(SPIN, 1, 2, Event::IpiHandled { step: ENTRY, reason }));
        events.push(by(SPIN, 1, 5, Event::IpiHandled { step: EXIT, reason }));
    }
    let call = IpiPurpose { callsite: b"here", callback: b"flush", reason: b"" };
    let reason = IpiPurpose { reason: reasons[1], ..IpiPurpose::default() };
    let to = || [cpu(1)].into_iter().collect();
    events.push(by(CRON, 0, 6, Event::IpiSendCpu { to: cpu(1), purpose: call }));
    events.push(by(CRON, 0, 6, Event::IpiSendMask { to: to(), purpose: reason }));
    events.push(by(SPIN, 1, 7, called(ENTRY)));
    events.push(by(CRON, 0, 8, Event::IpiSendCpu { to: cpu(1), purpose: call }));
    events.push(by(CRON, 2, 8, Event::IpiSendMask { to: to(), purpose: reason }));
    events.push(by(SPIN, 1, 9, called(ENTRY)));
    let expected = [
        "processor Function call interrupts: sent 0 task cron (1, 3)",
        "processor Function call interrupts: sent 2 task cron (1, -)",
        "processor Function call interrupts: sent 0 task cron for flush (1, -)",
        "processor IRQ work interrupts: sent 0 task cron (1, 3)",
        "processor Rescheduling interrupts: sent 0 task cron (1, 3)",
    ];
    assert_eq!(causes(&events), expected);
}

/// Goal: what starts something is what its CPU was doing then, and is not guessed. Method: wakings inside of
/// a callback whose end is recorded and one whose end is not, of an interrupt that is not recorded, in a
/// softirq of which the same holds, in a work item, and in a task that has the CPU after its worker.
#[test]
fn what_starts_something_is_not_guessed() {
    use InterruptContext as Context;
    let woken = |context, task, before: Vec<Record<'static>>| {
        let mut events = before;
        events.push(inside(context, by(task, 1, 50, waking(CRON))));
        events.push(by(task, 1, 60, switch(task, CRON)));
        let found = causes(&events);
        found.last().map_or(String::new(), |cause| cause.trim_start_matches("task cron: woken 1 ").to_owned())
    };
    let ended = || inside(Context::Softirq, by(SPIN, 1, 1, Event::TimerExpireExit { timer: 1 }));
    let running = || inside(Context::Softirq, by(SPIN, 1, 9, expiry()));
    assert_eq!(woken(Context::Softirq, SPIN, vec![ended(), running()]), "timer f (1, -)");
    assert_eq!(woken(Context::Softirq, SPIN, vec![running()]), "softirq (unknown) (1, -)");
    let in_interrupt = woken(Context::InterruptInSoftirq, SPIN, vec![ended(), running()]);
    assert_eq!(in_interrupt, "processor (unknown) (1, -)");
    assert_eq!(woken(Context::Interrupt, SPIN, vec![]), "processor (unknown) (1, -)");
    assert_eq!(woken(Context::Nmi, SPIN, vec![]), "nmi (unknown) (1, -)");
    assert_eq!(woken(Context::Task, SPIN, vec![ended(), running()]), "task spin (1, -)");
    let start = Event::WorkStart { work: 1, function: b"w" };
    let working = || vec![inside(Context::Task, by(WORKER, 1, 9, start.clone()))];
    assert_eq!(woken(Context::Task, WORKER, working()), "work w (1, -)");
    assert_eq!(woken(Context::Task, SPIN, working()), "task spin (1, -)");
    let hrtimer = Event::HrtimerExpireEntry { hrtimer: 1, function: b"h", now: Nanos(0) };
    let high = |before: Vec<Record<'static>>| {
        let entry = inside(Context::Interrupt, by(SPIN, 1, 9, hrtimer.clone()));
        woken(Context::Interrupt, SPIN, [before, vec![entry]].concat())
    };
    let end = inside(Context::Interrupt, by(SPIN, 1, 1, Event::HrtimerExpireExit { hrtimer: 1 }));
    assert_eq!(high(vec![ended()]), "processor (unknown) (1, -)");
    assert_eq!(high(vec![end]), "hrtimer h (1, -)");
}

/// Goal: a gap is what takes an isolated CPU away without a break, of whatever kind, and a user's task is
/// none. Method: a user's task for long; then an interrupt, a thread of the kernel's and a softirq in the
/// next task, each too short, closely after each other; the same with a pause; an NMI; another CPU.
#[test]
fn a_gap_is_of_all_that_is_not_the_cpus_own() {
    let gap = |isolated: &str, events: &[Record<'static>]| {
        let isolated: CpuSet = isolated.parse().expect("a list");
        let counts = InterruptionCounts::new(isolated, None).with_gap(Some(Nanos(30_000)));
        let (mut counts, mut names) = (counts, NameTable::new());
        for record in events {
            match record.event {
                Event::Lost { .. } => counts.forget(record),
                _ => counts.take(record, &mut names),
            }
        }
        counts.gap().map(|gap| (gap.cpu.index(), gap.from.0, gap.until.0))
    };
    let events = |pause: u64, between: Event<'static>| {
        [
            by(IDLE, 1, 0, switch(IDLE, SPIN)),
            by(SPIN, 1, 100_000, timer(ENTRY)),
            by(SPIN, 1, 110_000, timer(EXIT)),
            by(SPIN, 1, 112_000, switch(SPIN, WORKER)),
            by(WORKER, 1, 125_000, switch(WORKER, SPIN)),
            by(SPIN, 0, 125_000, between),
            by(SPIN, 1, 125_000 + pause, softirq(SoftirqStep::Entry)),
            by(SPIN, 1, 135_000 + pause, softirq(SoftirqStep::Exit)),
            by(SPIN, 1, 900_000, switch(SPIN, IDLE)),
        ]
    };
    let nothing = Event::Unknown;
    assert_eq!(gap("1", &events(1_000, nothing.clone())), Some((1, 100_000, 136_000)));
    assert_eq!(gap("1", &events(6_000, nothing.clone())), None);
    assert_eq!(gap("3", &events(1_000, nothing)), None);
    let nmi = |took| Event::NmiHandled { handler: b"watchdog", took: Nanos(took) };
    assert_eq!(gap("1", &[by(SPIN, 1, 90_000, nmi(30_001))]), Some((1, 59_999, 90_000)));
    assert_eq!(gap("1", &[by(SPIN, 1, 90_000, nmi(30_000))]), None);
    let lost = [by(SPIN, 1, 126_000, Event::Lost { count: None })];
    let events = events(1_000, Event::Unknown);
    assert_eq!(gap("1", &[&events[..5], &lost, &events[5..]].concat()), None);
}

/// Goal: the time of each row is where it passed, and lost events are, too. Method: an interrupt in a task, a
/// task that loses its CPU in the middle of a work item, and a mark; times of many pieces.
#[test]
fn time_is_told_in_pieces() {
    const MS: u64 = 1_000_000;
    let isolated: CpuSet = "1".parse().expect("a list");
    let mut counts = InterruptionCounts::new(isolated, None).with_timeline(true);
    let mut names = NameTable::new();
    for record in [
        by(IDLE, 1, 0, switch(IDLE, WORKER)),
        by(WORKER, 1, 10 * MS, Event::WorkStart { work: 1, function: b"w" }),
        by(WORKER, 1, 20 * MS, switch(WORKER, IDLE)),
        by(IDLE, 1, 50 * MS, switch(IDLE, WORKER)),
        by(WORKER, 1, 60 * MS, Event::WorkEnd { work: 1 }),
        by(WORKER, 1, 70 * MS, switch(WORKER, IDLE)),
        by(IDLE, 1, 100 * MS, timer(ENTRY)),
        by(IDLE, 1, 101 * MS, timer(EXIT)),
    ] {
        counts.take(&record, &mut names);
    }
    counts.forget(&by(IDLE, 1, 110 * MS, Event::Lost { count: None }));
    let timeline = counts.report_timeline().expect("it was asked for");
    assert_eq!((timeline.from_ns, timeline.piece_ns, timeline.pieces), (0, 512_000, 215));
    assert_eq!(timeline.lost_by_cpu[&1].iter().sum::<u64>(), 1);
    let rows = counts.report(&names, |_| true);
    // In which milliseconds of the first seventy-five each had the CPU.
    let of = |source: &str| {
        let row = rows.iter().find(|row| row.source == source).expect("it was there");
        let within = |from: u64, until: u64| -> u64 {
            let pieces = row.taken_ns.iter().zip(0..);
            pieces
                .filter(|(_, piece)| (from * MS..until * MS).contains(&(piece * 512_000)))
                .map(|(taken, _)| taken)
                .sum()
        };
        let about = |(from, until)| (within(from, until) + MS / 2) / MS;
        [(0, 10), (10, 20), (20, 50), (50, 60), (60, 75), (95, 105)].map(about)
    };
    assert_eq!(of("work"), [0, 10, 0, 10, 0, 0]);
    assert_eq!(of("processor"), [0, 0, 0, 0, 0, 1]);
    let worker = rows.iter().find(|row| row.source == "task").expect("it was there");
    assert_eq!(worker.taken_ns.iter().sum::<u64>(), worker.total_ns.expect("it has ended"));
    let interrupt = rows.iter().find(|row| row.source == "processor").expect("it was there");
    assert_eq!(interrupt.durations.iter().enumerate().find(|(_, count)| **count > 0), Some((19, &1)));
}
