//! Simulated runs: a row per variant of a scenario, and per run of a sweep.

use crate::layout::{Column, ColumnKind as Kind, TableLayout};
use crate::rows::{Cell, TableRows};
use arrow_array::RecordBatch;
use quietcore_sim::{SimOutcome, run_figure_names};
use std::borrow::Cow;

const RUN_ROW: &str = "One variant of a scenario, run with one seed. A sweep has before these a column, of strings, \
                       for each key of `--set`.";
const FIXED: [Column; 6] = [
    Column::new("scenario", Kind::Text, "The scenario, as it was named."),
    Column::new("seed", Kind::Unsigned, "Its seed."),
    Column::new("variant", Kind::Text, "The variant's label; `only` where there is one."),
    Column::new("hash", Kind::Text, "Everything that the run saw in 64 bits, as 16 hexadecimal digits."),
    Column::new(
        "holds",
        Kind::Boolean,
        "Whether the variant is as the scenario expects; null: nothing is said.",
    ),
    Column::new("duration_ns", Kind::Unsigned, "The simulated time."),
];
const VERDICTS: [Column; 4] = [
    Column::new("variant", Kind::Text, "About which variant."),
    Column::new("expected", Kind::Text, "As it is written in the scenario."),
    Column::new("found", Kind::Text, "The two sides."),
    Column::new("holds", Kind::Boolean, "Whether it holds."),
];

/// A figure of `[expect]` as a column: spans have their unit in the name.
fn figure_column(name: &'static str, is_span: bool) -> Column {
    let has_unit = !is_span || name.ends_with("_ns");
    let column = if has_unit { Cow::Borrowed(name) } else { Cow::Owned(format!("{name}_ns")) };
    let meaning = format!("The figure `{name}` of `[expect]`; null where the run has none.");
    Column { name: column, kind: Kind::Float, meaning: Cow::Owned(meaning) }
}

fn run_layout(keys: &[String]) -> TableLayout {
    let key = |key: &String| Column {
        name: Cow::Owned(key.clone()),
        kind: Kind::Text,
        meaning: Cow::Borrowed("The value that `--set` gave this key."),
    };
    let mut columns: Vec<Column> = keys.iter().map(key).collect();
    columns.extend(FIXED);
    columns.extend(run_figure_names().map(|(name, is_span)| figure_column(name, is_span)));
    TableLayout { name: "runs", row: RUN_ROW, columns }
}

pub(crate) fn layouts() -> Vec<TableLayout> {
    let verdicts = TableLayout::new("verdicts", "One comparison of a scenario's `[expect]`.", &VERDICTS);
    vec![run_layout(&[]), verdicts]
}

/// Rows of simulated runs.
#[derive(Debug)]
pub struct RunTable {
    rows: TableRows,
}

impl RunTable {
    /// Without rows; with a column in front for each key of a sweep.
    #[must_use]
    pub fn new(keys: &[String]) -> Self {
        Self { rows: TableRows::new(run_layout(keys)) }
    }

    /// Its columns.
    #[must_use]
    pub fn layout(&self) -> &TableLayout {
        self.rows.layout()
    }

    /// Adds the variants of one run: `values` are those of the keys.
    ///
    /// # Panics
    /// When there are more or fewer values than keys.
    pub fn take(&mut self, scenario: &str, values: &[String], outcome: &SimOutcome) {
        for variant in &outcome.variants {
            let hash = format!("{:016x}", variant.figures.hash);
            let mut cells: Vec<Cell<'_>> = values.iter().map(Cell::from).collect();
            cells.extend::<[Cell<'_>; 6]>([
                scenario.into(),
                outcome.seed.into(),
                (&variant.label).into(),
                hash.as_str().into(),
                holds(outcome, &variant.label).into(),
                variant.figures.duration_ns.into(),
            ]);
            cells.extend(run_figure_names().map(|(name, _)| Cell::from(variant.figures.number(name))));
            self.rows.push(&cells);
        }
    }

    /// Rows that wait to be taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows since the last batch.
    pub fn take_batch(&mut self) -> RecordBatch {
        self.rows.take_batch()
    }
}

/// Whether all that is expected of the variant with this label holds; `None`: nothing is expected of it.
#[must_use]
pub fn holds(outcome: &SimOutcome, label: &str) -> Option<bool> {
    let verdicts = outcome.verdicts.iter().filter(|verdict| verdict.variant == label);
    verdicts.map(|verdict| verdict.holds).reduce(|all, one| all && one)
}

/// What a scenario expects of its variants.
///
/// # Panics
/// Never: the table is one of this file.
#[must_use]
pub fn verdicts(outcome: &SimOutcome) -> TableRows {
    let layout =
        layouts().into_iter().find(|layout| layout.name == "verdicts").expect("a table of this file");
    let mut rows = TableRows::new(layout);
    for verdict in &outcome.verdicts {
        rows.push(&[
            (&verdict.variant).into(),
            (&verdict.expected).into(),
            (&verdict.found).into(),
            verdict.holds.into(),
        ]);
    }
    rows
}
