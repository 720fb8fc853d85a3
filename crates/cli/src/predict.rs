//! `quietcore lab predict`: the simulator held against this machine.

use crate::args::value::lab_span;
use crate::calibrate;
use crate::error::CliError;
use crate::outcome::CommandOutcome;
use crate::output;
use crate::progress::Display;
use crate::signals::SignalFlag;
use crate::text::{self, Page};
use clap::Args;
use quietcore_core::CpuSet;
use quietcore_lab::{Predictor, number};
use quietcore_sim::CostTable;
use quietcore_trace::visible_path;
use std::path::PathBuf;
use std::time::Duration;

const EXIT_CODES: &str = "\
Exit codes: 0 predicted and measured, however far apart; 2 an error; 130 interrupted. The order is: costs, \
predictions, measurements; a prediction knows nothing of what is measured after it.";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct PredictArgs {
    /// Costs that were frozen earlier, as a file of `quietcore calibrate` [default: measured now]
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Freeze the costs in this file before anything is predicted
    #[arg(short, long, value_name = "FILE", conflicts_with = "costs")]
    output: Option<PathBuf>,
    /// How long each figure is measured in each round, from 10ms to 10m
    #[arg(long, value_name = "SPAN", value_parser = lab_span, default_value = "1s")]
    span: Duration,
    /// Rounds, in which each figure is measured once
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Two CPUs for the lanes, as 0-1 [default: the first two that this process may use]
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,
    /// Print JSON instead of text (docs/reference/lab.md)
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &PredictArgs) -> Result<CommandOutcome, CliError> {
    // A wrong --cpus is refused before the costs are measured.
    quietcore_lab::two_cpus(args.cpus.as_ref(), &quietcore_lab::allowed_cpus()?)?;
    let costs = costs(args)?;
    // Until here Ctrl-C simply ends the process: nothing was begun that would have to be ended.
    let interrupt = SignalFlag::install()?;
    let predictor = Predictor::new(costs, args.span, args.cpus.as_ref(), interrupt.stop_flag())?;
    for one in predictor.predictions() {
        let value = number(one.predicted);
        output::say(&format!("predicted, {}: {}: {value} {}", one.question, one.what, one.unit));
    }
    let (mut display, rounds) = (Display::new(), args.rounds);
    let mut tell = |case: &str, round| display.show(|| how_far(case, [round, rounds]));
    let measured = predictor.measure(rounds, &mut tell);
    display.clear();
    let report = measured?;
    if args.json {
        output::print_json(&report)?;
    } else {
        Page::print(|page| text::predictions(page, &report))?;
    }
    Ok(if report.complete { CommandOutcome::Fine } else { CommandOutcome::Interrupted })
}

fn how_far(case: &str, [round, of]: [u32; 2]) -> String {
    format!("{case}: round {round} of {of}")
}

fn costs(args: &PredictArgs) -> Result<CostTable, CliError> {
    if let Some(path) = &args.costs {
        let text = quietcore_answers::read_text(path)
            .map_err(|error| CliError::Usage(format!("{}: {error}", visible_path(path))))?;
        return CostTable::parse(path, &text).map_err(|error| CliError::Usage(error.to_string()));
    }
    output::say("calibrating: some seconds");
    let found = calibrate::measure()?;
    found.missing.iter().for_each(|sentence| output::say(sentence));
    if let Some(path) = &args.output {
        calibrate::write(&found.costs, path)?;
    }
    Ok(found.costs)
}

#[cfg(test)]
mod tests {
    use super::how_far;

    /// Goal: measuring says how far it is. Method: words that all differ.
    #[test]
    fn a_measurement_says_how_far_it_is() {
        assert_eq!(how_far("idle, stay", [2, 5]), "idle, stay: round 2 of 5");
    }
}
