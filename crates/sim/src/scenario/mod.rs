//! Scenarios: a machine, loads, faults, variants and expectations in a TOML file.
//!
//! Invariants: nothing is run of a scenario with a mistake; errors name file, line, key and what is allowed;
//! memory is bounded whatever the file says. Files are opened by the caller. Described for users in
//! `docs/sim.md`.

mod costs;
mod error;
mod expand;
pub(crate) mod expect;
mod faults;
mod load;
mod loads;
pub(crate) mod names;
mod packets;
mod plan;
pub(crate) mod raw;
mod realtime;
mod topology;
mod value;

pub use costs::{Cost, CostTable, CostValue, Measured};
pub use error::ScenarioError;

pub(crate) use costs::{Costs, Factor};
pub(crate) use load::{Cyclic, Device, Load, LoadKind, Periodic};
pub(crate) use names::SenderName;
pub(crate) use packets::{Arrivals, TransmitQueue};
pub(crate) use plan::Plan;

use error::Problem;
use expect::{Expectation, Shown};
use quietcore_core::Nanos;
use raw::RawScenario;
use std::path::Path;

/// The longest file, in bytes.
const BYTES_MAX: usize = 1 << 20;

/// A checked scenario: every variant of it can run.
///
/// ```
/// use quietcore_sim::Scenario;
///
/// let text = r#"
///     duration = "100ms"
///     [machine]
///     cpus = 8
///     isolated = "1-3"
///     [variants]
///     exclusion = ["off", "v2"]
///     [[load.periodic]]
///     cpus = "housekeeping"
///     period = "10ms"
///     [expect]
///     v2 = ["foreign = 0"]
/// "#;
/// let scenario = Scenario::parse("mine.toml".as_ref(), text, &|_| unreachable!("names no costs file"))?;
/// assert_eq!(scenario.labels().collect::<Vec<_>>(), ["off", "v2"]);
/// # Ok::<(), quietcore_sim::ScenarioError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scenario {
    about: Option<String>,
    plans: Vec<Plan>,
    expectations: Vec<Expectation>,
    shown: Vec<Shown>,
}

impl Scenario {
    /// Reads a scenario. `file` is how errors call it; `read` reads the costs file that it names, which is
    /// beside it. Without one, and for costs that neither has, things cost nothing.
    ///
    /// # Errors
    /// [`ScenarioError`]: file, line, key, what is wrong and what is allowed.
    ///
    /// ```
    /// use quietcore_sim::Scenario;
    /// let error = Scenario::parse("a.toml".as_ref(), "durations = 1", &|_| unreachable!()).unwrap_err();
    /// assert!(error.to_string().contains("unknown field `durations`"), "{error}");
    /// ```
    pub fn parse(
        file: &Path,
        text: &str,
        read: &dyn Fn(&Path) -> std::io::Result<String>,
    ) -> Result<Self, ScenarioError> {
        let in_file = |problem: Problem| problem.in_file(file, text);
        if text.len() > BYTES_MAX {
            let problem = format!("the file is longer than {BYTES_MAX} bytes");
            return Err(in_file(Problem { span: 0..0, problem }));
        }
        let raw: RawScenario = toml::from_str(text).map_err(|error| in_file(error.into()))?;
        let mut costs = match &raw.costs {
            Some(name) => {
                if Path::new(name.get_ref()).file_name() != Some(name.get_ref().as_ref()) {
                    return Err(in_file(Problem::at(name, "must be the name of a file beside the scenario")));
                }
                let path = file.with_file_name(name.get_ref());
                let found = read(&path).map_err(|error| {
                    in_file(Problem::at(name, format!("cannot read {}: {error}", path.display())))
                })?;
                CostTable::parse(&path, &found)?
            }
            None => CostTable::default(),
        };
        costs.replace(&raw.cost).map_err(in_file)?;
        if let Some(name) = raw.costs.as_ref().filter(|_| !costs.missing().is_empty()) {
            let problem =
                format!("lacks the costs {}; run quietcore calibrate -o", costs.missing().join(", "));
            return Err(in_file(Problem::at(name, problem)));
        }
        let plans = plan::plans(&raw, &costs).map_err(in_file)?;
        let labels: Vec<&str> = plans.iter().map(|plan| plan.label.as_str()).collect();
        let expectations = expect::parse(&raw.expect, &labels).map_err(in_file)?;
        let shown = expect::parse_shown(&raw.show, &labels).map_err(in_file)?;
        Ok(Self { about: raw.about, plans, expectations, shown })
    }

    /// What the scenario is about, in its own words.
    ///
    /// ```
    /// # use quietcore_sim::Scenario;
    /// let text = "about = \"nothing\"\nduration = \"1s\"\n[machine]\ncpus = 1\n";
    /// let scenario = Scenario::parse("a.toml".as_ref(), text, &|_| unreachable!())?;
    /// assert_eq!(scenario.about(), Some("nothing"));
    /// # Ok::<(), quietcore_sim::ScenarioError>(())
    /// ```
    #[must_use]
    pub fn about(&self) -> Option<&str> {
        self.about.as_deref()
    }

    /// The variants by name, in the order in which they run.
    ///
    /// ```
    /// # use quietcore_sim::Scenario;
    /// let text = "duration = \"1s\"\n[machine]\ncpus = 1\n";
    /// let scenario = Scenario::parse("a.toml".as_ref(), text, &|_| unreachable!())?;
    /// assert_eq!(scenario.labels().collect::<Vec<_>>(), ["only"]);
    /// # Ok::<(), quietcore_sim::ScenarioError>(())
    /// ```
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.plans.iter().map(|plan| plan.label.as_str())
    }

    /// Replaces the seed of all variants.
    ///
    /// ```
    /// # use quietcore_sim::Scenario;
    /// let text = "duration = \"1s\"\n[machine]\ncpus = 1\n";
    /// let mut scenario = Scenario::parse("a.toml".as_ref(), text, &|_| unreachable!())?;
    /// scenario.set_seed(9);
    /// assert_eq!(scenario.seed(), 9);
    /// # Ok::<(), quietcore_sim::ScenarioError>(())
    /// ```
    pub fn set_seed(&mut self, seed: u64) {
        self.plans.iter_mut().for_each(|plan| plan.seed = seed);
    }

    /// Replaces the simulated time of all variants; it is kept between 1 ms and an hour.
    ///
    /// ```
    /// # use quietcore_sim::{Options, Scenario};
    /// let text = "duration = \"60s\"\n[machine]\ncpus = 1\n";
    /// let mut scenario = Scenario::parse("a.toml".as_ref(), text, &|_| unreachable!())?;
    /// scenario.set_duration(quietcore_core::Nanos(5_000_000));
    /// let outcome = scenario.run(Options::default(), &mut |_| true, &mut |_| Ok(None))?.expect("not stopped");
    /// assert_eq!(outcome.variants[0].figures.duration_ns, 5_000_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_duration(&mut self, duration: Nanos) {
        let duration = Nanos(duration.0.clamp(1_000_000, 3_600_000_000_000));
        self.plans.iter_mut().for_each(|plan| plan.duration = duration);
    }

    /// The seed.
    ///
    /// ```
    /// # use quietcore_sim::Scenario;
    /// let text = "duration = \"1s\"\n[machine]\ncpus = 1\n";
    /// assert_eq!(Scenario::parse("a.toml".as_ref(), text, &|_| unreachable!())?.seed(), 1);
    /// # Ok::<(), quietcore_sim::ScenarioError>(())
    /// ```
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.plans.first().map_or(1, |plan| plan.seed)
    }

    /// What things cost here, and where each number is from.
    ///
    /// ```
    /// # use quietcore_sim::Scenario;
    /// let text = "duration = \"1s\"\n[machine]\ncpus = 1\n";
    /// let scenario = Scenario::parse("a.toml".as_ref(), text, &|_| unreachable!())?;
    /// assert_eq!(scenario.costs().measured(), None);
    /// # Ok::<(), quietcore_sim::ScenarioError>(())
    /// ```
    #[must_use]
    pub fn costs(&self) -> &CostTable {
        static NONE: std::sync::LazyLock<CostTable> = std::sync::LazyLock::new(CostTable::default);
        self.plans.first().map_or(&NONE, |plan| &plan.costs)
    }

    pub(crate) fn plans(&self) -> &[Plan] {
        &self.plans
    }

    pub(crate) fn shown(&self) -> &[Shown] {
        &self.shown
    }

    pub(crate) fn expectations(&self) -> &[Expectation] {
        &self.expectations
    }
}
