//! The figures as JSON, or as tables in Markdown: candidates are columns.

use super::counted::Touched;
use super::single::{OPS, Single};
use super::steady::Rate;
use super::{KINDS, Kind, Queue, Silent, with_queue};
use serde::Serialize;
use std::io::{self, Write};

#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    pub(crate) rounds: u32,
    pub(crate) operations: usize,
    /// p50, p99.9 and maximum of timing nothing, in nanoseconds: part of every single duration.
    pub(crate) clock_ns: [f64; 3],
    pub(crate) sizes: Vec<Size>,
    pub(crate) rates: Vec<Rate>,
    pub(crate) singles: Vec<Single>,
    pub(crate) touched: Vec<Touched>,
}

/// Bytes per timer.
#[derive(Debug, Serialize)]
pub(crate) struct Size {
    queue: Kind,
    node_bytes: usize,
    pointer_node_bytes: usize,
    outside_bytes: usize,
}

pub(crate) fn sizes(kinds: &[Kind]) -> Vec<Size> {
    kinds.iter().map(|&kind| with_queue!(kind, Silent, size(kind))).collect()
}

fn size<Q: Queue>(queue: Kind) -> Size {
    Size {
        queue,
        node_bytes: Q::NODE_BYTES,
        pointer_node_bytes: Q::POINTER_NODE_BYTES,
        outside_bytes: Q::OUTSIDE_BYTES,
    }
}

/// One table: a first column of names, and a column per candidate that was measured.
#[derive(Debug)]
struct Table {
    kinds: Vec<Kind>,
    rows: Vec<(String, Vec<(Kind, String)>)>,
}

impl Table {
    fn new(kinds: &[Kind]) -> Self {
        Self { kinds: kinds.to_vec(), rows: Vec::new() }
    }

    /// Adds to the last row if it has this name, and otherwise begins a row.
    fn put(&mut self, name: &str, kind: Kind, cell: String) {
        match self.rows.iter_mut().find(|(other, _)| other == name) {
            Some((_, cells)) => cells.push((kind, cell)),
            None => self.rows.push((name.to_owned(), vec![(kind, cell)])),
        }
    }

    /// Writes nothing when there are no rows.
    fn write(&self, title: &str, out: &mut dyn Write) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let labels: Vec<_> = self.kinds.iter().map(|kind| kind.label()).collect();
        writeln!(out, "\n| {title} | {} |", labels.join(" | "))?;
        writeln!(out, "|---|{}", "---:|".repeat(labels.len()))?;
        for (name, cells) in &self.rows {
            write!(out, "| {name} |")?;
            for kind in &self.kinds {
                let cell = cells.iter().find(|(other, _)| other == kind);
                write!(out, " {} |", cell.map_or("-", |(_, cell)| cell.as_str()))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

pub(crate) fn show(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    let kinds: Vec<Kind> =
        KINDS.into_iter().filter(|&kind| outcome.sizes.iter().any(|size| size.queue == kind)).collect();
    writeln!(out, "machine: {}, {} cores, Linux {}", outcome.cpu, outcome.cores, outcome.kernel)?;
    writeln!(out, "rounds: {}, of {} operations", outcome.rounds, outcome.operations)?;
    let [p50, p999, max] = outcome.clock_ns;
    writeln!(out, "timing nothing: p50 {p50:.0}, p99.9 {p999:.0}, max {max:.0} ns")?;
    let mut table = Table::new(&kinds);
    for size in &outcome.sizes {
        table.put("node, 32-bit links", size.queue, size.node_bytes.to_string());
        table.put("node, pointers", size.queue, size.pointer_node_bytes.to_string());
        table.put("outside of the node", size.queue, size.outside_bytes.to_string());
    }
    table.write("bytes per timer", out)?;
    let mut table = Table::new(&kinds);
    for rate in &outcome.rates {
        let name = format!("{}, {}, {}", rate.work.label(), thousands(rate.live), rate.spread.label());
        let ns = rate.ns;
        let cell = format!("{:.0} ({:.0}..{:.0})", ns.median, ns.min, ns.max);
        table.put(&name, rate.queue, cell);
    }
    table.write("ns per operation, median (min..max) of the rounds", out)?;
    write_singles(outcome, &kinds, out)?;
    write_touched(outcome, &kinds, out)
}

fn write_singles(outcome: &Outcome, kinds: &[Kind], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(kinds);
    for op in OPS {
        for single in outcome.singles.iter().filter(|single| single.op == op) {
            let name = format!("{}, {}", op.label(), thousands(single.live));
            let (p50, p999, max) = (single.p50.median, single.p999.median, single.max.median);
            let cell = format!("{p50:.0} / {p999:.0} / {:.0} ({max:.0})", single.quiet_max);
            table.put(&name, single.queue, cell);
        }
    }
    table.write("ns of one operation: p50 / p99.9 / longest, undisturbed (longest, disturbed)", out)
}

fn write_touched(outcome: &Outcome, kinds: &[Kind], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(kinds);
    for op in OPS {
        for touched in outcome.touched.iter().filter(|touched| touched.op == op) {
            let name = format!("{}, {}", op.label(), thousands(touched.live));
            table.put(&name, touched.queue, touched.places.to_string());
        }
    }
    table.write("most nodes that one operation touched", out)
}

fn thousands(count: usize) -> String {
    match count {
        1_000_000.. => format!("{} M", count / 1_000_000),
        1_000.. => format!("{} k", count / 1_000),
        _ => count.to_string(),
    }
}
