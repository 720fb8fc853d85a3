//! The table, for a terminal and for a document.

use super::found::Found;
use super::rows::{Limit, REFERENCE, Target};
use crate::limits::Limits;
use crate::machine::Machine;
use crate::statistics::Summary;
use serde::Serialize;
use std::fmt::Write as _;

/// A row with its figures.
#[derive(Debug, Serialize)]
pub struct Verdict {
    pub name: &'static str,
    pub unit: &'static str,
    /// What it should be on the machine where the target was set.
    pub target: f64,
    /// What the multiple of the limit should be.
    pub target_multiple: f64,
    pub figure: Option<Summary>,
    pub multiple: Option<Summary>,
    /// Whether the median multiple is what it should be; absent if it was not measured.
    pub is_met: Option<bool>,
    /// In so many rounds it was measured.
    pub rounds: usize,
    #[serde(skip)]
    limit: Limit,
}

impl Verdict {
    /// Of the rounds that measured it.
    #[must_use]
    pub fn of(target: &Target, rounds: &[Found]) -> Self {
        let figures: Vec<f64> = rounds.iter().map(|found| found.figure).collect();
        let multiples: Vec<f64> = rounds.iter().map(|found| found.multiple).collect();
        let (multiple, aim) = (Summary::of(&multiples), target.multiple());
        let meets = |of: Summary| if target.more_is_better { of.median >= aim } else { of.median <= aim };
        Self {
            name: target.name,
            unit: target.unit,
            target: target.target,
            target_multiple: aim,
            figure: Summary::of(&figures),
            multiple,
            is_met: multiple.map(meets),
            rounds: rounds.len(),
            limit: target.limit,
        }
    }

    fn cells(&self) -> [String; 6] {
        let unit = self.unit;
        let number = |value: f64| match value {
            value if value >= 100.0 => format!("{value:.0}"),
            value if value >= 10.0 => format!("{value:.1}"),
            value => format!("{value:.2}"),
        };
        let figure = self.figure.map_or("-".to_owned(), |of| format!("{} {unit}", number(of.median)));
        let range = self
            .figure
            .map_or("-".to_owned(), |of| format!("{}..{} ({})", number(of.min), number(of.max), self.rounds));
        let multiple = |value: f64| match self.limit {
            Limit::Itself => "-".to_owned(),
            Limit::Lock => format!("{value:.2} locks"),
            Limit::Clock => format!("{value:.2} clocks"),
            Limit::LockAndClock => format!("{value:.2} of both"),
            Limit::Miss => format!("{value:.2} misses"),
            Limit::Grep => format!("{value:.2} of grep"),
            Limit::TwoThreads => format!("{value:.2} of two"),
        };
        let found = self.multiple.map_or("-".to_owned(), |of| multiple(of.median));
        let verdict = match self.is_met {
            None => "not measured",
            Some(true) => "met",
            Some(false) => "missed",
        };
        let target = format!("{} {unit}", number(self.target));
        [figure, range, found, target, multiple(self.target_multiple), verdict.to_owned()]
    }
}

const HEAD: [&str; 7] = ["", "here", "range (rounds)", "of the limit", "target", "of the limit", ""];

fn about(machine: &Machine, limits: &Limits, rounds: u32) -> String {
    let Machine { cpu, cores, kernel, commit, rustc } = machine;
    let commit = commit.as_deref().unwrap_or("unknown");
    let text = |limits: &Limits| {
        let Limits { lock, clock, miss, two_threads } = limits;
        format!("lock {lock:.1}, clock {clock:.1}, miss {miss:.0}; two threads over one {two_threads:.2}")
    };
    let rounds = if rounds == 1 { "one round".to_owned() } else { format!("medians of {rounds} rounds") };
    format!(
        "{cpu}, {cores} CPUs, Linux {kernel}, commit {commit}, {rustc}; {rounds}.\n\
         The machine's limits in ns: {}\nwhere the targets were set: {}\n",
        text(limits),
        text(&REFERENCE)
    )
}

/// For a terminal.
#[must_use]
pub fn text(machine: &Machine, limits: &Limits, rounds: u32, verdicts: &[Verdict]) -> String {
    let mut out = about(machine, limits, rounds);
    for verdict in verdicts {
        let [figure, range, found, target, aim, met] = verdict.cells();
        let _ = write!(out, "\n{} ({met})\n", verdict.name);
        let _ = writeln!(out, "  here   {figure:>12}  {found:>14}   {range}");
        let _ = writeln!(out, "  target {target:>12}  {aim:>14}");
    }
    out
}

/// For a document.
#[must_use]
pub fn markdown(machine: &Machine, limits: &Limits, rounds: u32, verdicts: &[Verdict]) -> String {
    let mut out = format!("{}\n| {} |\n", about(machine, limits, rounds), HEAD.join(" | "));
    out += "|---|---:|---:|---:|---:|---:|---|\n";
    for verdict in verdicts {
        let _ = writeln!(out, "| {} | {} |", verdict.name, verdict.cells().join(" | "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Verdict, markdown, text};
    use crate::limits::Limits;
    use crate::machine::Machine;
    use crate::targets::{Found, Limit, Origin, Target};

    fn target(more_is_better: bool) -> Target {
        let limit = Limit::Lock;
        Target { name: "pair", origin: Origin::Lane(""), unit: "ns", limit, target: 18.8, more_is_better }
    }

    /// Goal: what counts is the median multiple, held against that of the reference machine, in the direction
    /// of the row. Method: rounds around a target of two locks; none.
    #[test]
    fn the_multiple_decides() {
        let rounds = |multiples: &[f64]| -> Vec<Found> {
            multiples.iter().map(|&multiple| Found { figure: 10.0, multiple }).collect()
        };
        for (multiples, more_is_better, is_met) in [
            (&[1.0, 2.0, 9.0][..], false, Some(true)),
            (&[1.0, 2.01, 9.0], false, Some(false)),
            (&[1.0, 2.0, 9.0], true, Some(true)),
            (&[1.0, 1.99, 9.0], true, Some(false)),
            (&[], false, None),
        ] {
            let verdict = Verdict::of(&target(more_is_better), &rounds(multiples));
            assert_eq!(verdict.is_met, is_met, "{multiples:?}");
        }
    }

    /// Goal: both tables have every row, figure, limit and verdict.
    #[test]
    fn tables_have_all() {
        let verdict = Verdict::of(&target(false), &[Found { figure: 11.0, multiple: 2.2 }]);
        let machine = Machine {
            cpu: "a CPU".to_owned(),
            cores: 2,
            kernel: "6.18".to_owned(),
            commit: None,
            rustc: "rustc",
        };
        let limits = Limits { lock: 5.0, clock: 15.0, miss: 100.0, two_threads: 1.9 };
        let row = "| pair | 11.0 ns | 11.0..11.0 (1) | 2.20 locks | 18.8 ns | 2.00 locks | missed |";
        assert!(markdown(&machine, &limits, 1, std::slice::from_ref(&verdict)).contains(row));
        let shown = text(&machine, &limits, 1, &[verdict]);
        assert!(shown.contains("pair (missed)") && shown.contains("2.20 locks"), "{shown}");
        assert!(shown.lines().skip(3).all(|line| line.len() <= 80), "{shown}");
    }
}
