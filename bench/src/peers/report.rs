//! Numbers in, tables or JSON out.
//!
//! Every number is nanoseconds per operation of one round, or a ratio of two such numbers of the same round.
//! JSON has all rounds, so that anyone can summarise them otherwise.

use super::audit::Audit;
use super::peer::{Answer, Role};
use super::plan::{Sizes, Workload};
use crate::machine::Machine;
use crate::statistics::Summary;
use serde::Serialize;
use std::io::{self, Write};

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub struct Outcome {
    pub machine: Machine,
    pub rounds: u32,
    pub seed: u64,
    pub sizes: Sizes,
    /// Whose numbers all others are divided by.
    pub reference: &'static str,
    pub peers: Vec<About>,
    pub workloads: Vec<Table>,
}

/// What a row stands for.
#[derive(Debug, Serialize)]
pub struct About {
    pub name: &'static str,
    pub version: Option<&'static str>,
    pub role: Role,
    pub next_expiry: Answer,
    pub note: &'static str,
}

/// One workload.
#[derive(Debug, Serialize)]
pub struct Table {
    pub workload: Workload,
    pub title: String,
    pub operations: usize,
    pub rows: Vec<Row>,
}

/// One peer in one workload.
#[derive(Debug, Serialize)]
pub struct Row {
    pub peer: &'static str,
    /// Why there are no numbers.
    pub absent: Option<&'static str>,
    pub ns: Option<Summary>,
    /// To the reference of the same round.
    pub ratio: Option<Summary>,
    pub audit: Option<Audit>,
    /// Nanoseconds per operation, in the order of the rounds.
    pub ns_rounds: Vec<f64>,
}

impl Table {
    /// Fills in what follows from the rounds.
    pub fn summarise(&mut self, reference: &str) {
        let base = self.rows.iter().find(|row| row.peer == reference).map(|row| row.ns_rounds.clone());
        for row in &mut self.rows {
            row.ns = Summary::of(&row.ns_rounds);
            row.ratio = base.as_ref().and_then(|base| Summary::of_ratios(&row.ns_rounds, base));
        }
    }
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
    writeln!(out, "ratio     to {} in the same round", outcome.reference)?;
    for table in &outcome.workloads {
        rows(table, out)?;
    }
    writeln!(out, "\nhow each is driven")?;
    let width = outcome.peers.iter().map(|about| named(about).len()).max().unwrap_or(0);
    for about in &outcome.peers {
        writeln!(out, "  {:width$}  {}", named(about), about.note)?;
    }
    Ok(())
}

fn named(about: &About) -> String {
    about.version.map_or_else(|| about.name.to_owned(), |version| format!("{} {version}", about.name))
}

fn rows(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n{}", table.title)?;
    let titles = ("ns median", "(min..max)", "ratio", "(min..max)", "check");
    writeln!(
        out,
        "  {:24}{:>11}  {:^19}{:>8}  {:^17}  {}",
        "", titles.0, titles.1, titles.2, titles.3, titles.4
    )?;
    for row in &table.rows {
        let Some(ns) = row.ns else {
            if let Some(reason) = row.absent {
                writeln!(out, "  {:24}{:>11}  {reason}", row.peer, "-")?;
            }
            continue;
        };
        let range = format!("({:.1}..{:.1})", ns.min, ns.max);
        let (ratio, ratios) = row.ratio.map_or_else(
            || ("-".to_owned(), String::new()),
            |of| (format!("{:.2}", of.median), format!("({:.2}..{:.2})", of.min, of.max)),
        );
        let check = row.audit.map_or_else(String::new, checked);
        let line =
            format!("  {:24}{:>11.1}  {range:^19}{ratio:>8}  {ratios:^17}  {check}", row.peer, ns.median);
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn checked(audit: Audit) -> String {
    match audit {
        Audit::Lateness { early_max: 0, late_max: 0 } => "at the tick".to_owned(),
        Audit::Lateness { early_max, late_max } => format!("up to {early_max} early, {late_max} late"),
        Audit::Answers { exact } => format!("{:.1} % exact", 100.0 * exact),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(peer: &'static str, ns_rounds: &[f64]) -> Row {
        Row { peer, absent: None, ns: None, ratio: None, audit: None, ns_rounds: ns_rounds.to_vec() }
    }

    /// Goal: rows without numbers stay without, and the reference's ratio is 1. Method: one table of three.
    #[test]
    fn tables_are_summarised_by_the_reference() {
        let rows = vec![row("ours", &[1.0, 2.0, 4.0]), row("theirs", &[2.0, 6.0, 8.0]), row("none", &[])];
        let mut table = Table { workload: Workload::Rearm, title: "title".to_owned(), operations: 1, rows };
        table.summarise("ours");
        let medians: Vec<_> = table
            .rows
            .iter()
            .map(|row| (row.ns.map(|ns| ns.median), row.ratio.map(|ratio| ratio.median)))
            .collect();
        assert_eq!(medians, [(Some(2.0), Some(1.0)), (Some(6.0), Some(2.0)), (None, None)]);
        table.summarise("nobody");
        assert!(table.rows.iter().all(|row| row.ratio.is_none()));
    }

    /// Goal: every kind of row is written. Method: a row with an audit, one without numbers, one absent.
    #[test]
    fn text_names_reasons_and_checks() {
        let mut rows = vec![row("ours", &[1.0]), row("none", &[]), row("left out", &[])];
        rows[0].audit = Some(Audit::Lateness { early_max: 3, late_max: 5 });
        rows[2].absent = Some("for a reason");
        let mut table = Table { workload: Workload::Expire, title: "title".to_owned(), operations: 1, rows };
        table.summarise("ours");
        let mut out = Vec::new();
        super::rows(&table, &mut out).expect("writing to memory");
        let text = String::from_utf8(out).expect("all of it is text");
        assert!(text.contains("up to 3 early, 5 late"), "{text}");
        assert!(text.contains("-  for a reason"), "{text}");
        assert!(!text.contains("none"), "{text}");
    }
}
