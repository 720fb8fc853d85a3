//! `quietcore lab`: experiments on the runtime itself, on the threads of this machine.

use crate::args::value::lab_span;
use crate::atomic_file::{AtomicFile, OutputContent};
use crate::error::CliError;
use crate::outcome::CommandOutcome;
use crate::output;
use crate::predict::{self, PredictArgs};
use crate::progress::Display;
use crate::signals::SignalFlag;
use crate::text::{self, Page};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Subcommand};
use quietcore_core::CpuSet;
use quietcore_lab::{LabOptions, LabProgress, LabReport, ROWS, RowPlan, RunScale, SLICES_MAX, VariantSlices};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

const EXIT_CODES: &str = "\
Exit codes: 0 it ran; 1 a figure that must have one value has another, or was not measured in every round; \
2 an error; 130 interrupted: what was measured until then is printed. Everything that is called measured was measured in this run, on this machine; \
what is simulated and what others measured says so. bench/README.md compares with other runtimes.";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, args_conflicts_with_subcommands = true)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    verb: Option<LabVerb>,
    #[command(flatten)]
    run: RunArgs,
}

/// What is no row.
#[derive(Debug, Subcommand)]
enum LabVerb {
    /// Calibrate this machine, predict figures with the simulator, then measure them and compare
    Predict(PredictArgs),
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Which experiment [default: all of them, and a summary]
    #[arg(value_parser = PossibleValuesParser::new(
        ROWS.iter().map(|plan| PossibleValue::new(plan.name).help(plan.question))
    ))]
    row: Option<String>,
    /// A first impression: fewer and shorter rounds, fewer loads; all rows in 90 s at most
    #[arg(long)]
    quick: bool,
    /// How long each variant runs in each round, from 10ms to 10m [default: the row's]
    #[arg(long, value_name = "SPAN", value_parser = lab_span)]
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
    /// Print JSON instead of text (docs/reference/lab.md)
    #[arg(long)]
    json: bool,
}

/// The files to write besides, opened before any work is done.
struct Files {
    html: Option<(PathBuf, AtomicFile)>,
    perfetto: Option<(PathBuf, AtomicFile)>,
}

pub(crate) fn run(args: &LabArgs) -> Result<CommandOutcome, CliError> {
    if let Some(LabVerb::Predict(args)) = &args.verb {
        return predict::run(args);
    }
    let args = &args.run;
    let is_asked = |plan: &RowPlan| args.row.as_ref().is_none_or(|name| name == plan.name);
    let plans: Vec<&'static RowPlan> = ROWS.iter().copied().filter(|plan| is_asked(plan)).collect();
    let files = open(args)?;
    let interrupt = SignalFlag::install()?;
    let mut display = Display::new();
    let mut tell = |at: LabProgress<'_>| show(&mut display, at);
    let ran = quietcore_lab::run(&plans, &options(args), &interrupt.stop_flag(), &mut tell);
    display.clear();
    let (report, slices) = ran?;
    finish(args, &report, files, &slices)?;
    Ok(outcome(&report))
}

fn options(args: &RunArgs) -> LabOptions {
    LabOptions {
        scale: if args.quick { RunScale::Quick } else { RunScale::Full },
        span: args.span,
        rounds: args.rounds,
        cpus: args.cpus.clone(),
        no_scenario: args.no_sim,
        trace: args.perfetto.is_some(),
    }
}

fn outcome(report: &LabReport) -> CommandOutcome {
    match (report.complete, report.holds()) {
        (false, _) => CommandOutcome::Interrupted,
        (true, false) => CommandOutcome::Found,
        (true, true) => CommandOutcome::Fine,
    }
}

fn show(display: &mut Display, at: LabProgress<'_>) {
    match at {
        LabProgress::Row { of: 1, .. } => {}
        LabProgress::Row { .. } => output::say(&sentence(at)),
        LabProgress::Round { .. } | LabProgress::Simulating { .. } => display.show(|| sentence(at)),
        LabProgress::Done => display.clear(),
    }
}

fn sentence(at: LabProgress<'_>) -> String {
    match at {
        LabProgress::Row { name, number, of, about } => {
            format!("lab {name} ({number} of {of}), about {:.0} s", about.as_secs_f64())
        }
        LabProgress::Round { row, round, of, variant } => format!("{row}: round {round} of {of}: {variant}"),
        LabProgress::Simulating { row, scenario } => format!("{row}: simulating {scenario}"),
        LabProgress::Done => String::new(),
    }
}

fn open(args: &RunArgs) -> Result<Files, CliError> {
    if args.html.is_some() && args.html == args.perfetto {
        return Err(CliError::Usage("--html and --perfetto are the same file; name two files".to_owned()));
    }
    let create = |path: &Option<PathBuf>| match path {
        Some(path) => Ok(Some((path.clone(), AtomicFile::create(path, OutputContent::Ordinary)?))),
        None => Ok::<_, CliError>(None),
    };
    Ok(Files { html: create(&args.html)?, perfetto: create(&args.perfetto)? })
}

fn finish(
    args: &RunArgs,
    report: &LabReport,
    files: Files,
    slices: &[VariantSlices],
) -> Result<(), CliError> {
    if let Some((path, mut file)) = files.html {
        let page = quietcore_lab::html_page(report);
        file.write_all(page.as_bytes()).map_err(|error| CliError::Write(path, error))?;
        file.finish()?;
    }
    if let Some((path, file)) = files.perfetto {
        let written = quietcore_lab::perfetto(file, slices);
        written.map_err(|error| CliError::Write(path, error))?.finish()?;
        what_was_cut(slices).iter().for_each(|sentence| output::say(sentence));
    }
    if args.json {
        return output::print_json(report);
    }
    let mut page = Page::for_stdout();
    match report.rows.as_slice() {
        [] => return Ok(()),
        [row] if args.row.is_some() => text::lab_row(&mut page, row),
        _ => text::lab_summary(&mut page, report),
    }
    if !report.complete {
        page.blank();
        page.line("Interrupted: this is what was measured until then.");
    }
    output::print(&page.into_text())
}

fn what_was_cut(slices: &[VariantSlices]) -> Option<String> {
    let cut = slices.iter().filter(|one| one.is_cut());
    let cut: Vec<String> = cut.map(|one| format!("{} {}", one.row, one.variant)).collect();
    let of = cut.join(", ");
    let sentence = format!("the trace has the first {SLICES_MAX} callbacks and polls only of: {of}");
    (!cut.is_empty()).then_some(sentence)
}

#[cfg(test)]
mod tests {
    use super::{RunArgs, options, outcome, sentence, what_was_cut};
    use crate::outcome::CommandOutcome::{Fine, Found, Interrupted};
    use crate::text::lab_fixture as fixture;
    use clap::{Args, FromArgMatches};
    use quietcore_core::{CpuId, Nanos};
    use quietcore_lab::{LabProgress, RunScale, SLICES_MAX, Slice, SliceKind, VariantSlices};
    use std::time::Duration;

    /// Goal: what is typed is what is run. Method: nothing, and each option alone.
    #[test]
    fn a_run_is_as_it_is_typed() {
        let asked = |words: &[&str]| {
            let command = RunArgs::augment_args(clap::Command::new("lab"));
            let matches = command.try_get_matches_from([&["lab"], words].concat()).expect("options of lab");
            let options = options(&RunArgs::from_arg_matches(&matches).expect("options of lab"));
            let cpus = options.cpus.map(|cpus| cpus.to_string());
            (options.scale, options.span, options.rounds, cpus, options.no_scenario, options.trace)
        };
        let full = RunScale::Full;
        for words in [&[][..], &["idle"], &["--json"], &["--html=h"]] {
            assert_eq!(asked(words), (full, None, None, None, false, false), "{words:?}");
        }
        assert_eq!(asked(&["--quick"]), (RunScale::Quick, None, None, None, false, false));
        assert_eq!(asked(&["--no-sim"]), (full, None, None, None, true, false));
        assert_eq!(asked(&["--perfetto=p"]), (full, None, None, None, false, true));
        let (span, cpus) = (Duration::from_secs(3), "4-5".to_owned());
        let words = ["--span=3s", "--rounds=7", "--cpus=4-5"];
        assert_eq!(asked(&words), (full, Some(span), Some(7), Some(cpus), false, false));
    }

    /// Goal: a run says how far it is. Method: each step, of which no two words are the same.
    #[test]
    fn a_run_says_how_far_it_is() {
        let about = Duration::from_millis(5_900);
        for (at, said) in [
            (LabProgress::Row { name: "idle", number: 2, of: 8, about }, "lab idle (2 of 8), about 6 s"),
            (
                LabProgress::Round { row: "idle", round: 3, of: 5, variant: "pull" },
                "idle: round 3 of 5: pull",
            ),
            (LabProgress::Simulating { row: "idle", scenario: "a.toml" }, "idle: simulating a.toml"),
        ] {
            assert_eq!(sentence(at), said);
        }
    }

    /// Goal: a trace that lacks something says of what. Method: three variants, of which the outer two ran
    /// more than is kept.
    #[test]
    fn a_trace_that_was_cut_says_so() {
        let slice = Slice {
            kind: SliceKind::Task { number: None },
            name: "task",
            cpu: CpuId::new(0).expect("a CPU"),
            tid: 1,
            began: Nanos(1),
            ended: Nanos(2),
        };
        let slices =
            |variant, count| VariantSlices { row: "idle", variant, slices: vec![slice.clone(); count] };
        let [cut, whole] = [SLICES_MAX + 1, SLICES_MAX];
        assert_eq!(what_was_cut(&[slices("stay", whole)]), None);
        assert_eq!(
            what_was_cut(&[slices("none", cut), slices("stay", whole), slices("pull", cut)]).as_deref(),
            Some("the trace has the first 50000 callbacks and polls only of: idle none, idle pull")
        );
    }

    /// Goal: the exit code says whether what must have one value has it, and before that whether the run came
    /// to its end. Method: both, either, neither.
    #[test]
    fn a_broken_figure_is_found() {
        for (complete, holds, expected) in [
            (true, true, Fine),
            (true, false, Found),
            (false, true, Interrupted),
            (false, false, Interrupted),
        ] {
            let mut report = fixture::report();
            report.complete = complete;
            let mut checks = report.rows.iter_mut().flat_map(|row| &mut row.exact_checks);
            checks.next().expect("a check").holds = holds;
            assert!(checks.all(|check| check.holds));
            assert_eq!(outcome(&report), expected, "complete: {complete}, holds: {holds}");
        }
    }
}
