//! Input of others and the terminal: a recording, a scenario, a script of tc, a copied host and names of
//! files that are full of characters that steer a terminal.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A title, a colour, a turned text, an isolate, marks of direction, a line separator, a return, a deletion.
const HOSTILE: &str = "\u{1b}]0;pwn\u{7}\u{9b}31m\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}\r\u{7f}";

/// The same in a string of TOML, where control characters must be escaped.
const HOSTILE_TOML: &str = r"\u001b]0;pwn\u0007\u009b31m\u202e\u2066\u200f\u061c\u2028\r\u007f";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("quietcore-hostile-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    /// A file below it whose name is hostile as well; folders are made.
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name.replace("NAME", HOSTILE));
        fs::create_dir_all(path.parent().expect("below the folder")).expect("a folder");
        fs::write(&path, content).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn quietcore(args: &[&OsStr]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quietcore")).args(args).output().expect("quietcore runs")
}

/// `verb FILE OPTIONS` prints nothing that steers a terminal, and says all of `expected`.
fn assert_harmless(verb: &str, file: &Path, options: &[&str], expected: &[&str]) {
    let words = verb.split(' ').map(OsStr::new).chain([file.as_os_str()]);
    let args: Vec<&OsStr> = words.chain(options.iter().map(OsStr::new)).collect();
    let output = quietcore(&args);
    let said = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    let what = format!("quietcore {verb} {options:?}");
    assert_text(&what, &said);
    let said = String::from_utf8_lossy(&said);
    for words in expected {
        assert!(said.contains(words), "{what}: no {words:?} in {said:?}");
    }
    assert!(matches!(output.status.code(), Some(0..=2)), "{what}: {:?}: {said:?}", output.status);
}

fn assert_text(what: &str, bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap_or_else(|error| panic!("{what}: {error}: {bytes:?}"));
    for (at, letter) in text.char_indices() {
        let is_control =
            matches!(u32::from(letter), 0..0x20 | 0x7f..0xa0) && letter != '\n' && letter != '\t';
        let is_direction =
            matches!(u32::from(letter), 0x61c | 0x200e | 0x200f | 0x2028..=0x202e | 0x2066..=0x2069);
        assert!(!is_control && !is_direction, "{what}: {letter:?} at byte {at} of {text:?}");
    }
}

/// A recording with hostile names of tasks, functions and events, headers, and lines that are none.
fn recording() -> String {
    let mut text = String::from(
        "# trace: NAME\n# kernel: Linux NAME, HZ=1000\n# load: NAME\n# isolated: 1\n# cpus: 0-3\n\
         #NAME: NAME\ncpus=4\n",
    );
    for number in 1..20 {
        let at = format!("1.{:06}", number * 1000);
        text += &format!(
            "  NAME-7 [000] d..1. {at}: timer_start: timer=0a{number:02} function=NAME expires={number} [timeout=1] \
             cpu=0 idx={number} flags=NAME\n  NAME-9 [001] ..s1. {at}: timer_expire_entry: timer=0a{number:02} \
             function=NAME now=10 baseclk=10\n  NAME-9 [001] ..s1. {at}: timer_expire_exit: timer=0a{number:02}\n"
        );
    }
    text += "  NAME-7 [000] d..1. 2.000000: timer_start: timer=NAME function=NAME\n  a-7 [000] d..1. 2.000001: \
             eNAMEil: x\n  NAME-7 [NAME] d..1. 2.000002: timer_cancel: timer=1\nlorem NAME\nCPU:NAME [LOST NAME]\n";
    text.replace("NAME", HOSTILE)
}

/// Goal: no recording steers the terminal. Method: each verb that reads one, as text and as JSON; its name is
/// hostile, too.
#[test]
fn a_recording_cannot_steer_the_terminal() {
    let folder = Folder::new("recording");
    let trace = folder.file("NAME.txt", recording());
    for options in [&["--isolated", "1"][..], &["--isolated", "1", "--json"]] {
        assert_harmless("explain", &trace, options, &["timer"]);
    }
    for options in [&[][..], &["--json"]] {
        assert_harmless("verify", &trace, options, &["mismatch"]);
    }
    for options in [&["--policy", "push", "--isolated", "1", "--kernel", "6.12"][..], &["--policy", "stay"]] {
        assert_harmless("whatif", &trace, options, &[]);
    }
    let metrics = folder.0.join("m.prom");
    let options = ["--isolated", "1", "--openmetrics", metrics.to_str().unwrap()];
    assert_harmless("explain", &trace, &options, &[]);
    let metrics = fs::read(&metrics).unwrap();
    assert_text("OpenMetrics", &metrics);
    assert!(metrics.windows(3).any(|bytes| bytes == "\u{fffd}".as_bytes()), "no hostile name is in them");
}

/// Goal: no file's name steers the terminal when something is wrong with the file. Method: a missing, an
/// unreadable and a compressed one, and places that cannot be written.
#[test]
fn a_name_cannot_steer_the_terminal() {
    let folder = Folder::new("names");
    let missing = folder.0.join(HOSTILE);
    let words = folder.file("NAME.words", "lorem ipsum\n");
    let binary = folder.file("NAME $(id).dat", b"\x17\x08\x44tracing6\0\x01\x08");
    for verb in ["explain", "verify", "cat", "sim", "lab predict --costs", "doctor --root", "tc -b"] {
        assert_harmless(verb, &missing, &[], &[]);
        assert_harmless(verb, &words, &[], &[]);
    }
    for verb in ["explain", "verify", "cat", "whatif --policy pull"] {
        assert_harmless(verb, &binary, &[], &["trace-cmd report -i '", "$(id).dat'"]);
    }
    let trace = folder.file("trace.txt", recording());
    let nowhere = missing.join("x");
    for option in ["--openmetrics", "--perfetto"] {
        let options = ["--isolated", "1", option, nowhere.to_str().unwrap()];
        assert_harmless("explain", &trace, &options, &["writing"]);
    }
    for option in ["--isolated", "--max-identities", "--kernel", HOSTILE] {
        assert_harmless("explain", &trace, &[option, HOSTILE], &[]);
    }
    assert_harmless(HOSTILE, &trace, &[], &[]);
}

/// Goal: no scenario steers the terminal, one that runs and one that is refused. Method: hostile texts and
/// keys in TOML.
#[test]
fn a_scenario_cannot_steer_the_terminal() {
    let folder = Folder::new("scenario");
    let scenario = |name: &str, variants: &str, more: &str| {
        let text = format!(
            "about=\"x NAME\"\nseed=4\nduration=\"100ms\"\n{more}\n[machine]\ncpus=2\n[variants]\n{variants}\n\
             [[load.sleeper]]\ncpus=\"all\"\nrun=\"30us\"\nsleep=\"10ms\"\n"
        );
        folder.file(name, text.replace("NAME", HOSTILE_TOML))
    };
    let good = scenario("NAME.toml", "policy=[\"pull\"]", "");
    for options in [&[][..], &["--json"]] {
        assert_harmless("sim", &good, options, &["x "]);
    }
    for (variants, more) in [
        ("policy=[\"NAME\"]", ""),
        ("policy=[\"pull\"]", "costs=\"NAME\""),
        ("policy=[\"pull\"]", "\"NAME\"=1"),
        ("\"NAME\"=[\"pull\"]", ""),
    ] {
        assert_harmless("sim", &scenario("bad.toml", variants, more), &[], &["bad.toml"]);
    }
    let raw = folder.file("raw.toml", format!("about={HOSTILE}\n{HOSTILE}\n"));
    assert_harmless("sim", &raw, &[], &["raw.toml"]);
    assert_harmless("lab predict --costs", &raw, &[], &["raw.toml"]);
}

/// Goal: no line of tc steers the terminal. Method: hostile words at each place, in a script and typed.
#[test]
fn a_line_of_tc_cannot_steer_the_terminal() {
    let folder = Folder::new("tc");
    for line in [
        "qdisc add dev NAME root fq",
        "qdisc add dev a parent NAME: fq",
        "NAME NAME",
        "qdisc add dev a root NAME",
    ] {
        let line = line.replace("NAME", HOSTILE);
        let script = folder.file("NAME.tc", format!("{line}\n"));
        assert_harmless("tc -b", &script, &[], &[]);
        let words: Vec<&OsStr> = std::iter::once("tc").chain(line.split(' ')).map(OsStr::new).collect();
        let output = quietcore(&words);
        assert_text(&line, &[output.stdout, output.stderr].concat());
    }
}

/// Goal: no copy of a host steers the terminal. Method: hostile values, and hostile names of its groups.
#[test]
fn a_copied_host_cannot_steer_the_terminal() {
    let folder = Folder::new("host");
    for (path, text) in [
        ("proc/cmdline", "isolcpus=NAME,1 nohz_full=NAME quiet NAME\n"),
        ("proc/sys/kernel/osrelease", "6.12.NAME\n"),
        ("proc/version", "Linux NAME\n"),
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("sys/devices/system/cpu/possible", "NAME\n"),
        ("sys/devices/system/cpu/isolated", "1-2\n"),
        ("sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n"),
        ("sys/fs/cgroup/NAME/cpuset.cpus.partition", "isolated invalid (NAME)\n"),
        ("sys/fs/cgroup/NAME/cpu.max", "NAME 100000\n"),
    ] {
        folder.file(&format!("root/{path}"), text.replace("NAME", HOSTILE));
    }
    for options in [&[][..], &["--json"]] {
        assert_harmless("doctor --root", &folder.0.join("root"), options, &["\u{fffd}"]);
    }
}
