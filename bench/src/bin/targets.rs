//! `targets`: what was asked for, what this machine allows, and what is measured, in one table.
//!
//! Runs the other programs of this folder, a round of each in turn, so that a slow moment of the machine
//! falls on all of them. Each round measures the machine's limits first.

use clap::{Parser, ValueEnum};
use quietcore_bench::limits::Limits;
use quietcore_bench::machine::Machine;
use quietcore_bench::statistics::Summary;
use quietcore_bench::targets::{MEASURES, PEERS, Round, TARGETS, Verdict, markdown, text};
use serde::Serialize;
use serde_json::Value;
use std::io::{self, Write};
use std::process::{Command, ExitCode, Stdio};

/// Measures every target beside the machine's own limits.
#[derive(Debug, Parser)]
#[command(after_help = "Run it with --release on a machine with two CPUs that is otherwise idle. \
                        Exit status: 0 whether targets are met or not, 2 if they could not be measured.")]
struct Args {
    /// How often everything is measured
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Small sizes, to see whether everything works
    #[arg(long)]
    quick: bool,
    /// How the table is printed
    #[arg(long, value_name = "FORM", default_value = "text")]
    form: Form,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    Text,
    Markdown,
    Json,
}

#[derive(Serialize)]
struct Report {
    machine: Machine,
    rounds: u32,
    limits: Limits,
    targets: Vec<Verdict>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let printed = measure(&args).and_then(|report| print(&report, args.form));
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("targets: {error}");
            ExitCode::from(2)
        }
    }
}

fn measure(args: &Args) -> io::Result<Report> {
    let mut rounds = Vec::new();
    for number in 1..=args.rounds {
        eprintln!("targets: round {number} of {}", args.rounds);
        rounds.push(round(args.quick)?);
    }
    // The most that was seen: other guests of a host take one CPU or the other for seconds.
    let two_threads = rounds.iter().map(|round| round.limits.two_threads).fold(1.0, f64::max);
    rounds.iter_mut().for_each(|round| round.limits.two_threads = two_threads);
    let verdict = |target| {
        let found: Vec<_> = rounds.iter().filter_map(|round| round.find(target)).collect();
        Verdict::of(target, &found)
    };
    let median = |of: fn(&Limits) -> f64| {
        let values: Vec<f64> = rounds.iter().map(|round| of(&round.limits)).collect();
        Summary::of(&values).map_or(f64::NAN, |of| of.median)
    };
    let limits = Limits {
        lock: median(|limits| limits.lock),
        clock: median(|limits| limits.clock),
        miss: median(|limits| limits.miss),
        two_threads,
    };
    let targets = TARGETS.iter().map(verdict).collect();
    Ok(Report { machine: Machine::here(), rounds: args.rounds, limits, targets })
}

fn round(quick: bool) -> io::Result<Round> {
    let limits = Limits::measure();
    let peers: Vec<String> = PEERS.iter().map(|peer| format!("={peer}")).collect();
    let mut words = vec!["--only".to_owned(), peers.join(","), "--measure".to_owned(), MEASURES.join(",")];
    words.extend(quick.then(|| "--quick".to_owned()));
    let size = if quick { "4" } else { "128" };
    let rounds = if quick { "1" } else { "3" };
    Ok(Round {
        limits,
        lane: json("lane", &[])?,
        runtimes: json("runtimes", &words.iter().map(String::as_str).collect::<Vec<_>>())?,
        sim: json("sim", &[])?,
        parser: json_of(
            "parser",
            &["--only", "explain,explain-ahead,grep", "--size", size, "--rounds", rounds, "--json"],
        )?,
    })
}

/// What the program of that name, which lies beside this one, prints in one round.
fn json(name: &str, words: &[&str]) -> io::Result<Value> {
    json_of(name, &[&["--rounds", "1", "--json"], words].concat())
}

fn json_of(name: &str, words: &[&str]) -> io::Result<Value> {
    let program = std::env::current_exe()?.with_file_name(name);
    let output = Command::new(&program).args(words).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| {
        let remedy = "build all of them: cargo build --release --manifest-path bench/Cargo.toml --bins";
        io::Error::new(error.kind(), format!("{}: {error}; {remedy}", program.display()))
    })?;
    // 1: a peer is missing, or failed; its cells are empty.
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(io::Error::other(format!("{name} {}: {}", words.join(" "), output.status)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| io::Error::other(format!("{name}: {error}")))
}

fn print(report: &Report, form: Form) -> io::Result<()> {
    let Report { machine, rounds, limits, targets } = report;
    let mut out = io::stdout().lock();
    match form {
        Form::Text => out.write_all(text(machine, limits, *rounds, targets).as_bytes()),
        Form::Markdown => out.write_all(markdown(machine, limits, *rounds, targets).as_bytes()),
        Form::Json => {
            serde_json::to_writer_pretty(&mut out, report)?;
            writeln!(out)
        }
    }
}
