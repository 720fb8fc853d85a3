//! Scenarios: a machine, loads, faults, variants and expectations in a TOML file.
//!
//! Invariants: nothing is run of a scenario with a mistake; errors name file, line, key and what is allowed;
//! memory is bounded whatever the file says. Files are opened by the caller. Described for users in
//! `docs/guide/simulator.md`.

mod costs;
mod error;
mod expand;
pub(crate) mod expect;
mod faults;
mod idle_states;
mod load;
mod loads;
pub(crate) mod names;
mod packets;
mod plan;
pub(crate) mod raw;
mod realtime;
mod settings;
mod topology;
mod value;

pub use costs::{Cost, CostTable, CostValue, MeasuredOn};
pub use error::ScenarioError;
pub use settings::{ScenarioSetting, SettingError, with_settings};

pub(crate) use costs::{Costs, Factor};
pub(crate) use idle_states::IdleState;
pub(crate) use load::{Cyclic, LoadKind, Periodic, PlannedLoad, SoftirqDevice};
pub(crate) use names::SenderName;
pub(crate) use packets::{Arrivals, TransmitQueue};
pub(crate) use plan::ScenarioPlan;

use error::ScenarioProblem;
use expect::{Expectation, ShownSum};
use quietcore_core::Nanos;
use raw::RawScenario;
use std::path::Path;

/// The longest file, in bytes.
const BYTES_MAX: usize = 1 << 20;

/// A checked scenario: every variant of it can run.
#[derive(Clone, Debug)]
pub struct Scenario {
    about: Option<String>,
    plans: Vec<ScenarioPlan>,
    expectations: Vec<Expectation>,
    shown: Vec<ShownSum>,
}

impl Scenario {
    /// Reads a scenario. `file` is how errors call it; `read` reads the costs file that it names, which is
    /// beside it. Without one, and for costs that neither has, things cost nothing.
    ///
    /// # Errors
    /// [`ScenarioError`]: file, line, key, what is wrong and what is allowed.
    pub fn parse(
        file: &Path,
        text: &str,
        read: &dyn Fn(&Path) -> std::io::Result<String>,
    ) -> Result<Self, ScenarioError> {
        let in_file = |problem: ScenarioProblem| problem.in_file(file, text);
        if text.len() > BYTES_MAX {
            let problem = format!("the file is longer than {BYTES_MAX} bytes");
            return Err(in_file(ScenarioProblem { span: 0..0, problem }));
        }
        let raw: RawScenario = toml::from_str(text).map_err(|error| in_file(error.into()))?;
        let mut costs = match &raw.costs {
            Some(name) => {
                if Path::new(name.get_ref()).file_name() != Some(name.get_ref().as_ref()) {
                    return Err(in_file(ScenarioProblem::at(
                        name,
                        "must be the name of a file beside the scenario",
                    )));
                }
                let path = file.with_file_name(name.get_ref());
                let found = read(&path).map_err(|error| {
                    in_file(ScenarioProblem::at(name, format!("cannot read {}: {error}", path.display())))
                })?;
                CostTable::parse(&path, &found)?
            }
            None => CostTable::default(),
        };
        costs.replace(&raw.cost).map_err(in_file)?;
        if let Some(name) = raw.costs.as_ref().filter(|_| !costs.missing().is_empty()) {
            let problem =
                format!("lacks the costs {}; run quietcore calibrate -o", costs.missing().join(", "));
            return Err(in_file(ScenarioProblem::at(name, problem)));
        }
        let plans = plan::plans(&raw, &costs).map_err(in_file)?;
        let labels: Vec<&str> = plans.iter().map(|plan| plan.label.as_str()).collect();
        let expectations = expect::parse(&raw.expect, &labels).map_err(in_file)?;
        let shown = expect::parse_shown(&raw.show, &labels).map_err(in_file)?;
        Ok(Self { about: raw.about, plans, expectations, shown })
    }

    /// What the scenario is about, in its own words.
    #[must_use]
    pub fn about(&self) -> Option<&str> {
        self.about.as_deref()
    }

    /// The variants by name, in the order in which they run.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.plans.iter().map(|plan| plan.label.as_str())
    }

    /// CPUs of the largest variant.
    #[must_use]
    pub fn cpu_count_max(&self) -> u16 {
        self.plans.iter().map(|plan| plan.topology.possible().len()).max().unwrap_or(0) as u16
    }

    /// Replaces the seed of all variants.
    pub fn set_seed(&mut self, seed: u64) {
        self.plans.iter_mut().for_each(|plan| plan.seed = seed);
    }

    /// Replaces the simulated time of all variants; it is kept between 1 ms and an hour.
    pub fn set_duration(&mut self, duration: Nanos) {
        let duration = Nanos(duration.0.clamp(1_000_000, 3_600_000_000_000));
        self.plans.iter_mut().for_each(|plan| plan.duration = duration);
    }

    /// The seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.plans.first().map_or(1, |plan| plan.seed)
    }

    /// What things cost here, and where each number is from.
    #[must_use]
    pub fn costs(&self) -> &CostTable {
        static NONE: std::sync::LazyLock<CostTable> = std::sync::LazyLock::new(CostTable::default);
        self.plans.first().map_or(&NONE, |plan| &plan.costs)
    }

    pub(crate) fn plans(&self) -> &[ScenarioPlan] {
        &self.plans
    }

    pub(crate) fn shown(&self) -> &[ShownSum] {
        &self.shown
    }

    pub(crate) fn expectations(&self) -> &[Expectation] {
        &self.expectations
    }
}
