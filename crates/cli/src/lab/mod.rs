//! `quietcore lab`: experiments on the runtime itself, on the threads of this machine.
//!
//! An experiment is a few variants that run one after the other, again and again, so that what else the
//! machine does falls on all of them. Shown are medians of the rounds, the smallest and the largest beside
//! them; one variant is the noise floor: the same work with nothing in its way. A figure without that floor
//! says nothing about this machine. `blocked.rs`, `enqueue.rs` and `idle.rs` are the experiments, `text.rs`
//! the table.

mod blocked;
mod crew;
mod enqueue;
mod idle;
mod text;

use crate::Outcome;
use crate::error::CliError;
use crate::output;
use crate::progress::Display;
use crate::signals::Interrupt;
use crate::text::Page;
use clap::{Args, Subcommand};
use quietcore_core::CpuSet;
use quietcore_live::{CpuId, StartError};
use serde::Serialize;
use std::time::Duration;

const EXIT_CODES: &str = "\
Exit codes: 0 it ran; 2 an error; 130 interrupted. Everything shown was measured, in this run, on this \
machine; bench/README.md compares with other runtimes.";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Debug, Subcommand)]
enum Experiment {
    /// One lane blocks for 100 of every 120 ms: how late are the timers of the others?
    Blocked(Options),
    /// Arm and cancel on an isolated lane: what does looking for a busy CPU cost?
    Enqueue(Options),
    /// Many periodic timers, or none: how often is anybody woken up?
    Idle(Options),
}

#[derive(Debug, Args)]
struct Options {
    /// How long each variant runs in each round, as 2s
    #[arg(long, value_name = "SPAN", value_parser = crate::args::span, default_value = "2s")]
    span: Duration,
    /// Rounds, in which each variant runs once
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Two CPUs for the lanes, as 0-1 [default: the first two that this process may use]
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// What a variant is compared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    NoiseFloor,
    Before,
    After,
}

/// A way to run an experiment.
struct Variant {
    name: &'static str,
    what: &'static str,
    role: Role,
    /// Runs it once; figures in the order of `Plan::figures`.
    run: fn(&Bench) -> Result<Vec<f64>, CliError>,
}

/// An experiment: what is measured, and how it is run.
struct Plan {
    name: &'static str,
    question: &'static str,
    /// Names and units.
    figures: &'static [(&'static str, &'static str)],
    variants: &'static [Variant],
}

/// Where and how long a variant runs.
struct Bench {
    span: Duration,
    cpus: [CpuId; 2],
}

impl Bench {
    fn lanes(&self) -> CpuSet {
        self.cpus.into_iter().collect()
    }
}

/// What the rounds of one variant gave.
#[derive(Debug, Serialize)]
struct Measured {
    name: &'static str,
    what: &'static str,
    role: Role,
    figures: Vec<Figure>,
}

/// One figure in all rounds.
#[derive(Debug, Serialize)]
struct Figure {
    name: &'static str,
    unit: &'static str,
    median: f64,
    smallest: f64,
    largest: f64,
    rounds: Vec<f64>,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Report {
    experiment: &'static str,
    question: &'static str,
    /// Never simulated.
    measured: bool,
    cpus: String,
    span_ms: u64,
    rounds: u32,
    variants: Vec<Measured>,
}

pub(crate) fn run(args: &LabArgs) -> Result<Outcome, CliError> {
    let (plan, options) = match &args.experiment {
        Experiment::Blocked(options) => (&blocked::PLAN, options),
        Experiment::Enqueue(options) => (&enqueue::PLAN, options),
        Experiment::Idle(options) => (&idle::PLAN, options),
    };
    let bench = Bench { span: options.span, cpus: two_cpus(options.cpus.as_ref())? };
    let interrupt = Interrupt::install()?;
    let mut display = Display::new();
    let mut rounds: Vec<Vec<Vec<f64>>> = plan.variants.iter().map(|_| Vec::new()).collect();
    for round in 1..=options.rounds {
        for (variant, rounds) in plan.variants.iter().zip(&mut rounds) {
            if interrupt.arrived() {
                display.clear();
                return Ok(Outcome::Interrupted);
            }
            display.show(|| format!("round {round} of {}: {}", options.rounds, variant.name));
            rounds.push((variant.run)(&bench)?);
        }
    }
    display.clear();
    let variants = plan.variants.iter().zip(rounds);
    let report = Report {
        experiment: plan.name,
        question: plan.question,
        measured: true,
        cpus: bench.lanes().to_string(),
        span_ms: u64::try_from(options.span.as_millis()).unwrap_or(u64::MAX),
        rounds: options.rounds,
        variants: variants.map(|(variant, rounds)| summary(plan, variant, &rounds)).collect(),
    };
    if options.json {
        output::print_json(&report)?;
    } else {
        let mut page = Page::for_stdout();
        text::report(&mut page, &report);
        output::print(&page.into_text())?;
    }
    Ok(Outcome::Fine)
}

fn summary(plan: &Plan, variant: &Variant, rounds: &[Vec<f64>]) -> Measured {
    let figure = |at: usize, (name, unit): (&'static str, &'static str)| {
        let rounds: Vec<f64> = rounds.iter().map(|figures| figures[at]).collect();
        let mut sorted = rounds.clone();
        sorted.sort_by(f64::total_cmp);
        let (smallest, largest) = (sorted[0], sorted[sorted.len() - 1]);
        Figure { name, unit, median: sorted[sorted.len() / 2], smallest, largest, rounds }
    };
    let figures = plan.figures.iter().enumerate().map(|(at, name)| figure(at, *name)).collect();
    Measured { name: variant.name, what: variant.what, role: variant.role, figures }
}

fn two_cpus(asked: Option<&CpuSet>) -> Result<[CpuId; 2], CliError> {
    let allowed = crate::host::allowed_cpus()?;
    let cpus = asked.unwrap_or(&allowed);
    if let Some(cpu) = cpus.difference(&allowed).first() {
        return Err(CliError::Usage(format!(
            "--cpus: this process may not run on CPU {cpu}; it may on {allowed}"
        )));
    }
    let mut cpus = cpus.iter();
    match (cpus.next(), cpus.next()) {
        (Some(one), Some(two)) => Ok([one, two]),
        _ => {
            Err(CliError::Usage("the lab needs two CPUs; this process may use one (see taskset)".to_owned()))
        }
    }
}

fn cannot_start(error: StartError) -> CliError {
    CliError::Live(format!("cannot start the runtime: {error}"))
}

/// The value below which the share `quantile` of the sorted `values` lies; 0 of none.
fn quantile(values: &[u64], quantile: f64) -> f64 {
    let rank = (values.len() as f64 * quantile).ceil() as usize;
    values.get(rank.clamp(1, values.len().max(1)) - 1).map_or(0.0, |value| *value as f64)
}

#[cfg(test)]
mod tests {
    use super::quantile;

    /// Goal: quantiles are values that occurred, by rank. Method: ten values, and none.
    #[test]
    fn quantiles_are_by_rank() {
        let values: Vec<u64> = (1..=10).collect();
        let found = [0.0, 0.5, 0.51, 0.99, 1.0].map(|share| quantile(&values, share));
        assert_eq!(found, [1.0, 5.0, 6.0, 10.0, 10.0]);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
