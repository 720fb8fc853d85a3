//! Figures out of what the programs print as JSON.

use super::rows::{Limit, Origin, REFERENCE, REFERENCE_GREP, Target};
use crate::limits::Limits;
use serde::Serialize;
use serde_json::Value;

/// What one round of all programs printed, and what the machine allowed in it.
#[derive(Debug)]
pub struct Round {
    pub limits: Limits,
    pub lane: Value,
    pub runtimes: Value,
    pub sim: Value,
    pub parser: Value,
}

/// A figure of one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Found {
    pub figure: f64,
    /// As a multiple of the machine's limit, or the figure itself.
    pub multiple: f64,
}

impl Round {
    /// The figure of `target`, if the programs measured it.
    #[must_use]
    pub fn find(&self, target: &Target) -> Option<Found> {
        let figure = self.figure(target.origin)?;
        let grep = self.figure(Origin::Parser("grep"));
        Some(Found { figure, multiple: figure / limit(target.limit, &self.limits, grep)? })
    }

    fn figure(&self, origin: Origin) -> Option<f64> {
        match origin {
            Origin::Lane(name) => row(&self.lane["rows"], "name", name)?["ns"]["median"].as_f64(),
            Origin::Runtimes(measure, peer, column) => self.cell(measure, peer, column),
            Origin::Ratio(measure, column, [ours, theirs]) => {
                Some(self.cell(measure, ours, column)? / self.cell(measure, theirs, column)?)
            }
            Origin::Sim(name, figure) => row(&self.sim["rows"], "name", name)?[figure]["median"].as_f64(),
            Origin::Parser(way) => row(&self.parser["figures"], "way", way)?["mb_per_s_median"].as_f64(),
        }
    }

    fn cell(&self, measure: &str, peer: &str, column: usize) -> Option<f64> {
        let block = row(&self.runtimes["measures"], "name", measure)?;
        row(&block["rows"], "peer", peer)?["cells"][column]["summary"]["median"].as_f64()
    }
}

impl Target {
    /// What the multiple should be, by the machine on which the target was set.
    #[must_use]
    pub fn multiple(&self) -> f64 {
        let limit = limit(self.limit, &REFERENCE, Some(REFERENCE_GREP));
        self.target / limit.expect("the reference machine has all limits")
    }
}

fn limit(of: Limit, limits: &Limits, grep: Option<f64>) -> Option<f64> {
    match of {
        Limit::Lock => Some(limits.lock),
        Limit::Clock => Some(limits.clock),
        Limit::LockAndClock => Some(limits.lock + limits.clock),
        Limit::Miss => Some(limits.miss),
        Limit::Grep => grep,
        Limit::TwoThreads => Some(limits.two_threads),
        Limit::Itself => Some(1.0),
    }
}

/// The element of `list` whose `key` is `name`.
fn row<'a>(list: &'a Value, key: &str, name: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|row| row[key] == name)
}

#[cfg(test)]
mod tests {
    use super::{Found, Round};
    use crate::limits::Limits;
    use crate::targets::rows::{Limit, Origin, Target};
    use serde_json::json;

    /// Goal: a figure is that of its row, and a multiple that of the limit of its round; what was not
    /// measured is no figure. Method: a round as the programs print it, each kind of row.
    #[test]
    fn a_figure_is_that_of_its_row() {
        let cells = |ns: f64| json!([{ "summary": { "median": ns } }, { "summary": null }]);
        let rows =
            json!([{ "peer": "other", "cells": cells(80.0) }, { "peer": "ours", "cells": cells(40.0) }]);
        let round = Round {
            limits: Limits { lock: 5.0, clock: 15.0, miss: 100.0, two_threads: 1.5 },
            lane: json!({ "rows": [{ "name": "turn", "ns": { "median": 30.0 } }] }),
            runtimes: json!({ "measures": [{ "name": "expire", "rows": rows }] }),
            sim: json!({ "rows": [{ "name": "large", "events_per_us": { "median": 3.0 } }] }),
            parser: json!({ "figures": [
                { "way": "explain", "mb_per_s_median": 500.0 },
                { "way": "grep", "mb_per_s_median": 1000.0 },
            ]}),
        };
        let find = |origin, limit| {
            round.find(&Target { name: "", origin, unit: "", limit, target: 1.0, more_is_better: false })
        };
        for (origin, limit, expected) in [
            (Origin::Lane("turn"), Limit::Lock, Some((30.0, 6.0))),
            (Origin::Lane("turn"), Limit::Clock, Some((30.0, 2.0))),
            (Origin::Lane("turn"), Limit::LockAndClock, Some((30.0, 1.5))),
            (Origin::Lane("walk"), Limit::Lock, None),
            (Origin::Runtimes("expire", "ours", 0), Limit::Miss, Some((40.0, 0.4))),
            (Origin::Runtimes("expire", "ours", 1), Limit::Miss, None),
            (Origin::Runtimes("idle", "ours", 0), Limit::Miss, None),
            (Origin::Ratio("expire", 0, ["ours", "other"]), Limit::Itself, Some((0.5, 0.5))),
            (Origin::Sim("large", "events_per_us"), Limit::Itself, Some((3.0, 3.0))),
            (Origin::Lane("turn"), Limit::TwoThreads, Some((30.0, 20.0))),
            (Origin::Parser("explain"), Limit::Grep, Some((500.0, 0.5))),
        ] {
            let expected = expected.map(|(figure, multiple)| Found { figure, multiple });
            assert_eq!(find(origin, limit), expected, "{origin:?}");
        }
    }
}
