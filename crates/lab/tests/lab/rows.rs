//! The rows themselves, with spans that are too short to measure anything.

use crate::fixture::plan;
use quietcore_core::CpuId;
use quietcore_lab::{ROWS, RowRounds, RunScale, SliceLog, StopFlag, TrialContext, allowed_cpus, two_cpus};
use quietcore_testing::left_out;
use std::time::Duration;

/// `None` in containers with one CPU: there is no lab, and `test` is left out.
fn cpus(test: &str) -> Option<[CpuId; 2]> {
    let found = two_cpus(None, &allowed_cpus().expect("it can be read"));
    found.inspect_err(|error| left_out(test, error)).ok()
}

/// Goal: every row runs, gives all its figures, and its plan names figures and variants that exist. Method:
/// one round that is much too short.
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
