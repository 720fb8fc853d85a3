//! The rows of the lab: one file each, and a line of [`ROWS`].

pub(crate) mod blocked;
mod cyclictest;
pub(crate) mod dbench;
pub(crate) mod enqueue;
pub(crate) mod idle;
mod isolated;
mod mq_netem;
mod oslat;

use crate::plan::RowPlan;

/// All rows, in the order in which they run.
pub const ROWS: &[&RowPlan] = &[
    &mq_netem::PLAN,
    &oslat::PLAN,
    &enqueue::PLAN,
    &dbench::PLAN,
    &idle::PLAN,
    &cyclictest::PLAN,
    &blocked::PLAN,
    &isolated::PLAN,
];

#[cfg(test)]
mod tests {
    use super::ROWS;
    use crate::plan::{RowPlan, RowScenario};

    fn scenario(of: &RowScenario, lines: &mut Vec<String>) {
        lines.push(format!("  scenario {}", of.name));
        for one in of.compares {
            let (unit, per_unit) = one.unit;
            let (before, after, better) = (one.before, one.after, one.better.name());
            lines.push(format!("    {}, {unit}: {} / {per_unit}", one.what, one.figure));
            lines.push(format!("      {before} against {after}, {better}"));
        }
    }

    fn lines(plan: &RowPlan) -> Vec<String> {
        let name = |figure: usize| format!("{}, {}", plan.figures[figure].0, plan.figures[figure].1);
        let mut lines = vec![
            format!("{}: {}", plan.name, plan.question),
            format!("  {:?}, quick {:?}", plan.spans.full, plan.spans.quick),
        ];
        lines.extend((0..plan.figures.len()).map(|figure| format!("  {figure} {}", name(figure))));
        for variant in plan.variants {
            lines.push(format!("  {} ({}): {}", variant.name, variant.role.name(), variant.what));
        }
        for one in plan.compares {
            lines.push(format!("  compared: {}: {}", name(one.figure), one.better.name()));
        }
        for one in plan.exact_checks {
            lines.push(format!("  exactly {} with {}: {}", one.value, one.variant, name(one.figure)));
        }
        lines.extend(plan.notes.iter().map(|note| format!("  note: {note}")));
        if let Some(cited) = &plan.cited {
            lines.push(format!("  cited ({})", cited.question));
            lines.extend(cited.figures.iter().map(|one| format!("    {}: {}", one.what, one.verbatim)));
        }
        plan.scenario.iter().for_each(|of| scenario(of, &mut lines));
        lines
    }

    /// Goal: each row's names, units and roles are those that its figures and variants have, and it compares
    /// what it asks for. Method: a snapshot of all plans, read beside `figures` of each row.
    #[test]
    fn plans_of_all_rows() {
        let all: Vec<String> = ROWS.iter().map(|plan| lines(plan).join("\n")).collect();
        insta::assert_snapshot!("plans", all.join("\n\n"));
    }
}
