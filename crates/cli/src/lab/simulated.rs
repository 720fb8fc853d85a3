//! The scenario that asks a row's question of the simulator, run beside it, with its costs halved and
//! doubled.
//!
//! The scenarios are part of the binary, so that the lab works from any directory; they are the files of
//! `scenarios/`, whose costs were measured once, on the machine that `costs.toml` names. Nothing here is a
//! measurement, and nothing here knows what was measured.

use super::plan::{Sim, SimCompare};
use super::report::{SimComparison, SimValue, Simulated};
use crate::error::CliError;
use quietcore_sim::{Options, Outcome, Scenario};
use std::io;
use std::path::Path;

macro_rules! bundled {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../../../../scenarios/", $name)))),*]
    };
}

/// By name: the scenarios that rows name, and the costs.
const FILES: [(&str, &str); 9] = bundled![
    "costs.toml",
    "cyclictest.toml",
    "dbench-128.toml",
    "enqueue.toml",
    "idle.toml",
    "isolated.toml",
    "mq-netem.toml",
    "oslat-128.toml",
    "stall-asleep.toml"
];

/// Runs the scenario of `sim`; `None` when `go_on` said no.
pub(super) fn run(sim: &Sim, go_on: &mut dyn FnMut() -> bool) -> Result<Option<Simulated>, CliError> {
    let path = Path::new("scenarios").join(sim.scenario);
    let text = read(&path).map_err(CliError::Output)?;
    let scenario = Scenario::parse(&path, &text, &read);
    let scenario = scenario.map_err(|error| CliError::Usage(error.to_string()))?;
    let options = Options { sensitivity: true, hash: false, ..Options::default() };
    let outcome = scenario.run(options, &mut |_| go_on(), &mut |_| Ok(None))?;
    Ok(outcome.map(|outcome| Simulated {
        scenario: sim.scenario,
        costs: costs(&scenario),
        holds: outcome.holds,
        comparisons: sim.compares.iter().map(|compare| comparison(&outcome, compare)).collect(),
    }))
}

/// A bundled file, whatever its folder.
fn read(path: &Path) -> io::Result<String> {
    let name = path.file_name().unwrap_or_default();
    let found = FILES.iter().find(|(bundled, _)| name == *bundled);
    found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
}

fn costs(scenario: &Scenario) -> String {
    match scenario.costs().measured() {
        Some(at) => {
            format!("measured on {}, {} CPUs, Linux {}, {}", at.cpu, at.cores, at.kernel, at.date)
        }
        None => "those that the scenario gives".to_owned(),
    }
}

fn comparison(outcome: &Outcome, compare: &SimCompare) -> SimComparison {
    let (before, after) = (value(outcome, compare, compare.before), value(outcome, compare, compare.after));
    let ratio = before.value.zip(after.value).filter(|(old, _)| *old != 0.0).map(|(old, new)| new / old);
    let SimCompare { what, unit, better, .. } = *compare;
    SimComparison { what, unit: unit.0, better, before, after, ratio }
}

fn value(outcome: &Outcome, compare: &SimCompare, label: &'static str) -> SimValue {
    let found = outcome.variants.iter().find(|variant| variant.label == label);
    let scaled = |value: Option<f64>| value.map(|value| value / compare.unit.1);
    let plain = found.and_then(|variant| scaled(variant.figures.number(compare.figure)));
    // A figure that does not change is not listed.
    let range = found.and_then(|variant| variant.sensitivity.get(compare.figure));
    SimValue {
        variant: label,
        value: plain,
        halved: range.map_or(plain, |range| scaled(range.halved)),
        doubled: range.map_or(plain, |range| scaled(range.doubled)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ROWS;
    use super::{FILES, read, run};
    use std::path::Path;

    /// Goal: every row's scenario is bundled, and every figure that a row names exists in it. Method: run
    /// them.
    #[test]
    fn scenarios_of_rows_have_what_rows_name() {
        for plan in ROWS {
            let Some(sim) = &plan.sim else { continue };
            let found = run(sim, &mut || true).expect("it is bundled").expect("nobody stops it");
            assert!(found.holds, "{}", sim.scenario);
            for compare in &found.comparisons {
                let values = [&compare.before, &compare.after];
                assert!(values.iter().all(|value| value.value.is_some()), "{}: {compare:?}", sim.scenario);
            }
        }
    }

    /// Goal: what is bundled is found by name, and Ctrl-C ends a scenario. Method: each of them, another, no.
    #[test]
    fn scenarios_are_found_and_can_be_stopped() {
        assert!(
            FILES.iter().all(|(name, text)| read(&Path::new("any").join(name)).is_ok_and(|it| it == *text))
        );
        assert!(read(Path::new("other.toml")).is_err());
        let mut longest = ROWS.iter().filter_map(|plan| plan.sim.as_ref());
        let dbench = longest.find(|sim| sim.scenario == "dbench-128.toml").expect("a row");
        assert!(run(dbench, &mut || false).expect("it is bundled").is_none());
    }
}
