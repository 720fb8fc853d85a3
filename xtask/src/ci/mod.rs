//! `cargo xtask ci`: the whole of continuous integration, in one command and on any machine.
//!
//! Decides the order of the steps and when to stop: at the first failure, with what to do about it. Each step
//! prints a header and its time; the last line of a good run names the steps that passed. A step that this
//! machine cannot run (no root, no TUN) is SKIPPED in that line; what a test or script leaves out for want of
//! a tool is listed above it. Where the environment variable `CI` is set, both make the run fail: the machine
//! of continuous integration has everything, or must be given it. The steps' own output is never swallowed.
//! Ctrl-C ends the step and the run: nothing is caught.

mod deny;
mod left_out;
mod options;
mod python;
mod rust_steps;
mod scripts;
mod wheel;

use std::process::ExitCode;
use std::time::Instant;

use crate::mutants::MutantChoice;
use crate::workspace::{Failure, Workspace};
pub(crate) use options::CiOptions;

/// What a step does; the failure is the run's.
type Action = fn(&Workspace, &CiOptions) -> Result<(), Failure>;

struct Step {
    name: &'static str,
    /// What it does, in the list and the header.
    what: &'static str,
    run: Action,
    /// Why this machine cannot run it; `None` when it can.
    obstacle: fn() -> Option<&'static str>,
    /// Run by `--all` alone.
    is_of_all: bool,
}

impl Step {
    const fn new(name: &'static str, what: &'static str, run: Action) -> Self {
        Self { name, what, run, obstacle: || None, is_of_all: false }
    }

    const fn unless(self, obstacle: fn() -> Option<&'static str>) -> Self {
        Self { obstacle, ..self }
    }

    const fn of_all(self) -> Self {
        Self { is_of_all: true, ..self }
    }

    fn is_wanted(&self, options: &CiOptions) -> bool {
        (options.all || !self.is_of_all) && !options.skips(self.name)
    }
}

const STEPS: [Step; 26] = [
    Step::new("fmt", "cargo fmt --all --check", rust_steps::fmt),
    Step::new("clippy", "cargo clippy, all targets, warnings are errors", rust_steps::clippy),
    Step::new("tests", "cargo test --workspace", rust_steps::tests),
    Step::new("doc", "cargo doc, warnings are errors", rust_steps::doc),
    Step::new(
        "targets",
        "the core builds without an operating system, all of it elsewhere",
        rust_steps::targets,
    ),
    Step::new("site", "the hierarchy, step by step, in every order", rust_steps::site),
    Step::new("loom", "the hierarchy and the words of threads under weak memory", rust_steps::loom),
    Step::new("miri", "with --all: named tests under an interpreter that reports undefined behaviour", miri)
        .unless(crate::miri::is_missing)
        .of_all(),
    Step::new(
        "borrowed",
        "with --all: tokio's, tower's, hyper-util's and quinn's own tests, on our timers",
        borrowed_tests,
    )
    .of_all(),
    Step::new("mutants", "each rule broken once; the tests must notice", mutants),
    Step::new("bench", "the benchmarks compile and run in small", rust_steps::bench),
    Step::new("instructions", "the hot paths take no more instructions than was written down", instructions)
        .unless(crate::instructions::is_missing),
    Step::new("fuzz", "the checks of the fuzz targets, on their seeds", rust_steps::fuzz),
    Step::new("tidy", "the rules of style that a program can check", tidy),
    Step::new("bpf", "the program for the kernel is that of its sources", bpf),
    Step::new("deny", "licences, versions and sources of the dependencies", deny::deny)
        .unless(deny::is_missing),
    Step::new("count", "explain's figures, counted a second time in Python", python::count),
    Step::new("perfetto", "explain's Perfetto traces against the schema", python::perfetto),
    Step::new("clients", "`netem relay --api`, asked by a client library of toxiproxy", python::clients),
    Step::new(
        "python",
        "with --all: the Python module's wheel, installed; its tests, fleets, a notebook",
        wheel::python,
    )
    .of_all(),
    Step::new("hostile", "explain with input that is hard to read, in 256 MiB", scripts::hostile),
    Step::new("disturbance", "the runtime while it is stopped, throttled and moved", scripts::disturbance),
    Step::new("live", "recordings of the running kernel", scripts::live).unless(scripts::cannot_record),
    Step::new("watch", "what disturbs CPUs, counted in the running kernel", scripts::watch)
        .unless(scripts::cannot_watch),
    Step::new("packets", "real programs' packets through TUN devices", scripts::packets)
        .unless(scripts::has_no_devices),
    Step::new("nobody", "the same as a user without privileges", scripts::unprivileged)
        .unless(scripts::has_no_user_namespaces),
];

fn tidy(_: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    crate::tidy::report().map_err(|problem| Failure::new(problem, "change the lines it names"))
}

fn miri(_: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    crate::miri::check(None)
}

fn borrowed_tests(_: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    crate::borrowed_tests::check(&[], None)
}

fn bpf(_: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    crate::bpf::check()
}

fn instructions(_: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    crate::instructions::check(false)
}

fn mutants(_: &Workspace, options: &CiOptions) -> Result<(), Failure> {
    match crate::mutants::check(if options.all { MutantChoice::All } else { MutantChoice::Change }, 1)? {
        0 => Ok(()),
        survivors => {
            let remedy = "add the test that the lines above miss, or correct the rule";
            Err(Failure::new(format!("{survivors} mutants survived"), remedy))
        }
    }
}

/// The steps as the help text lists them.
pub(crate) fn step_list() -> String {
    STEPS.iter().map(|step| format!("  {:<9} {}\n", step.name, step.what)).collect()
}

/// Reads the words behind `ci`.
///
/// # Errors
/// When a word is unknown, or `--skip` names no step.
pub(crate) fn options(words: &[&str]) -> Result<CiOptions, String> {
    let mut options = CiOptions::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let name = match word.split_once('=') {
            Some(("--skip", name)) => name,
            None if *word == "--skip" => rest.next().ok_or("--skip needs the name of a step")?,
            None if *word == "--all" => {
                options.all = true;
                continue;
            }
            _ => return Err(format!("ci knows no `{word}`")),
        };
        if !STEPS.iter().any(|step| step.name == name) {
            return Err(format!("ci has no step `{name}`"));
        }
        options.skipped.push(name.to_owned());
    }
    Ok(options)
}

/// What became of the steps, by name.
#[derive(Debug, Default)]
struct Outcome {
    passed: Vec<&'static str>,
    /// What this machine could not run, and why.
    skipped: Vec<(&'static str, &'static str)>,
    /// What tests and scripts left out.
    left_out: Vec<String>,
}

/// Runs the steps that the options do not leave out.
pub(crate) fn run(options: &CiOptions) -> ExitCode {
    let begin = Instant::now();
    let outcome = match Workspace::open() {
        Ok(workspace) => run_steps(&workspace, options),
        Err(failure) => Err(("start", failure)),
    };
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err((step, failure)) => return failed(step, &failure),
    };
    println!("{}", outcome.list());
    let total = begin.elapsed().as_secs_f64();
    println!("{}", outcome.verdict(&options.skipped, total));
    if std::env::var_os("CI").is_some() && !outcome.is_complete() {
        let what = "something was left out, and the environment variable CI is set";
        return failed("the end", &Failure::new(what, "give the machine what the lines above name"));
    }
    ExitCode::SUCCESS
}

/// The first failure ends it; its step is named.
fn run_steps(workspace: &Workspace, options: &CiOptions) -> Result<Outcome, (&'static str, Failure)> {
    let mut outcome = Outcome::default();
    left_out::forget(workspace).map_err(|failure| ("start", failure))?;
    for step in STEPS.iter().filter(|step| step.is_wanted(options)) {
        let started = Instant::now();
        println!("\n== {}: {}", step.name, step.what);
        if let Some(obstacle) = (step.obstacle)() {
            println!("== {}: SKIPPED: {obstacle}", step.name);
            outcome.skipped.push((step.name, obstacle));
            continue;
        }
        (step.run)(workspace, options).map_err(|failure| (step.name, failure))?;
        println!("== {}: passed in {:.1} s", step.name, started.elapsed().as_secs_f64());
        outcome.passed.push(step.name);
    }
    outcome.left_out = left_out::lines(workspace).map_err(|failure| ("the end", failure))?;
    Ok(outcome)
}

impl Outcome {
    fn is_complete(&self) -> bool {
        self.skipped.is_empty() && self.left_out.is_empty()
    }

    /// What was left out inside of steps, a line each.
    fn list(&self) -> String {
        self.left_out.iter().map(|line| format!("\nci: left out: {line}")).collect()
    }

    /// The last line: what ran, and what did not, so that nothing is taken for passed.
    fn verdict(&self, unwanted: &[String], seconds: f64) -> String {
        let count = self.passed.len();
        let noun = if count == 1 { "step" } else { "steps" };
        let mut line = format!("ci: {count} {noun} passed ({seconds:.0} s): {}", self.passed.join(" "));
        if !self.skipped.is_empty() {
            let names = self.skipped.iter().map(|(name, why)| format!("{name} ({why})"));
            line += &format!("; SKIPPED: {}", names.collect::<Vec<_>>().join(", "));
        }
        if !self.left_out.is_empty() {
            line += &format!("; {} left out inside of steps, see above", self.left_out.len());
        }
        if !unwanted.is_empty() {
            line += &format!("; not wanted: {}", unwanted.join(" "));
        }
        line
    }
}

fn failed(step: &str, failure: &Failure) -> ExitCode {
    eprintln!("\nci: {step} failed: {}", failure.what);
    eprintln!("ci: {}", failure.remedy);
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_takes_names_of_steps() {
        let names = |arguments: &[&str]| options(arguments).map(|options| options.skipped);
        assert_eq!(names(&[]), Ok(vec![]));
        assert!(options(&["--all"]).expect("it is known").all);
        assert_eq!(names(&["--skip", "fmt", "--skip=doc"]), Ok(vec!["fmt".to_owned(), "doc".to_owned()]));
        assert!(names(&["--skip"]).is_err());
        assert!(names(&["--skip", "nothing"]).is_err());
        assert!(names(&["fmt"]).is_err());
        assert!(names(&["--other=fmt"]).is_err());
    }

    /// Goal: the last line names what ran and what did not. Method: all, some, one.
    #[test]
    fn the_last_line_names_what_ran() {
        let mut outcome = Outcome { passed: vec!["fmt", "doc"], ..Outcome::default() };
        assert_eq!(outcome.verdict(&[], 61.2), "ci: 2 steps passed (61 s): fmt doc");
        assert!(outcome.is_complete() && outcome.list().is_empty());
        outcome.left_out = vec!["a_test: needs two CPUs".to_owned()];
        assert!(!outcome.is_complete());
        assert_eq!(outcome.list(), "\nci: left out: a_test: needs two CPUs");
        outcome.skipped = vec![("live", "needs root"), ("packets", "needs root")];
        outcome.passed = vec!["fmt"];
        let line = "ci: 1 step passed (0 s): fmt; SKIPPED: live (needs root), packets (needs root); \
                    1 left out inside of steps, see above; not wanted: doc tidy";
        assert_eq!(outcome.verdict(&["doc".to_owned(), "tidy".to_owned()], 0.4), line);
        outcome.left_out.clear();
        assert!(!outcome.is_complete());
    }

    /// Goal: what takes minutes and a toolchain of its own is run when all is asked for, and can be left out
    /// there. Method: one step of each kind.
    #[test]
    fn some_steps_are_of_all_alone() {
        let names = |words: &[&str]| {
            let options = options(words).expect("they are known");
            let wanted = STEPS.iter().filter(|step| step.is_wanted(&options));
            wanted.map(|step| step.name).collect::<Vec<_>>()
        };
        assert!(names(&["--all"]).contains(&"miri") && names(&["--all"]).contains(&"fmt"));
        assert!(!names(&[]).contains(&"miri") && names(&[]).contains(&"fmt"));
        assert!(!names(&["--all", "--skip", "miri"]).contains(&"miri"));
    }

    #[test]
    fn every_step_is_listed_once() {
        for step in &STEPS {
            assert_eq!(STEPS.iter().filter(|other| other.name == step.name).count(), 1);
            assert!(step_list().contains(step.name));
        }
    }
}
