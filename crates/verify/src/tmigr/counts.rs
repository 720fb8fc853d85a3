//! What the comparison of the hierarchy comes to: counts, and the lines that contradict it.
//!
//! Invariant, whatever the input: `events` = `exact` + `order_open` + `unexplained`.

use super::build::TreeDifference;
use super::line::HierarchyLine;
use super::walks::Difference;
use crate::mismatch::{Check, Mismatch};
use quietcore_trace::Migration;
use serde::Serialize;

/// Unexplained lines after which nothing more is compared: what follows would be consequences.
const UNEXPLAINED_MAX: u64 = 20;

/// The timer migration hierarchy of a recording, held against the project's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HierarchyCounts {
    /// Groups that the lines name.
    pub groups: u64,
    /// Lines of the tree that are not what our tree says.
    pub tree_mismatches: u64,
    /// Lines of the hierarchy that were compared: `exact`, `order_open` and `unexplained` together.
    pub events: u64,
    /// What the replay computes from the lines before, in the order of the lines.
    pub exact: u64,
    /// What it computes in another order of the CPUs' steps, which the recording leaves open.
    pub order_open: u64,
    /// What it does not compute in any order.
    pub unexplained: u64,
    /// The most lines that had to be read until an order was found.
    pub waited_max: u64,
    /// `nextevt=` of idle CPUs that could be compared with our wheel, and those that are its next expiry.
    pub next_events: u64,
    /// See `next_events`.
    pub next_events_as_wheel: u64,
    /// The unexplained line, or line of the tree, with the lowest number.
    pub first_unexplained: Option<Mismatch>,
    /// What is not in the input, so that it was not compared.
    pub not_recorded: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct StepCounts {
    pub(super) events: u64,
    pub(super) order_open: u64,
    pub(super) unexplained: u64,
    pub(super) tree_mismatches: u64,
    pub(super) waited_max: u64,
    /// Looking for orders took all the steps that are allowed.
    pub(super) is_exhausted: bool,
    /// For the list of all mismatches.
    pub(super) found: Vec<Mismatch>,
}

impl StepCounts {
    /// Nothing more is compared.
    pub(super) fn is_over(&self) -> bool {
        self.unexplained + self.tree_mismatches >= UNEXPLAINED_MAX
    }

    pub(super) fn unexplained(&mut self, line: &HierarchyLine, difference: Option<Difference>) {
        self.unexplained += 1;
        let (expected, recorded, why) = match difference {
            Some(Difference::Expected(expected)) => {
                let (expected, recorded) = expected.difference(&line.what);
                (expected, recorded, "our hierarchy arrives at something else, in every order of the CPUs")
            }
            Some(Difference::Why(why)) => ("another line".to_owned(), line.what.name().to_owned(), why),
            None => (String::new(), String::new(), "the line contradicts the hierarchy"),
        };
        let event = format!("{} on CPU {}", line.what.name(), line.cpu);
        self.push(line.number, Check::Hierarchy, [event, expected, recorded], why);
    }

    pub(super) fn tree_mismatch(&mut self, line: u64, migration: &Migration, difference: TreeDifference) {
        self.tree_mismatches += 1;
        let event = match migration {
            Migration::GroupSet { .. } => "tmigr_group_set",
            Migration::ConnectCpu { .. } => "tmigr_connect_cpu_parent",
            _ => "tmigr_connect_child_parent",
        };
        let TreeDifference { expected, recorded, why } = difference;
        self.push(line, Check::Tree, [event.to_owned(), expected, recorded], why);
    }

    fn push(&mut self, line: u64, kind: Check, [event, expected, recorded]: [String; 3], why: &str) {
        if self.found.len() < UNEXPLAINED_MAX as usize {
            let why = why.to_owned();
            self.found.push(Mismatch { line, kind, event, expected, recorded, why });
        }
    }

    pub(super) fn result(&self) -> HierarchyCounts {
        let Self { events, order_open, unexplained, tree_mismatches, waited_max, .. } = *self;
        let first = self.found.iter().min_by_key(|mismatch| mismatch.line).cloned();
        HierarchyCounts {
            tree_mismatches,
            events,
            exact: events - order_open - unexplained,
            order_open,
            unexplained,
            waited_max,
            first_unexplained: first,
            ..HierarchyCounts::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Check, HierarchyLine, Migration, Mismatch, StepCounts, TreeDifference};
    use crate::tmigr::line::LineContent;
    use crate::tmigr::walks::Difference;

    const MADE: Migration = Migration::GroupSet { group: 1, level: 0, node: 0 };

    fn line(number: u64, level: u64) -> HierarchyLine {
        let what = LineContent::Remote { group: 0x1a, level };
        HierarchyLine { number, cpu: 3, what, now: 0, earliest: 0, publishes: false }
    }

    fn tree_difference() -> TreeDifference {
        TreeDifference { expected: "one".to_owned(), recorded: "other".to_owned(), why: "why" }
    }

    /// Goal: what contradicts the hierarchy is counted by kind, and told from the lowest line on; the rest is
    /// exact. Method: three lines of the hierarchy and one of the tree, of 30 that were compared.
    #[test]
    fn what_contradicts_the_hierarchy_is_counted() {
        let mut counts = StepCounts { events: 30, order_open: 7, waited_max: 5, ..StepCounts::default() };
        counts.unexplained(&line(12, 0), Some(Difference::Expected(line(12, 1).what)));
        counts.unexplained(&line(13, 0), Some(Difference::Why("not now")));
        counts.unexplained(&line(14, 0), None);
        counts.tree_mismatch(11, &MADE, tree_difference());
        let found = counts.result();
        assert_eq!((found.events, found.exact, found.order_open), (30, 20, 7));
        assert_eq!((found.unexplained, found.tree_mismatches, found.waited_max), (3, 1, 5));
        let told = |line, kind, [event, expected, recorded, why]: [&str; 4]| {
            let [event, expected] = [event.to_owned(), expected.to_owned()];
            Mismatch { line, kind, event, expected, recorded: recorded.to_owned(), why: why.to_owned() }
        };
        let (event, other) = (
            "tmigr_handle_remote on CPU 3",
            "our hierarchy arrives at something else, in every order of the CPUs",
        );
        let expected = [
            told(12, Check::Hierarchy, [event, "lvl=1", "lvl=0", other]),
            told(13, Check::Hierarchy, [event, "another line", "tmigr_handle_remote", "not now"]),
            told(14, Check::Hierarchy, [event, "", "", "the line contradicts the hierarchy"]),
            told(11, Check::Tree, ["tmigr_group_set", "one", "other", "why"]),
        ];
        assert_eq!(counts.found, expected);
        assert_eq!(found.first_unexplained.as_ref(), expected.last());
    }

    /// Goal: nothing more is compared after twenty contradictions of either kind, and those are all told.
    #[test]
    fn twenty_contradictions_are_enough() {
        for of_tree in [0, 8, 20] {
            let mut counts = StepCounts::default();
            for number in 0..20 {
                assert!(!counts.is_over(), "{of_tree} of the tree: {number}");
                if number < of_tree {
                    counts.tree_mismatch(number, &MADE, tree_difference());
                } else {
                    counts.unexplained(&line(number, 0), None);
                }
            }
            assert!(counts.is_over(), "{of_tree} of the tree");
            counts.unexplained(&line(20, 0), None);
            assert_eq!((counts.found.len(), counts.unexplained), (20, 21 - of_tree));
        }
    }
}
