//! Which rounds count, and what is asked of a scenario.

use super::cases::{CASES, FigureKind, PredictCase, PredictFigure};
use super::{measured, predicted};
use crate::LabError;
use crate::cpus::{allowed_cpus, two_cpus};
use crate::plan::TrialContext;
use crate::sync::StopFlag;
use quietcore_core::CpuId;
use quietcore_sim::{Cost, CostTable, CostValue};
use quietcore_testing::left_out;
use std::time::Duration;

const fn figure(what: &'static str, label: &'static str, unit: (&'static str, f64)) -> PredictFigure {
    let not_modelled = "all else";
    PredictFigure { what, label, figure: "pair_ns", unit, kind: FigureKind::Plain, not_modelled }
}

/// A CPU that arms and cancels a timer, or two that do and walk up; the figures in another order than the
/// variants.
static CASE: PredictCase = PredictCase {
    name: "a case",
    duration: "1ms",
    scenario: || {
        "[machine]\ncpus = 1\n[variants]\npolicy = [\"stay\", \"pull\"]\n[[load.enqueue]]\n\
         cpus = \"all\"\ndelay = \"1s\"\n"
            .to_owned()
    },
    figures: &[figure("of pull", "pull", ("us", 1e3)), figure("of stay", "stay", ("ns", 1.0))],
    live: |context| {
        context.stop.set();
        Ok(vec![Some(1.0), Some(2.0)])
    },
};

/// Goal: a figure is of its own variant, in its own unit, with costs as they are, halved and doubled. Method:
/// arming for 30 ns, cancelling for 12, and costs that the case does not have.
#[test]
fn a_figure_is_in_its_unit() {
    let mut costs = CostTable::default();
    for cost in Cost::ALL {
        let ns = match cost {
            Cost::Arm => 30.0,
            Cost::Cancel => 12.0,
            _ => 5_000.0,
        };
        costs.set(cost, CostValue { ns, spread: Vec::new(), source: "a".to_owned(), measured: None });
    }
    let all = predicted(&CASE, &costs).expect("it fits");
    let found = all.iter().map(|one| (one.question, one.what, one.unit, one.predicted));
    let expected = [("a case", "of pull", "us", 0.042), ("a case", "of stay", "ns", 42.0)];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    let range = all.iter().map(|one| (one.halved, one.doubled, one.measured.is_none()));
    assert_eq!(range.collect::<Vec<_>>(), [(0.021, 0.084, true), (21.0, 84.0, true)]);
    const OF_PUSH: &[PredictFigure] = &[figure("of push", "push", ("ns", 1.0))];
    let absent = PredictCase { figures: OF_PUSH, ..CASE };
    let error = predicted(&absent, &costs).expect_err("no such variant");
    assert!(matches!(error, LabError::NoFigure { scenario: "a case", figure: "pair_ns", variant: "push" }));
}

/// Goal: each round is told and counts, unless it was cut short; once the run is stopped none begins. Method:
/// rounds that end well, and a case that stops the run.
#[test]
fn a_round_that_was_cut_short_is_no_measurement() {
    let cpus = [1, 2].map(|number| CpuId::new(number).expect("a CPU"));
    let context = TrialContext::new(Duration::from_millis(1), cpus, StopFlag::default());
    let rounds = |case: &PredictCase| {
        let mut told = Vec::new();
        let mut tell = |name, round| told.push((name, round));
        let all = measured(case, &context, 3, &mut tell).expect("no trial fails");
        (all, told)
    };
    let live = |context: &TrialContext| Ok(vec![Some(context.span.as_millis() as f64)]);
    let (all, told) = rounds(&PredictCase { live, ..CASE });
    assert_eq!(all, vec![vec![Some(1.0)]; 3]);
    assert_eq!(told, [("a case", 1), ("a case", 2), ("a case", 3)]);
    assert_eq!(rounds(&CASE), (Vec::new(), vec![("a case", 1)]));
    assert_eq!(rounds(&CASE), (Vec::new(), Vec::new()));
}

/// Goal: what is measured for a figure is of the figure's own rule. Method: each case's two figures differ by
/// a lot, and in the same direction as they are predicted to; a machine that is busy otherwise is asked
/// again.
#[test]
fn figures_are_measured_as_they_are_predicted() {
    let cpus = match two_cpus(None, &allowed_cpus().expect("it can be read")) {
        Ok(cpus) => cpus,
        Err(error) => return left_out("figures_are_measured_as_they_are_predicted", error),
    };
    for (case, is_second_larger) in CASES.iter().zip([false, false, false, false, true]) {
        let context = TrialContext::new(Duration::from_millis(260), cpus, StopFlag::default());
        let is_as_predicted = |_| {
            let figures = (case.live)(&context).expect("two lanes");
            assert_eq!(figures.len(), case.figures.len(), "{}", case.name);
            let both = figures[0].zip(figures[1]);
            both.is_some_and(|(one, other)| one != other && (one < other) == is_second_larger)
        };
        assert!((0..20).any(is_as_predicted), "{}", case.name);
    }
}
