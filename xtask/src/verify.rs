//! `cargo xtask verify DIR`: `quietcore verify` on every recording in a folder, one line each.
//!
//! Decides when a recording passes: no line contradicts the wheel, at least [`EXACT_SHARE_MIN`] of its starts
//! are exact, and exact, classes and mismatches add up to the starts; of the hierarchy's lines, too, none
//! contradicts, and the order of at most [`OPEN_SHARE_MAX`] is left open. All recordings are shown before it
//! fails. Reads the tool's JSON as text: its top-level keys stand on lines of their own, two spaces in.

use std::path::Path;
use std::process::ExitCode;

use crate::recordings;
use crate::workspace::{Failure, Workspace, exit_code, shown};

/// Least share of a recording's starts that agree with clock = jiffies.
const EXACT_SHARE_MIN: f64 = 0.98;

const HEAD: &str =
    "recording              starts    exact   share  expiries     runs  mismatches  by other clocks";
/// Largest share of a recording's hierarchy lines whose order the recording may leave open.
const OPEN_SHARE_MAX: f64 = 0.05;

/// Verifies the recordings in `folder`, which is relative to where the user is.
pub(crate) fn command(folder: &str) -> ExitCode {
    exit_code("verify", check_all(Path::new(folder)))
}

/// What is counted of one recording, or of all.
#[derive(Clone, Debug, Default, PartialEq)]
struct Row {
    starts: u64,
    exact: u64,
    expiries: u64,
    runs: u64,
    mismatches: u64,
    /// Each class with its count, in the tool's order.
    classes: Vec<(String, u64)>,
    hierarchy: HierarchyRow,
    /// What is wrong, besides mismatches.
    problem: Option<String>,
}

/// What is counted of the hierarchy's lines: the tool's key of each, and what it is called here.
const HIERARCHY: [(&str, &str); 6] = [
    ("groups", "groups"),
    ("tree_mismatches", "tree mismatches"),
    ("events", "lines"),
    ("exact", "exact"),
    ("order_open", "order_open"),
    ("unexplained", "unexplained"),
];

/// In the order of [`HIERARCHY`].
#[derive(Clone, Debug, Default, PartialEq)]
struct HierarchyRow([u64; HIERARCHY.len()]);

/// Prints a line per recording and the total.
///
/// # Errors
/// When there is no recording, the tool breaks, or a recording does not pass.
pub(crate) fn check_all(folder: &Path) -> Result<(), Failure> {
    let workspace = Workspace::open()?;
    let recordings = recordings::all(folder)?;
    let tool = recordings::built_tool(&workspace)?;
    println!("{HEAD}");
    let mut total = Row::default();
    let mut failed = vec![];
    for recording in &recordings {
        let name = recordings::name_of(recording);
        let row = verified(&workspace, &tool, recording)?;
        println!("{}", row.line(&name));
        println!("{}", row.hierarchy.line());
        if let Some(problem) = row.problem.clone() {
            println!("    {problem}");
            failed.push(name);
        }
        total.add(&row);
    }
    println!("{}", total.line(&format!("all {}", recordings.len())));
    println!("{}", total.hierarchy.line());
    if failed.is_empty() {
        return Ok(());
    }
    let what =
        format!("{} of {} recordings do not pass: {}", failed.len(), recordings.len(), failed.join(" "));
    Err(Failure::new(what, "`quietcore verify` on one of them names the first line that differs"))
}

fn verified(workspace: &Workspace, tool: &Path, recording: &Path) -> Result<Row, Failure> {
    let mut command = workspace.program(tool);
    command.arg("verify").arg(recording).arg("--json");
    let typed = shown(&command);
    let broke = |why: String| Failure::new(format!("`{typed}` {why}"), "run this command by hand");
    let output = command.output().map_err(|error| broke(format!("cannot be started: {error}")))?;
    if !matches!(output.status.code(), Some(0 | 1)) {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(broke(format!("ended with {}: {said}", output.status)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Row::read(&text).ok_or_else(|| broke("printed no JSON that is known here".to_owned()))
}

impl Row {
    /// From the tool's JSON; `None` when a key is missing.
    fn read(json: &str) -> Option<Row> {
        let classes = numbers(object(json, "classes")?);
        let of = |name: &str| number(object(json, name)?, "    ", "mismatches");
        // Text without flags allows no replay; its runs are null.
        let runs = object(json, "runs").and_then(|runs| number(runs, "    ", "total")).unwrap_or(0);
        let at_start = number(json, "  ", "mismatches")?;
        let hierarchy = HierarchyRow::read(object(json, "tmigr")?)?;
        let HierarchyRow([_, tree_mismatches, .., unexplained]) = hierarchy;
        let mut row = Row {
            starts: number(json, "  ", "timer_starts")?,
            exact: number(json, "  ", "exact")?,
            expiries: number(object(json, "expiries")?, "    ", "total")?,
            runs,
            mismatches: at_start
                + of("cancels")?
                + of("expiries")?
                + of("runs").unwrap_or(0)
                + tree_mismatches
                + unexplained,
            classes,
            hierarchy,
            problem: None,
        };
        row.problem = row.judge(at_start, json);
        Some(row)
    }

    /// What keeps it from passing.
    fn judge(&self, at_start: u64, json: &str) -> Option<String> {
        let classes: u64 = self.classes.iter().map(|(_, count)| count).sum();
        if self.mismatches > 0 {
            let line = object(json, "first_mismatch").and_then(|first| number(first, "    ", "line"));
            let line = line.map_or("an unknown line".to_owned(), |line| format!("line {line}"));
            return Some(format!("{} mismatches, the first at {line}", self.mismatches));
        }
        if self.exact + classes + at_start != self.starts {
            return Some(format!("{} starts are not the sum of their parts", self.starts));
        }
        if (self.exact as f64) < EXACT_SHARE_MIN * self.starts as f64 {
            return Some(format!("less than {EXACT_SHARE_MIN} of the starts are exact"));
        }
        self.hierarchy.judge()
    }

    fn add(&mut self, other: &Row) {
        self.starts += other.starts;
        self.exact += other.exact;
        self.expiries += other.expiries;
        self.runs += other.runs;
        self.mismatches += other.mismatches;
        self.hierarchy.add(&other.hierarchy);
        for (name, count) in &other.classes {
            match self.classes.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += count,
                None => self.classes.push((name.clone(), *count)),
            }
        }
    }

    fn line(&self, name: &str) -> String {
        let share = if self.starts == 0 { 0.0 } else { self.exact as f64 / self.starts as f64 };
        let classes = self.classes.iter().filter(|(_, count)| *count > 0);
        let classes: Vec<String> = classes.map(|(name, count)| format!("{name} {count}")).collect();
        let Row { starts, exact, expiries, runs, mismatches, .. } = self;
        let line = format!("{name:<20} {starts:>8} {exact:>8} {share:>7.4} {expiries:>9} {runs:>8}");
        format!("{line} {mismatches:>11}  {}", classes.join(" ")).trim_end().to_owned()
    }
}

impl HierarchyRow {
    /// From the object of the hierarchy; `None` when a key is missing.
    fn read(tmigr: &str) -> Option<Self> {
        let mut row = Self::default();
        for (count, (key, _)) in row.0.iter_mut().zip(HIERARCHY) {
            *count = number(tmigr, "    ", key)?;
        }
        Some(row)
    }

    /// What keeps it from passing, besides mismatches.
    fn judge(&self) -> Option<String> {
        let [_, _, events, exact, order_open, unexplained] = self.0;
        if exact + order_open + unexplained != events {
            return Some(format!("{events} lines of the hierarchy are not the sum of their parts"));
        }
        (order_open as f64 > OPEN_SHARE_MAX * events as f64)
            .then(|| format!("the order of more than {OPEN_SHARE_MAX} of the hierarchy's lines is open"))
    }

    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }

    fn line(&self) -> String {
        if let [0, _, 0, ..] = self.0 {
            return "  no timer migration recorded".to_owned();
        }
        let counts = HIERARCHY.iter().zip(self.0).map(|((_, name), count)| format!("{name} {count}"));
        format!("  timer migration: {}", counts.collect::<Vec<_>>().join(", "))
    }
}

/// The object under a top-level key, without its braces.
fn object<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = json.split_once(&format!("\n  \"{key}\": {{"))?;
    Some(rest.split_once("\n  }")?.0)
}

/// The number under `key`, on a line with this indentation.
fn number(json: &str, indentation: &str, key: &str) -> Option<u64> {
    let (_, rest) = json.split_once(&format!("\n{indentation}\"{key}\": "))?;
    rest.split([',', '\n']).next()?.trim().parse().ok()
}

/// All keys with numbers.
fn numbers(object: &str) -> Vec<(String, u64)> {
    let pairs = object.lines().filter_map(|line| line.trim().trim_end_matches(',').split_once(": "));
    let numbers =
        pairs.filter_map(|(key, value)| Some((key.trim_matches('"').to_owned(), value.parse().ok()?)));
    numbers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{
  "ok": true,
  "timer_starts": 100,
  "explained": 100,
  "exact": 99,
  "classes": {
    "ahead_run": 1,
    "after_loss": 0
  },
  "mismatches": 0,
  "cancels": {
    "total": 90,
    "mismatches": 0
  },
  "expiries": {
    "total": 50,
    "exact": 49,
    "classes": {
      "start_unseen": 1
    },
    "mismatches": 0
  },
  "runs": {
    "total": 40,
    "mismatches": 0
  },
  "tmigr": {
    "groups": 3,
    "tree_mismatches": 0,
    "events": 200,
    "exact": 191,
    "order_open": 9,
    "unexplained": 0
  },
  "first_mismatch": null
}
"#;

    /// Goal: every number is read from its own place, though keys repeat.
    #[test]
    fn a_row_is_read_from_the_json() {
        let row = Row::read(JSON).expect("all keys are there");
        assert_eq!((row.starts, row.exact, row.expiries, row.runs, row.mismatches), (100, 99, 50, 40, 0));
        assert_eq!(row.classes, [("ahead_run".to_owned(), 1), ("after_loss".to_owned(), 0)]);
        assert_eq!(row.problem, None);
        assert!(row.line("x").ends_with("ahead_run 1"), "{}", row.line("x"));
        assert_eq!(row.hierarchy, HierarchyRow([3, 0, 200, 191, 9, 0]));
        assert!(row.hierarchy.line().contains("order_open 9"), "{}", row.hierarchy.line());
        assert_eq!(Row::read("{}"), None);
        assert_eq!(
            Row::read(
                &JSON
                    .replace("\"runs\": {\n    \"total\": 40,\n    \"mismatches\": 0\n  }", "\"runs\": null")
            )
            .map(|row| row.runs),
            Some(0)
        );
    }

    /// Goal: each reason to fail is seen. Method: one number changed each.
    #[test]
    fn each_reason_to_fail_is_seen() {
        for (from, to, complaint) in [
            ("\"exact\": 99", "\"exact\": 98", "not the sum"),
            ("\"timer_starts\": 100", "\"timer_starts\": 101", "not the sum"),
            (
                "\"total\": 90,\n    \"mismatches\": 0",
                "\"total\": 90,\n    \"mismatches\": 2",
                "2 mismatches",
            ),
            (
                "\"total\": 40,\n    \"mismatches\": 0",
                "\"total\": 40,\n    \"mismatches\": 3",
                "3 mismatches",
            ),
            ("    },\n    \"mismatches\": 0", "    },\n    \"mismatches\": 4", "4 mismatches"),
            ("\"tree_mismatches\": 0", "\"tree_mismatches\": 5", "5 mismatches"),
            ("\"unexplained\": 0", "\"unexplained\": 6", "6 mismatches"),
            ("\"events\": 200", "\"events\": 201", "not the sum"),
            ("\"exact\": 191,\n    \"order_open\": 9", "\"exact\": 189,\n    \"order_open\": 11", "is open"),
        ] {
            assert!(JSON.contains(from), "{from}");
            let row = Row::read(&JSON.replacen(from, to, 1)).expect("all keys are there");
            assert!(row.problem.as_ref().is_some_and(|problem| problem.contains(complaint)), "{to}: {row:?}");
        }
        let inexact =
            JSON.replace("\"exact\": 99", "\"exact\": 90").replace("\"ahead_run\": 1", "\"ahead_run\": 10");
        assert!(
            Row::read(&inexact).expect("keys").problem.is_some_and(|problem| problem.contains("less than"))
        );
    }
}
