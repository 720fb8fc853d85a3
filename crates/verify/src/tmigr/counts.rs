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
        if !self.is_over() || self.found.len() < UNEXPLAINED_MAX as usize {
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
