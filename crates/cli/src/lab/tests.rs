//! The lab's reports from fixed inputs, and its rows with spans that are too short to measure anything.

use super::host::Host;
use super::measure::{self, Rounds};
use super::plan::{Attachment, Bench, NOT_MEASURED, Plan};
use super::report::{Report, Row, SCHEMA, SimComparison, SimValue, Simulated, Verdict};
use super::{ROWS, dbench, html, mq_netem, oslat, text};
use crate::signals::Interrupt;
use crate::text::Page;
use quietcore_core::CpuId;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn cpus() -> [CpuId; 2] {
    [0, 1].map(|number| CpuId::new(number).expect("a CPU"))
}

fn bench(millis: u64) -> Bench {
    Bench::new(Duration::from_millis(millis), cpus(), &Interrupt::never())
}

/// A row of `plan` in which figure `f` of variant `v` is `of(v, f)`, give or take a hundredth in three
/// rounds.
fn row(plan: &'static Plan, of: impl Fn(usize, usize) -> f64) -> Row {
    let variant = |at: usize| {
        let round =
            |times: f64| (0..plan.figures.len()).map(|figure| of(at, figure) * times).collect::<Vec<f64>>();
        [1.0, 0.99, 1.01].map(round).to_vec()
    };
    let rounds = Rounds::given((0..plan.variants.len()).map(variant).collect());
    rounds.row(plan, &bench(2_000), format!("quietcore lab {}", plan.name))
}

fn oslat_row() -> Row {
    let mut row = row(&oslat::PLAN, |variant, figure| match (variant, figure) {
        (1, 0 | 1) => 320.0,
        (_, 0 | 1) => 0.0,
        (0, 2) => 0.0,
        (_, 2) => 160.0,
        (1, _) => 1_000.0,
        (_, place) => 10.0 * place as f64,
    });
    row.variants[1].attachment = Some(Attachment {
        format: "oslat",
        lines: vec!["        Core:\t 1".to_owned(), "     Maximum:\t 1010 (us)".to_owned()],
    });
    row.variants[2].attachment = Some(Attachment {
        format: "oslat",
        lines: vec!["        Core:\t 1".to_owned(), "     Maximum:\t 30 (us)".to_owned()],
    });
    let value = |variant, value| SimValue {
        variant,
        value: Some(value),
        halved: Some(value * 1.5),
        doubled: Some(value / 2.0),
    };
    row.simulated = Some(Simulated {
        scenario: "oslat-128.toml",
        costs: "measured on a processor <&>, 2 CPUs".to_owned(),
        holds: true,
        comparisons: vec![SimComparison {
            what: "foreign callbacks",
            unit: "callbacks",
            better: super::plan::Better::Lower,
            before: value("off", 494.0),
            after: value("merged", 0.0),
            ratio: Some(0.0),
        }],
    });
    row
}

fn report() -> Report {
    // Pull loses with one pair, is the same with two, wins with four; more were not measured.
    let dbench = row(&dbench::PLAN, |variant, figure| match (variant, figure) {
        (_, 11) => 0.0,
        (_, 3..) => NOT_MEASURED,
        (3, 0) => 9_000.0,
        (3, 2) => 50_000.0,
        (_, place) => 10_000.0 * (place + 1) as f64,
    });
    let host = Host {
        kernel: Some("6.19.0".to_owned()),
        processor: Some("<b>A & B</b>".to_owned()),
        is_virtual: Some(true),
        cpus_online: "0-3".to_owned(),
        cpus_allowed: "0-1".to_owned(),
        isolated: "1".to_owned(),
        nohz_full: String::new(),
        load_average: Some("0.10 0.20 0.30".to_owned()),
        governor: None,
        clock_source: Some("tsc".to_owned()),
    };
    let rows = vec![oslat_row(), dbench];
    Report { schema: SCHEMA, quietcore: "1.2.3", complete: true, quick: false, host, rows }
}

/// Goal: one row with everything, all in short. Method: snapshots of fixed rounds.
#[test]
fn text_of_fixed_rounds() {
    let report = report();
    let mut page = Page::plain();
    text::row(&mut page, &report.rows[0]);
    insta::assert_snapshot!("row", page.into_text());
    let mut page = Page::plain();
    text::summary(&mut page, &report);
    let text = page.into_text();
    for line in text.lines() {
        assert!(line.chars().count() <= crate::text::COLUMNS, "{line}");
    }
    insta::assert_snapshot!("summary", text);
}

/// Goal: the JSON keeps its shape. Method: a snapshot.
#[test]
fn json_of_fixed_rounds() {
    insta::assert_snapshot!("json", serde_json::to_string_pretty(&report()).expect("it is plain data"));
}

/// Goal: the page is whole, needs nothing from elsewhere, and nothing that is read from a host becomes
/// markup. Method: a snapshot, and tags that must pair.
#[test]
fn html_of_fixed_rounds() {
    let page = html::page(&report());
    assert!(page.contains("&lt;b&gt;A &amp; B&lt;/b&gt; (a virtual machine)"), "escaped");
    assert!(page.contains("a processor &lt;&amp;&gt;"), "escaped");
    for absent in ["<script", "<link", "<img", "@import", "url(", "NaN", "inf"] {
        assert!(!page.contains(absent), "{absent}");
    }
    let elsewhere = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!elsewhere.contains("://"), "nothing from elsewhere");
    for tag in
        ["html", "head", "body", "style", "div", "figure", "svg", "table", "tr", "td", "ul", "li", "text"]
    {
        let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    let body = page.split("</style>").nth(1).expect("a body");
    insta::assert_snapshot!("html", body);
}

/// Goal: a difference is called one only when no round contradicts it, and it exceeds the noise floor's
/// spread. Method: rounds of the three figures that oslat compares.
#[test]
fn verdicts_follow_from_rounds() {
    // By variant (floor, before, after) and round: the same value in all figures.
    let verdicts = |floor: &[f64], before: &[f64], after: &[f64]| -> Vec<Verdict> {
        let variant = |rounds: &[f64]| rounds.iter().map(|value| vec![*value; 7]).collect::<Vec<Vec<f64>>>();
        let rounds = Rounds::given(vec![variant(floor), variant(before), variant(after)]);
        let row = rounds.row(&oslat::PLAN, &bench(10), String::new());
        row.comparisons.iter().map(|one| one.verdict).collect()
    };
    for (floor, before, after, expected) in [
        ([1.0, 1.0], [9.0, 9.5], [2.0, 3.0], Verdict::Better),
        ([1.0, 1.0], [2.0, 3.0], [9.0, 9.5], Verdict::Worse),
        ([1.0, 1.0], [2.0, 4.0], [3.0, 9.5], Verdict::NoDifference),
        ([1.0, 9.0], [9.0, 9.5], [2.0, 3.0], Verdict::NoDifference),
    ] {
        assert_eq!(verdicts(&floor, &before, &after), [expected; 3], "{floor:?} {before:?} {after:?}");
    }
    assert_eq!(verdicts(&[1.0], &[9.0], &[2.0]), [Verdict::OneRound; 3]);
}

/// Goal: what must have one value and has another is said, and ends in exit code 1.
#[test]
fn a_broken_must_is_said() {
    let mut report = report();
    assert!(report.holds());
    report.rows[0] = row(&oslat::PLAN, |_, figure| if figure == 0 { 1.0 } else { 0.0 });
    assert!(!report.holds());
    assert!(
        report.rows[0].words[0].starts_with("BROKEN: foreign, by thread id"),
        "{:?}",
        report.rows[0].words
    );
    assert!(html::page(&report).contains("<li class=\"broken\">BROKEN"));
}

/// Goal: every row runs, gives all its figures, and its plan names figures and variants that exist. Method:
/// one round that is much too short.
#[test]
fn every_row_runs() {
    // In containers with one CPU there is no lab.
    let Ok(cpus) = super::two_cpus(None, &crate::host::allowed_cpus().expect("it can be read")) else {
        return;
    };
    for plan in ROWS {
        let mut bench = Bench::new(Duration::from_millis(40), cpus, &Interrupt::never());
        bench.scale = super::plan::Scale::Quick;
        bench.trace = Some(Arc::new(Mutex::new(Vec::new())));
        let mut shown = Vec::new();
        let rounds = measure::run(plan, &bench, 1, &mut |_, _| {}, &mut shown).expect(plan.name);
        assert_eq!(shown.len(), plan.variants.len(), "{}", plan.name);
        assert!(shown.iter().any(|shown| !shown.ran.is_empty()), "{} shows what ran", plan.name);
        let row = rounds.row(plan, &bench, String::new());
        assert_eq!((row.rounds, row.variants.len()), (1, plan.variants.len()), "{}", plan.name);
        let measured = |figure: &usize| row.variants[0].figures[*figure].median.is_some();
        let compared = plan.compares.iter().map(|compare| compare.figure).filter(measured).count();
        assert_eq!(row.comparisons.len(), compared, "{}", plan.name);
        assert!(compared > 0 && row.musts.len() == plan.musts.len(), "{}", plan.name);
    }
}

/// Goal: with exclusion nothing foreign runs on the isolated lane; without it does, and the trace shows it.
/// Method: oslat, with a trace; both counts, by thread and by the runtime. A machine that gives the busy lane
/// no time at all is asked again.
#[test]
fn nothing_foreign_runs_on_an_isolated_lane() {
    let Ok(cpus) = super::two_cpus(None, &crate::host::allowed_cpus().expect("it can be read")) else {
        return;
    };
    let mut bench = Bench::new(Duration::from_millis(400), cpus, &Interrupt::never());
    bench.trace = Some(Arc::new(Mutex::new(Vec::new())));
    let mut foreign = 0;
    for _ in 0..20 {
        let mut shown = Vec::new();
        let rounds = measure::run(&oslat::PLAN, &bench, 1, &mut |_, _| {}, &mut shown).expect("two lanes");
        let row = rounds.row(&oslat::PLAN, &bench, String::new());
        assert_eq!(row.musts.len(), 2);
        assert!(row.musts.iter().all(|must| must.holds), "{:?}", row.musts);
        let ran_on_busy = |at: usize| shown[at].ran.iter().filter(|ran| ran.cpu == cpus[1]).count();
        assert_eq!((shown.len(), ran_on_busy(0), ran_on_busy(2)), (3, 0, 0));
        let count = |figure: usize| row.variants[1].figures[figure].rounds[0];
        assert_eq!(count(0), ran_on_busy(1) as f64, "by thread, and by CPU");
        let lines = &row.variants[1].attachment.as_ref().expect("oslat's lines").lines;
        assert!(lines.last().is_some_and(|line| line.starts_with("    Duration:\t ")), "{lines:?}");
        foreign += ran_on_busy(1);
        if foreign > 0 && count(1) > 0.0 && !shown[2].ran.is_empty() {
            return;
        }
    }
    panic!("nothing foreign ran without exclusion, or nothing at all with it; foreign: {foreign}");
}

/// Goal: a pinned watchdog, and any where timers do not migrate, leaves its queue to its CPU; one that may
/// move takes it away, so the others could have. Method: the row mq-netem, one round; what must be zero, and
/// what must not. A machine that gives the busy lane no time at all is asked again.
#[test]
fn watchdogs_that_may_move_take_queues_along() {
    let Ok(cpus) = super::two_cpus(None, &crate::host::allowed_cpus().expect("it can be read")) else {
        return;
    };
    let bench = Bench::new(Duration::from_millis(150), cpus, &Interrupt::never());
    for _ in 0..20 {
        let rounds = measure::run(&mq_netem::PLAN, &bench, 1, &mut |_, _| {}, &mut Vec::new());
        let row = rounds.expect("two lanes").row(&mq_netem::PLAN, &bench, String::new());
        assert_eq!(row.musts.len(), 2);
        assert!(row.musts.iter().all(|must| must.holds), "{:?}", row.musts);
        assert!(row.words.iter().any(|word| word.contains("Two CPUs, four queues each")), "{:?}", row.words);
        let [floor, movable] = [0, 1].map(|at| &row.variants[at]);
        let figure = |at: usize| movable.figures[at].rounds[0];
        assert_eq!(floor.figures[6].rounds, [0.0], "nothing waits for a watchdog");
        if figure(0) > 0.0 && figure(1) > 0.0 && figure(3) > 0.0 && figure(5) > 0.0 {
            return;
        }
    }
    panic!("no watchdog that may move did");
}
