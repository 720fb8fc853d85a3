//! `quietcore lab predict`: the simulator held against this machine.
//!
//! The order is the point: costs are measured and frozen, then figures are predicted and said, then the same
//! is measured. Nothing flows back. A prediction that is off by more than [`TOLERATED`] says by how much,
//! and what of its own figures could be the reason.

mod questions;
mod show;
#[cfg(test)]
mod tests;

use super::host::{self, Host};
use super::measure::MUCH;
use super::plan::Bench;
use crate::Outcome;
use crate::calibrate;
use crate::error::CliError;
use crate::output;
use crate::progress::Display;
use crate::signals::Interrupt;
use clap::Args;
use questions::{Ask, Kind, QUESTIONS, Question};
use quietcore_core::CpuSet;
use quietcore_sim::{Cost, CostTable, Options, Scenario, Variant};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How far a prediction may be off, as a share.
const TOLERATED: f64 = 0.3;

const EXIT_CODES: &str = "\
Exit codes: 0 predicted and measured, however far apart; 2 an error; 130 interrupted. The order is: costs, \
predictions, measurements; a prediction knows nothing of what is measured after it.";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(super) struct PredictArgs {
    /// Costs that were frozen earlier, as a file of `quietcore calibrate` [default: measured now]
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Freeze the costs in this file before anything is predicted
    #[arg(short, long, value_name = "FILE", conflicts_with = "costs")]
    output: Option<PathBuf>,
    /// How long each figure is measured in each round, from 10ms to 10m
    #[arg(long, value_name = "SPAN", value_parser = super::span, default_value = "1s")]
    span: Duration,
    /// Rounds, in which each figure is measured once
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Two CPUs for the lanes, as 0-1 [default: the first two that this process may use]
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,
    /// Print JSON instead of text (docs/lab.md)
    #[arg(long)]
    json: bool,
}

/// What is printed.
#[derive(Clone, Debug, Serialize)]
struct Report {
    schema: u32,
    quietcore: &'static str,
    /// False after Ctrl-C.
    complete: bool,
    host: Host,
    /// Frozen before the first prediction.
    costs: CostTable,
    tolerated_percent: f64,
    span_ms: u64,
    predictions: Vec<Prediction>,
}

/// A figure, simulated and then measured.
#[derive(Clone, Debug, Serialize)]
struct Prediction {
    question: &'static str,
    what: &'static str,
    unit: &'static str,
    /// Simulated.
    predicted: f64,
    /// The same with all costs halved, and doubled.
    halved: f64,
    doubled: f64,
    /// `null` when it was not measured any more.
    measured: Option<Live>,
}

/// What the machine did.
#[derive(Clone, Debug, Serialize)]
struct Live {
    median: f64,
    rounds: Vec<f64>,
    /// Share of all CPUs' time that others took meanwhile; `null` where the kernel does not say.
    others_percent: Option<f64>,
    /// Measured against predicted.
    off_percent: f64,
    within: bool,
    /// Why it could be off; `null` when it is within.
    reason: Option<String>,
}

pub(super) fn run(args: &PredictArgs) -> Result<Outcome, CliError> {
    let allowed = crate::host::allowed_cpus()?;
    let cpus = super::two_cpus(args.cpus.as_ref(), &allowed)?;
    let costs = costs(args)?;
    // Until here Ctrl-C simply ends the process: nothing was begun that would have to be ended.
    let interrupt = Interrupt::install()?;
    let mut report = Report {
        schema: super::report::SCHEMA,
        quietcore: env!("CARGO_PKG_VERSION"),
        complete: true,
        host: Host::read(&allowed),
        costs,
        tolerated_percent: TOLERATED * 100.0,
        span_ms: u64::try_from(args.span.as_millis()).unwrap_or(u64::MAX),
        predictions: Vec::new(),
    };
    for question in QUESTIONS {
        report.predictions.extend(predicted(question, &report.costs)?);
    }
    for one in &report.predictions {
        let value = super::report::number(one.predicted);
        output::say(&format!("predicted, {}: {}: {value} {}", one.question, one.what, one.unit));
    }
    let bench = Bench::new(args.span, cpus, &interrupt);
    for question in QUESTIONS {
        let (rounds, others) = host::beside(|| measured(question, &bench, args.rounds));
        judge(&mut report, question, (&rounds?, others));
    }
    report.complete = !interrupt.arrived();
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&show::text(&report))?;
    }
    Ok(if report.complete { Outcome::Fine } else { Outcome::Interrupted })
}

fn costs(args: &PredictArgs) -> Result<CostTable, CliError> {
    if let Some(path) = &args.costs {
        let text = crate::sim::read(path)
            .map_err(|error| CliError::Usage(format!("{}: {error}", path.display())))?;
        return CostTable::parse(path, &text).map_err(|error| CliError::Usage(error.to_string()));
    }
    output::say("calibrating: some seconds");
    let (table, missing) = calibrate::measure()?;
    missing.iter().for_each(|sentence| output::say(sentence));
    if let Some(path) = &args.output {
        calibrate::write(&table, path)?;
    }
    Ok(table)
}

/// What the simulator says of a question.
fn predicted(question: &Question, costs: &CostTable) -> Result<Vec<Prediction>, CliError> {
    let (duration, machine) = (question.duration, (question.scenario)());
    let text = format!("seed = 1\nduration = \"{duration}\"\ncosts = \"costs.toml\"\n{machine}");
    let name = format!("{}.toml", question.name);
    let scenario = Scenario::parse(Path::new(&name), &text, &|_| Ok(costs.to_toml()))
        .map_err(|error| CliError::Usage(error.to_string()))?;
    let options = Options { sensitivity: true, hash: false, ..Options::default() };
    let outcome = scenario.run(options, &mut |_| true, &mut |_| Ok(None))?;
    let variants = outcome.map(|outcome| outcome.variants).unwrap_or_default();
    let of = |ask: &Ask| {
        let variant = variants.iter().find(|variant| variant.label == ask.label);
        variant.and_then(|variant| prediction(question, ask, variant)).ok_or_else(|| {
            CliError::Usage(format!("the scenario {name} has no {} of {}", ask.figure, ask.label))
        })
    };
    question.asks.iter().map(of).collect()
}

fn prediction(question: &Question, ask: &Ask, variant: &Variant) -> Option<Prediction> {
    let predicted = variant.figures.number(ask.figure)? / ask.unit.1;
    let range = variant.sensitivity.get(ask.figure);
    let or = |value: Option<f64>| value.map_or(predicted, |value| value / ask.unit.1);
    Some(Prediction {
        question: question.name,
        what: ask.what,
        unit: ask.unit.0,
        predicted,
        halved: or(range.and_then(|range| range.halved)),
        doubled: or(range.and_then(|range| range.doubled)),
        measured: None,
    })
}

/// Figures by round; a round that Ctrl-C cut short does not count.
fn measured(question: &Question, bench: &Bench, rounds: u32) -> Result<Vec<Vec<f64>>, CliError> {
    let mut display = Display::new();
    let mut all = Vec::new();
    for round in 1..=rounds {
        if bench.interrupt.arrived() {
            break;
        }
        display.show(|| format!("{}: round {round} of {rounds}", question.name));
        let figures = (question.live)(bench);
        let figures = figures.inspect_err(|_| display.clear())?;
        if !bench.interrupt.arrived() {
            all.push(figures);
        }
    }
    display.clear();
    Ok(all)
}

fn judge(report: &mut Report, question: &Question, (rounds, others): (&[Vec<f64>], Option<f64>)) {
    let costs = report.costs.clone();
    let those = report.predictions.iter_mut().filter(|one| one.question == question.name);
    for (at, (one, ask)) in those.zip(question.asks).enumerate() {
        let values: Vec<f64> = rounds.iter().filter_map(|figures| figures.get(at).copied()).collect();
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let Some(&median) = sorted.get(sorted.len() / 2) else { continue };
        let off = if one.predicted == 0.0 { f64::from(median != 0.0) } else { median / one.predicted - 1.0 };
        let within = off.abs() <= TOLERATED;
        let reason = (!within).then(|| reason(one, ask, (&sorted, others), &costs));
        let off_percent = off * 100.0;
        let live = Live { median, rounds: values, others_percent: others, off_percent, within, reason };
        one.measured = Some(live);
    }
}

/// Why a prediction could be off, from figures: the rounds, the costs, what is not modelled.
fn reason(one: &Prediction, ask: &Ask, (sorted, others): (&[f64], Option<f64>), costs: &CostTable) -> String {
    let number = super::report::number;
    let (first, last) = (sorted[0], sorted[sorted.len() - 1]);
    let mut sentences = Vec::new();
    if (first..=last).contains(&one.predicted) {
        sentences.push(format!("the rounds went from {} to {}, past it", number(first), number(last)));
    }
    if let Some(percent) = others.filter(|percent| *percent >= MUCH) {
        sentences.push(format!("others took {} % of all CPU time meanwhile", number(percent)));
    }
    let (low, high) = (one.halved.min(one.doubled), one.halved.max(one.doubled));
    let median = sorted[sorted.len() / 2];
    if (low..=high).contains(&median) {
        let (low, high) = (number(low), number(high));
        sentences.push(format!("costs between half and twice those calibrated give {low} to {high}"));
    } else {
        sentences.push(format!(
            "not even half or twice the costs explain it ({} to {}); not simulated: {}",
            number(low),
            number(high),
            ask.not_modelled
        ));
    }
    if ask.kind == Kind::Throughput && median > 0.0 && one.predicted > 0.0 {
        let more = (1.0 / median - 1.0 / one.predicted) * 1e6;
        let cost = |cost| costs.get(cost).map_or(0.0, |value| value.ns / 1e3);
        let wake = cost(Cost::Kick) + cost(Cost::IdleExit);
        sentences.push(format!(
            "a request takes {} us {} than simulated, where waking a lane costs {} us",
            number(more.abs()),
            if more > 0.0 { "longer" } else { "less" },
            number(wake)
        ));
    }
    sentences.join("; ")
}
