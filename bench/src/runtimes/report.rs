//! Rounds in, a table or JSON out.
//!
//! The table is one block per measure, a row per peer. A cell is the median of the rounds and how many times
//! worse that is than the best peer's; ratios are taken within a round and then summarised. JSON has every
//! round.

use super::child::Ran;
use super::measures::{Better, Measure, Sizes};
use crate::machine::Machine;
use crate::statistics::Summary;
use serde::Serialize;
use std::io::{self, Write};

/// More preemptions per second than a process sees that is alone on its machine.
const DISTURBED: f64 = 50.0;

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub struct Outcome {
    pub machine: Machine,
    pub rounds: u32,
    pub seed: u64,
    pub sizes: Sizes,
    pub peers: Vec<About>,
    /// What could not be had, and why.
    pub skipped: Vec<Skipped>,
    pub measures: Vec<Block>,
}

/// A peer that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    pub name: &'static str,
    pub version: Option<String>,
    pub note: &'static str,
}

/// A peer that was not.
#[derive(Clone, Debug, Serialize)]
pub struct Skipped {
    pub name: &'static str,
    pub reason: String,
}

/// A measure.
#[derive(Debug, Serialize)]
pub struct Block {
    pub name: &'static str,
    pub title: &'static str,
    pub columns: Vec<Head>,
    pub rows: Vec<Row>,
}

/// What a column is.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Head {
    pub title: &'static str,
    pub unit: &'static str,
    pub better: Better,
}

/// A peer in one measure.
#[derive(Debug, Serialize)]
pub struct Row {
    pub peer: &'static str,
    pub cells: Vec<Cell>,
    /// Why numbers are missing, without repetitions.
    pub reasons: Vec<String>,
    /// Runs that failed.
    pub failures: u32,
    /// Runs in which threads often lost their CPU.
    pub disturbed: u32,
}

/// A number.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cell {
    pub summary: Option<Summary>,
    /// How many times worse than the best peer of the round, where that can be said.
    pub worse: Option<Summary>,
    /// In the order of the rounds.
    pub rounds: Vec<Option<f64>>,
}

impl Block {
    /// Without numbers yet.
    #[must_use]
    pub fn new(measure: &Measure, peers: &[About]) -> Self {
        let head = |column: &super::measures::Column| Head {
            title: column.title,
            unit: column.unit,
            better: column.better,
        };
        let row = |peer: &About| Row {
            peer: peer.name,
            cells: vec![Cell::default(); measure.columns.len()],
            reasons: Vec::new(),
            failures: 0,
            disturbed: 0,
        };
        Self {
            name: measure.name,
            title: measure.title,
            columns: measure.columns.iter().map(head).collect(),
            rows: peers.iter().map(row).collect(),
        }
    }

    /// Adds a round of the peer in row `at`.
    pub fn add(&mut self, measure: &Measure, at: usize, runs: &[Ran]) {
        let row = &mut self.rows[at];
        for (cell, column) in row.cells.iter_mut().zip(measure.columns) {
            cell.rounds.push((column.value)(runs));
        }
        for ran in runs {
            let failed = ran.failed.as_ref().map(|what| format!("FAILED: {what}"));
            let reason = failed.or_else(|| ran.absent.clone());
            row.reasons.extend(reason.filter(|reason| !row.reasons.contains(reason)));
            row.failures += u32::from(ran.failed.is_some());
            let lost = ran.window.map_or(0.0, |window| window.preemptions / window.seconds);
            row.disturbed += u32::from(lost > DISTURBED);
        }
    }

    /// Fills in what follows from the rounds.
    pub fn summarise(&mut self) {
        for (column, head) in self.columns.iter().enumerate() {
            let best = best(&self.rows, column, head.better);
            for row in &mut self.rows {
                let cell = &mut row.cells[column];
                let values: Vec<f64> = cell.rounds.iter().flatten().copied().collect();
                cell.summary = Summary::of(&values);
                let pairs = cell.rounds.iter().zip(&best);
                let ratios: Vec<f64> = pairs
                    .filter_map(|(&value, &best)| match head.better {
                        Better::Lower => worse(value?, best?),
                        Better::Higher => worse(best?, value?),
                    })
                    .collect();
                cell.worse = Summary::of(&ratios);
            }
        }
    }
}

/// The best number of each round.
fn best(rows: &[Row], column: usize, better: Better) -> Vec<Option<f64>> {
    let rounds = rows.iter().map(|row| row.cells[column].rounds.len()).max().unwrap_or(0);
    let of_round = |round: usize| rows.iter().filter_map(move |row| *row.cells[column].rounds.get(round)?);
    let of = |round| match better {
        Better::Lower => of_round(round).min_by(f64::total_cmp),
        Better::Higher => of_round(round).max_by(f64::total_cmp),
    };
    (0..rounds).map(of).collect()
}

/// Nothing is so many times 0, or less than it.
fn worse(large: f64, small: f64) -> Option<f64> {
    (small > 0.0).then(|| large / small)
}

/// # Errors
/// What writing says.
pub fn json(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, outcome)?;
    writeln!(out)
}

/// # Errors
/// What writing says.
pub fn text(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    let machine = &outcome.machine;
    let commit = machine.commit.as_deref().unwrap_or("unknown");
    writeln!(out, "machine   {}, {} cores, Linux {}", machine.cpu, machine.cores, machine.kernel)?;
    writeln!(out, "commit    {commit}; {}", machine.rustc)?;
    writeln!(
        out,
        "rounds    {}, interleaved, order shuffled, seed {}; nothing pinned",
        outcome.rounds, outcome.seed
    )?;
    writeln!(out, "cells     median of the rounds, and how many times the best peer's of the round it is")?;
    let all = outcome.measures.iter().flat_map(|block| &block.rows);
    let disturbed: u32 = all.map(|row| row.disturbed).sum();
    if disturbed > 0 {
        writeln!(
            out,
            "disturbed {disturbed} runs lost their CPUs to others more than {DISTURBED} times a second;"
        )?;
        writeln!(
            out,
            "          two threads that seldom run at the same time do not get in each other's way"
        )?;
    }
    for block in &outcome.measures {
        rows(block, out)?;
    }
    writeln!(out, "\nhow each is driven")?;
    let width = outcome.peers.iter().map(|about| named(about).len()).max().unwrap_or(0);
    for about in &outcome.peers {
        writeln!(out, "  {:width$}  {}", named(about), about.note)?;
    }
    if !outcome.skipped.is_empty() {
        writeln!(out, "\nskipped")?;
    }
    for Skipped { name, reason } in &outcome.skipped {
        writeln!(out, "  {name}: {reason}")?;
    }
    Ok(())
}

fn named(about: &About) -> String {
    about
        .version
        .as_ref()
        .map_or_else(|| about.name.to_owned(), |version| format!("{} {version}", about.name))
}

/// Columns of the name of a peer, of a number, and of how many times the best it is.
const NAME: usize = 16;
const NUMBER: usize = 9;
const TIMES: usize = 7;

fn rows(block: &Block, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n{}: {}", block.name, block.title)?;
    for line in [|head: &Head| head.title, |head: &Head| head.unit] {
        let titles = block.columns.iter().map(|head| format!("{:>NUMBER$}{:TIMES$}", line(head), ""));
        let text = format!("  {:NAME$}{}", "", titles.collect::<String>());
        writeln!(out, "{}", text.trim_end())?;
    }
    for row in &block.rows {
        let reasons = row.reasons.join("; ");
        if row.cells.iter().all(|cell| cell.summary.is_none()) {
            writeln!(out, "  {:NAME$}{:>NUMBER$}  {reasons}", row.peer, "-")?;
            continue;
        }
        let cells = row.cells.iter().map(shown).collect::<String>();
        let text = format!("  {:NAME$}{cells}  {reasons}", row.peer);
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

fn shown(cell: &Cell) -> String {
    let number = cell.summary.map_or_else(|| "-".to_owned(), |of| short(of.median));
    let times = cell.worse.map_or_else(String::new, |of| format!(" x{}", short(of.median)));
    format!("{number:>NUMBER$}{times:TIMES$}")
}

/// With about three digits.
fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 99.95 => format!("{value:.0}"),
        middle if middle >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::measures::MEASURES;
    use super::super::usage::Window;
    use super::*;

    fn about(name: &'static str) -> About {
        About { name, version: None, note: "a note" }
    }

    fn ran(ns: f64) -> Ran {
        Ran { figures: [("ns".to_owned(), ns)].into(), ..Ran::default() }
    }

    fn measured() -> Block {
        let measure = MEASURES.iter().find(|measure| measure.name == "remote-cancel").expect("it is there");
        let mut block = Block::new(measure, &[about("slow"), about("fast"), about("none")]);
        for scale in [1.0, 2.0, 1.0] {
            block.add(measure, 0, &[ran(30.0 * scale)]);
            block.add(measure, 1, &[ran(10.0 * scale)]);
            let absent = Some("no such call".to_owned());
            block.add(measure, 2, &[Ran { absent, ..Ran::default() }]);
        }
        block.summarise();
        block
    }

    /// Goal: medians, and ratios of the same round. Method: a round twice as slow for all.
    #[test]
    fn ratios_are_to_the_best_of_the_round() {
        let block = measured();
        let cell = |row: usize| &block.rows[row].cells[0];
        let median = |summary: Option<Summary>| summary.map(|of| of.median);
        assert_eq!((median(cell(0).summary), median(cell(0).worse)), (Some(30.0), Some(3.0)));
        assert_eq!((median(cell(1).summary), median(cell(1).worse)), (Some(10.0), Some(1.0)));
        assert_eq!((median(cell(2).summary), median(cell(2).worse)), (None, None));
        assert_eq!(block.rows[2].reasons, ["no such call"]);
    }

    /// Goal: with more being better, less is so many times worse. Method: a count, and a best of 0.
    #[test]
    fn the_best_can_be_the_largest_or_nothing() {
        let mut block = measured();
        block.columns[0].better = Better::Higher;
        block.summarise();
        assert_eq!(block.rows[1].cells[0].worse.map(|of| of.median), Some(3.0));
        block.columns[0].better = Better::Lower;
        block.rows[1].cells[0].rounds = vec![Some(0.0); 3];
        block.summarise();
        assert!(block.rows.iter().all(|row| row.cells[0].worse.is_none()));
    }

    /// Goal: a busy machine is seen. Method: a run with few and one with many preemptions.
    #[test]
    fn disturbed_runs_are_counted() {
        let measure = MEASURES.iter().find(|measure| measure.name == "idle").expect("it is there");
        let mut block = Block::new(measure, &[about("one")]);
        for preemptions in [10.0, 500.0] {
            let window = Window { seconds: 1.0, cpu_ns: 0.0, wake_ups: 0.0, preemptions, events: 0.0 };
            block.add(measure, 0, &[Ran { window: Some(window), ..Ran::default() }]);
        }
        assert_eq!(block.rows[0].disturbed, 1);
    }

    /// Goal: a run that failed is seen. Method: one of two rounds.
    #[test]
    fn failures_are_counted_and_named() {
        let mut block = measured();
        let measure = MEASURES.iter().find(|measure| measure.name == block.name).expect("it is there");
        let failed = Some("it fell".to_owned());
        block.add(measure, 1, &[Ran { failed, ..Ran::default() }]);
        let row = &block.rows[1];
        assert_eq!((row.failures, row.reasons.as_slice()), (1, &["FAILED: it fell".to_owned()][..]));
        assert!(block.rows[0].failures == 0 && row.cells[0].rounds.last() == Some(&None));
    }

    /// Goal: rows with and without numbers are readable. Method: the text of a block.
    #[test]
    fn text_has_numbers_and_reasons() {
        let mut out = Vec::new();
        rows(&measured(), &mut out).expect("writing to memory");
        let text = String::from_utf8(out).expect("all of it is text");
        assert!(text.contains("slow                 30.0 x3.00\n"), "{text}");
        assert!(text.contains("none                    -  no such call\n"), "{text}");
        assert_eq!(
            (short(1234.5), short(12.345), short(1.234)),
            ("1234".into(), "12.3".into(), "1.23".into())
        );
    }
}
