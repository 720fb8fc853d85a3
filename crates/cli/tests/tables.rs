//! `quietcore export` and `quietcore sweep` as a user meets them: files, exit codes, what is left behind.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn quietcore(args: &[&str]) -> Output {
    let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut quietcore = Command::new(env!("CARGO_BIN_EXE_quietcore"));
    let quietcore = quietcore.args(args).current_dir(repository).env("NO_COLOR", "1").stdin(Stdio::null());
    quietcore.output().expect("quietcore runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("our output is UTF-8")
}

/// An empty folder of this name.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("tables-{name}"));
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("it is ours");
    }
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

fn is_parquet(file: &Path) -> bool {
    let bytes = std::fs::read(file).expect("a file");
    bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1")
}

/// Goal: the three tables appear, with as many rows as the recording has events, and as many timers as ran.
/// Method: a bundled recording into a new folder, beside its explanation.
#[test]
fn a_recording_becomes_three_tables() {
    let folder = folder("export").join("new");
    let path = folder.to_str().expect("text");
    let output = quietcore(&["export", "@g612-c16-iso", "--parquet", path, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let explained = quietcore(&["explain", "recordings/g612-c16-iso.txt.zst", "--json"]);
    let explained: Value = serde_json::from_slice(&explained.stdout).expect("JSON");
    let rows: Vec<_> = json["files"].as_array().expect("a list").iter().map(|file| &file["rows"]).collect();
    assert_eq!(rows[..2], [&explained["events"], &explained["timers"]["expired"]]);
    assert_eq!(names(&folder), ["disturbances.parquet", "events.parquet", "timers.parquet"]);
    assert!(names(&folder).iter().all(|name| is_parquet(&folder.join(name))));
    let shown = text(&quietcore(&["export", "@g612-c16-iso", "--parquet", path]).stdout);
    assert!(shown.contains("1999 rows") && shown.contains("timers.parquet"), "{shown}");
}

/// Goal: of an input without an answer nothing is left, and a folder that was there stays. Method: no such
/// recording, one without events, one that ends in the middle of its compression; a new folder and an old.
#[test]
fn of_an_error_nothing_is_left() {
    let folder = folder("errors");
    let (empty, cut) = (folder.join("empty.txt"), folder.join("cut.txt.zst"));
    std::fs::write(&empty, "# nothing\n").expect("a file");
    let whole = std::fs::read("../../recordings/g612-c16-iso.txt.zst").expect("a recording");
    std::fs::write(&cut, &whole[..whole.len() / 2]).expect("a file");
    let old = folder.join("old");
    std::fs::create_dir(&old).expect("a folder");
    for trace in ["@none", empty.to_str().expect("text"), cut.to_str().expect("text")] {
        for (name, is_there) in [("new", false), ("old", true)] {
            let into = folder.join(name);
            let output = quietcore(&["export", trace, "--parquet", into.to_str().expect("text")]);
            assert_eq!(output.status.code(), Some(2), "{trace}: {}", text(&output.stderr));
            assert_eq!(into.exists(), is_there, "{trace} into {name}");
        }
        assert_eq!(names(&old), Vec::<String>::new(), "{trace}");
    }
}

/// Goal: a sweep is the same on any number of threads, byte for byte, and says what it ran. Method: a grid
/// of four with five seeds, on one thread and on four.
#[test]
fn a_sweep_is_the_same_on_any_number_of_threads() {
    let folder = folder("sweep");
    let run = |threads: &str| {
        let file = folder.join(format!("{threads}.parquet"));
        let grid = ["--set", "duration=20ms,30ms", "--set", "cpus=24,32", "--seeds", "1..5"];
        let more = ["--threads", threads, "--json", "-o", file.to_str().expect("text")];
        let output = quietcore(&[&["sweep", "@hotplug-storm"], &grid[..], &more[..]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(
            (&json["runs"], &json["rows"], &json["simulated"]),
            (&20.into(), &60.into(), &true.into())
        );
        std::fs::read(file).expect("a file")
    };
    let (one, four) = (run("1"), run("4"));
    assert!(one == four, "{} and {} bytes", one.len(), four.len());
}

/// Goal: nothing is run of a sweep with a mistake, and the sentence says which keys there are. Method: an
/// unknown key, a value that cannot be, a file that cannot be written.
#[test]
fn a_sweep_with_a_mistake_is_refused() {
    let file = folder("refused").join("x.parquet");
    let refused = |args: &[&str]| {
        let output =
            quietcore(&[&["sweep", "@hotplug-storm", "-o", file.to_str().expect("text")], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!file.exists(), "{args:?}");
        text(&output.stderr)
    };
    let unknown = refused(&["--set", "cpuz=8"]);
    assert!(unknown.contains("cpuz: no such key; there are duration, cpus, nodes"), "{unknown}");
    assert!(refused(&["--set", "cpus=24,many"]).contains("(with cpus=many)"));
    assert!(refused(&["--seeds", "9..1"]).contains("as 1..100"));
    assert!(refused(&["--set", "policy=pull"]).contains("[variants]"));
}
