//! Reports of fixed rounds, for tests of what is made of them: here, and of the command's text.

use quietcore_core::CpuId;
use quietcore_lab::{
    Better, LabHost, LabReport, PredictReport, Prediction, ROWS, RowPlan, RowReport, RowRounds, SCHEMA,
    ScenarioComparison, ScenarioReport, ScenarioValue, StopFlag, ToolOutput, TrialContext,
};
use quietcore_sim::CostTable;
use std::time::Duration;

pub(crate) fn plan(name: &str) -> &'static RowPlan {
    ROWS.iter().find(|plan| plan.name == name).expect("a row")
}

/// A context on the CPUs 0 and 1, which nothing is run in.
pub(crate) fn context(millis: u64) -> TrialContext {
    let cpus = [0, 1].map(|number| CpuId::new(number).expect("a CPU"));
    TrialContext::new(Duration::from_millis(millis), cpus, StopFlag::default())
}

/// A row in which figure `f` of variant `v` is `of(v, f)`, a hundredth more or two less in three rounds.
pub(crate) fn row(name: &str, of: impl Fn(usize, usize) -> Option<f64>) -> RowReport {
    rounds(name, |variant, figure| [1.01, 0.98, 1.0].map(|times| Some(of(variant, figure)? * times)))
}

/// A row in which figure `f` of variant `v` is `of(v, f)` in three rounds.
pub(crate) fn rounds(name: &str, of: impl Fn(usize, usize) -> [Option<f64>; 3]) -> RowReport {
    let plan = plan(name);
    let variant = |at: usize| {
        let round = |round: usize| (0..plan.figures.len()).map(|figure| of(at, figure)[round]).collect();
        [0, 1, 2].map(round).to_vec()
    };
    let rounds = RowRounds::given((0..plan.variants.len()).map(variant).collect());
    rounds.row(plan, &context(2_000), format!("quietcore lab {name}"))
}

fn oslat() -> RowReport {
    let figures = [
        [None, None, Some(0.0), Some(1.5), Some(11.0), Some(22.0), Some(33.0)],
        [320.0, 310.0, 160.0, 48.0, 1_400.0, 1_500.0, 1_600.0].map(Some),
        [0.0, 0.0, 150.0, 3.0, 44.0, 55.0, 66.0].map(Some),
    ];
    let mut row = row("oslat", |variant, figure| figures[variant][figure]);
    for (variant, longest) in [(1, "1010"), (2, "30")] {
        let lines = vec!["        Core:\t 1".to_owned(), format!("     Maximum:\t {longest} (us)")];
        row.variants[variant].attachment = Some(ToolOutput { format: "oslat", lines });
    }
    let value = |variant, value| ScenarioValue {
        variant,
        value: Some(value),
        halved: Some(value * 1.5),
        doubled: Some(value / 2.0),
    };
    row.simulated = Some(ScenarioReport {
        scenario: "oslat-128.toml",
        costs: vec![
            "packet_enqueue: measured on another one".to_owned(),
            "all others: measured on a processor <&>, 2 CPUs".to_owned(),
        ],
        holds: true,
        comparisons: vec![
            ScenarioComparison {
                what: "foreign callbacks",
                unit: "callbacks",
                better: Better::Lower,
                before: value("off", 494.0),
                after: value("merged", 12.0),
                ratio: Some(12.0 / 494.0),
            },
            ScenarioComparison {
                what: "packets",
                unit: "per second",
                better: Better::Higher,
                before: value("push/movable/4344", 2_000_000.0),
                after: value("push/pinned/4344", 2_500_000.0),
                ratio: Some(1.25),
            },
        ],
    });
    row
}

/// A row of bars, with two variants of the old rule: pull loses, makes no difference, and wins. Five rounds,
/// whose first is neither the median nor an end.
fn blocked() -> RowReport {
    let medians = [
        [Some(1_100.0), Some(1_200.0), Some(1_300.0), Some(1_400.0), None],
        [2_100.0, 2_200.0, 2_300.0, 9_400.0, 2_500.0].map(Some),
        [3_100.0, 3_200.0, 3_300.0, 3_400.0, 3_500.0].map(Some),
        [4_100.0, 4_200.0, 2_310.0, 4_400.0, 4_500.0].map(Some),
    ];
    let round = |of: &[Option<f64>; 5], more: f64| of.map(|median| Some(median? + more)).to_vec();
    let rounds = medians.map(|of| [3.0, -20.0, 11.0, 0.0, -7.0].map(|more| round(&of, more)).to_vec());
    let rounds = RowRounds::given(rounds.to_vec());
    let mut row = rounds.row(plan("blocked"), &context(700), "quietcore lab blocked --cpus 2,3".to_owned());
    row.others_percent = Some(12.5);
    row
}

/// Three rows; texts of the host have what must not become markup.
pub(crate) fn report() -> LabReport {
    // Pull loses with one pair, is the same with two, wins with four; more were not measured.
    let loads =
        [[11_000.0, 22_000.0, 33_000.0], [10_000.0, 20_000.0, 30_000.0], [9_500.0, 18_000.0, 27_000.0]];
    let dbench = row("dbench", |variant, figure| match (variant, figure) {
        (0, 11) => None,
        (_, 11) => Some(0.0),
        (_, 3..) => None,
        (3, load) => Some([9_000.0, 20_100.0, 60_000.0][load]),
        (variant, load) => Some(loads[variant][load]),
    });
    let host = LabHost {
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
    let rows = vec![oslat(), dbench, blocked()];
    LabReport { schema: SCHEMA, quietcore: "1.2.3", complete: true, quick: false, host, rows }
}

/// The predictions from the project's own costs; nothing is measured.
pub(crate) fn predicted() -> PredictReport {
    let text = include_str!("../../../../scenarios/costs.toml");
    let costs = CostTable::parse("costs.toml".as_ref(), text).expect("the project's own costs");
    let host = LabHost {
        kernel: Some("6.19.0".to_owned()),
        processor: None,
        is_virtual: None,
        cpus_online: "0-1".to_owned(),
        cpus_allowed: "0-1".to_owned(),
        isolated: String::new(),
        nohz_full: String::new(),
        load_average: None,
        governor: Some("performance".to_owned()),
        clock_source: None,
    };
    PredictReport::predict(host, costs, Duration::from_secs(1)).expect("costs fit")
}

/// Fixed predictions, and rounds that hit, miss, scatter, and are missing.
pub(crate) fn judged() -> PredictReport {
    let mut report = predicted();
    let mut cases: Vec<&str> = report.predictions.iter().map(|one| one.question).collect();
    cases.dedup();
    for one in &mut report.predictions {
        let at = cases.iter().position(|case| *case == one.question).expect("one of them");
        let predicted = [100.0, 40.0, 1_000.0, 90_000.0, 10_000.0][at];
        *one = Prediction { predicted, halved: predicted * 0.9, doubled: predicted * 2.0, ..one.clone() };
    }
    // Within, and nearly not.
    let round = |one: f64, other: f64| vec![Some(one), Some(other)];
    report.judge(cases[0], &[round(110.0, 129.9)], Some(1.0));
    // Far off, and between half and twice the costs.
    report.judge(cases[1], &[round(400.0, 70.0)], Some(40.0));
    // Rounds that scatter over the prediction.
    let scattered = [round(900.0, 100.0), round(5_000.0, 1_000.0), round(5_000.0, 1_000.0)];
    report.judge(cases[2], &scattered, None);
    // Not measured at all, and without a sample in one of two rounds.
    report.judge(cases[3], &[round(90_000.0, 90_000.0), vec![None, None]], None);
    report.judge(cases[4], &[round(5_000.0, 20_000.0)], None);
    report.complete = false;
    report.quietcore = "1.2.3";
    report
}
