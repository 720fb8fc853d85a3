//! What a run does with its options, and what it tells, on rows that measure nothing.

use super::{LabOptions, LabProgress, run};
use crate::cpus::{allowed_cpus, two_cpus};
use crate::plan::{
    Better, PLAIN, RowPlan, RowScenario, RowVariant, RunScale, ScenarioCompare, TrialContext, TrialFigures,
    TrialSpans, VariantRole,
};
use crate::slice::{Slice, SliceKind};
use crate::sync::StopFlag;
use quietcore_core::{CpuId, Nanos};
use quietcore_testing::left_out;
use std::time::Duration;

/// Its figures are the span in ms, and the scale; it takes down one slice.
fn trial(context: &TrialContext) -> Result<TrialFigures, crate::LabError> {
    context.wait();
    let cpu = context.cpus[0];
    let kind = SliceKind::Task { number: None };
    context.slices.push(|tid| Slice { kind, name: "a", cpu, tid, began: Nanos(1), ended: Nanos(2) });
    Ok(vec![Some(context.span.as_millis() as f64), Some(context.scale as u8 as f64)])
}

const fn variant(name: &'static str, role: VariantRole) -> RowVariant {
    RowVariant { name, what: "a trial", role, run: trial }
}

const VARIANTS: &[RowVariant] = &[variant("old", VariantRole::Before), variant("new", VariantRole::After)];

const fn plan(name: &'static str) -> RowPlan {
    RowPlan {
        name,
        figures: &[("span", "ms"), ("scale", "")],
        variants: VARIANTS,
        spans: TrialSpans { full: Duration::from_millis(40), quick: Duration::from_millis(7) },
        ..PLAIN
    }
}

static FIRST: RowPlan = plan("first");

/// Arming costs 30 ns and cancelling 12; nothing else costs anything. The periodic timers make it so many
/// events that the simulator says how far it is.
static SECOND: RowPlan = RowPlan {
    scenario: Some(RowScenario {
        name: "second.toml",
        text: "duration = \"100ms\"\n[machine]\ncpus = 2\n[cost]\narm = { ns = 30, source = \"a\" }\n\
               cancel = { ns = 12, source = \"a\" }\n[variants]\npolicy = [\"stay\", \"pull\"]\n\
               [[load.enqueue]]\ncpus = \"0\"\ndelay = \"1s\"\n\
               [[load.periodic]]\ncpus = \"1\"\ncount = 1200\nperiod = \"1ms\"\n",
        compares: &[
            ScenarioCompare {
                what: "arm and cancel",
                figure: "pair_ns",
                unit: ("us", 1e3),
                before: "stay",
                after: "pull",
                better: Better::Lower,
            },
            ScenarioCompare {
                what: "lost",
                figure: "lost",
                unit: ("timers", 1.0),
                before: "pull",
                after: "stay",
                better: Better::Lower,
            },
        ],
    }),
    ..plan("second")
};

/// Goal: what is not asked for is the row's own, and the command runs the row again as it was run. Method: no
/// option, and all.
#[test]
fn options_are_the_rows_own_unless_given() {
    let cpus = [1, 2].map(|number| CpuId::new(number).expect("a CPU"));
    let of = |options: &LabOptions| {
        let context = options.context(&FIRST, cpus, &StopFlag::default());
        let (millis, is_traced) = (context.span.as_millis(), context.slices.take().is_some());
        (options.rounds(), millis, context.scale, is_traced, options.command(&FIRST))
    };
    let plain = LabOptions::default();
    assert_eq!(of(&plain), (5, 40, RunScale::Full, false, "quietcore lab first".to_owned()));
    let quick = LabOptions { scale: RunScale::Quick, no_scenario: true, ..plain.clone() };
    assert_eq!(of(&quick), (3, 7, RunScale::Quick, false, "quietcore lab first --quick".to_owned()));
    let all = LabOptions {
        span: Some(Duration::from_millis(250)),
        rounds: Some(9),
        cpus: Some("1-2".parse().expect("a list")),
        trace: true,
        ..quick
    };
    let command = "quietcore lab first --quick --span 250ms --rounds 9 --cpus 1-2";
    assert_eq!(of(&all), (9, 250, RunScale::Quick, true, command.to_owned()));
}

/// What a run of both rows tells; and its report, whose stop flag is set when `stop_at` is told.
fn told(options: &LabOptions, stop_at: &str) -> (Vec<String>, crate::LabReport, usize) {
    let (stop, mut told) = (StopFlag::default(), Vec::new());
    let mut tell = |progress: LabProgress<'_>| {
        let line = match progress {
            LabProgress::Row { name, number, of, about } => format!("{name}, {number} of {of}: {about:?}"),
            LabProgress::Round { row, round, of, variant } => format!("{row} {variant}: {round} of {of}"),
            LabProgress::Simulating { row, scenario } => format!("{row} simulates {scenario}"),
            LabProgress::Done => "done".to_owned(),
        };
        if line == stop_at {
            stop.set();
        }
        if told.last() != Some(&line) {
            told.push(line);
        }
    };
    let (report, slices) = run(&[&FIRST, &SECOND], options, &stop, &mut tell).expect("no trial fails");
    (told, report, slices.len())
}

/// `None` where there are no two CPUs, and `test` is left out.
fn options(test: &str) -> Option<LabOptions> {
    let found = two_cpus(None, &allowed_cpus().expect("it can be read"));
    found.inspect_err(|error| left_out(test, error)).ok()?;
    Some(LabOptions { rounds: Some(2), trace: true, ..LabOptions::default() })
}

/// Goal: a run tells which row of how many begins and how long it takes, each round, and the simulation; its
/// report has what was measured and simulated. Method: two rows of two variants, the second with a scenario.
#[test]
fn a_run_tells_how_far_it_is() {
    let Some(options) = options("a_run_tells_how_far_it_is") else { return };
    let (lines, report, slices) = told(&options, "");
    let expected = [
        "first, 1 of 2: 160ms",
        "first old: 1 of 2",
        "first new: 1 of 2",
        "first old: 2 of 2",
        "first new: 2 of 2",
        "done",
        "second, 2 of 2: 160ms",
        "second old: 1 of 2",
        "second new: 1 of 2",
        "second old: 2 of 2",
        "second new: 2 of 2",
        "done",
        "second simulates second.toml",
        "done",
    ];
    assert_eq!(lines, expected);
    assert_eq!((report.complete, report.quick, report.rows.len(), slices), (true, false, 2, 4));
    assert_eq!(
        (report.rows[0].command.as_str(), report.rows[0].rounds),
        ("quietcore lab first --rounds 2", 2)
    );
    assert!(report.rows[0].simulated.is_none());
    assert_eq!(report.rows[1].variants[0].figures[0].rounds, [40.0, 40.0]);
    let simulated = report.rows[1].simulated.as_ref().expect("it has a scenario");
    assert_eq!((simulated.scenario, simulated.holds), ("second.toml", true));
    let compared = &simulated.comparisons[0];
    let (old, new) = (&compared.before, &compared.after);
    assert_eq!((compared.what, compared.unit), ("arm and cancel", "us"));
    let range = (old.variant, old.value, old.halved, old.doubled);
    assert_eq!(range, ("stay", Some(0.042), Some(0.021), Some(0.084)));
    // Pulling the periodic timers takes the other CPU some time.
    let (old, pulled) = old.value.zip(new.value).expect("both have it");
    assert!(new.variant == "pull" && pulled > old && new.doubled > new.halved, "{compared:?}");
    assert_eq!(compared.ratio, Some(pulled / old));
    let lost = &simulated.comparisons[1];
    assert_eq!((lost.before.variant, lost.before.value, lost.before.halved), ("pull", Some(0.0), Some(0.0)));
    assert_eq!((lost.after.variant, lost.after.doubled, lost.ratio), ("stay", Some(0.0), None));
    let without = LabOptions { no_scenario: true, scale: RunScale::Quick, trace: false, ..options };
    let (lines, report, slices) = told(&without, "");
    assert_eq!(lines.last().map(String::as_str), Some("done"));
    assert!(report.quick && report.rows[1].simulated.is_none());
    assert_eq!((slices, report.rows[1].variants[0].figures[1].rounds[0]), (0, 1.0));
}

/// Goal: a run that is stopped has what was measured until then, and says that something is missing. Method:
/// stopped in the first round, in the second one, in the second row, and while the simulator runs.
#[test]
fn a_run_that_is_stopped_is_incomplete() {
    let Some(options) = options("a_run_that_is_stopped_is_incomplete") else { return };
    for (stop_at, rows) in [
        ("first new: 1 of 2", vec![]),
        ("first new: 2 of 2", vec![("first", 1)]),
        ("second old: 2 of 2", vec![("first", 2), ("second", 1)]),
        ("second simulates second.toml", vec![("first", 2), ("second", 2)]),
    ] {
        let (lines, report, _) = told(&options, stop_at);
        let found: Vec<(&str, u32)> = report.rows.iter().map(|row| (row.experiment, row.rounds)).collect();
        assert_eq!((found, report.complete), (rows, false), "{stop_at}");
        let goes_on = lines.iter().any(|line| line.starts_with("second, "));
        assert_eq!(goes_on, !stop_at.starts_with("first"), "{stop_at}: {lines:?}");
        assert!(report.rows.iter().all(|row| row.simulated.is_none()), "{stop_at}");
    }
}

/// Goal: a row says what others took while it was measured. Method: trials that last some ticks of the
/// kernel's count; where it went back meanwhile, asked again.
#[test]
fn a_row_says_what_others_took() {
    let Some(options) = options("a_row_says_what_others_took") else { return };
    let options = LabOptions { no_scenario: true, ..options };
    let is_said = |_| told(&options, "").1.rows[0].others_percent.is_some_and(|percent| percent >= 0.0);
    assert!((0..20).any(is_said), "not said in any of 20 runs");
}
