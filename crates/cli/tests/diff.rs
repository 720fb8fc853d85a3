//! `quietcore diff` as a user meets it: two recordings, a report, what cannot be compared.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const BEFORE: &str = "recordings/g612-c16-iso.txt.zst";
const AFTER: &str = "recordings/g619-c16-iso.txt.zst";

fn quietcore(args: &[&str]) -> Output {
    let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut quietcore = Command::new(env!("CARGO_BIN_EXE_quietcore"));
    let quietcore = quietcore.args(args).current_dir(repository).env("NO_COLOR", "1").stdin(Stdio::null());
    quietcore.output().expect("quietcore runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("our output is UTF-8")
}

/// The verdicts of a comparison by figure.
fn verdicts(before: &str, after: &str) -> Vec<(String, String)> {
    let output = quietcore(&["diff", before, after, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["schema"], 1);
    let word = |figure: &Value, key: &str| figure[key].as_str().expect("a word").to_owned();
    let figures = json["figures"].as_array().expect("a list");
    figures.iter().map(|figure| (word(figure, "figure"), word(figure, "verdict"))).collect()
}

fn verdict(verdicts: &[(String, String)], figure: &str) -> String {
    verdicts.iter().find(|(of, _)| of == figure).expect("it is listed").1.clone()
}

/// Goal: a kernel that cures shows less foreign timers, and a recording does not differ from itself. Method:
/// the same load on 6.12 and 6.19, both ways round, and each with itself.
#[test]
fn a_cure_shows_and_nothing_else() {
    assert_eq!(verdict(&verdicts(BEFORE, AFTER), "foreign"), "less");
    assert_eq!(verdict(&verdicts(AFTER, BEFORE), "foreign"), "more");
    for recording in [BEFORE, AFTER, "recordings/h618-c2-detail.txt.zst"] {
        let verdicts = verdicts(recording, recording);
        assert!(
            verdicts.iter().all(|(_, verdict)| verdict == "same" || verdict == "unknown"),
            "{verdicts:?}"
        );
        assert_eq!(verdict(&verdicts, "foreign"), "same");
    }
}

/// Goal: a report in JSON stands for its recording. Method: that of one, against the other's recording.
#[test]
fn a_report_stands_for_its_recording() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("diff-report.json");
    std::fs::write(&path, quietcore(&["explain", BEFORE, "--json"]).stdout).expect("a file");
    let verdicts = verdicts(&path.to_string_lossy(), AFTER);
    assert_eq!(verdict(&verdicts, "foreign"), "less");
    assert_eq!(verdict(&verdicts, "rt_delay_max"), "unknown", "it was not recorded");
}

/// Goal: a person reads both values of what was recorded, and how much may be chance.
#[test]
fn a_person_reads_both_values() {
    let output = quietcore(&["diff", BEFORE, AFTER]);
    let page = text(&output.stdout);
    assert!(page.contains("kernel 6.12.107") && page.contains("kernel 6.19.14"), "{page}");
    let row = page.lines().find(|line| line.trim_start().starts_with("foreign ")).expect("a row");
    let words: Vec<_> = row.split_whitespace().collect();
    assert_eq!((words[1], words[2], words[4]), ("2.67/s", "0.00/s", "less"), "{row}");
    assert!(!page.contains("rt_delay"), "it is in neither: {page}");
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
}

/// Goal: what cannot be compared says why.
#[test]
fn what_cannot_be_compared_says_why() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("diff-other.json");
    std::fs::write(&path, "{\"schema\": 1}").expect("a file");
    let other = path.to_string_lossy().into_owned();
    for (inputs, sentence) in [
        (["-", AFTER], "diff reads its inputs twice; name two files"),
        ([&*other, AFTER], "no report of `quietcore explain --json` with figures to compare: missing field"),
        ([BEFORE, "no/such/file"], "no/such/file: No such file or directory"),
        ([BEFORE, "LICENSE-MIT"], "LICENSE-MIT: not a kernel trace"),
    ] {
        let output = quietcore(&["diff", inputs[0], inputs[1]]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(sentence) && output.stdout.is_empty(), "{said}");
    }
}
