//! `cargo xtask tokio-tests`: tokio's own tests for time, run on this project's timers.
//!
//! Takes the tests from the sources of the pinned tokio and tokio-util in cargo's cache, applies the few
//! substitutions of `tests/tokio/substitutions.txt`, and builds and runs them in a package of their own below
//! the target folder. Nothing of tokio's is kept in this repository.
//!
//! Decides when they pass: at least [`PASS_SHARE_MIN`] of all tests in the files do, and exactly those that
//! `skips.txt` lists with a reason do not. A test that does not end, or is not run at all, fails. Every file
//! of tests for time is run or has its reason in that list, too. Not here: reading lists and results
//! (`tokio_tests/report.rs`).

mod report;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::workspace::{Failure, Workspace, capture, exit_code, json_string, run, shown};
use report::{Skips, Substitution, Summary};

/// Files with tests, and the package that has them.
const FILES: [(&str, &str); 8] = [
    ("tokio", "time_sleep"),
    ("tokio", "time_timeout"),
    ("tokio", "time_interval"),
    ("tokio", "time_pause"),
    ("tokio", "time_panic"),
    ("tokio", "time_rt"),
    ("tokio", "rt_time_start_paused"),
    ("tokio-util", "time_delay_queue"),
];

/// What the tests need besides themselves.
const SUPPORT: (&str, &str) = ("tokio", "tests/support/panic.rs");

/// Least share of all tests that pass.
const PASS_SHARE_MIN: f64 = 0.94;

/// After this long a file's tests have hung.
const PATIENCE: Duration = Duration::from_secs(300);

/// `folder`: where sources like `tokio-1.54.1` are, instead of cargo's cache.
pub(crate) fn command(folder: Option<&str>) -> ExitCode {
    exit_code("tokio-tests", check(folder.map(Path::new)))
}

/// Runs all and prints a row per file.
///
/// # Errors
/// When the tests cannot be had or built, or too few pass, or others than those listed fail.
pub(crate) fn check(folder: Option<&Path>) -> Result<(), Failure> {
    let workspace = Workspace::open()?;
    let data = workspace.root.join("tests/tokio");
    let substitutions = report::substitutions(&read(&data.join("substitutions.txt"))?)?;
    let Skips { tests, files } = report::skips(&read(&data.join("skips.txt"))?)?;
    let scratch = Scratch::make(&workspace, &data)?;
    let sources = scratch.sources(folder)?;

    sources.all_are_known(&files)?;
    let mut summary = Summary::new(tests);
    for (package, file) in FILES {
        let source = read(&sources.find(package)?.join(format!("tests/{file}.rs")))?;
        summary.expect(file, report::tests_in(&source));
        scratch.write(&format!("tests/{file}.rs"), &report::substituted(&source, &substitutions))?;
    }
    unused(&substitutions)?;
    scratch.write(SUPPORT.1, &read(&sources.find(SUPPORT.0)?.join(SUPPORT.1))?)?;
    for (file, program) in scratch.build()? {
        let said = scratch.run(&program)?;
        summary.record(&file, &said);
    }
    summary.print();
    for (file, reason) in &files {
        println!("left out {file}: {reason}");
    }
    summary.judge(PASS_SHARE_MIN)
}

/// A line that changes nothing is a mistake.
fn unused(substitutions: &[Substitution]) -> Result<(), Failure> {
    match substitutions.iter().find(|line| line.applied.get() == 0) {
        None => Ok(()),
        Some(line) => {
            let what = format!("nothing in the tests is `{}`", line.from);
            Err(Failure::new(what, "delete the line from tests/tokio/substitutions.txt"))
        }
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let failed = |error| Failure::new(format!("{}: {error}", path.display()), "is the whole package there?");
    fs::read_to_string(path).map_err(failed)
}

/// The package in which the tests run.
struct Scratch<'a> {
    workspace: &'a Workspace,
    folder: PathBuf,
}

/// Where the packages with the tests are.
struct Sources(Vec<(&'static str, PathBuf)>);

impl Sources {
    fn find(&self, package: &str) -> Result<&Path, Failure> {
        let found = self.0.iter().find(|(name, _)| *name == package).map(|(_, folder)| folder.as_path());
        found
            .ok_or_else(|| Failure::new(format!("no sources of {package}"), "add it to the list of packages"))
    }

    /// Every file of tests for time is run, or left out with a reason.
    fn all_are_known(&self, left_out: &BTreeMap<String, String>) -> Result<(), Failure> {
        let mut found = vec![];
        for (_, folder) in &self.0 {
            let tests = folder.join("tests");
            let failed = |error| Failure::new(format!("{}: {error}", tests.display()), "is it all there?");
            for entry in fs::read_dir(&tests).map_err(failed)? {
                let path = entry.map_err(failed)?.path();
                found.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
            }
        }
        let is_of_time = |name: &&String| name.split('_').any(|word| word == "time");
        let is_run = |name: &String| FILES.iter().any(|(_, file)| file == name);
        let unknown: Vec<&String> = found.iter().filter(is_of_time).collect();
        let unknown = unknown.into_iter().find(|name| !is_run(name) && !left_out.contains_key(*name));
        let stale = left_out.keys().find(|name| is_run(name) || !found.contains(name));
        match unknown.or(stale) {
            None => Ok(()),
            Some(name) => {
                let what = format!("{name}: a file of tests is either run or left out with a reason");
                Err(Failure::new(what, "add it to FILES, or to tests/tokio/skips.txt with a reason"))
            }
        }
    }
}

impl<'a> Scratch<'a> {
    fn make(workspace: &'a Workspace, data: &Path) -> Result<Self, Failure> {
        let scratch = Self { workspace, folder: workspace.target.join("tokio-tests") };
        let root = workspace.root.display().to_string();
        scratch.write("Cargo.toml", &read(&data.join("package.toml"))?.replace("ROOT", &root))?;
        scratch.write("Cargo.lock", &read(&data.join("package.lock"))?)?;
        scratch.write("src/lib.rs", "")?;
        Ok(scratch)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.folder.join(name);
        let failed =
            |error| Failure::new(format!("{}: {error}", path.display()), "make room in the target folder");
        fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(failed)?;
        fs::write(&path, text).map_err(failed)
    }

    /// Cargo for this package, without the network: what it needs is in the cache, or was just fetched.
    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = self.workspace.cargo(arguments);
        command.current_dir(&self.folder).env("CARGO_TARGET_DIR", &self.workspace.target).arg("--offline");
        command
    }

    /// The sources, from cargo's cache unless a folder is given; what is missing there is fetched.
    fn sources(&self, given: Option<&Path>) -> Result<Sources, Failure> {
        if self.metadata().is_err() {
            println!("tokio-tests: the cache lacks a package; fetching");
            let mut fetch = self.workspace.cargo(&["fetch"]);
            let remedy = "run it once where there is a network; CI keeps cargo's cache";
            run(fetch.current_dir(&self.folder), remedy)?;
        }
        let metadata = self.metadata()?;
        let manifest = read(&self.folder.join("Cargo.toml"))?;
        let mut found = vec![];
        for package in ["tokio", "tokio-util"] {
            let version = report::pinned(&manifest, package).ok_or_else(|| {
                Failure::new(
                    format!("package.toml pins no version of {package}"),
                    "write `version = \"=...\"`",
                )
            })?;
            let name = format!("{package}-{version}");
            let folder = match given {
                Some(given) => given.join(&name),
                None => report::folder_of(&metadata, package, &version).ok_or_else(|| {
                    Failure::new(
                        format!("cargo knows no sources of {name}"),
                        "run `cargo fetch`, or name --tokio-src",
                    )
                })?,
            };
            found.push((package, folder));
        }
        Ok(Sources(found))
    }

    /// Of what is needed on this machine: what others need may be missing in the cache.
    fn metadata(&self) -> Result<String, Failure> {
        let version = capture(&mut self.workspace.cargo(&["-vV"]))?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let host =
            host.ok_or_else(|| Failure::new("cargo does not say which its host is", "update cargo"))?;
        let arguments = ["metadata", "--format-version", "1", "--filter-platform", host];
        capture(self.cargo(&arguments).stderr(Stdio::null()))
    }

    /// Builds all, and names the program of each file.
    fn build(&self) -> Result<Vec<(String, PathBuf)>, Failure> {
        let mut command = self.cargo(&["test", "--no-run", "--message-format", "json-render-diagnostics"]);
        let text = capture(command.stderr(Stdio::inherit()))?;
        let artifacts = text.lines().filter(|line| line.contains("\"kind\":[\"test\"]"));
        let programs: Vec<_> = artifacts
            .filter_map(|line| {
                let (_, target) = line.split_once("\"target\":")?;
                Some((json_string(target, "name")?, PathBuf::from(json_string(line, "executable")?)))
            })
            .collect();
        if programs.len() == FILES.len() {
            return Ok(programs);
        }
        let what = format!("cargo built {} programs of {}", programs.len(), FILES.len());
        Err(Failure::new(what, "run `cargo xtask tokio-tests` again and look at what it prints"))
    }

    /// What the tests in `program` print, up to its end or until patience does.
    fn run(&self, program: &Path) -> Result<String, Failure> {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).stdout(Stdio::piped()).stderr(Stdio::null()).stdin(Stdio::null());
        let typed = shown(&command);
        let failed = |error| Failure::new(format!("`{typed}`: {error}"), "run it by hand");
        let mut child = command.spawn().map_err(failed)?;
        let mut output = child.stdout.take();
        let reader = thread::spawn(move || {
            let mut text = vec![];
            // What was read before an error counts; tests that are missing then have failed.
            let _ = output.as_mut().map(|output| output.read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        });
        let started = Instant::now();
        while child.try_wait().map_err(failed)?.is_none() {
            if started.elapsed() > PATIENCE {
                println!("tokio-tests: {} hangs", program.display());
                child.kill().map_err(failed)?;
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(reader.join().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::report::TestOutcome;
    use super::*;

    /// Goal: the committed lists can be read, and list what the limits allow. Method: reads them.
    #[test]
    fn the_committed_lists_are_well_formed() {
        let data = crate::workspace::root().join("tests/tokio");
        let lines = report::substitutions(&read(&data.join("substitutions.txt")).expect("it is there"));
        assert!(lines.is_ok_and(|lines| !lines.is_empty()));
        assert!(report::skips(&read(&data.join("skips.txt")).expect("it is there")).is_ok());
        let manifest = read(&data.join("package.toml")).expect("it is there");
        assert!(report::pinned(&manifest, "tokio").is_some());
        assert_ne!(report::pinned(&manifest, "tokio-util"), None);
    }

    /// Goal: a test's result is what its line says. Method: one line of each kind.
    #[test]
    fn results_of_lines() {
        let line = "test a - should panic ... ok";
        assert_eq!(report::result_of(line), Some(("a", TestOutcome::Passed)));
        assert_eq!(report::result_of("test b ... FAILED"), Some(("b", TestOutcome::Failed)));
        assert_eq!(report::result_of("test c ... ignored, too slow"), Some(("c", TestOutcome::NotRun)));
        assert_eq!(report::result_of("test result: ok. 1 passed"), None);
    }
}
