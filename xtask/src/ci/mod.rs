//! `cargo xtask ci`: the whole of continuous integration, in one command and on any machine.
//!
//! Decides the order of the steps and when to stop: at the first failure, with what to do about it.
//! Each step prints a header and its time; the last line of a good run is `ci: N steps passed`.
//! The steps' own output is never swallowed. Ctrl-C ends the step and the run: nothing is caught.

mod options;
mod python;
mod rust_steps;

use std::process::ExitCode;
use std::time::Instant;

use crate::mutants::MutantChoice;
use crate::workspace::{Failure, Workspace};
pub(crate) use options::CiOptions;

struct Step {
    name: &'static str,
    /// What it does, in the list and the header.
    what: &'static str,
    run: fn(&Workspace, &CiOptions) -> Result<(), Failure>,
}

const STEPS: [Step; 13] = [
    Step { name: "fmt", what: "cargo fmt --all --check", run: rust_steps::fmt },
    Step { name: "clippy", what: "cargo clippy, all targets, warnings are errors", run: rust_steps::clippy },
    Step { name: "tests", what: "cargo test --workspace", run: rust_steps::tests },
    Step { name: "doc", what: "cargo doc, warnings are errors", run: rust_steps::doc },
    Step { name: "no-std", what: "the core builds without the standard library", run: rust_steps::no_std },
    Step { name: "site", what: "the hierarchy, step by step, in every order", run: rust_steps::site },
    Step {
        name: "loom",
        what: "the hierarchy and the words of threads under weak memory",
        run: rust_steps::loom,
    },
    Step { name: "tokio", what: "tokio's own tests for time, on our timers", run: tokio_tests },
    Step { name: "mutants", what: "each rule broken once; the tests must notice", run: mutants },
    Step { name: "bench", what: "the benchmarks compile and run in small", run: rust_steps::bench },
    Step { name: "tidy", what: "the rules of style that a program can check", run: tidy },
    Step { name: "count", what: "explain's figures, counted a second time in Python", run: python::count },
    Step { name: "perfetto", what: "explain's Perfetto traces against the schema", run: python::perfetto },
];

fn tidy(_: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    crate::tidy::report().map_err(|problem| Failure::new(problem, "change the lines it names"))
}

fn tokio_tests(_: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    crate::tokio_tests::check(None)
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

/// Runs the steps that are not skipped.
pub(crate) fn run(options: &CiOptions) -> ExitCode {
    let workspace = match Workspace::open() {
        Ok(workspace) => workspace,
        Err(failure) => return failed("start", &failure),
    };
    let begin = Instant::now();
    let mut passed = 0;
    for step in STEPS.iter().filter(|step| !options.skips(step.name)) {
        let started = Instant::now();
        println!("\n== {}: {}", step.name, step.what);
        if let Err(failure) = (step.run)(&workspace, options) {
            return failed(step.name, &failure);
        }
        println!("== {}: passed in {:.1} s", step.name, started.elapsed().as_secs_f64());
        passed += 1;
    }
    let total = begin.elapsed().as_secs_f64();
    println!("\n{}", verdict(passed, &options.skipped, total));
    ExitCode::SUCCESS
}

/// The last line of a good run; a skipped step is said, so that it is not taken for a passed one.
fn verdict(passed: usize, skipped: &[String], seconds: f64) -> String {
    let missing =
        if skipped.is_empty() { String::new() } else { format!(", skipped: {}", skipped.join(" ")) };
    let noun = if passed == 1 { "step" } else { "steps" };
    format!("ci: {passed} {noun} passed ({seconds:.0} s{missing})")
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

    #[test]
    fn the_last_line_names_what_was_skipped() {
        assert_eq!(verdict(8, &[], 61.2), "ci: 8 steps passed (61 s)");
        let skipped = ["doc".to_owned(), "fmt".to_owned()];
        assert_eq!(verdict(6, &skipped, 1.0), "ci: 6 steps passed (1 s, skipped: doc fmt)");
        assert_eq!(verdict(1, &[], 0.4), "ci: 1 step passed (0 s)");
    }

    #[test]
    fn every_step_is_listed_once() {
        for step in &STEPS {
            assert_eq!(STEPS.iter().filter(|other| other.name == step.name).count(), 1);
            assert!(step_list().contains(step.name));
        }
    }
}
