//! `runtimes`: whole timer runtimes side by side, in one table.
//!
//! Every round measures every peer once in each measure, in an order that is shuffled each time. Each run is
//! a process of its own, so no runtime's threads disturb another's. What is measured and how it is shown is
//! decided in `src/runtimes`.

use clap::Parser;
use quietcore_bench::machine::Machine;
use quietcore_bench::runtimes::build::{self, Built};
use quietcore_bench::runtimes::child::{self, Ran};
use quietcore_bench::runtimes::measures::{MEASURES, Measure, Sizes};
use quietcore_bench::runtimes::programs::{PROGRAMS, Program};
use quietcore_bench::runtimes::raw::{Place, Raw};
use quietcore_bench::runtimes::report::{self, About, Block, Outcome, Skipped};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Measures timer runtimes side by side: arm and cancel, expiry, lateness, wake-ups.
#[derive(Debug, Parser)]
#[command(
    after_help = "Run it with --release on a machine that is otherwise idle. Peers are compiled first; \
                        whatever cannot be compiled is skipped by name."
)]
struct Args {
    /// How often everything is measured
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Measure only these peers (part of the name is enough; `=NAME` is the whole name)
    #[arg(long, value_name = "PEER", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure only these: arm-cancel, blocked, ...
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = measure_names())]
    measure: Vec<String>,
    /// Which sequence of shuffled orders
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Small sizes, to see whether everything works
    #[arg(long)]
    quick: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Where the file with all samples goes [default: beside the compiled peers]
    #[arg(long, value_name = "DIR")]
    raw: Option<PathBuf>,
}

fn measure_names() -> clap::builder::PossibleValuesParser {
    MEASURES.iter().map(|measure| measure.name).collect::<Vec<_>>().into()
}

/// A peer that can be measured.
struct Ready {
    program: &'static Program,
    built: Built,
    about: About,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = end_children_on_signals().and_then(|()| measure(&args));
    match outcome.and_then(|outcome| show(&outcome, &args).map(|()| is_whole(&outcome, &args))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // The reader of the table may stop at any line.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("runtimes: {error}");
            ExitCode::from(2)
        }
    }
}

/// No run failed, and everybody who was asked for by name was there.
fn is_whole(outcome: &Outcome, args: &Args) -> bool {
    let mut rows = outcome.measures.iter().flat_map(|block| &block.rows);
    rows.all(|row| row.failures == 0) && (args.only.is_empty() || outcome.skipped.is_empty())
}

fn end_children_on_signals() -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            child::kill();
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

fn show(outcome: &Outcome, args: &Args) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if args.json { report::json(outcome, &mut out) } else { report::text(outcome, &mut out) }?;
    out.flush()
}

fn measure(args: &Args) -> io::Result<Outcome> {
    let folder = build::folder()?;
    let (ready, skipped) = make(&chosen(&args.only)?, &folder);
    let machine = Machine::here();
    let sizes = if args.quick { Sizes::QUICK } else { Sizes::FULL };
    let peers: Vec<About> = ready.iter().map(|peer| peer.about.clone()).collect();
    let mut raw =
        Raw::create(args.raw.as_deref().unwrap_or(&folder), &machine, &serde_json::to_value(&peers)?)?;
    let wanted =
        |measure: &&Measure| args.measure.is_empty() || args.measure.iter().any(|name| name == measure.name);
    let measures: Vec<&Measure> = MEASURES.iter().filter(wanted).collect();
    let mut blocks: Vec<Block> = measures.iter().map(|measure| Block::new(measure, &peers)).collect();
    let mut random = fastrand::Rng::with_seed(args.seed);
    let mut order: Vec<usize> = (0..ready.len()).collect();
    for round in 1..=args.rounds {
        for (measure, block) in measures.iter().zip(&mut blocks) {
            eprintln!("runtimes: round {round} of {}: {}", args.rounds, measure.name);
            random.shuffle(&mut order);
            for &at in &order {
                let ran = run(measure, &sizes, &ready[at], &mut raw, round)?;
                block.add(measure, at, &ran);
            }
        }
    }
    blocks.iter_mut().for_each(Block::summarise);
    eprintln!("runtimes: all samples are in {}", raw.path().display());
    Ok(Outcome { machine, rounds: args.rounds, seed: args.seed, sizes, peers, skipped, measures: blocks })
}

/// All runs of one measure of one peer, which are also added to the file of the round.
fn run(measure: &Measure, sizes: &Sizes, peer: &Ready, raw: &mut Raw, round: u32) -> io::Result<Vec<Ran>> {
    let mut all = Vec::new();
    for arguments in (measure.runs)(sizes) {
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        let ran = child::run(peer.built.command().args(&arguments).args(peer.program.arguments));
        if let Some(what) = &ran.failed {
            eprintln!("runtimes: {}: {what} ({})", peer.program.name, arguments.join(" "));
        }
        raw.add(
            Place { round, measure: measure.name, arguments: &arguments, peer: peer.program.name },
            &ran,
        )?;
        all.push(ran);
    }
    Ok(all)
}

/// Compiles all peers; those that do not compile are skipped.
fn make(programs: &[&'static Program], folder: &std::path::Path) -> (Vec<Ready>, Vec<Skipped>) {
    let (mut ready, mut skipped) = (Vec::new(), Vec::new());
    for &program in programs {
        eprintln!("runtimes: making {}", program.name);
        match build::build(program, folder) {
            Ok(built) => {
                let about = About { name: program.name, version: built.version.clone(), note: program.note };
                ready.push(Ready { program, built, about });
            }
            Err(error) => {
                eprintln!("runtimes: {} is skipped: {error}", program.name);
                skipped.push(Skipped { name: program.name, reason: error.to_string() });
            }
        }
    }
    (ready, skipped)
}

/// The peers that one of `only` names, or all.
fn chosen(only: &[String]) -> io::Result<Vec<&'static Program>> {
    for name in only {
        if !PROGRAMS.iter().any(|program| is_called(program, name)) {
            let known: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
            return Err(io::Error::other(format!(
                "no peer is called {name}; there are {}",
                known.join(", ")
            )));
        }
    }
    let wanted = |program: &&Program| only.is_empty() || only.iter().any(|name| is_called(program, name));
    Ok(PROGRAMS.iter().filter(wanted).collect())
}

/// Part of the name is enough, whatever the case; after `=` it is all of it.
fn is_called(program: &Program, name: &str) -> bool {
    let (own, name) = (program.name.to_lowercase(), name.to_lowercase());
    name.strip_prefix('=').map_or_else(|| own.contains(&name), |name| own == name)
}
