//! The workspace below the target folder in which borrowed tests are built and run: a package per suite.
//!
//! What is in it is written anew each time, and touched only where it changed, so that cargo builds no more
//! than it must. What was taken from an earlier version of a package is removed.

use super::report::{self, Substitution};
use super::suites::{BorrowedSuite, SUITES};
use crate::workspace::{Failure, Workspace, capture, json_string, run, shown};
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// After this long a program's tests have hung.
const PATIENCE: Duration = Duration::from_secs(300);

/// The workspace.
pub(super) struct Scratch<'a> {
    workspace: &'a Workspace,
    /// What is ours: lists and manifests.
    data: PathBuf,
    folder: PathBuf,
}

/// A program of tests.
pub(super) struct TestProgram {
    /// Name of its suite.
    pub(super) suite: String,
    /// Name of its file of tests; `src` for those beside the code.
    pub(super) file: String,
    path: PathBuf,
}

impl<'a> Scratch<'a> {
    /// With all manifests: cargo asks for each.
    pub(super) fn make(workspace: &'a Workspace) -> Result<Self, Failure> {
        let (data, folder) = (workspace.root.join("tests/borrowed"), workspace.target.join("borrowed-tests"));
        let scratch = Self { workspace, data, folder };
        let root = workspace.root.display().to_string();
        write(&scratch.folder.join("Cargo.toml"), &scratch.list("workspace.toml")?)?;
        write(&scratch.folder.join("Cargo.lock"), &scratch.list("package.lock")?)?;
        for suite in &SUITES {
            let package = scratch.list(&format!("{}/package.toml", suite.name))?.replace("ROOT", &root);
            write(&scratch.folder.join(suite.name).join("Cargo.toml"), &package)?;
            let library = scratch.folder.join(suite.name).join("src/lib.rs");
            if !library.exists() {
                write(&library, "")?;
            }
        }
        Ok(scratch)
    }

    /// The text of a file below `tests/borrowed`.
    pub(super) fn list(&self, name: &str) -> Result<String, Failure> {
        read(&self.data.join(name))
    }

    /// Takes what the suite takes, with its substitutions applied.
    pub(super) fn fill(
        &self,
        suite: &BorrowedSuite,
        sources: &Sources,
        lines: &[Substitution],
    ) -> Result<(), Failure> {
        let folder = self.folder.join(suite.name);
        let mut kept = BTreeSet::from([folder.join("src/lib.rs")]);
        let ours = self.data.join(suite.name).join("lib.rs");
        write(&folder.join("src/lib.rs"), &if ours.exists() { read(&ours)? } else { String::new() })?;
        for (package, paths) in suite.takes {
            let source = sources.find(package)?;
            for path in paths.iter().flat_map(|path| files(&source.join(path))) {
                let to = folder.join(path.strip_prefix(source).unwrap_or(&path));
                match path.extension().is_some_and(|ending| ending == "rs") {
                    true => write(&to, &report::substituted(&read(&path)?, lines))?,
                    false => write_bytes(&to, &fs::read(&path).map_err(|error| unreadable(&path, &error))?)?,
                }
                kept.insert(to);
            }
        }
        for stale in [files(&folder.join("src")), files(&folder.join("tests"))].concat() {
            if !kept.contains(&stale) {
                fs::remove_file(&stale).map_err(|error| unreadable(&stale, &error))?;
            }
        }
        Ok(())
    }

    /// Cargo for this workspace, without the network: what it needs is in the cache, or was just fetched.
    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = self.workspace.cargo(arguments);
        command.current_dir(&self.folder).env("CARGO_TARGET_DIR", &self.workspace.target).arg("--offline");
        command
    }

    /// Where the packages are: in cargo's cache, unless a folder is given; what is missing there is fetched.
    pub(super) fn sources(&self, given: Option<&Path>) -> Result<Sources, Failure> {
        if self.metadata().is_err() {
            println!("borrowed-tests: the cache lacks a package; fetching");
            let mut fetch = self.workspace.cargo(&["fetch"]);
            let remedy = "run it once where there is a network; CI keeps cargo's cache";
            run(fetch.current_dir(&self.folder), remedy)?;
        }
        let metadata = self.metadata()?;
        let mut found = vec![];
        for suite in &SUITES {
            let manifest = self.list(&format!("{}/package.toml", suite.name))?;
            for (package, _) in suite.takes {
                found.push((*package, source_of(&metadata, &manifest, package, given)?));
            }
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

    /// Builds the suites, and names their programs.
    pub(super) fn build(&self, suites: &[&BorrowedSuite]) -> Result<Vec<TestProgram>, Failure> {
        let arguments =
            ["test", "--lib", "--tests", "--no-run", "--message-format", "json-render-diagnostics"];
        let mut command = self.cargo(&arguments);
        for suite in suites {
            command.args(["-p", &suite.package()]);
        }
        let text = capture(command.stderr(Stdio::inherit()))?;
        let program = |line: &str| {
            let path = PathBuf::from(json_string(line, "executable")?);
            let manifest = PathBuf::from(json_string(line, "manifest_path")?);
            let suite = manifest.parent()?.file_name()?.to_string_lossy().into_owned();
            let (_, target) = line.split_once("\"target\":")?;
            let is_library = target.starts_with("{\"kind\":[\"lib\"]");
            let file = if is_library { "src".to_owned() } else { json_string(target, "name")? };
            Some(TestProgram { suite, file, path })
        };
        let mut programs: Vec<TestProgram> = text.lines().filter_map(program).collect();
        programs.sort_by(|one, other| one.file.cmp(&other.file));
        Ok(programs)
    }

    /// Names of the tests in `program`, whether they are run or not.
    pub(super) fn tests_of(&self, program: &TestProgram) -> Result<Vec<String>, Failure> {
        let said = capture(self.command(program).arg("--list"))?;
        Ok(said.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }

    fn command(&self, program: &TestProgram) -> Command {
        let mut command = Command::new(&program.path);
        command.current_dir(self.folder.join(&program.suite)).stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// What the tests in `program` print, up to its end or until patience does.
    pub(super) fn run(&self, program: &TestProgram) -> Result<String, Failure> {
        let mut command = self.command(program);
        let typed = shown(&command);
        let failed = |error| Failure::new(format!("`{typed}`: {error}"), "run it by hand");
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
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
                println!("borrowed-tests: {} hangs", program.path.display());
                child.kill().map_err(failed)?;
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(reader.join().unwrap_or_default())
    }
}

/// Where the packages with the tests are.
pub(super) struct Sources(Vec<(&'static str, PathBuf)>);

impl Sources {
    pub(super) fn find(&self, package: &str) -> Result<&Path, Failure> {
        let found = self.0.iter().find(|(name, _)| *name == package).map(|(_, folder)| folder.as_path());
        found.ok_or_else(|| Failure::new(format!("no sources of {package}"), "add it to a suite's packages"))
    }
}

fn source_of(
    metadata: &str,
    manifest: &str,
    package: &str,
    given: Option<&Path>,
) -> Result<PathBuf, Failure> {
    let version = report::pinned(manifest, package).ok_or_else(|| {
        Failure::new(format!("package.toml pins no version of {package}"), "write `version = \"=...\"`")
    })?;
    let name = format!("{package}-{version}");
    match given {
        Some(given) => Ok(given.join(&name)),
        None => report::folder_of(metadata, package, &version).ok_or_else(|| {
            let remedy = "run `cargo fetch`, or name --sources";
            Failure::new(format!("cargo knows no sources of {name}"), remedy)
        }),
    }
}

/// The file, or all files below the folder; none where nothing is.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else {
        return if path.is_file() { vec![path.to_owned()] } else { vec![] };
    };
    let mut found: Vec<PathBuf> = entries.flatten().flat_map(|entry| files(&entry.path())).collect();
    found.sort();
    found
}

pub(super) fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()), "is the whole package there?")
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    write_bytes(path, text.as_bytes())
}

/// A file that is the same already keeps its time.
fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let failed =
        |error| Failure::new(format!("{}: {error}", path.display()), "make room in the target folder");
    fs::create_dir_all(path.parent().unwrap_or(path)).map_err(failed)?;
    fs::write(path, bytes).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what is taken is what is there, whatever was there before. Method: a package of two files, one
    /// of which goes.
    #[test]
    fn what_a_package_no_longer_has_is_removed() {
        let workspace = Workspace::open().expect("cargo runs");
        let home = workspace.target.join(format!("borrowed-{}", std::process::id()));
        let scratch =
            Scratch { workspace: &workspace, data: home.join("data"), folder: home.join("scratch") };
        let suite = BorrowedSuite { name: "a", takes: &[("a", &["src", "tests"])], topic: None, tests: 0 };
        let sources = Sources(vec![("a", home.join("a"))]);
        let lines = report::substitutions("old => new\n").expect("well-formed");
        for (name, text) in [("src/lib.rs", "old"), ("src/deep/b.rs", "b"), ("tests/data.txt", "old")] {
            write(&home.join("a").join(name), text).expect("there is room");
        }
        scratch.fill(&suite, &sources, &lines).expect("all is there");
        let taken = |name: &str| fs::read_to_string(scratch.folder.join("a").join(name)).ok();
        let first = ["src/lib.rs", "src/deep/b.rs", "tests/data.txt"].map(taken);
        fs::remove_file(home.join("a/src/deep/b.rs")).expect("it is there");
        scratch.fill(&suite, &sources, &lines).expect("all is there");
        let second = ["src/lib.rs", "src/deep/b.rs"].map(taken);
        fs::remove_dir_all(&home).expect("it is there");
        assert_eq!(first.map(|text| text.unwrap_or_default()), ["new", "b", "old"]);
        assert_eq!(second, [Some("new".to_owned()), None]);
    }
}
