//! The JSON of an explanation as a whole, so that a field that is new has no place here yet and fails.

use crate::trace::{explain, options, report, text};
use quietcore_explain::{Evidence, ExplainOptions, Explanation, Severity};
use serde_json::{Value, json};

fn of(report: &Explanation) -> Value {
    serde_json::to_value(report).expect("a report serializes")
}

/// Goal: every field of the JSON has its own value. Method: the trace of `trace.rs`, all figures of which
/// differ; the values are worked out there.
#[test]
fn every_field_has_its_value() {
    let mut found = of(&report());
    let findings = found["findings"].take();
    assert_eq!(findings.as_array().map(Vec::len), Some(10), "{findings}");
    let expected = expected();
    for (key, value) in expected.as_object().expect("an object") {
        assert_eq!(&found[key], value, "{key}");
    }
    assert_eq!(found, expected, "no field more, and none less");
}

/// Everything but the findings.
fn expected() -> Value {
    json!({
        "schema": 2,
        "kernel": "6.12.30-a",
        "preempt_rt": false,
        "cpus": 12,
        "isolated": "2-3,9,13",
        "isolated_source": "recording",
        "nohz_full": "3",
        "timer_migration": false,
        "isolated_at_ns": null,
        "begin_ns": 10_000_000_000_u64,
        "wall_clock_ns": null,
        "duration_ns": 2_500_000_000_u64,
        "events": 507,
        "lost_events": 17,
        "not_recorded": [],
        "incomplete": [
            "17 events were lost: counts miss them, and what began before a mark of lost events and ended \
             after it",
            "1 line could not be read: counts miss their events",
        ],
        "timers": { "started": 29, "expired": 32, "cancel_events": 11, "expired_unknown_start": 10 },
        "foreign": foreign(),
        "between_isolated": between_isolated(),
        "remote": { "total": 13, "by_cpu": { "1": 2, "2": 4, "3": 6, "9": 1 } },
        "ping_pong": { "count": 5, "per_s": 2.0 },
        // Of 14 the 7th is 4 us; places hold 2 ns there.
        "softirq": {
            "timer_entries": 20,
            "timer_empty": 14,
            "by_cpu": { "2": 2, "5": 1, "6": 11 },
            "empty_ns": { "total": 66_000, "p50": 4_001, "p99": 11_000, "max": 11_000 },
        },
        "hrtimers": {
            "expired": 41,
            "off_arming_cpu": 30,
            "foreign": 16,
            "by_task": { "<...>-52": 1, "cyc-50": 4, "cyc-51": 14 },
            "qdisc_watchdog": {
                "expired": 19,
                "off_arming_cpu": 15,
                "by_cpu": { "2": 4, "4": 3, "5": 11, "6": 1 },
            },
        },
        // Of 120 delays the 60th is 60 us and the 119th 119 us; a quantile is the last value of its place in
        // the histogram: places hold 32 ns from 32,768 ns on, and 64 ns from 65,536 ns on.
        "rt_wakeups": {
            "count": 134,
            "kernel_threads": 0,
            "behind_softirq": 125,
            "delay_ns": { "p50": 60_031, "p99": 119_039, "max": 120_000 },
        },
        "groups": { "estimated": false, "cpus": { "0": "0,2,9", "1": "1,3" } },
        "isolated_cpus": isolated_cpus(),
        "interruptions": interruptions(),
        "osnoise": [],
        "idle": idle(),
        "at": null,
        "malformed": { "count": 1, "first": ["line 508: no TASK-PID [CPU] at the front: \"gibberish\""] },
        "unknown_events": {},
        "evicted": 0,
        "warnings": warnings(),
        "findings": null,
    })
}

fn warnings() -> Value {
    json!([
        "CPUs 13 of the isolated set are not among the 12 possible CPUs",
        "120 task switches or more were not recorded, though none was lost: the next one of the same CPU begins \
         with another task (a filter, or a kernel that tells none on the way out of idle); what ran after them \
         is missing among the tasks",
    ])
}

fn foreign() -> Value {
    json!({
        "total": 7,
        "pulled": 4,
        "placed": 3,
        "since_isolated": 7,
        "by_function": {
            "delayed_work_timer_fn": 1,
            "neigh_timer_handler": 2,
            "process_timeout": 3,
            "tcp_delack_timer": 1,
        },
        "by_cpu": { "2": 4, "3": 2, "9": 1 },
        "by_base_cpu": { "0": 3, "2": 1, "3": 3 },
        "by_group": { "0": 5, "1": 2 },
        "took_ns": { "total": 19_000, "p50": 5_003, "p99": 12_000, "max": 12_000 },
        // The third timer that CPU 2 pulled is left out.
        "examples": [
            example("pulled", "process_timeout", [0, 0, 2], [6, 7]),
            example("pulled", "process_timeout", [0, 0, 2], [8, 9]),
            example("pulled", "delayed_work_timer_fn", [0, 3, 9], [12, 13]),
            example("placed", "neigh_timer_handler", [1, 3, 3], [14, 15]),
            example("placed", "neigh_timer_handler", [1, 3, 3], [16, 17]),
            example("placed", "tcp_delack_timer", [4, 2, 2], [18, 19]),
        ],
    })
}

fn isolated_cpus() -> Value {
    json!([
        { "cpu": 2, "group": 0, "pulled": 3, "placed": 1,
          "by_function": { "process_timeout": 3, "tcp_delack_timer": 1 } },
        { "cpu": 3, "group": 1, "pulled": 0, "placed": 2, "by_function": { "neigh_timer_handler": 2 } },
        { "cpu": 9, "group": 0, "pulled": 1, "placed": 0, "by_function": { "delayed_work_timer_fn": 1 } },
    ])
}

/// On CPU 9 the interrupt begins 12.357 ms after the first event: 31 and 66 us, 5 ms and the delays of 1 to
/// 120 us. Most callbacks have no ends, so no times.
fn interruptions() -> Value {
    let row = |cpu: u16, source: &str, name: &str, count: u64, times: [Value; 5], causes: &[Value]| {
        let [total_ns, p99_ns, max_ns, at, line] = times;
        json!({
            "cpu": cpu, "source": source, "name": name, "own": false, "count": count, "total_ns": total_ns,
            "p99_ns": p99_ns, "max_ns": max_ns, "max_at_ns": at, "max_line": line, "causes": causes,
        })
    };
    let cause = |count: u64, total_ns: Value, how: &str, cpu: u16, task: &str| {
        let step = json!({ "how": how, "function": null, "cpu": cpu, "source": "task", "name": task });
        json!({ "count": count, "total_ns": total_ns, "steps": [step] })
    };
    let armed = |count, cpu, task| cause(count, Value::Null, "armed", cpu, task);
    let ended = |count, total: u64, cpu| cause(count, json!(total), "armed", cpu, "task");
    let took = |times: [u64; 5]| times.map(Value::from);
    let no_time = || [Value::Null, Value::Null, Value::Null, Value::Null, Value::Null];
    json!([
        row(2, "hrtimer", "hrtimer_wakeup", 12, no_time(), &[armed(12, 0, "cyc")]),
        row(2, "hrtimer", "qdisc_watchdog", 4, no_time(), &[armed(4, 6, "tc")]),
        row(2, "softirq", "TIMER", 2, took([0, 0, 0, 10000031000, 96]), &[]),
        row(
            2,
            "timer",
            "process_timeout",
            4,
            took([6000, 6000, 6000, 10000031000, 47]),
            &[armed(3, 0, "task"), ended(1, 6000, 2)]
        ),
        row(
            2,
            "timer",
            "tcp_delack_timer",
            1,
            took([2000, 2000, 2000, 10000002000, 20]),
            &[ended(1, 2000, 4)]
        ),
        row(3, "hrtimer", "hrtimer_wakeup", 1, no_time(), &[armed(1, 2, "<...>")]),
        row(3, "timer", "commit_timeout", 6, took([4000, 4000, 4000, 10000016000, 35]), &[ended(6, 4000, 2)]),
        row(
            3,
            "timer",
            "neigh_timer_handler",
            2,
            took([5000, 5000, 5000, 10000005000, 21]),
            &[ended(2, 5000, 1)]
        ),
        row(9, "device", "27 eth0-rx", 1, took([84000, 84000, 84000, 10012457000, 490]), &[]),
        row(9, "nmi", "perf_event_nmi_handler", 1, took([3000, 3000, 3000, 10012402000, 488]), &[]),
        row(9, "processor", "local_timer", 2, took([13000, 7000, 7000, 10012374000, 486]), &[]),
        row(9, "softirq", "NET_RX", 2, took([50000, 30000, 30000, 10012517000, 494]), &[]),
        row(
            9,
            "timer",
            "delayed_work_timer_fn",
            1,
            took([12000, 12000, 12000, 10000012000, 22]),
            &[ended(1, 12000, 0)]
        ),
        row(9, "timer", "wb_timer_fn", 2, took([9000, 9000, 9000, 10000025000, 40]), &[ended(2, 9000, 3)]),
        row(
            9,
            "work",
            "vmstat_update",
            1,
            took([4000, 4000, 4000, 10012521000, 497]),
            &[cause(1, json!(4000), "queued", 0, "task")]
        ),
    ])
}

/// Of 2.5 s.
fn idle() -> Value {
    let row = |cpu: u16, state: u32, entries: u64, spans: [u64; 2], share: f64| {
        let [total, max] = spans;
        json!({
            "cpu": cpu, "state": state, "entries": entries, "total_ns": total, "max_ns": max, "share": share,
        })
    };
    json!([
        row(3, 1, 3, [3_500_000, 2_200_000], 0.0014),
        row(3, 2, 1, [5_500_000, 5_500_000], 0.0022),
        row(10, 0, 1, [700_000, 700_000], 0.00028),
    ])
}

fn between_isolated() -> Value {
    json!({
        "total": 8,
        "pulled": 6,
        "placed": 2,
        "since_isolated": 8,
        "by_function": { "commit_timeout": 6, "wb_timer_fn": 2 },
        "by_cpu": { "3": 6, "9": 2 },
        "by_base_cpu": { "2": 6, "9": 2 },
        "by_group": { "0": 2, "1": 6 },
        "took_ns": { "total": 13_000, "p50": 4_001, "p99": 9_000, "max": 9_000 },
        "examples": [
            example("pulled", "commit_timeout", [2, 2, 3], [23, 24]),
            example("pulled", "commit_timeout", [2, 2, 3], [25, 26]),
            example("placed", "wb_timer_fn", [3, 9, 9], [36, 37]),
            example("placed", "wb_timer_fn", [3, 9, 9], [38, 39]),
        ],
    })
}

/// Armed on, base, ran on; the lines of the start and of the expiry.
fn example(kind: &str, function: &str, [armed, base, ran]: [u16; 3], [start, expiry]: [u64; 2]) -> Value {
    json!({
        "kind": kind, "function": function, "armed_cpu": armed, "armed_line": start,
        "base_cpu": base, "cpu": ran, "line": expiry,
    })
}

/// Name, what was seen and what is predicted of each finding.
const FINDINGS: [[&str; 3]; 10] = [
    [
        "foreign-timers-pulled",
        "4 timers armed on housekeeping CPUs were pulled by isolated CPUs (3 on CPU 2, 1 on CPU 9; 3 \
         process_timeout, 1 delayed_work_timer_fn).",
        "pulled: 4 -> 0 (measured on 6.12 with housekeeping CPUs awake: 74 -> 0, and in 9 of 9 machines).",
    ],
    [
        "foreign-timers-placed",
        "3 timers were put into isolated CPUs' bases by housekeeping CPUs (2 neigh_timer_handler, 1 \
         tcp_delack_timer).",
        "placed: 3 -> 0 once the sender is gone.",
    ],
    [
        "timer-migration-sysctl-without-effect",
        "kernel.timer_migration is 0, and 4 timers were pulled all the same.",
        "none for wheel timers: 74 pulled with 1, 90 with 0 on the same load (6.12).",
    ],
    [
        "isolated-timers-exchanged",
        "8 timers armed on one isolated CPU ran on another (6 on CPU 3, 2 on CPU 9; 6 commit_timeout, \
         2 wb_timer_fn).",
        "between_isolated.total: 8 -> 0 on 6.19.",
    ],
    [
        "qdisc-watchdog-migrates",
        "15 of 19 packet-scheduler watchdogs expired off the CPU that armed them (all 19: 11 on CPU 5, 4 on \
         CPU 2, 3 on CPU 4, 1 on CPU 6).",
        "qdisc_watchdog.off_arming_cpu: 15 -> 0; dequeues follow the XPS map.",
    ],
    [
        "foreign-hrtimers",
        "16 hrtimers started on housekeeping CPUs expired on isolated CPUs.",
        "hrtimers.foreign: 16 -> 0.",
    ],
    [
        "rt-wakeups-behind-softirq",
        "125 of 134 real-time wake-ups went to a CPU inside a NET or BLOCK softirq; they waited p50 60 \
         us, p99 119 us, at most 120 us.",
        "behind_softirq: 125 -> 0 on CPUs that serve no device.",
    ],
    [
        "delayed-work-on-isolated",
        "1 of the foreign timers was one of delayed work (1 on CPU 9): a kworker may run each item \
         there next.",
        "foreign.by_function of delayed_work_timer_fn: 1 -> 0 with the timers.",
    ],
    [
        "remote-expiries",
        "13 expiries (41 %) ran on another CPU than the timer's base (6 on CPU 3, 4 on CPU 2, 2 on CPU \
         1, 1 on CPU 9); 5 of these timers were armed on their old base again (2.0/s: ping-pong).",
        "No change is asked for.",
    ],
    [
        "timer-softirq-empty",
        "14 of 20 TIMER softirqs ran no timer (11 on CPU 6, 2 on CPU 2, 1 on CPU 5); 2 of them on \
         isolated CPUs. They took 66 us in all: p50 4 us, p99 11 us, at most 11 us.",
        "On isolated CPUs: 2 -> close to 0 while they run one task each.",
    ],
];

/// Goal: each finding quotes its own figures. Method: the same trace; every sentence that holds a figure.
#[test]
fn every_finding_quotes_its_figures() {
    let report = report();
    assert_eq!(report.findings.len(), FINDINGS.len(), "{:?}", report.findings);
    // One timer is few, remote expiries are no fault, and an empty softirq costs little without PREEMPT_RT.
    let notes = ["delayed-work-on-isolated", "remote-expiries", "timer-softirq-empty"];
    for (finding, [id, what, predicted]) in report.findings.iter().zip(FINDINGS) {
        let severity = if notes.contains(&id) { Severity::Note } else { Severity::Warning };
        assert_eq!((finding.id, finding.severity), (id, severity));
        let what = format!("{what} The recording is incomplete, so these figures are approximate.");
        assert_eq!((&*finding.what, finding.predicted.as_str()), (&*what, predicted), "{id}");
    }
    let pulled = &report.findings[0];
    // One of group 0 (0,2,9) and one of group 1 (1,3).
    let command = "\n$ quietcore keep-awake --isolated 2-3,9,13 # keeps CPUs 0-1 awake\n";
    assert!(pulled.change.contains(command), "{}", pulled.change);
    let proof = "process_timeout armed on CPU 0 (line 6), base CPU 0, ran on CPU 2".to_owned();
    assert_eq!(pulled.evidence[0], Evidence::Line { line: 7, text: proof });
    assert_eq!(pulled.evidence.len(), 3, "{:?}", pulled.evidence);
}

/// Goal: a figure without a sample is no number. Method: a remote expiry and its ping-pong at one time
/// stamp: the rate has no span, and nothing else was recorded.
#[test]
fn what_has_no_sample_is_no_number() {
    let start = "a-1 [000] 1.0: timer_start: timer=1 function=f expires=9 [timeout=1] cpu=0 idx=1 flags=\n";
    let expiry = "b-2 [001] 1.0: timer_expire_entry: timer=1 function=f now=9 baseclk=9\n";
    let report = explain(&[start, expiry, start].concat(), ExplainOptions::default());
    let found = of(&report);
    assert_eq!(found["duration_ns"], json!(0));
    assert_eq!(explain(expiry, ExplainOptions::default()).cpus, 2, "one event tells of a CPU");
    assert_eq!(found["ping_pong"], json!({ "count": 1, "per_s": null }));
    let nothing = json!({ "total": null, "p50": null, "p99": null, "max": null });
    let softirq = json!({ "timer_entries": null, "timer_empty": null, "by_cpu": null, "empty_ns": nothing });
    assert_eq!(found["softirq"], softirq);
    assert_eq!(found["rt_wakeups"]["delay_ns"], json!({ "p50": null, "p99": null, "max": null }));
    let remote = "1 expiry (100 %) ran on another CPU than the timer's base (1 on CPU 1); 1 of these timers was \
                  armed on its old base again (rate unknown: ping-pong).";
    assert_eq!(report.findings[0].what, remote);
}

/// Goal: time stamps without a unit give no span, rate or delay, and say so; counts stay. Method: the same
/// trace, its time stamps as a counter prints them.
#[test]
fn stamps_without_a_unit_give_no_span() {
    let counter = |line: &str| {
        let (front, rest) = line.split_once("d..1. ").unwrap_or(("", line));
        format!("{front}{}\n", rest.replacen('.', "", usize::from(!front.is_empty())))
    };
    let report = explain(&text().lines().map(counter).collect::<String>(), options());
    let found = of(&report);
    assert_eq!((found["events"].clone(), found["duration_ns"].clone()), (json!(507), Value::Null));
    assert_eq!(found["ping_pong"], json!({ "count": 5, "per_s": null }));
    assert_eq!(found["rt_wakeups"]["behind_softirq"], json!(125));
    assert_eq!(found["rt_wakeups"]["delay_ns"], json!({ "p50": null, "p99": null, "max": null }));
    assert_eq!(found["interruptions"], json!([]));
    assert_eq!(
        (&found["softirq"]["timer_empty"], &found["softirq"]["empty_ns"]["max"]),
        (&json!(14), &Value::Null)
    );
    let idle = &found["idle"][2];
    assert_eq!(
        [&idle["entries"], &idle["total_ns"], &idle["share"]],
        [&json!(1), &Value::Null, &Value::Null]
    );
    let told = "the time stamps have no unit (clock counter or x86-tsc): durations and delays are not computed; \
                record with trace_clock mono";
    assert_eq!(report.warnings.last().map(String::as_str), Some(told));
}

/// Goal: forgotten identities are counted. Method: a table of 10 holds two generations of 5: of 23 timers
/// the first 15 are dropped, five at a time, when the 11th, the 16th and the 21st come; of 12 hrtimers, in a
/// table of their own, 5.
#[test]
fn forgotten_identities_are_counted() {
    let starts = (0..23).map(|timer| {
        let rest = "function=f expires=9 [timeout=1] cpu=0 idx=1 flags=";
        format!("a-1 [000] 1.000000: timer_start: timer={timer:x} {rest}\n")
    });
    let hrtimers = (0..12).map(|timer| {
        format!("a-1 [000] 1.000000: hrtimer_start: hrtimer={timer:x} function=h expires=9 softexpires=9\n")
    });
    let (starts, hrtimers): (String, String) = (starts.collect(), hrtimers.collect());
    let forgotten = |text: &str| {
        let options = ExplainOptions { identities_max: 10, ..Default::default() };
        let report = explain(text, options);
        assert_eq!(report.cpus, 1);
        (of(&report)["evicted"].clone(), report.incomplete.len())
    };
    assert_eq!(forgotten(&starts), (json!(15), 1));
    assert_eq!(forgotten(&hrtimers), (json!(5), 1));
    assert_eq!(forgotten(&(starts + &hrtimers)), (json!(20), 1));
}
