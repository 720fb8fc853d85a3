//! Files of trace-cmd, held against what trace-cmd itself prints of them.
//!
//! `trace-cmd/v6.dat` was recorded on Linux 6.18 with two CPUs by trace-cmd 3.1.6 (timers, softirqs,
//! interrupts, switches of tasks, work); its list of functions was cut to those that occur in it. `v7.dat` is
//! the same file after `trace-cmd convert --file-version 7 --compression zstd`; `report.txt.zst` is
//! `trace-cmd report -t` of it.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn quietcore(args: &[&str]) -> Output {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/trace-cmd");
    let mut quietcore = Command::new(env!("CARGO_BIN_EXE_quietcore"));
    let quietcore = quietcore.args(args).current_dir(folder).env("NO_COLOR", "1").stdin(Stdio::null());
    quietcore.output().expect("quietcore runs")
}

fn json(args: &[&str]) -> Value {
    let output = quietcore(&[args, &["--json", "--isolated", "1"]].concat());
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Goal: a file of either version gives the same report as its text, to the last number and line. Method: the
/// text does not say of which kernel it is, so the option does.
#[test]
fn a_file_gives_the_report_of_its_text() {
    // The text has no flags, so it does not say what started something in an interrupt that is not recorded.
    let without_causes = |mut report: Value| {
        let rows = report["interruptions"].as_array_mut().expect("a table");
        rows.iter_mut().for_each(|row| row["causes"] = Value::Null);
        report
    };
    let of_text = without_causes(json(&["explain", "report.txt.zst", "--kernel", "6.18.44-fc-v669"]));
    assert_eq!(of_text["events"], 3832, "the text is the one that was meant");
    for file in ["v6.dat", "v7.dat"] {
        assert_eq!(without_causes(json(&["explain", file])), of_text, "{file}");
    }
}

/// Goal: the lines that a report names can be looked up. Method: each event of the text has its place in what
/// `cat` shows; trace-cmd has its own words for some events, so their names and times are compared.
#[test]
fn lines_are_those_of_the_text() {
    let names = |file: &str| -> Vec<String> {
        let output = quietcore(&["cat", file]);
        let text = String::from_utf8(output.stdout).expect("names of tasks and functions");
        let name = |line: &str| {
            let mut words = line.split(": ");
            let at = words.next()?.rsplit(' ').next()?;
            Some(format!("{at} {}", words.next()?.trim_end_matches(':').trim()))
        };
        text.lines().skip(1).map(|line| name(line).unwrap_or_else(|| panic!("{line}"))).collect()
    };
    let (of_file, of_text) = (names("v7.dat"), names("report.txt.zst"));
    assert_eq!(of_file.len(), 3832);
    for (number, (own, theirs)) in of_file.iter().zip(&of_text).enumerate() {
        assert!(theirs.starts_with(own.as_str()), "line {}: {own:?} {theirs:?}", number + 2);
    }
}
