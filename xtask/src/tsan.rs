//! `cargo xtask tsan`: tests of threads, with the compiler's detector of races in all of it, std too.
//!
//! Decides which suites run and when they pass: every test passes and there is no report; the canary, a race
//! made on purpose, is reported. The detector knows no fence that stands alone, and would report data that
//! is ordered by one alone: there is none, so nothing is suppressed. Orderings of the words themselves are
//! loom's business.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::nightly::{self, CANARY, Component, TARGET};
use crate::workspace::{Failure, Workspace, exit_code, run, status};

/// Arguments of `cargo test`, and parts of the names of the tests that are run; none: all of them.
struct Suite {
    targets: &'static [&'static str],
    names: &'static [&'static str],
}

/// Of the core the tests with threads of their own. Not here: tests that fork (`turn_fork`, `time_fork`), as
/// the detector knows nothing of a child's threads.
const SUITES: [Suite; 2] = [
    Suite {
        targets: &["-p", "quietcore-core", "--lib"],
        names: &["base::tests::threads::", "base::tests::races::"],
    },
    Suite { targets: &LIVE, names: &[] },
];

const LIVE: [&str; 11] = [
    "-p",
    "quietcore-live",
    "--features",
    "quietcore-live/tracing",
    "--lib",
    "--test",
    "tasks",
    "--test",
    "lane",
    "--test",
    "time",
];

/// How a report begins.
const REPORT: &str = "WARNING: ThreadSanitizer:";

/// Why it cannot be run here.
pub(crate) fn is_missing() -> Option<&'static str> {
    nightly::lacks(Component::Source)
}

pub(crate) fn command() -> ExitCode {
    exit_code("tsan", check())
}

/// Builds and runs every suite, and then the canary.
///
/// # Errors
/// When a test fails, there is a report, or there is none of the canary.
pub(crate) fn check() -> Result<(), Failure> {
    if let Some(obstacle) = is_missing() {
        return Err(Failure::new(obstacle, "then run it again"));
    }
    let workspace = Workspace::open()?;
    let reports = Reports::new(&workspace);
    let mut failed = None;
    for suite in &SUITES {
        let begin = Instant::now();
        let name = suite.targets[1];
        reports.forget()?;
        let passed = run(&mut suite.command(&workspace, &reports), "run the test that failed alone");
        let count = reports.show()?;
        println!("tsan: {name}: {count} reports ({:.0} s)", begin.elapsed().as_secs_f64());
        if count > 0 {
            let what = format!("{name}: {count} reports, above and in {}", reports.folder.display());
            failed.get_or_insert(Failure::new(
                what,
                "order what the two stacks name, or end what is named; a report is never skipped",
            ));
        } else if let Err(failure) = passed {
            failed.get_or_insert(failure);
        }
    }
    failed.map_or(Ok(()), Err)?;
    check_canary(&workspace, &reports)
}

impl Suite {
    fn command(&self, workspace: &Workspace, reports: &Reports) -> Command {
        let mut command = test(workspace, reports, self.targets);
        command.args(["--no-fail-fast", "--"]).args(self.names);
        command
    }
}

/// `cargo test` of these targets with the detector, in a place of its own: changed flags build all again.
fn test(workspace: &Workspace, reports: &Reports, targets: &[&str]) -> Command {
    let mut command =
        nightly::cargo(workspace, &["test", "-q", "--locked", "-Zbuild-std", "--target", TARGET]);
    command.args(targets);
    command.env("RUSTFLAGS", "-Zsanitizer=thread");
    command.env("CARGO_TARGET_DIR", workspace.target.join("tsan"));
    let options = format!("log_path={}", reports.folder.join("report").display());
    command.env("TSAN_OPTIONS", options);
    command
}

/// The race that is made on purpose must be seen, or all that was not seen says nothing.
fn check_canary(workspace: &Workspace, reports: &Reports) -> Result<(), Failure> {
    reports.forget()?;
    let mut command = test(workspace, reports, &LIVE[..5]);
    // The end of the process says so, too: whether there is a report is the question.
    let _ = status(command.args(["--", "--exact", CANARY.0]).env(CANARY.1, "1"))?;
    match reports.count()? {
        0 => Err(Failure::new(
            "the canary was not reported",
            "the detector sees no race: update the toolchain",
        )),
        _ => {
            println!("tsan: the canary was reported, as it must be");
            Ok(())
        }
    }
}

/// What the detector wrote, a file for each process.
struct Reports {
    folder: PathBuf,
}

impl Reports {
    fn new(workspace: &Workspace) -> Self {
        Self { folder: workspace.target.join("tsan-reports") }
    }

    fn failed(&self, error: &std::io::Error) -> Failure {
        Failure::new(format!("{}: {error}", self.folder.display()), "make that folder writable")
    }

    fn forget(&self) -> Result<(), Failure> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(self.failed(&error)),
            _ => {}
        }
        fs::create_dir_all(&self.folder).map_err(|error| self.failed(&error))
    }

    fn texts(&self) -> Result<Vec<String>, Failure> {
        let read = |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let entries = fs::read_dir(&self.folder).map_err(|error| self.failed(&error))?;
        let texts: Result<_, _> = entries.map(|entry| entry.and_then(|entry| read(&entry.path()))).collect();
        texts.map_err(|error| self.failed(&error))
    }

    fn count(&self) -> Result<usize, Failure> {
        Ok(self.texts()?.iter().map(|text| text.matches(REPORT).count()).sum())
    }

    /// Prints them, and says how many there are.
    fn show(&self) -> Result<usize, Failure> {
        for text in self.texts()? {
            println!("{text}");
        }
        self.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::shown;

    /// Goal: every report is counted, whichever process wrote it, and those of an earlier run are not.
    /// Method: two files as the detector writes them, in a target folder of this test.
    #[test]
    fn reports_are_counted() {
        let mut workspace = Workspace::open().expect("a workspace");
        workspace.target = std::env::temp_dir().join(format!("quietcore-tsan-{}", std::process::id()));
        let reports = Reports::new(&workspace);
        reports.forget().expect("nothing is there");
        assert_eq!(reports.count().expect("no file"), 0);
        let one = format!("==================\n{REPORT} data race (pid=1)\n  Write of size 8\n");
        for (name, text) in [("report.1", one.repeat(2)), ("report.2", one)] {
            fs::write(reports.folder.join(name), text).expect("it is ours");
        }
        assert_eq!(reports.show().expect("they are there"), 3);
        reports.forget().expect("it is ours");
        assert_eq!(reports.count().expect("they are gone"), 0);
        fs::remove_dir_all(&workspace.target).expect("it is ours");
    }

    /// Goal: what is run is built with the detector and writes where it is read. Method: the command of each
    /// suite.
    #[test]
    fn every_suite_is_watched() {
        let workspace = Workspace::open().expect("a workspace");
        let reports = Reports::new(&workspace);
        for suite in &SUITES {
            let command = suite.command(&workspace, &reports);
            let value = |name: &str| {
                let mut envs = command.get_envs();
                let found = envs.find(|(key, _)| *key == name).and_then(|(_, value)| value);
                found.map(|value| value.to_string_lossy().into_owned()).unwrap_or_default()
            };
            assert!(value("RUSTFLAGS").contains("-Zsanitizer=thread"), "{}", shown(&command));
            assert!(value("TSAN_OPTIONS").contains(&*reports.folder.to_string_lossy()));
        }
    }
}
