//! `quietcore lab`: experiments on the runtime itself, on the threads of this machine.
//!
//! An experiment (a *row*) is a few variants that run one after the other, again and again, so that what
//! else the machine does falls on all of them. Shown are medians of the rounds, the smallest and the largest
//! beside them; one variant is the noise floor: the same work with nothing in its way. A figure without that
//! floor says nothing about this machine. Beside it stand, never mixed in, the figures of the mail that the
//! row is about and what the simulator says.
//!
//! ```text
//! plan.rs       what a row is                    blocked.rs enqueue.rs idle.rs mq_netem/ and others: the rows
//! measure.rs    rounds, medians, verdicts        crew.rs tasks.rs gaps.rs trace.rs: what rows are made of
//! simulated.rs  the scenario beside a row        report.rs    what the JSON has
//! text.rs       for a terminal                   html/        for a browser, with plots
//! host.rs       where it ran                     predict/     the simulator held against this machine
//! ```

mod blocked;
mod crew;
mod cyclictest;
mod dbench;
mod enqueue;
mod gaps;
mod host;
mod html;
mod idle;
mod isolated;
mod measure;
mod mq_netem;
mod oslat;
mod plan;
mod predict;
mod report;
mod simulated;
mod sync;
mod tasks;
#[cfg(test)]
mod tests;
mod text;
mod trace;

use crate::Outcome;
use crate::error::CliError;
use crate::output::{self, AtomicFile};
use crate::progress::Display;
use crate::signals::Interrupt;
use crate::text::Page;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Subcommand};
use plan::{Bench, Plan, Scale};
use quietcore_core::CpuSet;
use quietcore_live::CpuId;
use report::{Report, Row};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use trace::Shown;

/// All rows, in the order in which they run.
const ROWS: &[&Plan] = &[
    &mq_netem::PLAN,
    &oslat::PLAN,
    &enqueue::PLAN,
    &dbench::PLAN,
    &idle::PLAN,
    &cyclictest::PLAN,
    &blocked::PLAN,
    &isolated::PLAN,
];

const EXIT_CODES: &str = "\
Exit codes: 0 it ran; 1 a figure that must have one value has another; 2 an error; 130 interrupted: what was \
measured until then is printed. Everything that is called measured was measured in this run, on this machine; \
what is simulated and what others measured says so. bench/README.md compares with other runtimes.";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, args_conflicts_with_subcommands = true)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    other: Option<Other>,
    #[command(flatten)]
    options: Options,
}

/// What is no row.
#[derive(Debug, Subcommand)]
enum Other {
    /// Calibrate this machine, predict figures with the simulator, then measure them and compare
    Predict(predict::PredictArgs),
}

#[derive(Debug, Args)]
struct Options {
    /// Which experiment [default: all of them, and a summary]
    #[arg(value_parser = PossibleValuesParser::new(
        ROWS.iter().map(|plan| PossibleValue::new(plan.name).help(plan.question))
    ))]
    row: Option<String>,
    /// A first impression: fewer and shorter rounds, fewer loads; all rows in 90 s at most
    #[arg(long)]
    quick: bool,
    /// How long each variant runs in each round, from 10ms to 10m [default: the row's]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    span: Option<Duration>,
    /// Rounds, in which each variant runs once [default: 5, quick 3]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Two CPUs for the lanes, as 0-1 [default: the first two that this process may use]
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,
    /// Leave the simulator out
    #[arg(long)]
    no_sim: bool,
    /// Also write a report with plots: one file, without scripts and without anything from elsewhere
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write what ran where in the last round of each row as a Perfetto trace; taking it down costs time
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// Print JSON instead of text (docs/lab.md)
    #[arg(long)]
    json: bool,
}

/// The files to write besides, opened before any work is done.
struct Files {
    html: Option<(PathBuf, AtomicFile)>,
    perfetto: Option<(PathBuf, AtomicFile)>,
}

pub(crate) fn run(args: &LabArgs) -> Result<Outcome, CliError> {
    if let Some(Other::Predict(args)) = &args.other {
        return predict::run(args);
    }
    let options = &args.options;
    let plans: Vec<&'static Plan> = ROWS
        .iter()
        .filter(|plan| options.row.as_ref().is_none_or(|name| name == plan.name))
        .copied()
        .collect();
    let files = open(options)?;
    let allowed = crate::host::allowed_cpus()?;
    let cpus = two_cpus(options.cpus.as_ref(), &allowed)?;
    let interrupt = Interrupt::install()?;
    let mut report = Report {
        schema: report::SCHEMA,
        quietcore: env!("CARGO_PKG_VERSION"),
        complete: true,
        quick: options.quick,
        host: host::Host::read(&allowed),
        rows: Vec::new(),
    };
    let mut shown = Vec::new();
    for (number, plan) in (1..).zip(&plans) {
        let session = Session { options, cpus, interrupt: &interrupt, number, of: plans.len() };
        report.rows.extend(session.run(plan, &mut shown)?);
        if interrupt.arrived() {
            report.complete = false;
            break;
        }
    }
    finish(options, &report, files, &shown)?;
    Ok(match (report.complete, report.holds()) {
        (false, _) => Outcome::Interrupted,
        (true, false) => Outcome::Found,
        (true, true) => Outcome::Fine,
    })
}

fn open(options: &Options) -> Result<Files, CliError> {
    if options.html.is_some() && options.html == options.perfetto {
        return Err(CliError::Usage("--html and --perfetto are the same file; name two files".to_owned()));
    }
    let create = |path: &Option<PathBuf>| match path {
        Some(path) => Ok(Some((path.clone(), AtomicFile::create(path)?))),
        None => Ok::<_, CliError>(None),
    };
    Ok(Files { html: create(&options.html)?, perfetto: create(&options.perfetto)? })
}

/// One row of a run.
struct Session<'a> {
    options: &'a Options,
    cpus: [CpuId; 2],
    interrupt: &'a Interrupt,
    number: usize,
    of: usize,
}

impl Session<'_> {
    /// `None` when not even one round was measured.
    fn run(&self, plan: &'static Plan, shown: &mut Vec<Shown>) -> Result<Option<Row>, CliError> {
        let options = self.options;
        let usual = if options.quick { plan.spans.quick } else { plan.spans.full };
        let mut bench = Bench::new(options.span.unwrap_or(usual), self.cpus, self.interrupt);
        bench.scale = if options.quick { Scale::Quick } else { Scale::Full };
        bench.trace = options.perfetto.is_some().then(|| Arc::new(Mutex::new(Vec::new())));
        let asked = options.rounds.unwrap_or(if options.quick { 3 } else { 5 });
        if self.of > 1 {
            let seconds = bench.span.as_secs_f64() * f64::from(asked) * plan.variants.len() as f64;
            let of = self.of;
            output::say(&format!("lab {} ({} of {of}), about {seconds:.0} s", plan.name, self.number));
        }
        let mut display = Display::new();
        let mut told = |round: u32, variant: &str| {
            display.show(|| format!("{}: round {round} of {asked}: {variant}", plan.name));
        };
        let measure = || measure::run(plan, &bench, asked, &mut told, shown);
        let (rounds, others) = host::beside(measure);
        display.clear();
        let rounds = rounds?;
        if rounds.count() == 0 {
            return Ok(None);
        }
        let mut row = rounds.row(plan, &bench, command(options, plan));
        row.beside(others);
        if let (Some(sim), false) = (&plan.sim, options.no_sim) {
            let mut go_on = || {
                display.show(|| format!("{}: simulating {}", plan.name, sim.scenario));
                !self.interrupt.arrived()
            };
            row.simulated = simulated::run(sim, &mut go_on)?;
            display.clear();
        }
        Ok(Some(row))
    }
}

/// What runs a row again as it was run now.
fn command(options: &Options, plan: &Plan) -> String {
    let mut command = format!("quietcore lab {}", plan.name);
    if options.quick {
        command.push_str(" --quick");
    }
    if let Some(span) = options.span {
        command.push_str(&format!(" --span {}ms", span.as_millis()));
    }
    if let Some(rounds) = options.rounds {
        command.push_str(&format!(" --rounds {rounds}"));
    }
    if let Some(cpus) = &options.cpus {
        command.push_str(&format!(" --cpus {cpus}"));
    }
    command
}

fn finish(options: &Options, report: &Report, files: Files, shown: &[Shown]) -> Result<(), CliError> {
    if let Some((path, mut file)) = files.html {
        let page = html::page(report);
        file.write_all(page.as_bytes()).map_err(|error| CliError::Write(path, error))?;
        file.finish()?;
    }
    if let Some((path, file)) = files.perfetto
        && let Some(sentence) = trace::write(&path, file, shown)?
    {
        output::say(&sentence);
    }
    if options.json {
        return output::print_json(report);
    }
    let mut page = Page::for_stdout();
    match report.rows.as_slice() {
        [] => return Ok(()),
        [row] if options.row.is_some() => text::row(&mut page, row),
        _ => text::summary(&mut page, report),
    }
    if !report.complete {
        page.blank();
        page.line("Interrupted: this is what was measured until then.");
    }
    output::print(&page.into_text())
}

/// A span that is long enough for a few timers and short enough to wait for.
fn span(text: &str) -> Result<Duration, String> {
    let span = crate::args::span(text)?;
    let allowed = Duration::from_millis(10)..=Duration::from_secs(600);
    if allowed.contains(&span) { Ok(span) } else { Err("from 10ms to 10m".to_owned()) }
}

fn two_cpus(asked: Option<&CpuSet>, allowed: &CpuSet) -> Result<[CpuId; 2], CliError> {
    let cpus = asked.unwrap_or(allowed);
    if let Some(cpu) = cpus.difference(allowed).first() {
        return Err(CliError::Usage(format!(
            "--cpus: this process may not run on CPU {cpu}; it may on {allowed}"
        )));
    }
    let mut those = cpus.iter();
    match (those.next(), those.next(), asked) {
        (Some(one), Some(two), _) => Ok([one, two]),
        (_, _, Some(asked)) => Err(CliError::Usage(format!(
            "--cpus: the lab needs two CPUs, and {asked:?} is one",
            asked = asked.to_string()
        ))),
        _ => {
            Err(CliError::Usage("the lab needs two CPUs; this process may use one (see taskset)".to_owned()))
        }
    }
}
