//! What a run of the lab amounts to, as the JSON has it (docs/lab.md); text and HTML are made of the same.
//!
//! Invariant: names of fields and verdicts do not change within a schema; new ones may appear.

use super::host::Host;
use super::plan::{Attachment, Better, Role, Seed};
use serde::Serialize;

/// Rises when a field changes its meaning or goes away.
pub(super) const SCHEMA: u32 = 1;

/// Everything that is printed.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    pub(super) schema: u32,
    pub(super) quietcore: &'static str,
    /// False after Ctrl-C: what is here was measured, and something is missing.
    pub(super) complete: bool,
    /// Whether this was the quick run.
    pub(super) quick: bool,
    pub(super) host: Host,
    pub(super) rows: Vec<Row>,
}

/// One experiment.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) experiment: &'static str,
    pub(super) question: &'static str,
    /// Of `variants` and `comparisons`; what is simulated is in `simulated`.
    pub(super) measured: bool,
    pub(super) cpus: String,
    pub(super) span_ms: u64,
    /// Those in which every variant ran to its end.
    pub(super) rounds: u32,
    /// Share of all CPUs' time that was neither idle nor ours meanwhile, in percent; `null` where the kernel
    /// does not say.
    pub(super) others_percent: Option<f64>,
    /// What runs this row again.
    pub(super) command: String,
    pub(super) variants: Vec<Measured>,
    pub(super) comparisons: Vec<Comparison>,
    pub(super) musts: Vec<MustHeld>,
    /// What the comparisons amount to, in sentences.
    pub(super) words: Vec<String>,
    pub(super) seed: Option<Seed>,
    pub(super) simulated: Option<Simulated>,
}

/// What the rounds of one variant gave.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Measured {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) role: Role,
    pub(super) figures: Vec<Figure>,
    /// In another tool's format, of the last round.
    pub(super) attachment: Option<Attachment>,
}

/// One figure in all rounds; all of them `null` where it was not measured.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) median: Option<f64>,
    pub(super) smallest: Option<f64>,
    pub(super) largest: Option<f64>,
    pub(super) rounds: Vec<f64>,
}

/// What before against after says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// Every round of after is better than every round of before.
    Better,
    /// Every round of after is worse than every round of before.
    Worse,
    /// The rounds overlap, or those of the noise floor differ by as much among themselves.
    NoDifference,
    /// There is one round only: nothing to hold the difference against.
    OneRound,
}

/// A figure before and after, by medians.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Comparison {
    pub(super) figure: &'static str,
    pub(super) unit: &'static str,
    pub(super) better: Better,
    pub(super) before: &'static str,
    pub(super) after: &'static str,
    pub(super) before_median: f64,
    pub(super) after_median: f64,
    /// After by before; `null` when before is 0.
    pub(super) ratio: Option<f64>,
    /// The same figure of the noise floor.
    pub(super) floor: Option<f64>,
    pub(super) verdict: Verdict,
}

/// A figure that must have one value in every round.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MustHeld {
    pub(super) variant: &'static str,
    pub(super) figure: &'static str,
    pub(super) unit: &'static str,
    pub(super) value: f64,
    /// The round that is farthest away from it.
    pub(super) found: f64,
    pub(super) holds: bool,
}

/// What the simulator says; nothing of it was measured.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Simulated {
    pub(super) scenario: &'static str,
    /// Where the costs are from.
    pub(super) costs: String,
    /// Whether everything that the scenario expects holds.
    pub(super) holds: bool,
    pub(super) comparisons: Vec<SimComparison>,
}

/// A simulated figure before and after.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SimComparison {
    pub(super) what: &'static str,
    pub(super) unit: &'static str,
    pub(super) better: Better,
    pub(super) before: SimValue,
    pub(super) after: SimValue,
    pub(super) ratio: Option<f64>,
}

/// A simulated figure, and the same with all costs halved and doubled.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct SimValue {
    pub(super) variant: &'static str,
    pub(super) value: Option<f64>,
    pub(super) halved: Option<f64>,
    pub(super) doubled: Option<f64>,
}

impl Report {
    /// Whether every figure that must have one value has it.
    pub(super) fn holds(&self) -> bool {
        self.rows.iter().all(|row| row.musts.iter().all(|must| must.holds))
    }
}

/// Three or four digits that mean something.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size < 0.01 => format!("{value:.4}"),
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The same, of what may be missing.
pub(super) fn maybe(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}
