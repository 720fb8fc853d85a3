//! `exact`: candidates for the exact queue side by side: averages, worst single operations, sizes.
//!
//! Every round runs every candidate with the same random numbers, beginning with another one each
//! time, so that a slow moment of the machine falls on all of them. Nothing is pinned and no
//! frequency is fixed. Durations of single operations include two readings of the clock; the longest of
//! them is also given without the machine's own interruptions, as every round repeats every single
//! operation and only its fastest repetition counts. The counts of nodes touched come from runs of their
//! own, which are not timed, and are the same on every machine.

#[path = "../exact/mod.rs"]
mod exact;

use clap::Parser;
use exact::report::Outcome;
use exact::steady::Extent;
use exact::{KINDS, Kind, counted, report, single, steady};
use std::io::{self, Write};
use std::process::ExitCode;

/// Measures candidates for the queue of exact timers.
#[derive(Debug, Parser)]
#[command(after_help = "Run it with --release on a machine that is otherwise idle.")]
struct Args {
    /// How often everything is measured
    #[arg(long, value_name = "COUNT", default_value_t = 9)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Operations per workload and round
    #[arg(long, value_name = "COUNT", default_value_t = 200_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1_000..))]
    operations: u32,
    /// Measure only these candidates
    #[arg(long, value_name = "QUEUE", value_delimiter = ',')]
    only: Vec<Kind>,
    /// Measure only these parts
    #[arg(long, value_name = "PART", value_delimiter = ',', default_value = "averages,singles,touched")]
    parts: Vec<Part>,
    /// Three rounds, a tenth of the operations, and at most 10000 live timers
    #[arg(long)]
    quick: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Nanoseconds per operation, on average
    Averages,
    /// Nanoseconds of single operations after a burst
    Singles,
    /// Nodes that single operations touch, which are not timed
    Touched,
}

impl Part {
    /// What `measure` gives if this is one of `parts`, and nothing otherwise.
    fn of<T>(self, parts: &[Self], measure: impl FnOnce() -> Vec<T>) -> Vec<T> {
        if parts.contains(&self) { measure() } else { Vec::new() }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    match show(&measure(&args), &args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("exact: {error}");
            ExitCode::from(2)
        }
    }
}

fn measure(args: &Args) -> Outcome {
    let kinds = KINDS.into_iter().filter(|kind| args.only.is_empty() || args.only.contains(kind));
    let extent = Extent {
        rounds: if args.quick { args.rounds.min(3) } else { args.rounds },
        operations: args.operations as usize / if args.quick { 10 } else { 1 },
        live_max: if args.quick { 10_000 } else { usize::MAX },
        kinds: kinds.collect(),
    };
    Outcome {
        cpu: cpu_model(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        kernel: first_line("/proc/sys/kernel/osrelease"),
        rounds: extent.rounds,
        operations: extent.operations,
        clock_ns: single::clock(),
        sizes: report::sizes(&extent.kinds),
        rates: Part::Averages.of(&args.parts, || steady::measure(&extent)),
        singles: Part::Singles.of(&args.parts, || single::measure(&extent)),
        touched: Part::Touched.of(&args.parts, || counted::measure(&extent)),
    }
}

fn show(outcome: &Outcome, args: &Args) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, outcome)?;
        return writeln!(out);
    }
    report::show(outcome, &mut out)
}

fn first_line(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}

fn cpu_model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        text.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
    model.map_or_else(|| "unknown".to_owned(), |(_, name)| name.to_owned())
}
