//! `quietcore sim`: a scenario, run on simulated CPUs.

use crate::atomic_file::{AtomicFile, OutputContent};
use crate::error::CliError;
use crate::outcome::CommandOutcome;
use crate::output;
use crate::progress::Display;
use crate::runtimes::{self, RuntimesRequest};
use crate::signals::SignalFlag;
use crate::text::{self, Page};
use clap::Args;
use quietcore_answers::{SCENARIOS, parsed_scenario};
use quietcore_core::Nanos;
use quietcore_sim::{Scenario, SimOptions};
use quietcore_trace::visible_path;
use serde::Serialize;
use std::cell::RefCell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

const EXIT_CODES: &str = "\
Exit codes: 0 everything that the scenario expects holds, or every promise of a runtime; 1 something does \
not (--exit-zero makes it 0); 2 an error, nothing was run; 130 interrupted. Everything shown is simulated.";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct SimArgs {
    /// A scenario's file (docs/guide/simulator.md), or one of the program, as @isolated
    #[arg(required_unless_present_any = ["runtimes", "list"])]
    pub(crate) scenario: Option<PathBuf>,
    /// List the scenarios of the program instead
    #[arg(long, conflicts_with_all = ["scenario", "runtimes", "duration", "sensitivity", "perfetto", "seed"])]
    pub(crate) list: bool,
    /// Instead of a scenario: so many random runtimes, from --seed on (else from 1). Each is a set of
    /// lanes whose threads are stopped anywhere; what breaks a promise is shown with the smallest
    /// runtime that breaks one, too
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["scenario", "duration", "sensitivity", "perfetto"])]
    pub(crate) runtimes: Option<u64>,
    /// Replaces the scenario's seed; of random runtimes, the first
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Replaces the simulated time, as 500ms or 5s: from 1ms to 1h
    #[arg(long, value_name = "SPAN", value_parser = crate::args::value::simulated_span)]
    pub(crate) duration: Option<Duration>,
    /// Run everything again with all costs halved and doubled, and show which figures change
    #[arg(long)]
    pub(crate) sensitivity: bool,
    /// Also write the events for Perfetto, a file per variant (its label is put before the extension)
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
    /// Print JSON instead of text (docs/reference/scenario.md)
    #[arg(long)]
    pub(crate) json: bool,
    /// Exit with 0 even when an expectation does not hold
    #[arg(long)]
    pub(crate) exit_zero: bool,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Report<'a> {
    /// Always true: no figure was measured.
    simulated: bool,
    scenario: String,
    about: Option<&'a str>,
    costs: &'a quietcore_sim::CostTable,
    #[serde(flatten)]
    outcome: &'a quietcore_sim::SimOutcome,
}

pub(crate) fn run(args: &SimArgs) -> Result<CommandOutcome, CliError> {
    if args.list {
        return list(args.json);
    }
    match (&args.scenario, args.runtimes) {
        (Some(path), _) => run_scenario(args, path),
        (None, count) => runtimes::run(request(args, count.expect("one of both is given"))),
    }
}

fn request(args: &SimArgs, count: u64) -> RuntimesRequest {
    let SimArgs { json, exit_zero, .. } = *args;
    RuntimesRequest { count, first_seed: args.seed.unwrap_or(1), json, exit_zero }
}

fn run_scenario(args: &SimArgs, path: &Path) -> Result<CommandOutcome, CliError> {
    let mut scenario = parsed_scenario(path)?;
    if let Some(seed) = args.seed {
        scenario.set_seed(seed);
    }
    if let Some(duration) = args.duration {
        scenario.set_duration(Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)));
    }
    let interrupt = SignalFlag::install()?;
    let mut files = Files { pattern: args.perfetto.clone(), open: Vec::new(), failed: None };
    let mut display = Display::new();
    let options = SimOptions { sensitivity: args.sensitivity, ..SimOptions::default() };
    let mut progress = |at: quietcore_sim::SimProgress<'_>| {
        display.show(|| ran_so_far(&at));
        !interrupt.arrived()
    };
    let ran = scenario.run(options, &mut progress, &mut |label| files.create(label));
    display.clear();
    if let Some(error) = files.failed.take() {
        return Err(error);
    }
    let Some(outcome) = ran? else { return Ok(CommandOutcome::Interrupted) };
    files.finish()?;
    show(args, path, &scenario, &outcome)?;
    Ok(if outcome.holds || args.exit_zero { CommandOutcome::Fine } else { CommandOutcome::Found })
}

/// A scenario of the program, and what it is about.
#[derive(Serialize)]
struct Listed {
    name: String,
    about: String,
}

fn list(is_json: bool) -> Result<CommandOutcome, CliError> {
    let listed = SCENARIOS.iter().map(|scenario| {
        let name = format!("@{}", scenario.name);
        let about = parsed_scenario(name.as_ref())?.about().unwrap_or_default().to_owned();
        Ok(Listed { name, about })
    });
    let listed = listed.collect::<Result<Vec<_>, CliError>>()?;
    if is_json {
        output::print_json(&listed)?;
    } else {
        Page::print(|page| {
            listed.iter().for_each(|scenario| page.item(0, &scenario.name, 15, &scenario.about));
        })?;
    }
    Ok(CommandOutcome::Fine)
}

fn ran_so_far(at: &quietcore_sim::SimProgress<'_>) -> String {
    format!("{}: {} of {}, {} events", at.label, at.at, at.of, at.events)
}

fn show(
    args: &SimArgs,
    path: &Path,
    scenario: &Scenario,
    outcome: &quietcore_sim::SimOutcome,
) -> Result<(), CliError> {
    let name = visible_path(path);
    if args.json {
        let (about, costs) = (scenario.about(), scenario.costs());
        return output::print_json(&Report { simulated: true, scenario: name, about, costs, outcome });
    }
    Page::print(|page| text::simulation(page, &name, scenario, outcome))
}

/// The files for Perfetto: they appear when everything is done.
struct Files {
    pattern: Option<PathBuf>,
    open: Vec<Shared>,
    failed: Option<CliError>,
}

/// A file that the simulator writes and that is finished here.
#[derive(Clone)]
struct Shared(Rc<RefCell<AtomicFile>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

impl Files {
    fn create(&mut self, label: &str) -> io::Result<Option<Box<dyn Write>>> {
        let Some(pattern) = &self.pattern else { return Ok(None) };
        let path = named(pattern, label);
        // A name that cannot be a file's, as that of a device, is no pattern for the names of several.
        let refused = if path == *pattern { None } else { pattern_refused(pattern) };
        match refused.map_or_else(|| AtomicFile::create(&path, OutputContent::Ordinary), Err) {
            Ok(file) => {
                let file = Shared(Rc::new(RefCell::new(file)));
                self.open.push(file.clone());
                Ok(Some(Box::new(file)))
            }
            Err(error) => {
                self.failed = Some(error);
                Err(io::Error::other("see the error that was kept"))
            }
        }
    }

    fn finish(self) -> Result<(), CliError> {
        for Shared(file) in self.open {
            let Ok(file) = Rc::try_unwrap(file) else { continue };
            file.into_inner().finish()?;
        }
        Ok(())
    }
}

/// Why no file can be written under this name; nothing is left there.
fn pattern_refused(pattern: &Path) -> Option<CliError> {
    AtomicFile::create(pattern, OutputContent::Ordinary).err()
}

/// `out.pftrace` of variant `pull/8` is `out-pull-8.pftrace`; of the only variant it keeps its name.
fn named(pattern: &Path, label: &str) -> PathBuf {
    if label == "only" {
        return pattern.to_owned();
    }
    let mut name = pattern.file_stem().unwrap_or_default().to_owned();
    name.push("-");
    name.push(label.replace('/', "-"));
    if let Some(extension) = pattern.extension() {
        name.push(".");
        name.push(extension);
    }
    pattern.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::{SimArgs, named, ran_so_far, request};
    use crate::runtimes::RuntimesRequest;
    use clap::{Args, FromArgMatches};
    use quietcore_core::Nanos;
    use std::path::Path;

    /// Goal: what is typed is what the runtimes are. Method: each option alone.
    #[test]
    fn runtimes_are_as_they_are_typed() {
        let asked = |words: &[&str]| {
            let command = SimArgs::augment_args(clap::Command::new("sim"));
            let words = [&["sim", "--runtimes=50"], words].concat();
            let matches = command.try_get_matches_from(words).expect("options of sim");
            request(&SimArgs::from_arg_matches(&matches).expect("options of sim"), 50)
        };
        let usual = RuntimesRequest { count: 50, first_seed: 1, json: false, exit_zero: false };
        assert_eq!(asked(&[]), usual);
        assert_eq!(asked(&["--seed=3"]), RuntimesRequest { first_seed: 3, ..usual });
        assert_eq!(asked(&["--json"]), RuntimesRequest { json: true, ..usual });
        assert_eq!(asked(&["--exit-zero"]), RuntimesRequest { exit_zero: true, ..usual });
    }

    /// Goal: a long run says what runs and how far it is. Method: figures that all differ.
    #[test]
    fn a_run_says_how_far_it_is() {
        let (at, of) = (Nanos(2_000_000_000), Nanos(5_000_000_000));
        let progress = quietcore_sim::SimProgress { label: "pull/8", at, of, events: 34 };
        assert_eq!(ran_so_far(&progress), "pull/8: 2 s of 5 s, 34 events");
    }

    /// Goal: each variant has a file of its own beside the name that was given. Method: with and without
    /// extension.
    #[test]
    fn each_variant_has_its_file() {
        assert_eq!(named(Path::new("a/out.pftrace"), "pull/8"), Path::new("a/out-pull-8.pftrace"));
        assert_eq!(named(Path::new("out"), "v2"), Path::new("out-v2"));
        assert_eq!(named(Path::new("a/out.pftrace"), "only"), Path::new("a/out.pftrace"));
    }
}
