//! `cargo xtask borrowed-tests`: other projects' own tests, run on this project's timers.
//!
//! Takes the tests from the sources of the pinned packages in cargo's cache, applies the few substitutions of
//! `tests/borrowed/NAME/substitutions.txt`, and builds and runs them in a workspace of their own below the
//! target folder. Of tower and hyper-util the sources are taken, too: what is tested there is their code on
//! our time. Nothing of theirs is kept in this repository.
//!
//! Decides when they pass: there are as many tests as were written down, at least [`PASS_SHARE_MIN`] of those
//! that their authors run pass, and exactly those that `skips.txt` lists with a reason do not. A test that
//! does not end, or is not run at all, fails. Every file of tests is run or has its reason in that list, too;
//! of tokio's, those for time. Not here: reading lists and results (`report.rs`), the workspace
//! (`scratch.rs`), whose tests (`suites.rs`).

mod report;
mod scratch;
mod suites;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::workspace::{Failure, Workspace, exit_code};
use report::{Skips, Substitution, Summary};
use scratch::{Scratch, Sources};
use suites::{BorrowedSuite, SUITES};

/// Least share of all tests that pass.
const PASS_SHARE_MIN: f64 = 0.94;

/// `words`: names of suites, none for all; `--sources DIR`: where sources like `tokio-1.54.1` are, instead of
/// cargo's cache.
pub(crate) fn command(words: &[&str]) -> ExitCode {
    let (names, folder) = match words {
        [names @ .., "--sources", folder] => (names, Some(Path::new(*folder))),
        names => (names, None),
    };
    exit_code("borrowed-tests", check(names, folder))
}

/// Runs all, or those that are named, and prints a row per file.
///
/// # Errors
/// When the tests cannot be had or built, or too few pass, or others than those listed fail.
pub(crate) fn check(names: &[&str], folder: Option<&Path>) -> Result<(), Failure> {
    if let Some(name) = names.iter().find(|name| SUITES.iter().all(|suite| suite.name != **name)) {
        let known = SUITES.map(|suite| suite.name).join(", ");
        return Err(Failure::new(format!("there are no tests of {name}"), format!("those of {known} are")));
    }
    let is_asked = |suite: &&BorrowedSuite| names.is_empty() || names.contains(&suite.name);
    let suites: Vec<&BorrowedSuite> = SUITES.iter().filter(is_asked).collect();
    let workspace = Workspace::open()?;
    let scratch = Scratch::make(&workspace)?;
    let sources = scratch.sources(folder)?;
    let mut summaries = vec![];
    for suite in &suites {
        let lines = report::substitutions(&scratch.list(&format!("{}/substitutions.txt", suite.name))?)?;
        let Skips { tests, files } = report::skips(&scratch.list(&format!("{}/skips.txt", suite.name))?)?;
        all_are_known(suite, &sources, &files)?;
        scratch.fill(suite, &sources, &lines)?;
        unused(suite, &lines)?;
        summaries.push((suite, Summary::new(suite.name, tests), files));
    }
    for program in scratch.build(&suites)? {
        let found = summaries.iter_mut().find(|(suite, ..)| suite.name == program.suite);
        let Some((_, summary, _)) = found else { continue };
        summary.expect(&program.file, scratch.tests_of(&program)?);
        summary.record(&program.file, &scratch.run(&program)?);
    }
    let mut problems = vec![];
    for (suite, summary, files) in &summaries {
        summary.print();
        for (file, reason) in files {
            println!("left out {file}: {reason}");
        }
        problems.extend(summary.judge(suite.tests, PASS_SHARE_MIN).err());
    }
    let Some(last) = problems.pop() else { return Ok(()) };
    let what = problems.iter().map(|problem| problem.what.as_str()).chain([last.what.as_str()]);
    Err(Failure::new(what.collect::<Vec<_>>().join("; "), last.remedy))
}

/// A line that changes nothing is a mistake.
fn unused(suite: &BorrowedSuite, substitutions: &[Substitution]) -> Result<(), Failure> {
    match substitutions.iter().find(|line| line.applied.get() == 0) {
        None => Ok(()),
        Some(line) => {
            let what = format!("nothing in the tests of {} is `{}`", suite.name, line.from);
            Err(Failure::new(what, "delete the line from the suite's substitutions.txt"))
        }
    }
}

/// Every file of tests that is asked for is run, or left out with a reason.
fn all_are_known(
    suite: &BorrowedSuite,
    sources: &Sources,
    left_out: &BTreeMap<String, String>,
) -> Result<(), Failure> {
    let mut found = vec![];
    for (package, _) in suite.takes {
        let tests = sources.find(package)?.join("tests");
        let failed = |error| Failure::new(format!("{}: {error}", tests.display()), "is it all there?");
        for entry in fs::read_dir(&tests).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            found.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    let is_unknown =
        |name: &&String| suite.is_asked(name) && !suite.runs(name) && !left_out.contains_key(*name);
    let unknown = found.iter().find(is_unknown);
    let stale = left_out.keys().find(|name| suite.runs(name) || !found.contains(name));
    match unknown.or(stale) {
        None => Ok(()),
        Some(name) => {
            let what = format!("{name}: a file of tests of {} is either run or left out", suite.name);
            Err(Failure::new(what, "add it to suites.rs, or to the suite's skips.txt with a reason"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::report::TestOutcome;
    use super::scratch::read;
    use super::*;

    /// Goal: the committed lists can be read, and list what the limits allow. Method: reads them.
    #[test]
    fn the_committed_lists_are_well_formed() {
        let data = crate::workspace::root().join("tests/borrowed");
        for suite in &SUITES {
            let list = |name| read(&data.join(suite.name).join(name)).expect("it is there");
            let lines = report::substitutions(&list("substitutions.txt"));
            assert!(lines.is_ok_and(|lines| !lines.is_empty()), "{}", suite.name);
            assert!(report::skips(&list("skips.txt")).is_ok(), "{}", suite.name);
            let manifest = list("package.toml");
            assert!(manifest.contains(&format!("name = \"{}\"", suite.package())), "{}", suite.name);
            for (package, _) in suite.takes {
                assert_ne!(report::pinned(&manifest, package), None, "{package}");
            }
        }
    }

    /// Goal: a test's result is what its line says. Method: one line of each kind.
    #[test]
    fn results_of_lines() {
        let line = "test a - should panic ... ok";
        assert_eq!(report::result_of(line), Some(("a", TestOutcome::Passed)));
        assert_eq!(report::result_of("test b ... FAILED"), Some(("b", TestOutcome::Failed)));
        assert_eq!(report::result_of("test c ... ignored, too slow"), Some(("c", TestOutcome::Ignored)));
        assert_eq!(report::result_of("test d ... "), Some(("d", TestOutcome::NotRun)));
        assert_eq!(report::result_of("test result: ok. 1 passed"), None);
    }

    /// Goal: a file of tests is known by its name. Method: a folder that is taken, files, a topic.
    #[test]
    fn files_of_tests_are_known() {
        let [tokio, tower, ..] = &SUITES;
        assert!(tower.runs("anything") && tokio.runs("time_sleep") && !tokio.runs("fs"));
        assert!(tower.is_asked("fs") && tokio.is_asked("time_alt") && !tokio.is_asked("timer"));
    }
}
