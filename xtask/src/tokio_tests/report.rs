//! The lists beside tokio's tests, the tests in a file, and what became of them.
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
    /// Ignored, or never heard of: for tokio's tests that is a failure, too.
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
        return Err(Failure::new(what, "make the interface closer to tokio's"));
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

/// Names of the functions in `source` that an attribute makes tests.
pub(super) fn tests_in(source: &str) -> Vec<String> {
    let mut found = vec![];
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        if let Some((_, rest)) = line.split_once("fn ").filter(|_| is_test && !line.starts_with("//")) {
            let name = rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_');
            found.push(name.collect());
            is_test = false;
        }
    }
    found
}

/// The version that a manifest pins: `package = { version = "=1.2.3" ...`.
pub(super) fn pinned(manifest: &str, package: &str) -> Option<String> {
    let start = format!("{package} = ");
    let line = manifest.lines().find(|line| line.starts_with(&start))?;
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
        _ => TestOutcome::NotRun,
    };
    Some((name.split(' ').next().unwrap_or(name), outcome))
}

/// All tests and what became of them.
#[derive(Debug)]
pub(super) struct Summary {
    skips: BTreeMap<String, String>,
    files: Vec<(String, BTreeMap<String, TestOutcome>)>,
}

impl Summary {
    pub(super) fn new(skips: BTreeMap<String, String>) -> Self {
        Self { skips, files: vec![] }
    }

    pub(super) fn expect(&mut self, file: &str, tests: Vec<String>) {
        let tests = tests.into_iter().map(|test| (test, TestOutcome::NotRun)).collect();
        self.files.push((file.to_owned(), tests));
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

    fn passed(&self) -> usize {
        self.all().filter(|(_, outcome)| *outcome == TestOutcome::Passed).count()
    }

    pub(super) fn print(&self) {
        println!("file                 tests  passed  failed  skipped");
        let mut sum = [0; 4];
        for (file, tests) in &self.files {
            let is_skipped = |test: &String| self.skips.contains_key(&format!("{file}::{test}"));
            let passed = tests.values().filter(|outcome| **outcome == TestOutcome::Passed).count();
            let others = tests.iter().filter(|(_, outcome)| **outcome != TestOutcome::Passed);
            let (skipped, failed): (Vec<_>, Vec<_>) = others.partition(|(test, _)| is_skipped(test));
            let row = [tests.len(), passed, failed.len(), skipped.len()];
            println!("{file:<20} {:>5}  {:>6}  {:>6}  {:>7}", row[0], row[1], row[2], row[3]);
            sum.iter_mut().zip(row).for_each(|(sum, count)| *sum += count);
        }
        println!("{:<20} {:>5}  {:>6}  {:>6}  {:>7}", "all", sum[0], sum[1], sum[2], sum[3]);
        for (name, reason) in &self.skips {
            println!("skipped {name}: {reason}");
        }
    }

    /// # Errors
    /// When too few pass, or others fail than those that are listed.
    pub(super) fn judge(&self, share_min: f64) -> Result<(), Failure> {
        let all: BTreeMap<_, _> = self.all().collect();
        let listed = "the list tests/tokio/skips.txt must name exactly what fails, each with a reason";
        let mut wrong = vec![];
        for (name, outcome) in &all {
            match (outcome, self.skips.contains_key(name)) {
                (TestOutcome::Passed, true) => wrong.push(format!("{name} is listed and passes")),
                (TestOutcome::Failed, false) => wrong.push(format!("{name} fails")),
                (TestOutcome::NotRun, false) => wrong.push(format!("{name} did not end, or was not run")),
                _ => {}
            }
        }
        let unknown = self.skips.keys().filter(|name| !all.contains_key(*name));
        wrong.extend(unknown.map(|name| format!("{name} is listed and no test")));
        if !wrong.is_empty() {
            return Err(Failure::new(wrong.join("; "), listed));
        }
        if (self.passed() as f64) < share_min * all.len() as f64 {
            let what = format!("only {} of {} pass; {share_min} is the least", self.passed(), all.len());
            return Err(Failure::new(what, "what is skipped must be made to pass"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "#[tokio::test(start_paused = true)]\n// a word on it\n#[cfg(unix)]\nasync fn first() {}\n\
                          fn helper() {}\n    #[test]\n    fn second_one() {}\n";

    /// Goal: every test of a file is counted, nothing else. Method: attributes and comments between.
    #[test]
    fn tests_are_found_by_their_attribute() {
        assert_eq!(tests_in(SOURCE), ["first", "second_one"]);
    }

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

    /// Goal: exactly what is listed may fail, and enough must pass. Method: one change at a time.
    #[test]
    fn what_fails_must_be_listed() {
        let judge = |skips: &str, said: &str, share| {
            let mut summary = Summary::new(super::skips(skips).expect("well-formed").tests);
            summary.expect("f", tests_in(SOURCE));
            summary.record("f", said);
            summary.judge(share).map_err(|failure| failure.what)
        };
        let (passes, half) = ("test first ... ok\ntest second_one ... ok", "test first ... ok");
        assert_eq!(judge("", passes, 1.0), Ok(()));
        assert_eq!(judge("f::second_one: of no use here", half, 0.5), Ok(()));
        assert!(
            judge("f::second_one: of no use here", half, 0.6).is_err_and(|what| what.contains("only 1 of 2"))
        );
        assert!(judge("", half, 0.5).is_err_and(|what| what.contains("did not end")));
        assert!(judge("f::first: why", passes, 0.5).is_err_and(|what| what.contains("listed and passes")));
        assert!(judge("f::third: why", passes, 0.5).is_err_and(|what| what.contains("no test")));
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
        let metadata =
            r#"[{"name":"tokio","version":"1.2.3","id":"x","manifest_path":"/c/tokio-1.2.3/Cargo.toml"}]"#;
        assert_eq!(folder_of(metadata, "tokio", "1.2.3"), Some(PathBuf::from("/c/tokio-1.2.3")));
        assert_eq!(folder_of(metadata, "tokio", "1.2.4"), None);
    }
}
