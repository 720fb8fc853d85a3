//! `quietcore lab` as a user meets it: exit codes, streams, files, Ctrl-C.

use quietcore_lab::number;
use quietcore_sim::{Cost, CostTable};
use quietcore_testing::{has_two_cpus, left_out};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quietcore"));
    command.arg("lab").args(args).env("NO_COLOR", "1");
    command
}

fn lab(args: &[&str]) -> Output {
    command(args).output().expect("quietcore runs")
}

/// A folder of this test, empty.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("quietcore-lab-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Goal: what cannot be done is refused before anything runs, with a sentence that says what can. Method:
/// one of each kind.
#[test]
fn what_cannot_be_done_is_refused() {
    for (args, sentence) in [
        (
            &["no-such-row"][..],
            "possible values: mq-netem, oslat, enqueue, dbench, idle, cyclictest, blocked",
        ),
        (&["idle", "--span", "0s"], "from 10ms to 10m"),
        (&["idle", "--span", "-1s"], "unexpected argument"),
        (&["idle", "--span", "11m"], "from 10ms to 10m"),
        (&["idle", "--span", "5"], "is no time span"),
        (&["idle", "--rounds", "0"], "1..=1000"),
        (&["idle", "--rounds", "99999999999999999999"], "--rounds"),
        (&["idle", "--cpus", "4000,4001"], "may not run on CPU 4000"),
        (&["idle", "--cpus", "0"], "needs two CPUs"),
        (&["idle", "--cpus", "x"], "--cpus"),
        (&["oslat", "--html", "same", "--perfetto", "same"], "are the same file"),
        (&["--perfetto", "/no/such/folder/file"], "/no/such/folder/file"),
        (&["oslat", "--html", "/no/such/folder/file"], "/no/such/folder/file"),
        (&["oslat", "--html", "/dev/null"], "no regular file"),
        (&["predict", "idle"], "unexpected argument 'idle'"),
        (&["predict", "--costs", "no/such/file"], "no/such/file"),
        (&["predict", "--costs", "Cargo.toml"], "Cargo.toml:"),
        (&["predict", "--costs", "no/such/file", "--cpus", "4000,4001"], "may not run on CPU 4000"),
        (&["predict", "--costs", "a", "-o", "b"], "cannot be used with"),
        (&["predict", "--span", "1ms"], "from 10ms to 10m"),
    ] {
        let output = lab(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{args:?}: {output:?}");
        let said = text(&output.stderr);
        assert!(said.contains(sentence), "{args:?}: {said}");
    }
    assert!(!PathBuf::from("unwritten").exists() && !PathBuf::from("same").exists());
}

/// Goal: a row's text, JSON and files say the same run. Method: a round that is much too short.
#[test]
fn a_row_has_text_json_and_files() {
    if !has_two_cpus("a_row_has_text_json_and_files") {
        return;
    }
    let folder = folder("files");
    let (page, trace) = (folder.join("a.html"), folder.join("a.pftrace"));
    let short = ["oslat", "--span", "200ms", "--rounds", "1"];
    let files = ["--html", page.to_str().expect("UTF-8"), "--perfetto", trace.to_str().expect("UTF-8")];
    let output = lab(&[&short[..], &files[..]].concat());
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let shown = text(&output.stdout);
    assert!(shown.starts_with("quietcore lab oslat (measured)\n"), "{shown}");
    for part in [
        "    Duration:\t ",
        "exactly 0 with exclusion on",
        "Simulated (oslat-128.toml)",
        "Published elsewhere (isolation)",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("Interrupted"), "{shown}");
    let html = std::fs::read_to_string(&page).expect("it was written");
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"));
    assert!(html.contains("quietcore lab oslat --span 200ms --rounds 1"));
    let trace = std::fs::read(&trace).expect("it was written");
    assert_eq!(trace.first(), Some(&0x0a), "a Perfetto trace begins with a packet");
    let callback = b"driver work (oslat exclusion on, tid ";
    assert!(trace.windows(callback.len()).any(|bytes| bytes == callback), "a callback is in the trace");
    assert_eq!(std::fs::read_dir(&folder).expect("ours").count(), 2, "nothing else is left");
    std::fs::remove_dir_all(folder).expect("it is ours");
    let json = lab(&[&short[..], &["--json", "--no-sim"]].concat());
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((&value["schema"], &value["complete"]), (&3.into(), &true.into()));
    assert_eq!(value["quick"], false);
    let row = &value["rows"][0];
    assert_eq!((&row["experiment"], &row["rounds"]), (&"oslat".into(), &1.into()));
    assert_eq!(row["simulated"], serde_json::Value::Null);
    assert_eq!(row["variants"][2]["figures"][0]["rounds"], serde_json::json!([0.0]));
    // The lane of the first CPU sleeps; the last CPU is measured.
    let measured = row["cpus"].as_str().and_then(|cpus| cpus.rsplit(['-', ',']).next()).expect("a list");
    let lines = &row["variants"][2]["attachment"]["lines"];
    assert_eq!(lines[0], format!("        Core:\t {measured}"), "{lines}");
}

/// Goal: a quick run says that it is one and what runs it again, and leaves loads out. Method: the JSON of
/// two rounds of a row of loads.
#[test]
fn a_quick_run_says_so() {
    if !has_two_cpus("a_quick_run_says_so") {
        return;
    }
    let json = lab(&["dbench", "--quick", "--span", "60ms", "--rounds", "2", "--no-sim", "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((&value["complete"], &value["quick"]), (&true.into(), &true.into()));
    let row = &value["rows"][0];
    assert_eq!((&row["rounds"], &row["span_ms"]), (&2.into(), &60.into()));
    assert_eq!(row["command"], "quietcore lab dbench --quick --span 60ms --rounds 2");
    let figures = row["variants"][3]["figures"].as_array().expect("a list");
    let measured =
        figures.iter().filter(|figure| figure["rounds"].as_array().is_some_and(|all| all.len() == 2));
    let names: Vec<&str> = measured.filter_map(|figure| figure["name"].as_str()).collect();
    assert_eq!(names[..3], ["1 pair", "8 pairs", "128 pairs"], "{names:?}");
}

/// Goal: Ctrl-C ends a run in order: what was measured is printed, the report is written, the exit code is
/// 130. Method: all rows, interrupted when the second one begins.
#[test]
fn an_interrupted_run_prints_what_it_has() {
    if !has_two_cpus("an_interrupted_run_prints_what_it_has") {
        return;
    }
    let folder = folder("interrupted");
    let page = folder.join("a.html");
    let args = ["--span", "300ms", "--rounds", "2", "--no-sim", "--html", page.to_str().expect("UTF-8")];
    let mut child =
        command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("quietcore runs");
    let mut said = BufReader::new(child.stderr.take().expect("piped")).lines();
    let second = said.find(|line| line.as_ref().is_ok_and(|line| line.contains("(2 of ")));
    // Two rounds of three variants.
    let sentence = second.expect("it says which row begins").expect("UTF-8");
    assert_eq!(sentence, "quietcore: lab oslat (2 of 8), about 2 s");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is ours");
    let mut shown = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut shown).expect("UTF-8");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{shown}");
    assert!(shown.contains("mq-netem:") && !shown.contains("Simulated"), "{shown}");
    assert!(shown.ends_with("\n\nInterrupted: this is what was measured until then.\n"), "{shown}");
    let html = std::fs::read_to_string(&page).expect("it was written");
    assert!(html.contains("Interrupted"));
    assert_eq!(std::fs::read_dir(&folder).expect("ours").count(), 1, "nothing else is left");
    std::fs::remove_dir_all(folder).expect("it is ours");
}

/// Goal: predictions are said before anything is measured, and the report has both. Method: the project's
/// costs, so that nothing is calibrated, and rounds that are much too short.
#[test]
fn predictions_come_first() {
    if !has_two_cpus("predictions_come_first") {
        return;
    }
    let costs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/costs.toml");
    let args = ["predict", "--costs", costs, "--span", "60ms", "--rounds", "1", "--json"];
    let output = lab(&args);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = text(&output.stderr);
    assert_eq!(said.matches("quietcore: predicted, ").count(), 10, "{said}");
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let predictions = value["predictions"].as_array().expect("a list");
    assert_eq!(predictions.len(), 10);
    for one in predictions {
        let (of, word) =
            (number(one["predicted"].as_f64().expect("a figure")), |key: &str| one[key].as_str());
        let of = [word("question"), word("what"), Some(&format!("{of} {}", word("unit").expect("a unit")))];
        let sentence = of.map(|part| part.expect("a text")).join(": ");
        assert!(said.contains(&format!("quietcore: predicted, {sentence}\n")), "{sentence}: {said}");
        let live = &one["measured"];
        assert!(one["predicted"].as_f64().is_some_and(|value| value > 0.0), "{one}");
        assert_eq!(live["within"] == true, live["reason"].is_null(), "{one}");
    }
}

/// Goal: costs are frozen in a file before anything is predicted; Ctrl-C ends the run in order, with what was
/// predicted as text. Method: costs of this machine, stopped when the first measurement is about to begin.
#[test]
fn interrupted_predictions_are_printed() {
    if !has_two_cpus("interrupted_predictions_are_printed") {
        return;
    }
    let folder = folder("frozen");
    let file = folder.join("costs.toml");
    let args = ["predict", "-o", file.to_str().expect("UTF-8"), "--span", "300ms"];
    let mut child =
        command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("quietcore runs");
    let said = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut lines = Vec::new();
    for line in said.map(|line| line.expect("UTF-8")) {
        lines.push(line);
        if lines.iter().filter(|line| line.starts_with("quietcore: predicted, ")).count() == 10 {
            break;
        }
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is ours");
    let mut shown = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut shown).expect("UTF-8");
    let code = child.wait().expect("it ends").code();
    if lines.iter().any(|line| line.contains("not one sample of it")) {
        return left_out("interrupted_predictions_are_printed", lines.join("; "));
    }
    assert_eq!((code, &lines[0][..]), (Some(130), "quietcore: calibrating: some seconds"), "{lines:?}");
    assert!(shown.starts_with("quietcore lab predict (simulated first, then measured)\n"), "{shown}");
    assert!(shown.ends_with("Interrupted: this is what was measured until then.\n"), "{shown}");
    let written = std::fs::read_to_string(&file).expect("it was written");
    let costs = CostTable::parse(&file, &written).expect("a file of costs");
    for cost in Cost::ALL {
        let ns = costs.get(cost).expect("all are measured").ns;
        assert!(shown.contains(&format!("\n  {:<16} {ns:>10.1}  ", cost.name())), "{}: {shown}", cost.name());
    }
    std::fs::remove_dir_all(folder).expect("it is ours");
}

/// Goal: the costs of this machine are shown, or said to be missing, and written as a file that says the
/// same; as JSON, too. Method: twice, with a file and without.
#[test]
fn costs_are_shown_and_written() {
    if !has_two_cpus("costs_are_shown_and_written") {
        return;
    }
    let folder = folder("costs");
    let file = folder.join("costs.toml");
    let output = Command::new(env!("CARGO_BIN_EXE_quietcore"))
        .args(["calibrate", "-o", file.to_str().expect("UTF-8")])
        .output()
        .expect("quietcore runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let shown = text(&output.stdout);
    let written = std::fs::read_to_string(&file).expect("it was written");
    let costs = CostTable::parse(&file, &written).expect("a file of costs");
    assert!(shown.starts_with("\nCosts of this machine, in ns: median"), "{shown}");
    for cost in Cost::ALL {
        let row = costs.get(cost).map(|value| format!("\n  {:<16} {:>9.1}  ", cost.name(), value.ns));
        let row = row.unwrap_or_else(|| format!("\n  note                        {}: not one", cost.name()));
        assert!(shown.contains(&row), "{row}: {shown}");
    }
    let json = Command::new(env!("CARGO_BIN_EXE_quietcore"))
        .args(["calibrate", "--json"])
        .output()
        .expect("quietcore runs");
    assert_eq!(json.status.code(), Some(0), "{json:?}");
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    for cost in Cost::ALL {
        let is_there = value["values"][cost.name()]["ns"].is_number();
        let is_missing = text(&json.stderr).contains(&format!("quietcore: {}: not one", cost.name()));
        assert!(is_there != is_missing, "{}: {json:?}", cost.name());
    }
    std::fs::remove_dir_all(folder).expect("it is ours");
}
