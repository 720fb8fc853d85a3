//! Running a scenario: all variants, what they were expected to be, and how much depends on the costs.

use crate::figures::{NUMBERS, NamedFigure, RunFigures};
use crate::scenario::{Factor, Scenario};
use crate::world::{Exporter, RunOptions, World};
use quietcore_core::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// How to run a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimOptions {
    /// Compute the hash of each run.
    pub hash: bool,
    /// Run everything again with all costs halved and doubled.
    pub sensitivity: bool,
    /// Assert the machine's invariants after every event; slow.
    pub check: bool,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self { hash: true, sensitivity: false, check: false }
    }
}

/// How far a scenario is.
#[derive(Clone, Copy, Debug)]
pub struct SimProgress<'a> {
    /// The variant that runs.
    pub label: &'a str,
    /// Simulated time.
    pub at: Nanos,
    /// Its end.
    pub of: Nanos,
    /// Events handled in this run.
    pub events: u64,
}

/// A figure with half and with double costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CostRange {
    /// With all costs halved.
    pub halved: Option<f64>,
    /// With all costs doubled.
    pub doubled: Option<f64>,
}

/// One variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantOutcome {
    /// Its name.
    pub label: String,
    /// What it amounts to.
    pub figures: RunFigures,
    /// By figure, those that change; empty when it was not asked for.
    pub sensitivity: BTreeMap<&'static str, CostRange>,
}

/// One comparison that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExpectVerdict {
    /// About which variant.
    pub variant: String,
    /// As it is written in the scenario.
    pub expected: String,
    /// The two sides.
    pub found: String,
    /// Whether it holds.
    pub holds: bool,
}

/// One sum that the scenario shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShownValue {
    /// Of which variant.
    pub variant: String,
    /// As it is written in the scenario.
    pub what: String,
    /// `None` when a figure in it has no value.
    pub value: Option<f64>,
}

/// What a scenario amounts to; everything in it is simulated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimOutcome {
    /// Which seed.
    pub seed: u64,
    /// In the order of the scenario.
    pub variants: Vec<VariantOutcome>,
    /// The scenario's own sums.
    pub shown: Vec<ShownValue>,
    /// In the order of the scenario's keys.
    pub verdicts: Vec<ExpectVerdict>,
    /// Whether every expectation holds.
    pub holds: bool,
}

/// Given a variant's label, a place for its events, or none.
pub type PerfettoSink<'a> = &'a mut dyn FnMut(&str) -> io::Result<Option<Box<dyn Write>>>;

impl Scenario {
    /// Runs all variants. `progress` is told every 100,000 events how far it is and says whether to go on;
    /// `None` when it said no. `perfetto` gives a place for the events of a variant, or none.
    ///
    /// # Errors
    /// Those of the places that `perfetto` gives.
    ///
    /// # Panics
    /// When the core breaks an invariant; the message says which, and the seed and label name the run.
    pub fn run(
        &self,
        options: SimOptions,
        progress: &mut dyn FnMut(SimProgress<'_>) -> bool,
        perfetto: PerfettoSink<'_>,
    ) -> io::Result<Option<SimOutcome>> {
        let mut variants = Vec::new();
        for plan in self.plans() {
            let mut run = |factor, out: Option<Box<dyn Write>>| {
                let options = RunOptions { factor, hash: options.hash, check: options.check };
                let mut told =
                    |at, events| progress(SimProgress { label: &plan.label, at, of: plan.duration, events });
                World::new(plan, options, out.map(Exporter::new)).run_to_end(&mut told)
            };
            let out = perfetto(&plan.label)?;
            let Some(figures) = run(Factor::One, out)? else { return Ok(None) };
            let mut sensitivity = BTreeMap::new();
            if options.sensitivity {
                let Some(halved) = run(Factor::Half, None)? else { return Ok(None) };
                let Some(doubled) = run(Factor::Double, None)? else { return Ok(None) };
                sensitivity = ranges(&figures, &halved, &doubled);
            }
            variants.push(VariantOutcome { label: plan.label.clone(), figures, sensitivity });
        }
        Ok(Some(self.judge(variants)))
    }

    /// What this scenario says of figures, of each of [`labels`](Self::labels) in their order. A run ends
    /// with this; figures that were exchanged show whether the scenario would notice.
    ///
    /// # Panics
    /// When there are fewer variants than labels.
    #[must_use]
    pub fn judge(&self, variants: Vec<VariantOutcome>) -> SimOutcome {
        let figures: Vec<RunFigures> = variants.iter().map(|variant| variant.figures.clone()).collect();
        let mut verdicts = Vec::new();
        for expectation in self.expectations() {
            let (holds, found) = expectation.check(&figures);
            let variant = variants[expectation.variant].label.clone();
            verdicts.push(ExpectVerdict { variant, expected: expectation.text.clone(), found, holds });
        }
        let holds = verdicts.iter().all(|verdict| verdict.holds);
        let shown = self.shown().iter().map(|shown| ShownValue {
            variant: variants[shown.variant].label.clone(),
            what: shown.text.clone(),
            value: shown.number(&figures),
        });
        let shown = shown.collect();
        SimOutcome { seed: self.seed(), variants, shown, verdicts, holds }
    }
}

/// The figures that differ with the costs.
fn ranges(
    figures: &RunFigures,
    halved: &RunFigures,
    doubled: &RunFigures,
) -> BTreeMap<&'static str, CostRange> {
    let range = |(name, of): NamedFigure| {
        let range = CostRange { halved: of(halved), doubled: of(doubled) };
        let changes = [range.halved, range.doubled].into_iter().any(|other| other != of(figures));
        changes.then_some((name, range))
    };
    NUMBERS.into_iter().filter(|(name, _)| *name != "events").filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::{RunFigures, ranges};

    /// Goal: a figure that differs with halved or with doubled costs is there, with both. Method: one each,
    /// and one that differs with neither.
    #[test]
    fn figures_that_differ_with_the_costs_have_a_range() {
        let run =
            |remote, kicks, events| RunFigures { arms: 5, remote, kicks, events, ..RunFigures::default() };
        let ranges = ranges(&run(6, 7, 1), &run(8, 7, 2), &run(6, 9, 3));
        let ranges: Vec<_> =
            ranges.into_iter().map(|(name, range)| (name, range.halved, range.doubled)).collect();
        assert_eq!(ranges, [("kicks", Some(7.0), Some(9.0)), ("remote", Some(8.0), Some(6.0))]);
    }
}
