//! The text of hand-made outcomes.

use super::simulation;
use crate::text::page::{COLUMNS, Page};
use quietcore_sim::{
    CostRange, CpuResidency, CyclicThread, ExpectVerdict, IdleStateFigures, PacketFigures, RaiseFigures,
    RealtimeFigures, RunFigures, Scenario, ShownValue, SimOutcome, SoftirqFigures, SpanQuantiles,
    VariantOutcome,
};

/// Four spans that no other quantile has.
fn spans(us: u64) -> SpanQuantiles {
    let of = |part: u64| us * 1_000 + part * 100;
    SpanQuantiles { p50: of(1), p99: of(2), p999: of(3), max: of(4) }
}

fn thread(task: u32, cycles: u64, us: Option<[u64; 4]>) -> CyclicThread {
    let [min_ns, act_ns, avg_ns, max_ns] = [0, 1, 2, 3].map(|at| us.map(|us| us[at] * 1_000 + 999));
    let (priority, interval_ns) = (90 - task as u8, u64::from(task) * 500_000);
    let skipped = cycles / 10;
    CyclicThread {
        task,
        priority,
        interval_ns,
        cycles,
        skipped,
        min_ns,
        act_ns,
        avg_ns,
        max_ns,
        ..CyclicThread::default()
    }
}

/// Two states; two CPUs were in the second one.
fn idle_states() -> Vec<IdleStateFigures> {
    let of_cpu = |first: u64, share: f64| CpuResidency {
        entries: first,
        total_ns: 0,
        max_ns: first * 1_000,
        short: first + 1,
        share,
    };
    let shallow = [(0, of_cpu(210, 0.0123))].into();
    let deep = [(0, of_cpu(220, 0.9876)), (1, of_cpu(230, 0.8765))].into();
    vec![
        IdleStateFigures { name: "shallow".to_owned(), share: 0.0062, by_cpu: shallow },
        IdleStateFigures { name: "deep".to_owned(), share: 0.932, by_cpu: deep },
    ]
}

/// Every figure that a run can have, no two of which are the same.
fn full() -> RunFigures {
    let realtime = RealtimeFigures {
        threads: vec![thread(3, 450, Some([1_003, 22_007, 33_011, 44_013])), thread(4, 0, None)],
        latency_ns: Some(spans(60)),
        placed: 61,
        pushed: 62,
        pulled: 63,
        ..RealtimeFigures::default()
    };
    let softirqs = SoftirqFigures {
        raised: 71,
        ran_inline: 72,
        ran_ksoftirqd: 73,
        delay_ns: [("BLOCK", spans(80)), ("NET_RX", spans(81))].into(),
        deferred: 74,
        deferral_ns_max: 75_000,
        ksoftirqd_wakeups: 76,
        ..SoftirqFigures::default()
    };
    let timer_raise = RaiseFigures {
        raises: [(1, 80), (2, 11)].into(),
        idle_raises: [(1, 12), (2, 80)].into(),
        calls: 93,
        late: 94,
        ..RaiseFigures::default()
    };
    let packets = PacketFigures {
        at_home: 900,
        elsewhere: 124,
        lock_wait_ns: 300,
        busy_ns: 4_000,
        watchdogs: [(0, 31), (1, 64)].into(),
        watchdogs_elsewhere: 96,
        late_ns: Some(spans(97)),
        ..PacketFigures::default()
    };
    RunFigures {
        duration_ns: 2_000_000_000,
        arms: 11,
        cancels: 12,
        expiries: 13,
        foreign: 14,
        pullers: "10,12,14,16,18,20".parse().expect("a list"),
        remote: 15,
        wakeups: 301,
        wakeups_by_cpu: [(0, 100), (1, 151), (2, 50)].into(),
        kicks: 16,
        ping_pongs: 77,
        lateness_ns: Some(spans(20)),
        task_delay_ns: Some(spans(30)),
        gaps_ns: [(0, spans(40)), (1, spans(50)), (2, spans(45))].into(),
        throughput: Some(1_234.56),
        pair_ns: Some(67.89),
        looks: 17,
        lock_waits: 18,
        lock_wait_ns: 19_000,
        panics: 21,
        busy_share: 0.1234,
        realtime: Some(realtime),
        softirqs: Some(softirqs),
        timer_raise: Some(timer_raise),
        packets: Some(packets),
        idle: Some(idle_states()),
        events: 22,
        hash: 0xabc,
        ..RunFigures::default()
    }
}

fn variant(label: &str, figures: RunFigures) -> VariantOutcome {
    VariantOutcome { label: label.to_owned(), figures, sensitivity: [].into() }
}

fn verdict(variant: &str, expected: &str, found: &str) -> ExpectVerdict {
    let [variant, expected, found] = [variant, expected, found].map(str::to_owned);
    let holds = found == "as expected";
    ExpectVerdict { variant, expected, found, holds }
}

fn text(outcome: &SimOutcome) -> String {
    let scenario = "about = \"What it\\nis about.\"\nduration = \"2s\"\n[machine]\ncpus = 4\n";
    let no_file = |_: &std::path::Path| Err(std::io::Error::other("there is none"));
    let scenario = Scenario::parse("given.toml".as_ref(), scenario, &no_file).expect("a scenario");
    let mut page = Page::plain();
    simulation(&mut page, "given.toml", &scenario, outcome);
    page.into_text()
}

/// Goal: every figure stands in its row and column, and a figure that a run does not have in none. Method: a
/// snapshot of a run that has all, one with a list of CPUs that is too long, and three without any, of
/// which the last needs a table of its own; of the first one figure is named elsewhere, of the second none.
#[test]
fn every_figure_has_its_row() {
    let bare = || RunFigures { duration_ns: 1_000_000_000, ..RunFigures::default() };
    let long = RunFigures {
        pullers: "10,12,14,16,18,20,22".parse().expect("a list"),
        looks: 1,
        panics: 1,
        ..bare()
    };
    let mut variants = vec![variant("full", full()), variant("long", long)];
    variants.extend(["push/movable/2172", "none", "last"].map(|label| variant(label, bare())));
    let range = |halved, doubled| CostRange { halved, doubled };
    variants[0].sensitivity = [
        ("foreign", range(Some(7.25), Some(28.5))),
        ("remote", range(Some(8.0), Some(30.0))),
        ("rt_cycles", range(Some(1.0), None)),
    ]
    .into();
    variants[1].sensitivity = [("kicks", range(None, Some(3.0))), ("remote", range(Some(4.0), None))].into();
    let shown = |variant: &str, what: &str, value| ShownValue {
        variant: variant.to_owned(),
        what: what.to_owned(),
        value,
    };
    let outcome = SimOutcome {
        seed: 99,
        variants,
        shown: vec![shown("full", "foreign@1 / arms", Some(1.23456)), shown("long", "throughput", None)],
        verdicts: vec![
            verdict("full", "rt_cycles.all > 400", "as expected"),
            verdict("long", "foreign = 1", "0 = 1"),
            verdict("full", "kicks < 3", "16 < 3"),
        ],
        holds: false,
    };
    let text = text(&outcome);
    assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
    insta::assert_snapshot!("full", text);
}

/// Goal: what was not asked for and what the scenario does not have takes no room, and what holds is one
/// line.
#[test]
fn what_holds_is_one_line() {
    let verdicts =
        vec![verdict("only", "arms = 0", "as expected"), verdict("only", "foreign = 0", "as expected")];
    let variants = vec![variant("only", RunFigures { duration_ns: 1, ..RunFigures::default() })];
    let mut outcome = SimOutcome { seed: 1, variants, shown: Vec::new(), verdicts, holds: true };
    let shown = text(&outcome);
    assert!(shown.ends_with("\nExpected\n\nall 2 expectations hold\n"), "{shown}");
    outcome.verdicts.clear();
    let last = text(&outcome).lines().last().map(str::to_owned);
    assert_eq!(last.as_deref(), Some("  hash                      0000000000000000"));
}
