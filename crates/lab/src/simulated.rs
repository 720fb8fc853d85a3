//! The scenario that asks a row's question of the simulator, run beside it, with its costs halved and
//! doubled.
//!
//! The scenarios are part of the binary, so that the lab works from any directory; they are the files of
//! `scenarios/`, whose costs were measured before, on the machines that `costs.toml` names. Nothing here is a
//! measurement, and nothing here knows what was measured.

use crate::error::LabError;
use crate::plan::{RowScenario, ScenarioCompare};
use crate::report::{ScenarioComparison, ScenarioReport, ScenarioValue};
use quietcore_sim::{Scenario, SimOptions, SimOutcome};
use std::io;
use std::path::Path;

/// The costs that all scenarios share.
const COSTS: &str = include_str!("../scenarios/costs.toml");

/// Runs `of`; `None` when `go_on` said no.
pub(crate) fn run(
    of: &RowScenario,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Option<ScenarioReport>, LabError> {
    let scenario = Scenario::parse(Path::new(of.name), of.text, &read)?;
    let options = SimOptions { sensitivity: true, hash: false, ..SimOptions::default() };
    let outcome = scenario.run(options, &mut |_| go_on(), &mut |_| Ok(None)).map_err(LabError::Simulation)?;
    Ok(outcome.map(|outcome| ScenarioReport {
        scenario: of.name,
        costs: scenario.costs().origins(),
        holds: outcome.holds,
        comparisons: of.compares.iter().map(|compare| comparison(&outcome, compare)).collect(),
    }))
}

/// The one file that a bundled scenario names, whatever its folder.
fn read(path: &Path) -> io::Result<String> {
    let is_costs = path.file_name().is_some_and(|name| name == "costs.toml");
    if is_costs { Ok(COSTS.to_owned()) } else { Err(io::Error::from(io::ErrorKind::NotFound)) }
}

fn comparison(outcome: &SimOutcome, compare: &ScenarioCompare) -> ScenarioComparison {
    let (before, after) = (value(outcome, compare, compare.before), value(outcome, compare, compare.after));
    let ratio = before.value.zip(after.value).filter(|(old, _)| *old != 0.0).map(|(old, new)| new / old);
    let ScenarioCompare { what, unit, better, .. } = *compare;
    ScenarioComparison { what, unit: unit.0, better, before, after, ratio }
}

fn value(outcome: &SimOutcome, compare: &ScenarioCompare, label: &'static str) -> ScenarioValue {
    let found = outcome.variants.iter().find(|variant| variant.label == label);
    let scaled = |value: Option<f64>| value.map(|value| value / compare.unit.1);
    let plain = found.and_then(|variant| scaled(variant.figures.number(compare.figure)));
    // A figure that does not change is not listed.
    let range = found.and_then(|variant| variant.sensitivity.get(compare.figure));
    ScenarioValue {
        variant: label,
        value: plain,
        halved: range.map_or(plain, |range| scaled(range.halved)),
        doubled: range.map_or(plain, |range| scaled(range.doubled)),
    }
}

#[cfg(test)]
mod tests {
    use super::{comparison, read, run};
    use crate::plan::{RowScenario, ScenarioCompare};
    use crate::rows::ROWS;
    use quietcore_sim::{Scenario, SimOptions};
    use std::path::Path;

    /// Goal: every figure that a row names exists in its scenario. Method: run them.
    #[test]
    fn scenarios_of_rows_have_what_rows_name() {
        for plan in ROWS {
            let Some(scenario) = &plan.scenario else { continue };
            let found = run(scenario, &mut || true).expect("it is bundled").expect("nothing stops it");
            assert!(found.holds, "{}", scenario.name);
            for compare in &found.comparisons {
                let values = [&compare.before, &compare.after];
                assert!(values.iter().all(|value| value.value.is_some()), "{}: {compare:?}", scenario.name);
            }
        }
    }

    /// Goal: the costs are found whatever the folder, nothing else is, and Ctrl-C ends a scenario.
    #[test]
    fn costs_are_found_and_scenarios_can_be_stopped() {
        assert!(read(Path::new("any/costs.toml")).is_ok());
        assert!(read(Path::new("other.toml")).is_err() && read(Path::new("/")).is_err());
        let mut all = ROWS.iter().filter_map(|plan| plan.scenario.as_ref());
        let dbench = all.find(|scenario| scenario.name == "dbench-128.toml").expect("a row");
        assert!(run(dbench, &mut || false).expect("it is bundled").is_none());
    }

    /// Goal: a scenario that expects what is not so does not hold. Method: one that does, and one that does
    /// not.
    #[test]
    fn a_scenario_holds_if_what_it_expects_is_so() {
        for (expected, holds) in [("lost = 0", true), ("lost = 1", false)] {
            let text = format!(
                "duration = \"1ms\"\n[machine]\ncpus = 1\n[[load.periodic]]\ncpus = \"0\"\n\
                 period = \"1ms\"\n[expect]\nevery = [\"{expected}\"]\n"
            );
            let of = RowScenario { name: "a.toml", text: Box::leak(text.into_boxed_str()), compares: &[] };
            let found = run(&of, &mut || true).expect("it fits").expect("nothing stops it");
            assert_eq!(found.holds, holds, "{expected}");
        }
    }

    /// Goal: a comparison has each variant's own figure, in its unit, with costs as they are, halved and
    /// doubled; one that costs do not change is the same with all; the ratio is after by before, and nothing
    /// by nothing has none. Method: a run whose figures are then set, so that no two are alike.
    #[test]
    fn a_comparison_is_of_its_variants() {
        let text = "duration = \"1ms\"\n[machine]\ncpus = 1\n[variants]\npolicy = [\"stay\", \"pull\"]\n\
                    [[load.enqueue]]\ncpus = \"0\"\ndelay = \"1s\"\n\
                    [cost]\narm = { ns = 40, source = \"a\" }\n";
        let scenario = Scenario::parse(Path::new("a.toml"), text, &read).expect("it fits");
        let options = SimOptions { sensitivity: true, ..SimOptions::default() };
        let outcome = scenario.run(options, &mut |_| true, &mut |_| Ok(None)).expect("no output");
        let mut outcome = outcome.expect("nothing stops it");
        let figures = [(6_000.0, 3_000.0, 15_000.0), (1_500.0, 750.0, 2_500.0)];
        for (variant, (now, halved, doubled)) in outcome.variants.iter_mut().zip(figures) {
            variant.figures.pair_ns = Some(now);
            let range = variant.sensitivity.get_mut("pair_ns").expect("it depends on costs");
            (range.halved, range.doubled) = (Some(halved), Some(doubled));
        }
        let compare = ScenarioCompare::lower("a pair", "pair_ns", "stay", "pull");
        let found = comparison(&outcome, &compare);
        assert_eq!((found.what, found.unit, found.ratio), ("a pair", "us", Some(0.25)));
        let both = [found.before, found.after].map(|one| (one.variant, one.value, one.halved, one.doubled));
        let expected =
            [("stay", Some(6.0), Some(3.0), Some(15.0)), ("pull", Some(1.5), Some(0.75), Some(2.5))];
        assert_eq!(both, expected);
        outcome.variants[0].figures.pair_ns = Some(0.0);
        outcome.variants[1].sensitivity.clear();
        let found = comparison(&outcome, &compare);
        assert_eq!((found.ratio, found.after.halved, found.after.doubled), (None, Some(1.5), Some(1.5)));
    }
}
