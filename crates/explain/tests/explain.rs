//! The explanation through the public API: each definition on a trace of a few lines, and the
//! totals of the bundled recordings of real kernels.

use quietcore_explain::{Evidence, Explain, ExplainOptions, Explanation, Severity};
use quietcore_trace::{Event, Record, TraceReader, open};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Explains `text` with `options`.
fn explain(text: &str, options: ExplainOptions) -> Explanation {
    let mut reader = TraceReader::new(text.as_bytes());
    reader.read_header().expect("readable");
    let mut explain = Explain::new(options);
    reader.read(u64::MAX, &mut |record| explain.take(record)).expect("readable");
    explain.finish(reader.tally())
}

fn isolated(list: &str) -> ExplainOptions {
    ExplainOptions { isolated: list.parse().expect("a list"), ..ExplainOptions::default() }
}

/// What an hrtimer's events have behind its function, whichever it is.
const HR: &str = "expires=100 softexpires=100 mode=ABS now=100";

/// A line of ftrace text on `cpu` at `micros`.
fn line(cpu: u16, micros: u64, event: &str) -> String {
    format!(
        "{:>16}-7       [{cpu:03}] d..1. {:>5}.{:06}: {event}\n",
        "task",
        micros / 1_000_000,
        micros % 1_000_000
    )
}

fn start(cpu: u16, timer: u32, base: u16) -> String {
    line(
        cpu,
        0,
        &format!("timer_start: timer={timer:016x} function=f expires=9 [timeout=1] cpu={base} idx=1 flags="),
    )
}

fn expire(cpu: u16, timer: u32) -> String {
    line(cpu, 8_000, &format!("timer_expire_entry: timer={timer:016x} function=f now=10 baseclk=10"))
}

/// Goal: armed, base and ran-on CPUs decide between pulled, placed, between and own.
/// Method: every combination of three CPUs, of which 1 and 2 are isolated.
#[test]
fn three_cpus_decide_whose_disturbance_it_is() {
    for armed in 0..3u16 {
        for base in 0..3u16 {
            for ran in 0..3u16 {
                let text = format!("{}{}", start(armed, 1, base), expire(ran, 1));
                let report = explain(&text, isolated("1-2"));
                let case = format!("armed {armed}, base {base}, ran {ran}");
                let disturbed = ran != 0 && armed != ran;
                let foreign = u64::from(disturbed && armed == 0);
                let between = u64::from(disturbed && armed != 0);
                let pulled = ran != base;
                assert_eq!(report.foreign.total, Some(foreign), "{case}");
                assert_eq!(report.between_isolated.total, Some(between), "{case}");
                assert_eq!(report.foreign.pulled, Some(foreign * u64::from(pulled)), "{case}");
                assert_eq!(report.foreign.placed, Some(foreign * u64::from(!pulled)), "{case}");
                assert_eq!(report.remote.total, Some(u64::from(pulled)), "{case}");
            }
        }
    }
}

/// Goal: a cancel does not forget where a timer was armed, because one precedes every expiry.
#[test]
fn a_cancel_does_not_forget_the_arming_cpu() {
    let cancel = line(1, 7_000, "timer_cancel: timer=0000000000000001");
    let report = explain(&format!("{}{cancel}{}", start(0, 1, 0), expire(1, 1)), isolated("1"));
    assert_eq!((report.foreign.pulled, report.timers.cancel_events), (Some(1), Some(1)));
    assert_eq!(report.timers.expired_unknown_start, Some(0));
    let example = &report.foreign.examples[0];
    assert_eq!((example.armed_line, example.line), (1, 3), "the lines that prove it");
}

/// Goal: a ping-pong is a remote expiry whose next start is on the old base. Method: both, and a
/// second start, which is none.
#[test]
fn a_ping_pong_returns_to_its_old_base() {
    let rounds = [start(2, 1, 2), expire(0, 1)].concat();
    let back = explain(&format!("{rounds}{}{}", start(2, 1, 2), start(2, 1, 2)), isolated(""));
    assert_eq!(back.ping_pong.count, Some(1));
    let elsewhere = explain(&format!("{rounds}{}{}", start(1, 1, 1), start(2, 1, 2)), isolated(""));
    assert_eq!(elsewhere.ping_pong.count, Some(0), "the next start decides");
}

/// Goal: what is not in the input is null and named, never 0; what was switched on is 0.
#[test]
fn an_absent_event_is_not_zero() {
    let text = format!("{}{}", start(0, 1, 0), expire(0, 1));
    let report = explain(&text, isolated("1"));
    assert_eq!(report.foreign.total, Some(0));
    assert_eq!(
        (report.softirq.timer_entries, report.hrtimers.expired, report.rt_wakeups.count),
        (None, None, None)
    );
    for path in ["softirq.timer_entries", "hrtimers.by_task", "rt_wakeups.count", "timers.cancel_events"] {
        assert!(report.not_recorded.contains(&path), "{path} in {:?}", report.not_recorded);
    }
    let switched_on = vec!["hrtimer_expire_entry".to_owned()];
    let live = explain(&text, ExplainOptions { switched_on, ..isolated("1") });
    assert_eq!((live.hrtimers.expired, live.hrtimers.off_arming_cpu), (Some(0), None));
}

/// Goal: lost events, unreadable lines and forgotten identities all mark the counts.
#[test]
fn an_incomplete_input_marks_its_figures() {
    let base = format!("{}{}", start(0, 1, 0), expire(0, 1));
    assert!(explain(&base, isolated("")).incomplete.is_empty());
    let lost = explain(&format!("CPU:0 [LOST 5 EVENTS]\n{base}"), isolated(""));
    assert_eq!(lost.lost_events, 5);
    assert!(lost.incomplete[0].starts_with("5 events were lost"), "{:?}", lost.incomplete);
    let unreadable = explain(&format!("{base}gibberish\n"), isolated(""));
    assert_eq!(unreadable.malformed.count, 1);
    assert!(unreadable.malformed.first[0].starts_with("line 3: "), "{:?}", unreadable.malformed);
    let many: String = (0..100).map(|timer| start(0, timer, 0)).collect();
    let forgotten = explain(&many, ExplainOptions { identities_max: 10, ..isolated("") });
    assert!(forgotten.evicted >= 85, "evicted {}", forgotten.evicted);
    assert!(forgotten.incomplete[0].contains("--max-identities"), "{:?}", forgotten.incomplete);
}

/// Goal: nothing that began before events were lost, on whatever CPU, is held against what comes after: the
/// last start may be among them. Method: each figure with a start and an end, with a mark between them and
/// without.
#[test]
fn nothing_outlasts_lost_events() {
    let hrtimer = |cpu, what: &str| {
        line(cpu, 0, &format!("hrtimer_{what}: hrtimer=00000000000000aa function=hrtimer_wakeup {HR}"))
    };
    let woken = "sched_waking: comm=rt pid=500 prio=9 target_cpu=001";
    let switched = "sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=rt \
                    next_pid=500 next_prio=9";
    let before = [
        start(0, 1, 0),
        start(0, 2, 0),
        expire(1, 2), // remotely, to be armed where it was
        hrtimer(0, "start"),
        line(1, 900_009, "softirq_exit: vec=3 [action=NET_RX]"),
        line(1, 1_000_000, "softirq_entry: vec=3 [action=NET_RX]"),
        line(0, 1_000_010, woken),
    ];
    let after = [expire(1, 1), start(0, 2, 0), hrtimer(1, "expire_entry"), line(1, 5_600_000, switched)];
    let figures = |mark: &str| {
        let text = format!("{}{mark}{}", before.concat(), after.concat());
        let report = explain(&text, isolated("1"));
        let delay = report.rt_wakeups.delay_ns.max;
        let timers = (report.foreign.total, report.remote.total, report.timers.expired_unknown_start);
        (timers, report.ping_pong.count, report.hrtimers.foreign, report.hrtimers.by_task, delay)
    };
    let task = |count| Some(BTreeMap::from_iter((count > 0).then(|| ("task-7".to_owned(), count))));
    let kept = ((Some(2), Some(2), Some(0)), Some(1), Some(1), task(1), Some(4_599_990_000));
    assert_eq!(figures(""), kept);
    for cpu in 0..3 {
        let mark = format!("CPU:{cpu} [LOST 500000 EVENTS]\n");
        let left = ((Some(1), Some(1), Some(1)), Some(0), Some(0), task(0), None);
        assert_eq!(figures(&mark), left, "lost on CPU {cpu}");
    }
}

/// Goal: of many disturbed CPUs the first 64 are proved, of many functions the first 16384 are named; every
/// expiry counts. Method: one more of each, and a function that is known again.
#[test]
fn proofs_and_names_are_bounded() {
    let text: String = (1..=65).map(|cpu| start(0, cpu.into(), 0) + &expire(cpu, cpu.into())).collect();
    let foreign = explain(&text, isolated("1-65")).foreign;
    assert_eq!((foreign.total, foreign.examples.len(), foreign.examples[63].cpu), (Some(65), 64, 64));
    let of = |number: u32| expire(1, 1).replace("function=f", &format!("function=f{number}"));
    let functions: String = (0..16_384).chain([0, 16_384]).map(of).collect();
    let by_function = &explain(&(start(0, 1, 0) + &functions), isolated("1")).isolated_cpus[0].by_function;
    assert_eq!((by_function.len(), by_function.values().sum::<u64>()), (16_385, 16_386));
    assert_eq!((by_function["f0"], by_function["(other)"]), (2, 1));
}

/// Goal: pulled and placed timers are told apart in what is advised, too.
#[test]
fn a_finding_speaks_only_of_its_own_kind() {
    let text = format!("{}{}{}{}", start(0, 1, 0), expire(1, 1), start(0, 2, 9), expire(9, 2));
    let kernel = quietcore_trace::KernelRelease::parse("6.12.1");
    let report = explain(&text, ExplainOptions { kernel, ..isolated("1-7,9-15") });
    let finding = |id| report.findings.iter().find(|finding| finding.id == id).expect("found");
    let pulled = finding("foreign-timers-pulled");
    assert!(pulled.what.contains("(1 on CPU 1; 1 f)"), "{}", pulled.what);
    assert!(pulled.change.contains("# keeps CPUs 0,8 awake"), "{}", pulled.change);
    assert!(finding("foreign-timers-placed").what.starts_with("1 timer was put"));
}

/// Goal: of timers that isolated CPUs exchange, those of the more frequent kind are proof; of as many of
/// each, the placed ones. Method: one placed timer after two, and after one, that were pulled.
#[test]
fn the_more_frequent_kind_is_proof() {
    let proof = |text: &str| -> Vec<u64> {
        let report = explain(text, isolated("1-2"));
        let lines = report.findings[0].evidence.iter().map(|evidence| match evidence {
            Evidence::Line { line, .. } => *line,
            Evidence::File { path, .. } => panic!("{path} is no part of a recording"),
        });
        assert_eq!(report.findings[0].id, "isolated-timers-exchanged");
        lines.collect()
    };
    let pulled = |timer| start(1, timer, 1) + &expire(2, timer);
    let placed = start(1, 3, 2) + &expire(2, 3);
    assert_eq!(proof(&(pulled(1) + &pulled(2) + &placed)), [2, 4]);
    assert_eq!(proof(&(pulled(1) + &placed)), [4]);
}

/// Goal: groups without a housekeeping CPU are served by those that have one; where none has, that is said.
/// Method: both groups of CPUs 0 to 15, with CPU 16 for housekeeping, and without.
#[test]
fn groups_without_housekeeping_are_served_by_others() {
    let text = [start(16, 1, 16), expire(1, 1), start(16, 2, 16), expire(9, 2)].concat();
    let change = explain(&text, isolated("0-15")).findings[0].change.clone();
    let command = "\n$ quietcore keep-awake --isolated 0-15 # keeps CPUs 16 awake\n";
    assert!(change.contains(command), "{change}");
    assert!(change.contains("that serves the groups that have none, too"), "{change}");
    assert!(
        change.contains("\nOr boot with nohz_full=LIST") && change.contains("\nOr boot a kernel from 6.19")
    );
    let text = [start(16, 1, 16), expire(1, 1)].concat();
    let change = explain(&text.replace("[016]", "[008]"), isolated("0-7")).findings[0].change.clone();
    assert!(change.contains("# keeps CPUs 8 awake"), "{change}");
}

/// Goal: a span is from the first time stamp to the last, in whatever order the lines are.
#[test]
fn the_span_does_not_depend_on_the_order() {
    let text: String =
        [2_000, 1_000, 4_500, 3_000].map(|micros| line(0, micros, "timer_cancel: timer=1")).concat();
    assert_eq!(explain(&text, isolated("")).duration_ns, Some(3_500_000));
}

/// Goal: advice fits the kernel. Method: the same figures on each model, and with nohz_full.
#[test]
fn advice_fits_the_kernel() {
    let text = format!("{}{}", start(0, 1, 0), expire(1, 1));
    let advice = |release: &str, nohz_full: &str| {
        let kernel = quietcore_trace::KernelRelease::parse(release);
        let nohz_full = nohz_full.parse().expect("a list");
        let report = explain(&text, ExplainOptions { kernel, nohz_full, ..isolated("1") });
        report.findings[0].change.clone()
    };
    assert!(advice("6.12", "").contains("$ quietcore keep-awake "));
    assert!(advice("6.12", "").contains("a kernel from 6.19 on with"));
    assert!(advice("6.12", "1").contains("leaves these CPUs in the hierarchy"));
    assert!(!advice("6.19", "").contains("kernel from 6.19") && !advice("6.19", "").contains("keep-awake"));
    assert!(!advice("6.1", "").contains("keep-awake"));
}

/// Goal: stray watchdogs, fewer than one in a hundred, are worth a note, migrating ones a warning.
#[test]
fn a_stray_watchdog_is_no_migration() {
    let round = |armed: u16, ran: u16| {
        let timer = "hrtimer=0000000000000001 function=qdisc_watchdog";
        let start = line(armed, 0, &format!("hrtimer_start: {timer} expires=5 softexpires=5 mode=ABS"));
        start + &line(ran, 9, &format!("hrtimer_expire_entry: {timer} now=7"))
    };
    let severity = |strays: usize, all: usize| {
        let text = round(0, 0).repeat(all - strays) + &round(0, 1).repeat(strays);
        let report = explain(&text, isolated(""));
        assert_eq!(report.hrtimers.qdisc_watchdog.off_arming_cpu, Some(strays as u64), "of {all}");
        report.findings[0].severity
    };
    assert_eq!(
        (severity(2, 2), severity(2, 201)),
        (Severity::Note, Severity::Note),
        "few, whatever the share"
    );
    assert_eq!((severity(3, 300), severity(3, 301)), (Severity::Warning, Severity::Note));
}

/// Goal: groups come from the hierarchy when the input shows it, else eights are assumed.
#[test]
fn groups_are_taken_from_the_hierarchy() {
    let disturb = format!("{}{}", start(0, 1, 0), expire(9, 1));
    let assumed = explain(&disturb, isolated("9"));
    assert!(assumed.groups.estimated);
    assert_eq!(assumed.foreign.by_group.unwrap().into_iter().collect::<Vec<_>>(), [(1, 1)]);
    let connect = |cpu: u16, parent: &str| {
        line(
            0,
            0,
            &format!(
                "tmigr_connect_cpu_parent: cpu={cpu} groupmask=1 parent={parent} lvl=0 numa=0 num_children=1"
            ),
        )
    };
    let text = format!("{}{}{disturb}", connect(9, "aa"), connect(0, "aa"));
    let recorded = explain(&text, isolated("9"));
    assert!(!recorded.groups.estimated);
    assert_eq!(recorded.groups.cpus.get(&0).map(String::as_str), Some("0,9"));
    assert_eq!(recorded.foreign.by_group.unwrap().into_iter().collect::<Vec<_>>(), [(0, 1)]);
    let on_10 = [start(0, 2, 0), expire(10, 2)].concat();
    let in_part = explain(&(text.clone() + &on_10), isolated("9-10"));
    assert!(in_part.groups.estimated, "the group of CPU 10 is not known");
    let between = [start(9, 2, 9), expire(10, 2)].concat();
    assert!(explain(&(text + &between), isolated("9-10")).groups.estimated, "nor is it here");
    let nothing = explain(&expire(9, 1), isolated("9")).groups;
    let eights: Vec<_> = nothing.cpus.values().map(String::as_str).collect();
    assert_eq!((nothing.estimated, eights), (true, vec!["0-7", "8-9"]), "nothing says");
}

/// Goal: an availability event that contradicts the isolated set is told with its time, and those of the next
/// 0.5 s with it. Method: a burst of three, whose span is longer, then nine of one, of which two are left
/// out, or one; then what contradicts nothing.
#[test]
fn isolation_that_changes_is_told() {
    let event =
        |what: &str, cpu, micros| line(0, micros, &format!("tmigr_cpu_{what}: cpu={cpu} parent=aa wakeup=0"));
    let burst = [(3, 1_500_000), (4, 2_000_000), (3, 2_400_000), (4, 2_900_001)];
    let mut text: String = burst.iter().map(|(cpu, at)| event("available", *cpu, *at)).collect();
    for round in 0..4 {
        text += &event("unavailable", 1, 3_000_000 + 2 * round);
        text += &event("available", 4, 3_000_001 + 2 * round);
    }
    let made = |at: &str, cpus: &str| {
        format!(
            "at {at} s the kernel made CPUs {cpus} available for timer migration although they are in the \
             isolated set 3-4; the set is taken as constant, so figures before they became unavailable again \
             are not about isolation"
        )
    };
    let took = |at: &str| {
        format!(
            "at {at} s the kernel took CPUs 1 out of timer migration (isolated at run time, or offline) \
             although they are not in the isolated set; use --isolated to count them"
        )
    };
    let expected = [
        made("1.500000", "3-4"),
        made("2.900001", "4"),
        took("3.000000"),
        made("3.000001", "4"),
        took("3.000002"),
        made("3.000003", "4"),
        took("3.000004"),
        made("3.000005", "4"),
        "isolation changed 2 more times after that".to_owned(),
    ];
    assert_eq!(explain(&text, isolated("3-4")).warnings, expected);
    let one_more = text.lines().rev().skip(1).map(|line| format!("{line}\n"));
    let nine: String = one_more.collect::<Vec<_>>().into_iter().rev().collect();
    assert_eq!(explain(&nine, isolated("3-4")).warnings[8], "isolation changed 1 more time after that");
    let agreeing = [event("available", 1, 1), event("unavailable", 3, 2), event("online", 3, 3)].concat();
    assert_eq!(explain(&agreeing, isolated("3")).warnings, [""; 0]);
    let stays = [event("available", 3, 1), event("unavailable", 3, 2)].concat();
    let nohz_full = "3".parse().expect("a list");
    let options = ExplainOptions { nohz_full, ..isolated("3") };
    assert_eq!(explain(&stays, options).warnings, [""; 0], "isolated, and in the hierarchy");
}

/// Goal: the text of trace-cmd gives the same figures as that of tracefs.
#[test]
fn trace_cmd_text_gives_the_same_figures() {
    let ftrace = "\
            <idle>-0       [001] d.h1.     1.000000: hrtimer_start: hrtimer=0000000000000001 function=hrtimer_wakeup expires=5 softexpires=5 mode=ABS was_armed=0
            <idle>-0       [001] ..s1.     1.000001: softirq_entry: vec=3 [action=NET_RX]
               a b-9       [000] d..2.     1.000002: sched_waking: comm=rt [x] pid=8 prio=9 target_cpu=001
            <idle>-0       [001] ..s1.     1.000003: softirq_exit: vec=3 [action=NET_RX]
            <idle>-0       [001] d..2.     1.000010: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=rt [x] next_pid=8 next_prio=9
            <idle>-0       [000] d.h1.     1.000020: hrtimer_expire_entry: hrtimer=0000000000000001 function=hrtimer_wakeup now=7
";
    let trace_cmd = "\
cpus=2
          <idle>-0     [001]     1.000000: hrtimer_start:        hrtimer=0x1 function=hrtimer_wakeup/0x0 expires=5 softexpires=5
          <idle>-0     [001]     1.000001: softirq_entry:        vec=3 [action=NET_RX]
             a b-9     [000]     1.000002: sched_waking:         comm=rt [x] pid=8 prio=9 target_cpu=001
          <idle>-0     [001]     1.000003: softirq_exit:         vec=3 [action=NET_RX]
          <idle>-0     [001]     1.000010: sched_switch:         swapper/1:0 [120] R ==> rt [x]:8 [9]
          <idle>-0     [000]     1.000020: hrtimer_expire_entry: hrtimer=0x1 now=7 function=hrtimer_wakeup/0x0
";
    let (mut a, mut b) = (explain(ftrace, isolated("")), explain(trace_cmd, isolated("")));
    // Without flags it is not seen that an interrupt started the timer: it is the task that ran then.
    let armed_by =
        [&mut a, &mut b].map(|report| report.interruptions[0].causes.pop().expect("it was started"));
    assert_eq!(armed_by.map(|cause| cause.steps[0].source), ["processor", "task"]);
    // It has one line more in front.
    b.interruptions.iter_mut().for_each(|row| row.max_line = row.max_line.map(|line| line - 1));
    assert_eq!(a, b);
    assert_eq!((a.malformed.count, a.cpus), (0, 2));
    assert_eq!((a.hrtimers.off_arming_cpu, a.rt_wakeups.behind_softirq), (Some(1), Some(1)));
    assert_eq!(a.rt_wakeups.delay_ns.max, Some(8_000));
}

/// Goal: timers that ran before isolation began are told from those after it, and no cure is named where it
/// ended them. Method: one before, and none, one on that CPU or one on another after the CPU was taken out.
#[test]
fn what_ran_before_isolation_is_told_apart() {
    let before = [start(0, 1, 0), expire(1, 1)].concat();
    let out =
        line(1, 9_000, "tmigr_cpu_unavailable: cpu=1 parent=00000000b4f1bbc6 wakeup=9223372036854775807");
    let options =
        || ExplainOptions { kernel: quietcore_trace::KernelRelease::parse("6.19.2"), ..isolated("1-2") };
    let pulled = |text: &str| {
        let report = explain(text, options());
        let finding = report.findings.iter().find(|finding| finding.id == "foreign-timers-pulled");
        let finding = finding.expect("a timer was pulled");
        let words = (finding.severity, finding.change.starts_with("Nothing: "), finding.what.clone());
        (report.foreign.total, report.foreign.since_isolated, words)
    };
    let (total, since, (severity, is_over, what)) = pulled(&[before.as_str(), out.as_str()].concat());
    assert_eq!((total, since, severity, is_over), (Some(1), Some(0), Severity::Note, true));
    assert!(
        what.ends_with(", all before the kernel took these CPUs out of timer migration at 0.009000 s."),
        "{what}"
    );
    for cpu in [1, 2] {
        let after = [start(0, 2, 0), expire(cpu, 2)].concat();
        let (total, since, (severity, is_over, what)) =
            pulled(&[&before, &out, &after].map(String::as_str).concat());
        assert_eq!((total, since, severity, is_over), (Some(2), Some(1), Severity::Note, false));
        assert!(
            what.contains("; 1 of all foreign timers ran after the kernel took isolated CPUs out"),
            "{what}"
        );
    }
    let (_, since, (severity, is_over, _)) = pulled(&before);
    assert_eq!((since, severity, is_over), (Some(1), Severity::Note, false), "nothing shows isolation");
}

/// Explains a bundled recording with the isolated set it carries.
fn recording(name: &str) -> Explanation {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings");
    let source = open(&folder.join(format!("{name}.txt.zst"))).expect("bundled");
    let mut reader = TraceReader::new(source);
    reader.read_header().expect("readable");
    let header = reader.header();
    let mut explain = Explain::new(ExplainOptions {
        isolated: header.isolated.clone().unwrap_or_default(),
        nohz_full: header.nohz_full.clone().unwrap_or_default(),
        kernel: header.kernel.clone(),
        cpu_count: header.cpu_count,
        timer_migration: header.timer_migration,
        ..ExplainOptions::default()
    });
    reader.read(u64::MAX, &mut |record| explain.take(record)).expect("readable");
    let report = explain.finish(reader.tally());
    assert_eq!((report.malformed.count, report.lost_events), (0, 0), "{name}");
    report
}

/// Goal: the isolation set gives the totals that were counted from the raw text by hand.
#[test]
fn the_isolation_set_has_its_known_totals() {
    for (name, total, on_cpu_1) in [
        ("g61-c16-iso", 0, None),
        ("g612-c16-iso", 74, Some(27)),
        ("g612-c16-iso-tm0", 90, Some(25)),
        ("g619-c16-iso", 0, None),
    ] {
        let report = recording(name);
        assert_eq!(report.foreign.total, Some(total), "{name}");
        let by_cpu = report.foreign.by_cpu.as_ref().expect("recorded");
        assert_eq!(by_cpu.get(&1).copied(), on_cpu_1, "{name}");
        let sums = [
            by_cpu.values().sum::<u64>(),
            report.foreign.by_base_cpu.iter().flatten().map(|(_, count)| count).sum(),
            report.foreign.by_group.iter().flatten().map(|(_, count)| count).sum(),
            report.foreign.by_function.iter().flatten().map(|(_, count)| count).sum(),
        ];
        assert_eq!(sums, [total; 4], "{name}: each breakdown adds up to the total");
    }
}

/// Goal: a finding appears exactly where its figure does, and says what this kernel can do.
#[test]
fn findings_follow_the_figures() {
    let ids = |report: &Explanation| -> Vec<&str> {
        let warnings = report.findings.iter().filter(|finding| finding.severity >= Severity::Warning);
        warnings.map(|finding| finding.id).collect()
    };
    assert_eq!(ids(&recording("g61-c16-iso")), [""; 0]);
    let pulling = recording("g612-c16-iso");
    assert_eq!(
        ids(&pulling),
        ["foreign-timers-pulled", "delayed-work-on-isolated", "isolated-timers-exchanged"]
    );
    let delayed = &pulling.findings[1];
    assert!(
        delayed.what.starts_with("8 of the foreign timers were those of delayed work ("),
        "as by_function has it: {}",
        delayed.what
    );
    for evidence in &delayed.evidence {
        assert!(
            matches!(evidence, Evidence::Line { text, .. } if text.starts_with("delayed_work_timer_fn "))
        );
    }
    let tm0 = recording("g612-c16-iso-tm0");
    assert!(ids(&tm0).contains(&"timer-migration-sysctl-without-effect"), "{:?}", ids(&tm0));
    let pulled = &pulling.findings[0];
    assert!(
        pulled.change.contains("keep-awake --isolated 1-7,9-15 # keeps CPUs 0,8 awake"),
        "{}",
        pulled.change
    );
    for finding in &tm0.findings {
        for text in [&finding.what, &finding.why, &finding.change, &finding.predicted, &finding.verify] {
            assert!(!text.is_empty(), "{}: a text is missing", finding.id);
        }
    }
}

/// Goal: what the packets of real kernels come to. Method: a recording in which CPU c sends on queue c, and
/// one in which CPUs go offline, so that even pinned hrtimers move; the totals are those of the raw text.
#[test]
fn packets_of_real_kernels_have_their_known_totals() {
    let packets = recording("g612-c6-packets");
    let watchdog = &packets.hrtimers.qdisc_watchdog;
    assert_eq!((watchdog.expired, watchdog.off_arming_cpu), (Some(1040), Some(0)));
    assert_eq!((packets.hrtimers.expired, packets.hrtimers.off_arming_cpu), (Some(5992), Some(0)));
    assert_eq!((packets.rt_wakeups.count, packets.rt_wakeups.behind_softirq), (Some(1041), Some(164)));
    assert_eq!(packets.rt_wakeups.delay_ns.max, Some(119_000));
    let offline = recording("g612-c4-offline");
    let watchdog = &offline.hrtimers.qdisc_watchdog;
    assert_eq!((watchdog.expired, watchdog.off_arming_cpu), (Some(709), Some(2)));
    assert_eq!((offline.hrtimers.expired, offline.hrtimers.off_arming_cpu), (Some(4062), Some(4)));
}

/// Goal: pinned watchdogs follow the map of queues. Method: in the recording with six queues each watchdog
/// has one CPU, where all its starts and expiries are, and no two have the same.
#[test]
fn watchdogs_follow_the_map_of_queues() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings");
    let mut reader = TraceReader::new(open(&folder.join("g612-c6-packets.txt.zst")).expect("bundled"));
    let mut cpus = BTreeMap::<u64, BTreeSet<usize>>::new();
    let mut take = |record: &Record<'_>| {
        let hrtimer = match &record.event {
            Event::HrtimerStart(start) if start.function == b"qdisc_watchdog" => start.hrtimer,
            Event::HrtimerExpireEntry { hrtimer, function: b"qdisc_watchdog", .. } => *hrtimer,
            _ => return,
        };
        cpus.entry(hrtimer).or_default().insert(record.cpu.index());
    };
    reader.read(u64::MAX, &mut take).expect("readable");
    let mut found: Vec<Vec<usize>> = cpus.into_values().map(|cpus| cpus.into_iter().collect()).collect();
    found.sort();
    assert_eq!(found, [[0], [1], [2], [3], [4], [5]]);
}

/// Goal: through trace-cmd, each thread of cyclictest has as many expiries as it counted itself.
/// Method: a recording of `cyclictest -t2 -i1000 -D3 -q`, which printed C: 2974 and C: 1971.
#[test]
fn trace_cmd_recordings_agree_with_cyclictest() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings");
    let mut reader = TraceReader::new(open(&folder.join("trace-cmd-618-c2.txt.zst")).expect("bundled"));
    let mut explain = Explain::new(ExplainOptions::default());
    reader.read(u64::MAX, &mut |record| explain.take(record)).expect("readable");
    let report = explain.finish(reader.tally());
    let by_task = report.hrtimers.by_task.expect("recorded");
    assert_eq!((by_task["cyclictest-2552"], by_task["cyclictest-2553"]), (2974, 1971));
    assert_eq!((report.malformed.count, report.lost_events), (0, 0));
}

/// Goal: the header's own event counts agree with ours, recording by recording.
#[test]
fn every_bundled_recording_is_read_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings");
    let mut read = 0;
    for entry in std::fs::read_dir(folder).expect("recordings/") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "zst") {
            continue;
        }
        let mut text = String::new();
        std::io::Read::read_to_string(&mut open(&path).expect("bundled"), &mut text).expect("text");
        let entries = text.lines().find_map(|line| line.strip_prefix("# entries: "));
        // The text of trace-cmd says only "cpus=2" before its events.
        let events =
            entries.map_or(text.lines().count() as u64 - 1, |entries| entries.parse().expect("a count"));
        let mut reader = TraceReader::new(text.as_bytes());
        reader.read(u64::MAX, &mut |_| {}).expect("readable");
        assert_eq!(reader.tally().events, events, "{}", path.display());
        assert_eq!(reader.tally().malformed, 0, "{}", path.display());
        read += 1;
    }
    assert_eq!(read, 16, "the bundled recordings");
}

/// Goal: durations agree with those that the kernel's own osnoise tracer measures. Method: a recording of it
/// on a kernel with PREEMPT_RT, with the events that it makes them of: the interrupts of one CPU, which it
/// sees from when its thread begins.
#[test]
fn durations_agree_with_the_kernels_own_tracer() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/g612rt-c16-osnoise.txt.zst");
    let mut reader = TraceReader::new(open(path.as_ref()).expect("a recording"));
    reader.read_header().expect("a header");
    let kernel = reader.header().kernel.clone();
    let mut explain = Explain::new(ExplainOptions { kernel, ..isolated("2") });
    reader.read(u64::MAX, &mut |record| explain.take(record)).expect("memory");
    let report = explain.finish(reader.tally());
    assert!(report.preempt_rt);
    let theirs = report.osnoise.iter().filter(|row| row.source == "interrupt");
    let theirs: Vec<_> = theirs.map(|row| (&*row.name, row.count, row.total_ns)).collect();
    let ours = report.interruptions.iter().filter(|row| row.name == "local_timer");
    let ours: Vec<_> = ours.map(|row| (&*row.name, row.count, row.total_ns.expect("it ends"))).collect();
    assert_eq!(theirs, [("local_timer", 228, 505_614_376)]);
    assert_eq!((ours[0].1, ours.len()), (230, 1), "two before its thread began");
    // The text has microseconds, so each end is as much as one off.
    assert!(ours[0].2.abs_diff(theirs[0].2) < 2_000 * 230, "{ours:?}");
}
