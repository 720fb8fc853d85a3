//! All tables, in the order in which the guide describes them.

use crate::layout::TableLayout;
use crate::{answers, events, runs, timers};

/// The layouts of all tables, in the order of the guide. A sweep's has a column more for each key.
#[must_use]
pub fn layouts() -> Vec<TableLayout> {
    [events::layouts(), timers::layouts(), answers::layouts(), runs::layouts()].concat()
}

#[cfg(test)]
mod tests {
    use super::layouts;
    use crate::layout::TableLayout;
    use std::fmt::Write;

    fn described(layout: &TableLayout) -> String {
        let mut text = format!("## `{}`\n\n{}\n\n", layout.name, layout.row);
        text += "| column | type | meaning |\n| --- | --- | --- |\n";
        for column in &layout.columns {
            let (name, kind, meaning) = (&column.name, column.kind.name(), &column.meaning);
            writeln!(text, "| `{name}` | {kind} | {meaning} |").expect("a string takes all");
        }
        text
    }

    /// Goal: the guide has every table and every column, in order, with its type and meaning. Method: the
    /// text that the layouts come to, beside the guide; a failure prints what belongs there.
    #[test]
    fn the_guide_has_every_column() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/tables.md");
        let guide = std::fs::read_to_string(path).expect("the guide");
        let all: String = layouts().iter().map(|layout| described(layout) + "\n").collect();
        assert!(guide.contains(all.trim_end()), "docs/guide/tables.md must hold:\n{all}");
    }

    /// Goal: no table has two columns of one name. Method: all of them, sorted.
    #[test]
    fn names_are_unique() {
        for layout in layouts() {
            let mut names: Vec<_> = layout.columns.iter().map(|column| &column.name).collect();
            names.sort();
            let all = names.len();
            names.dedup();
            assert_eq!(names.len(), all, "{}", layout.name);
        }
    }
}
