//! The lists of a suite, and what became of its tests.
//!
//! Pure functions of text. A list is lines; those that start with `# ` are comments.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::workspace::Failure;

/// More would be another test suite.
const SUBSTITUTIONS_MAX: usize = 8;

/// `from` becomes `to`, everywhere.
#[derive(Debug)]
pub(super) struct Substitution {
    pub(super) from: String,
    pub(super) to: String,
    /// How often it did.
    pub(super) applied: Cell<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TestOutcome {
    Passed,
    Failed,
    /// Its authors do not run it either, unless it is asked for by name.
    Ignored,
    /// Never heard of: a failure, too.
    NotRun,
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with("# "))
}

/// # Errors
/// When a line has no arrow, or there are too many.
pub(super) fn substitutions(text: &str) -> Result<Vec<Substitution>, Failure> {
    let parse = |line: &str| {
        let malformed = || Failure::new(format!("`{line}` has no ` => `"), "write `from => to`");
        let (from, to) = line.split_once(" => ").ok_or_else(malformed)?;
        Ok(Substitution { from: from.to_owned(), to: to.to_owned(), applied: Cell::new(0) })
    };
    let found = lines(text).map(parse).collect::<Result<Vec<_>, _>>()?;
    if found.len() > SUBSTITUTIONS_MAX {
        let what = format!("{} substitutions are more than {SUBSTITUTIONS_MAX}", found.len());
        return Err(Failure::new(what, "make the interface closer to theirs"));
    }
    Ok(found)
}

/// What is not expected to pass, and why.
#[derive(Debug, Default)]
pub(super) struct Skips {
    /// Tests that fail here, as `file::test`.
    pub(super) tests: BTreeMap<String, String>,
    /// Files that are not run at all.
    pub(super) files: BTreeMap<String, String>,
}

/// # Errors
/// When a line gives no reason.
pub(super) fn skips(text: &str) -> Result<Skips, Failure> {
    let mut found = Skips::default();
    for line in lines(text) {
        let parts = line.split_once(": ").filter(|(_, reason)| !reason.trim().is_empty());
        let malformed = || Failure::new(format!("`{line}` gives no reason"), "write `file::test: reason`");
        let (name, reason) = parts.ok_or_else(malformed)?;
        let list = if name.contains("::") { &mut found.tests } else { &mut found.files };
        list.insert(name.to_owned(), reason.to_owned());
    }
    Ok(found)
}

/// `source` with all substitutions applied in order.
pub(super) fn substituted(source: &str, substitutions: &[Substitution]) -> String {
    substitutions.iter().fold(source.to_owned(), |text, line| {
        line.applied.set(line.applied.get() + text.matches(line.from.as_str()).count());
        text.replace(&line.from, &line.to)
    })
}

/// The version that a manifest pins: `package = { version = "=1.2.3" ...`, under another name or its own.
pub(super) fn pinned(manifest: &str, package: &str) -> Option<String> {
    let (start, renamed) = (format!("{package} = "), format!("package = \"{package}\""));
    let line = manifest.lines().find(|line| line.starts_with(&start) || line.contains(&renamed))?;
    let (_, rest) = line.split_once("\"=")?;
    rest.split_once('"').map(|(version, _)| version.to_owned())
}

/// Where cargo's metadata says that a package is.
pub(super) fn folder_of(metadata: &str, package: &str, version: &str) -> Option<PathBuf> {
    let head = format!("{{\"name\":\"{package}\",\"version\":\"{version}\",");
    let (_, rest) = metadata.split_once(&head)?;
    let manifest = crate::workspace::json_string(rest, "manifest_path")?;
    PathBuf::from(manifest).parent().map(PathBuf::from)
}

/// What a line of a test program says of a test.
pub(super) fn result_of(line: &str) -> Option<(&str, TestOutcome)> {
    let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let outcome = match result {
        "ok" => TestOutcome::Passed,
        "FAILED" => TestOutcome::Failed,
        ignored if ignored.starts_with("ignored") => TestOutcome::Ignored,
        _ => TestOutcome::NotRun,
    };
    Some((name.split(' ').next().unwrap_or(name), outcome))
}

/// All tests of a suite and what became of them.
#[derive(Debug)]
pub(super) struct Summary {
    suite: &'static str,
    skips: BTreeMap<String, String>,
    files: Vec<(String, BTreeMap<String, TestOutcome>)>,
}

impl Summary {
    pub(super) fn new(suite: &'static str, skips: BTreeMap<String, String>) -> Self {
        Self { suite, skips, files: vec![] }
    }

    /// These are the tests in `file`; a file without tests has no row.
    pub(super) fn expect(&mut self, file: &str, tests: Vec<String>) {
        if !tests.is_empty() {
            let tests = tests.into_iter().map(|test| (test, TestOutcome::NotRun)).collect();
            self.files.push((file.to_owned(), tests));
        }
    }

    /// The program of `file` printed this.
    pub(super) fn record(&mut self, file: &str, said: &str) {
        let Some((_, tests)) = self.files.iter_mut().find(|(name, _)| name == file) else { return };
        for (name, outcome) in said.lines().filter_map(result_of) {
            tests.insert(name.to_owned(), outcome);
        }
    }

    fn all(&self) -> impl Iterator<Item = (String, TestOutcome)> {
        let of = |(file, tests): &(String, BTreeMap<String, TestOutcome>)| {
            let file = file.clone();
            let name = move |(test, outcome): (String, TestOutcome)| (format!("{file}::{test}"), outcome);
            tests.clone().into_iter().map(name).collect::<Vec<_>>()
        };
        self.files.iter().flat_map(of)
    }

    /// Whether a test that is listed needs what some machines have.
    fn may_pass(&self, name: &str) -> bool {
        self.skips.get(name).is_some_and(|reason| reason.starts_with("needs "))
    }

    fn count(&self, asked: TestOutcome) -> usize {
        self.all().filter(|(_, outcome)| *outcome == asked).count()
    }

    pub(super) fn print(&self) {
        println!("{:<20} tests  passed  failed  skipped  ignored", self.suite);
        let mut sum = [0; 5];
        for (file, tests) in &self.files {
            let is_skipped = |test: &String| self.skips.contains_key(&format!("{file}::{test}"));
            let passed = tests.values().filter(|outcome| **outcome == TestOutcome::Passed).count();
            let ignored = tests.values().filter(|outcome| **outcome == TestOutcome::Ignored).count();
            let failing = tests.iter().filter(|(_, outcome)| **outcome != TestOutcome::Passed);
            let skipped = failing.filter(|(test, _)| is_skipped(test)).count();
            let failed = tests.len() - passed - ignored - skipped;
            let row = [tests.len(), passed, failed, skipped, ignored];
            println!("  {file:<18} {}", shown(row));
            sum.iter_mut().zip(row).for_each(|(sum, count)| *sum += count);
        }
        println!("  {:<18} {}", "all", shown(sum));
        for (name, reason) in &self.skips {
            println!("skipped {name}: {reason}");
        }
    }

    /// # Errors
    /// When there are not as many tests as there should be, too few pass, or others fail than those that are
    /// listed.
    pub(super) fn judge(&self, count: usize, share_min: f64) -> Result<(), Failure> {
        let all: BTreeMap<_, _> = self.all().collect();
        let listed = "the suite's skips.txt must name exactly what fails, each with a reason";
        let mut wrong = vec![];
        for (name, outcome) in &all {
            match (outcome, self.skips.contains_key(name)) {
                (TestOutcome::Passed, true) if self.may_pass(name) => {}
                (TestOutcome::Passed, true) => wrong.push(format!("{name} is listed and passes")),
                (TestOutcome::Ignored, true) => wrong.push(format!("{name} is listed and ignored anyway")),
                (TestOutcome::Failed, false) => wrong.push(format!("{name} fails")),
                (TestOutcome::NotRun, false) => wrong.push(format!("{name} did not end, or was not run")),
                _ => {}
            }
        }
        let unknown = self.skips.keys().filter(|name| !all.contains_key(*name));
        wrong.extend(unknown.map(|name| format!("{name} is listed and no test")));
        if !wrong.is_empty() {
            return Err(Failure::new(format!("{}: {}", self.suite, wrong.join("; ")), listed));
        }
        if all.len() != count {
            let what = format!("{}: {} tests instead of {count}", self.suite, all.len());
            return Err(Failure::new(
                what,
                "look which are lost or new, and write the number into suites.rs",
            ));
        }
        let run = all.len() - self.count(TestOutcome::Ignored);
        let passed = self.count(TestOutcome::Passed);
        if (passed as f64) < share_min * run as f64 {
            let what = format!("{}: only {passed} of {run} pass; {share_min} is the least", self.suite);
            return Err(Failure::new(what, "what is skipped must be made to pass"));
        }
        Ok(())
    }
}

/// Numbers below their headings.
fn shown([tests, passed, failed, skipped, ignored]: [usize; 5]) -> String {
    format!("{tests:>5}  {passed:>6}  {failed:>6}  {skipped:>7}  {ignored:>7}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "#[tokio::test(start_paused = true)]\nasync fn first() {}\n";

    /// Goal: lines apply in order and are counted, and there may not be many. Method: two lines; nine.
    #[test]
    fn substitutions_apply_in_order() {
        let lines =
            substitutions("# first\n#[tokio::test => #[our::test\nour => your\n").expect("well-formed");
        assert!(substituted(SOURCE, &lines).starts_with("#[your::test("));
        assert_eq!(lines.iter().map(|line| line.applied.get()).collect::<Vec<_>>(), [1, 1]);
        assert!(substitutions("no arrow").is_err());
        assert!(substitutions(&"a => b\n".repeat(9)).is_err());
    }

    /// Goal: exactly what is listed may fail, enough must pass, and none may be lost. Method: one change at a
    /// time.
    #[test]
    fn what_fails_must_be_listed() {
        let judge = |skips: &str, said: &str, share| {
            let mut summary = Summary::new("a", super::skips(skips).expect("well-formed").tests);
            summary.expect("f", vec!["first".to_owned(), "second_one".to_owned()]);
            summary.expect("g", vec![]);
            summary.record("f", said);
            summary.judge(2, share).map_err(|failure| failure.what)
        };
        let (passes, half) = ("test first ... ok\ntest second_one ... ok", "test first ... ok");
        let ignored = "test first ... ok\ntest second_one ... ignored, hangs elsewhere";
        assert_eq!(judge("", passes, 1.0), Ok(()));
        assert_eq!(judge("", ignored, 1.0), Ok(()));
        assert!(judge("f::second_one: why", ignored, 1.0).is_err_and(|what| what.contains("anyway")));
        assert_eq!(judge("f::second_one: of no use here", half, 0.5), Ok(()));
        assert!(
            judge("f::second_one: of no use here", half, 0.6).is_err_and(|what| what.contains("only 1 of 2"))
        );
        assert!(judge("", half, 0.5).is_err_and(|what| what.contains("did not end")));
        assert!(judge("f::first: why", passes, 0.5).is_err_and(|what| what.contains("listed and passes")));
        assert_eq!(judge("f::first: needs a network", passes, 1.0), Ok(()));
        assert!(judge("f::third: why", passes, 0.5).is_err_and(|what| what.contains("no test")));
        let third = format!("{passes}\ntest third ... ok");
        assert!(judge("", &third, 1.0).is_err_and(|what| what.contains("3 tests instead of 2")));
        assert!(super::skips("f::first").is_err());
        let skips = super::skips("f::first: why\ng: it is not ours").expect("well-formed");
        assert_eq!((skips.tests.len(), skips.files["g"].as_str()), (1, "it is not ours"));
    }

    /// Goal: a pinned version and its folder are found. Method: a manifest, and metadata as cargo prints it.
    #[test]
    fn pinned_versions_have_a_folder() {
        let manifest = "tokio-test = \"0.4\"\ntokio = { version = \"=1.2.3\", features = [] }\n";
        assert_eq!(pinned(manifest, "tokio").as_deref(), Some("1.2.3"));
        assert_eq!(pinned(manifest, "tokio-test"), None);
        let renamed = "original = { package = \"tower\", version = \"=0.5.3\" }\n";
        assert_eq!(pinned(renamed, "tower").as_deref(), Some("0.5.3"));
        let metadata =
            r#"[{"name":"tokio","version":"1.2.3","id":"x","manifest_path":"/c/tokio-1.2.3/Cargo.toml"}]"#;
        assert_eq!(folder_of(metadata, "tokio", "1.2.3"), Some(PathBuf::from("/c/tokio-1.2.3")));
        assert_eq!(folder_of(metadata, "tokio", "1.2.4"), None);
    }
}
