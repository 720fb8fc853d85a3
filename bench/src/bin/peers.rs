//! `peers`: timer structures of one owner side by side.
//!
//! Every round runs every peer once, in an order that is shuffled for each round, so that a slow moment of
//! the machine falls on all of them and no peer always comes after the same neighbour. A first round is not
//! counted; it is also where the answers are audited. Nothing is pinned and no frequency is fixed.

use clap::{Parser, ValueEnum};
use quietcore_bench::machine::Machine;
use quietcore_bench::peers::adapters::{ENTRIES, REFERENCES};
use quietcore_bench::peers::entry::Entry;
use quietcore_bench::peers::peer::Role;
use quietcore_bench::peers::plan::{Plan, Sizes, Workload};
use quietcore_bench::peers::report::{self, About, Outcome, Row, Table};
use std::io::{self, Write};
use std::process::ExitCode;

/// Measures timer structures side by side.
#[derive(Debug, Parser)]
#[command(after_help = "Run it with --release on a machine that is otherwise idle.")]
struct Args {
    /// How often everything is measured
    #[arg(long, value_name = "COUNT", default_value_t = 9)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Measure only these peers (part of the name is enough; baselines stay)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure only these workloads
    #[arg(long, value_name = "WORKLOAD", value_delimiter = ',')]
    workload: Vec<Workload>,
    /// Divide by this peer's numbers (part of the name) instead of the first one's of the table
    #[arg(long, value_name = "NAME")]
    reference: Option<String>,
    /// Which sequence of random operations
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Small sizes, to see whether everything works
    #[arg(long)]
    quick: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let shown = measure(&args).and_then(|outcome| show(&outcome, &args));
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the table may stop at any line.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::from(2)
        }
    }
}

fn show(outcome: &Outcome, args: &Args) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if args.json { report::json(outcome, &mut out) } else { report::text(outcome, &mut out) }?;
    out.flush()
}

fn measure(args: &Args) -> io::Result<Outcome> {
    let entries = chosen(&args.only)?;
    let reference = reference(args.reference.as_deref(), &entries)?;
    let sizes = if args.quick { Sizes::QUICK } else { Sizes::FULL };
    let workloads = Workload::value_variants().iter();
    let workloads = workloads.filter(|kind| args.workload.is_empty() || args.workload.contains(kind));
    let mut tables = Vec::new();
    for &workload in workloads {
        let mut table = rounds(&Plan::new(workload, &sizes, args.seed), &entries, args);
        table.summarise(reference.name);
        tables.push(table);
    }
    let about = |entry: &Entry| About {
        name: entry.name,
        version: entry.version(),
        role: entry.role,
        next_expiry: entry.answer,
        note: entry.note,
    };
    Ok(Outcome {
        machine: Machine::here(),
        rounds: args.rounds,
        seed: args.seed,
        sizes,
        reference: reference.name,
        peers: entries.iter().map(about).collect(),
        workloads: tables,
    })
}

/// The peers whose names contain one of `only`, and all baselines.
fn chosen(only: &[String]) -> io::Result<Vec<Entry>> {
    for name in only {
        if !ENTRIES.iter().any(|entry| is_called(entry, name)) {
            let names: Vec<_> = ENTRIES.iter().map(|entry| entry.name).collect();
            let known = names.join(", ");
            return Err(io::Error::other(format!("no peer is called {name}; there are {known}")));
        }
    }
    let wanted = |entry: &Entry| only.iter().any(|name| is_called(entry, name));
    let entries = ENTRIES.iter().copied();
    Ok(entries.filter(|entry| only.is_empty() || entry.role == Role::Baseline || wanted(entry)).collect())
}

/// Part of the name is enough, whatever the case.
fn is_called(entry: &Entry, name: &str) -> bool {
    entry.name.to_lowercase().contains(&name.to_lowercase())
}

/// The one that is asked for; or the preferred one; or the first.
fn reference(name: Option<&str>, entries: &[Entry]) -> io::Result<Entry> {
    let found = match name {
        Some(name) => entries.iter().find(|entry| is_called(entry, name)),
        None => {
            let called = |&name: &&str| entries.iter().find(|entry| entry.name == name);
            REFERENCES.iter().find_map(called).or_else(|| entries.first())
        }
    };
    found.copied().ok_or_else(|| io::Error::other("the reference is not among the peers measured"))
}

fn rounds(plan: &Plan, entries: &[Entry], args: &Args) -> Table {
    // A peer that is left out is in the table with the reason; whatever is no peer is not missed.
    let shown = |entry: &&Entry| entry.role == Role::Peer || entry.absent(plan.workload).is_none();
    let entries: Vec<&Entry> = entries.iter().filter(shown).collect();
    let mut rows: Vec<Row> = entries.iter().map(|entry| row(entry, plan)).collect();
    let mut order: Vec<usize> = (0..entries.len()).filter(|&at| rows[at].absent.is_none()).collect();
    let mut random = fastrand::Rng::with_seed(args.seed);
    for round in 0..=args.rounds {
        random.shuffle(&mut order);
        for &at in &order {
            let ns = entries[at].measure(plan);
            if round > 0 {
                rows[at].ns_rounds.push(ns);
            }
        }
        eprintln!("peers: {}: round {round} of {}", name(plan.workload), args.rounds);
    }
    Table { workload: plan.workload, title: plan.title(), operations: plan.operations, rows }
}

fn row(entry: &Entry, plan: &Plan) -> Row {
    let absent = entry.absent(plan.workload);
    let audit = if absent.is_none() { entry.audit(plan) } else { None };
    Row { peer: entry.name, absent, ns: None, ratio: None, audit, ns_rounds: Vec::new() }
}

fn name(workload: Workload) -> String {
    workload.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
