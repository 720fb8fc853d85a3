//! What must hold for any text as a scenario of the simulator, with the file of costs that it names.
//!
//! No panic; a mistake has a line of the text and says what it is; a scenario that is small enough runs for a
//! millisecond, twice to the same end, with the core's invariants checked, and no timer early.

use quietcore_core::Nanos;
use quietcore_sim::{Scenario, SimOptions, SimOutcome};

/// The line between a scenario and its costs.
pub const COSTS_FOLLOW: &str = "\n# costs follow\n";

/// What is run: no more CPUs and variants than this.
const CPUS_MAX: u16 = 16;
const VARIANTS_MAX: usize = 3;

/// Reads `text`, runs it if it is small, and asserts all of it.
pub fn check_scenario(text: &str) {
    let (scenario, costs) = text.split_once(COSTS_FOLLOW).unwrap_or((text, ""));
    let mut scenario = match Scenario::parse("fuzz.toml".as_ref(), scenario, &|_| Ok(costs.to_owned())) {
        Ok(scenario) => scenario,
        Err(why) => {
            assert!(!why.problem.is_empty(), "{why:?}");
            assert!(why.line <= text.lines().count() + 1, "{why:?}");
            return;
        }
    };
    assert!(!scenario.costs().origins().is_empty());
    if scenario.cpu_count_max() > CPUS_MAX || scenario.labels().count() > VARIANTS_MAX {
        return;
    }
    scenario.set_duration(Nanos(1_000_000));
    let Some(outcome) = run(&scenario) else { return };
    for variant in &outcome.variants {
        assert_eq!(variant.figures.early, 0, "{}", variant.label);
    }
    assert_eq!(outcome.holds, outcome.verdicts.iter().all(|verdict| verdict.holds));
    // By their text: what is no number is not equal to itself.
    assert_eq!(format!("{:?}", run(&scenario)), format!("{:?}", Some(outcome)), "two runs of one seed");
}

/// `None` of one that takes more than 100,000 events.
fn run(scenario: &Scenario) -> Option<SimOutcome> {
    let options = SimOptions { check: true, ..SimOptions::default() };
    scenario.run(options, &mut |_| false, &mut |_| Ok(None)).expect("nothing is written")
}

#[cfg(test)]
mod tests {
    use super::{COSTS_FOLLOW, check_scenario};

    /// Goal: the checks accept the project's scenarios, of which some are small enough to run. Method: each
    /// file, with the project's costs.
    #[test]
    fn the_checks_accept_the_projects_scenarios() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios");
        let costs = std::fs::read_to_string(format!("{folder}/costs.toml")).expect("readable");
        let mut checked = 0;
        for entry in std::fs::read_dir(folder).expect("the folder exists") {
            let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("readable");
            check_scenario(&format!("{text}{COSTS_FOLLOW}{costs}"));
            checked += 1;
        }
        assert!(checked > 1, "no scenario in {folder}");
    }
}
