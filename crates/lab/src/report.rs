//! The report of a run, as the JSON has it (docs/reference/lab.md); text and HTML are made of the same.
//!
//! Invariant: names of fields and verdicts do not change within a schema; new ones may appear.

use crate::host::LabHost;
use crate::plan::{Better, Citation, ToolOutput, VariantRole};
use serde::Serialize;

/// Rises when a field changes its meaning or goes away.
pub const SCHEMA: u32 = 3;

/// Everything that is printed.
#[derive(Clone, Debug, Serialize)]
pub struct LabReport {
    /// Of this report: rises when a field changes its meaning or goes away.
    pub schema: u32,
    /// The version that ran.
    pub quietcore: &'static str,
    /// False after Ctrl-C: what is here was measured, and something is missing.
    pub complete: bool,
    /// Whether this was the quick run.
    pub quick: bool,
    /// Where it ran.
    pub host: LabHost,
    /// In the order in which they ran.
    pub rows: Vec<RowReport>,
}

/// One experiment.
#[derive(Clone, Debug, Serialize)]
pub struct RowReport {
    /// The row's name.
    pub experiment: &'static str,
    /// What it asks.
    pub question: &'static str,
    /// Of `variants` and `comparisons`; what is simulated is in `simulated`.
    pub measured: bool,
    /// A kernel list.
    pub cpus: String,
    /// How long each variant ran in each round.
    pub span_ms: u64,
    /// Those in which every variant ran to its end.
    pub rounds: u32,
    /// Share of all CPUs' time that was neither idle nor ours meanwhile, in percent; `null` where the kernel
    /// does not say.
    pub others_percent: Option<f64>,
    /// What runs this row again.
    pub command: String,
    /// In the order of the plan.
    pub variants: Vec<VariantReport>,
    /// In the order of the plan.
    pub comparisons: Vec<FigureComparison>,
    /// Figures that must have one value.
    pub exact_checks: Vec<ExactCheckReport>,
    /// What the comparisons amount to, in sentences.
    pub words: Vec<String>,
    /// What others published about it.
    pub cited: Option<Citation>,
    /// `null` when it was left out.
    pub simulated: Option<ScenarioReport>,
}

/// What the rounds of one variant gave.
#[derive(Clone, Debug, Serialize)]
pub struct VariantReport {
    /// In one or two words.
    pub name: &'static str,
    /// In a few words.
    pub what: &'static str,
    /// What it is compared as.
    pub role: VariantRole,
    /// In the order of the plan.
    pub figures: Vec<FigureReport>,
    /// In another tool's format, of the last round.
    pub attachment: Option<ToolOutput>,
}

/// One figure in all rounds; those in which it has no sample are left out, and all is `null` where none has.
#[derive(Clone, Debug, Serialize)]
pub struct FigureReport {
    /// In one or two words.
    pub name: &'static str,
    /// What it is counted in.
    pub unit: &'static str,
    /// Of the rounds.
    pub median: Option<f64>,
    /// Of the rounds.
    pub smallest: Option<f64>,
    /// Of the rounds.
    pub largest: Option<f64>,
    /// In order.
    pub rounds: Vec<f64>,
}

/// What before against after says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// Every round of after is better than every round of before.
    Better,
    /// Every round of after is worse than every round of before.
    Worse,
    /// The rounds overlap, or those of the noise floor differ by as much among themselves.
    NoDifference,
    /// There is one round only: nothing to hold the difference against.
    OneRound,
    /// In some round one of them has no sample, so nothing follows.
    NotMeasured,
}

/// A figure before and after, by medians.
#[derive(Clone, Debug, Serialize)]
pub struct FigureComparison {
    /// Its name.
    pub figure: &'static str,
    /// What it is counted in.
    pub unit: &'static str,
    /// Which way it should go.
    pub better: Better,
    /// The variant with the old rule.
    pub before: &'static str,
    /// The variant with the new rule.
    pub after: &'static str,
    /// Of the rounds; `null` when none has a sample.
    pub before_median: Option<f64>,
    /// Of the rounds; `null` when none has a sample.
    pub after_median: Option<f64>,
    /// After by before; `null` when before is 0, and when it was not measured in every round.
    pub ratio: Option<f64>,
    /// The same figure of the noise floor.
    pub floor: Option<f64>,
    /// What the rounds say.
    pub verdict: ComparisonVerdict,
}

/// A figure that must have one value in every round.
#[derive(Clone, Debug, Serialize)]
pub struct ExactCheckReport {
    /// The variant's name.
    pub variant: &'static str,
    /// Its name.
    pub figure: &'static str,
    /// What it is counted in.
    pub unit: &'static str,
    /// What it must be.
    pub value: f64,
    /// The round that is farthest away from it; `null` when none is, but some has no sample.
    pub found: Option<f64>,
    /// Whether it was measured in every round, and every round has it.
    pub holds: bool,
}

/// What the simulator says; nothing of it was measured.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioReport {
    /// Its name in `scenarios/`.
    pub scenario: &'static str,
    /// Whose costs these are: a line for each machine that some were measured on.
    pub costs: Vec<String>,
    /// Whether everything that the scenario expects holds.
    pub holds: bool,
    /// In the order of the plan.
    pub comparisons: Vec<ScenarioComparison>,
}

/// A simulated figure before and after.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioComparison {
    /// In a few words.
    pub what: &'static str,
    /// What it is counted in.
    pub unit: &'static str,
    /// Which way it should go.
    pub better: Better,
    /// The variant with the old rule.
    pub before: ScenarioValue,
    /// The variant with the new rule.
    pub after: ScenarioValue,
    /// After by before.
    pub ratio: Option<f64>,
}

/// A simulated figure, and the same with all costs halved and doubled.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScenarioValue {
    /// The variant's name.
    pub variant: &'static str,
    /// What it must be.
    pub value: Option<f64>,
    /// With all costs halved.
    pub halved: Option<f64>,
    /// With all costs doubled.
    pub doubled: Option<f64>,
}

impl FigureComparison {
    /// Whether any round of either variant has a sample.
    pub fn has_sample(&self) -> bool {
        self.before_median.or(self.after_median).is_some()
    }
}

impl LabReport {
    /// Whether every figure that must have one value has it.
    pub fn holds(&self) -> bool {
        self.rows.iter().all(|row| row.exact_checks.iter().all(|must| must.holds))
    }
}

/// Three or four digits that mean something.
pub fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size < 0.01 => format!("{value:.4}"),
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The same, of what may be missing.
pub fn maybe(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

#[cfg(test)]
mod tests {
    use super::{ComparisonVerdict, FigureComparison, maybe, number};
    use crate::plan::Better;

    /// Goal: a comparison has a sample if either variant has one. Method: both, either, none.
    #[test]
    fn either_variant_can_have_a_sample() {
        let has_sample = |before_median, after_median| {
            let one = FigureComparison {
                figure: "a",
                unit: "b",
                better: Better::Lower,
                before: "c",
                after: "d",
                before_median,
                after_median,
                ratio: None,
                floor: Some(1.0),
                verdict: ComparisonVerdict::NotMeasured,
            };
            one.has_sample()
        };
        let found = [(Some(2.0), Some(3.0)), (Some(2.0), None), (None, Some(3.0)), (None, None)]
            .map(|(before, after)| has_sample(before, after));
        assert_eq!(found, [true, true, true, false]);
    }

    /// Goal: as many digits as mean something. Method: both sides of each limit, a negative number, nothing.
    #[test]
    fn a_number_has_three_or_four_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.00123, "0.0012"),
            (0.0099, "0.0099"),
            (0.01, "0.01"),
            (1.375, "1.38"),
            (-9.99, "-9.99"),
            (10.0, "10.0"),
            (15.06, "15.1"),
            (99.9, "99.9"),
            (100.0, "100"),
            (150.6, "151"),
            (123_456.0, "123456"),
        ] {
            assert_eq!((number(value), maybe(Some(value))), (text.to_owned(), text.to_owned()), "{value}");
        }
        assert_eq!(maybe(None), "-");
    }
}
