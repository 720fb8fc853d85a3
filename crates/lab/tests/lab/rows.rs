//! The rows themselves, with spans that are too short to measure anything.

use crate::fixture::plan;
use quietcore_core::CpuId;
use quietcore_lab::{
    ROWS, RowReport, RowRounds, RunScale, SliceLog, StopFlag, TrialContext, allowed_cpus, two_cpus,
};
use quietcore_testing::left_out;
use std::time::Duration;

/// `None` in containers with one CPU: there is no lab, and `test` is left out.
fn cpus(test: &str) -> Option<[CpuId; 2]> {
    let found = two_cpus(None, &allowed_cpus().expect("it can be read"));
    found.inspect_err(|error| left_out(test, error)).ok()
}

/// Goal: every row runs, gives all its figures, and its plan names figures and variants that exist; something
/// runs in each of its variants. Method: one round that is much too short; a machine that gives a lane no
/// time at all is asked again.
#[test]
fn every_row_runs() {
    let Some(cpus) = cpus("every_row_runs") else { return };
    for plan in ROWS {
        let mut context = TrialContext::new(Duration::from_millis(40), cpus, StopFlag::default());
        context.scale = RunScale::Quick;
        context.slices = SliceLog::on();
        let rounds = RowRounds::measure(plan, &context, 1, &mut |_, _| {}).expect(plan.name);
        let shown = &rounds.slices;
        assert_eq!(shown.len(), plan.variants.len(), "{}", plan.name);
        assert!(shown.iter().any(|shown| !shown.slices.is_empty()), "{} shows what ran", plan.name);
        let row = rounds.row(plan, &context, String::new());
        assert_eq!((row.rounds, row.variants.len()), (1, plan.variants.len()), "{}", plan.name);
        assert!(!row.comparisons.is_empty(), "{}", plan.name);
        assert_eq!(row.comparisons.len(), plan.compares.len(), "{}", plan.name);
        assert_eq!(row.exact_checks.len(), plan.exact_checks.len(), "{}", plan.name);
        let is_above = |row: &RowReport, variant: usize, figure: usize| {
            row.variants[variant].figures[figure].median.is_some_and(|value| value > 0.0)
        };
        for (variant, figure) in what_runs(plan.name) {
            let again = || RowRounds::measure(plan, &context, 1, &mut |_, _| {}).expect(plan.name);
            let mut others = (0..20).map(|_| again().row(plan, &context, String::new()));
            let is_found =
                is_above(&row, variant, figure) || others.any(|other| is_above(&other, variant, figure));
            assert!(is_found, "{}: figure {figure} of variant {variant} is always 0", plan.name);
        }
        for variant in &row.variants {
            let sizes: Vec<Option<f64>> = variant.figures.iter().map(|figure| figure.median).collect();
            let found = figures_that_follow(plan.name, variant.name, &sizes);
            assert_eq!(found, Ok(()), "{} {}: {sizes:?}", plan.name, variant.name);
        }
    }
}

/// Figures that are above 0 unless a lane has no time: variants and figures.
fn what_runs(row: &str) -> Vec<(usize, usize)> {
    let of = |variants: &[usize], figure| variants.iter().map(move |at| (*at, figure)).collect::<Vec<_>>();
    match row {
        "mq-netem" => [of(&[0, 1, 2, 3], 0), of(&[1, 2, 3], 6), of(&[1, 2, 3], 10)].concat(),
        "oslat" => [of(&[1, 2], 2), of(&[0, 1, 2], 6)].concat(),
        "enqueue" => of(&[0, 1, 2], 0),
        "dbench" => [of(&[0, 1, 2, 3], 0), of(&[0, 1, 2, 3], 7)].concat(),
        "idle" => [of(&[1, 2], 0), of(&[0, 1, 2], 1), of(&[1, 2], 2)].concat(),
        "cyclictest" => [of(&[0, 1, 2, 3, 4], 0), of(&[1, 2, 3, 4], 5)].concat(),
        "blocked" => [of(&[0, 1, 2, 3], 0), of(&[0, 1, 2, 3], 3)].concat(),
        _ => [of(&[1, 2, 3], 9), of(&[1], 4), of(&[1, 2, 3], 6), of(&[0, 1, 2, 3], 15)].concat(),
    }
}

/// Figures of a round, however short and however slow the machine was: those that the variant fixes, those
/// that it leaves without a sample, and those that cannot be above others. An error is the figure.
fn figures_that_follow(row: &str, variant: &str, of: &[Option<f64>]) -> Result<(), usize> {
    let is = |figure: usize, value: Option<f64>| if of[figure] == value { Ok(()) } else { Err(figure) };
    let rises = |figures: &[usize]| {
        let wrong = figures.windows(2).find(|pair| of[pair[0]] > of[pair[1]]);
        wrong.map_or(Ok(()), |pair| Err(pair[1]))
    };
    let (zero, all) = (Some(0.0), Some(100.0));
    match (row, variant) {
        ("mq-netem", "no delay") => is(5, None).and(is(6, zero)).and(rises(&[9, 10])),
        ("mq-netem", _) => rises(&[9, 10]),
        ("oslat", "no timers") => is(0, None).and(is(1, None)).and(is(2, zero)).and(rises(&[4, 5, 6])),
        ("oslat", _) => rises(&[4, 5, 6]),
        // A worker that is held up for the whole span makes no pair.
        ("enqueue", _) if of[0].is_none() => is(1, None),
        ("enqueue", "push") => is(1, all),
        ("enqueue", _) => is(1, zero),
        ("dbench", name) => {
            let of_loads = [1, 2, 4, 5, 6, 8, 9, 10].iter().try_for_each(|left_out| is(*left_out, None));
            of_loads.and(if name == "no timeouts" { is(11, None) } else { rises(&[11]) })
        }
        ("idle", "nothing armed") => is(2, zero).and(is(3, None)),
        ("cyclictest", "no softirqs") => {
            [5, 6, 7, 9, 10].iter().try_for_each(|figure| is(*figure, None)).and(rises(&[0, 1, 2, 3]))
        }
        ("cyclictest", name) => {
            let is_deferred = ["both", "defer"].contains(&name);
            rises(&[0, 1, 2, 3]).and(rises(&[5, 6])).and(if is_deferred { Ok(()) } else { is(8, zero) })
        }
        ("blocked", _) => rises(&[1, 2, 3]),
        ("isolated", "no timers") => {
            (10..15).try_for_each(|figure| is(figure, None)).and(is(9, zero)).and(rises(&[2, 3]))
        }
        ("isolated", _) => rises(&[0, 1]).and(rises(&[2, 3])).and(rises(&[7, 6])).and(rises(&[13, 14])),
        _ => Ok(()),
    }
}

/// Goal: with exclusion nothing foreign runs on the isolated lane; without it does, and the trace shows it.
/// Method: oslat, with a trace; both counts, by thread and by the runtime. A machine that gives the busy lane
/// no time at all is asked again.
#[test]
fn nothing_foreign_runs_on_an_isolated_lane() {
    let Some(cpus) = cpus("nothing_foreign_runs_on_an_isolated_lane") else { return };
    let mut context = TrialContext::new(Duration::from_millis(400), cpus, StopFlag::default());
    context.slices = SliceLog::on();
    let (oslat, mut foreign) = (plan("oslat"), 0);
    for _ in 0..20 {
        let rounds = RowRounds::measure(oslat, &context, 1, &mut |_, _| {}).expect("two lanes");
        let shown = &rounds.slices;
        let row = rounds.row(oslat, &context, String::new());
        assert_eq!(row.exact_checks.len(), 2);
        let is_nothing_broken = row.exact_checks.iter().all(|check| check.holds || check.found.is_none());
        assert!(is_nothing_broken, "{:?}", row.exact_checks);
        let ran_on_busy = |at: usize| shown[at].slices.iter().filter(|ran| ran.cpu == cpus[1]).count();
        assert_eq!((shown.len(), ran_on_busy(0), ran_on_busy(2)), (3, 0, 0));
        let count = |figure: usize| row.variants[1].figures[figure].median.unwrap_or(0.0);
        assert_eq!(count(0), ran_on_busy(1) as f64, "by thread, and by CPU");
        let lines = &row.variants[1].attachment.as_ref().expect("oslat's lines").lines;
        assert!(lines.last().is_some_and(|line| line.starts_with("    Duration:\t ")), "{lines:?}");
        foreign += ran_on_busy(1);
        if foreign > 0 && count(1) > 0.0 && !shown[2].slices.is_empty() {
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
    let Some(cpus) = cpus("watchdogs_that_may_move_take_queues_along") else { return };
    let context = TrialContext::new(Duration::from_millis(150), cpus, StopFlag::default());
    let mq_netem = plan("mq-netem");
    for _ in 0..20 {
        let rounds = RowRounds::measure(mq_netem, &context, 1, &mut |_, _| {});
        let row = rounds.expect("two lanes").row(mq_netem, &context, String::new());
        assert_eq!(row.exact_checks.len(), 2);
        let is_nothing_broken = row.exact_checks.iter().all(|check| check.holds || check.found.is_none());
        assert!(is_nothing_broken, "{:?}", row.exact_checks);
        assert!(row.words.iter().any(|word| word.contains("Two CPUs, four queues each")), "{:?}", row.words);
        let [floor, movable] = [0, 1].map(|at| &row.variants[at]);
        let figure = |at: usize| movable.figures[at].median.unwrap_or(0.0);
        assert_eq!(floor.figures[6].rounds, [0.0], "nothing waits for a watchdog");
        if figure(0) > 0.0 && figure(1) > 0.0 && figure(3) > 0.0 && figure(5) > 0.0 {
            return;
        }
    }
    panic!("no watchdog that may move did");
}
