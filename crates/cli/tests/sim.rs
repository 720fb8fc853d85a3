//! `quietcore sim` as a user meets it: exit codes, streams, files.

use std::path::PathBuf;
use std::process::{Command, Output};

fn quietcore(args: &[&str]) -> Output {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_quietcore"));
    command.args(args).current_dir(root).env("NO_COLOR", "1").output().expect("quietcore runs")
}

/// A folder of this test, empty.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("quietcore-sim-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    folder
}

/// Goal: 0 what was expected holds, 1 it does not, 2 an error. Method: one scenario of each kind.
#[test]
fn exit_codes_say_what_happened() {
    let folder = folder("codes");
    let write = |name: &str, expect: &str| {
        let path = folder.join(name);
        let text = format!("duration = \"5ms\"\n[machine]\ncpus = 2\n[expect]\nevery = [{expect:?}]\n");
        std::fs::write(&path, text).expect("a temporary file");
        path.display().to_string()
    };
    let (holds, fails) = (write("holds.toml", "arms = 0"), write("fails.toml", "arms = 1"));
    let wrong = write("wrong.toml", "arms = armies");
    for (args, code) in [
        (vec!["sim", &holds], 0),
        (vec!["sim", &holds, "--seed", "9", "--sensitivity"], 0),
        (vec!["sim", &holds, "--duration", "2s"], 0),
        (vec!["sim", &holds, "--duration", "2"], 2),
        (vec!["sim", &holds, "--duration", "0s"], 2),
        (vec!["sim", &holds, "--duration", "3601s"], 2),
        (vec!["sim", &fails], 1),
        (vec!["sim", &fails, "--exit-zero"], 0),
        (vec!["sim", &wrong], 2),
        (vec!["sim", &holds, "--perfetto", "no/such/folder/x"], 2),
        (vec!["sim", "no/such/file"], 2),
        (vec!["sim"], 2),
        (vec!["sim", "--runtimes", "2"], 0),
        (vec!["sim", "--runtimes", "2", "--duration", "1s"], 2),
        (vec!["sim", &holds, "--runtimes", "2"], 2),
    ] {
        let output = quietcore(&args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
    }
    let unwritten = String::from_utf8(quietcore(&["sim", &holds, "--perfetto", "no/such/folder/x"]).stderr);
    assert!(unwritten.expect("UTF-8").contains("no/such/folder/x"));
    let replaced = quietcore(&["sim", &holds, "--seed", "9", "--duration", "2500ms", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&replaced.stdout).expect("JSON");
    let run = &json["variants"][0]["figures"];
    assert_eq!((&json["seed"], &run["duration_ns"]), (&9.into(), &2_500_000_000_u64.into()));
    let refused = String::from_utf8(quietcore(&["sim", &wrong]).stderr).expect("UTF-8");
    assert!(refused.contains("wrong.toml:5: every: there is no figure \"armies\""), "{refused}");
    std::fs::remove_dir_all(folder).expect("it is ours");
}

/// Goal: no figure can be taken for a measurement, and nothing is run that was not asked for. Method: text
/// and JSON of a scenario of the project.
#[test]
fn figures_are_called_simulated() {
    let text = quietcore(&["sim", "scenarios/stall.toml", "--exit-zero"]).stdout;
    let text = String::from_utf8(text).expect("UTF-8");
    assert!(text.starts_with("quietcore sim scenarios/stall.toml (simulated)\n"), "{text}");
    assert!(!text.contains("How much depends"), "{text}");
    assert!(text.ends_with("expectations hold\n"), "{text}");
    let json =
        String::from_utf8(quietcore(&["sim", "scenarios/stall.toml", "--json"]).stdout).expect("UTF-8");
    assert!(json.starts_with("{\n  \"simulated\": true,"), "{}", &json[..60]);
}

/// Goal: real-time threads are shown in the lines that cyclictest prints, per variant, and sensitivity is
/// about what the scenario names. Method: the project's scenario, shortened.
#[test]
fn threads_are_shown_as_cyclictest_does() {
    let args = ["sim", "scenarios/cyclictest.toml", "--duration", "500ms", "--sensitivity", "--exit-zero"];
    let text = String::from_utf8(quietcore(&args).stdout).expect("UTF-8");
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("T: ")).collect();
    assert_eq!(lines.len(), 4 * 8, "{text}");
    let words: Vec<&str> = lines[7].split_whitespace().collect();
    assert_eq!(words[..2], ["T:", "7"], "{}", lines[7]);
    for key in ["P:99", "I:4500", "C:", "Min:", "Act:", "Avg:", "Max:"] {
        assert!(words.contains(&key), "{key}: {}", lines[7]);
    }
    let sensitivity = text.split("How much depends").nth(1).expect("it was asked for");
    assert!(sensitivity.contains("rt_latency_p99") && !sensitivity.contains("idle_spans"), "{sensitivity}");
}

/// Goal: each variant's events are a file that begins as a Perfetto trace; where the name is that of what is
/// no file, none is written beside it. Method: a scenario with two variants, to a file and to a socket.
#[test]
fn each_variant_has_its_perfetto_file() {
    let folder = folder("perfetto");
    let scenario = folder.join("two.toml");
    let text = "duration = \"9ms\"\n[machine]\ncpus = 2\n[variants]\npolicy = [\"pull\", \"stay\"]\n\
                [[load.periodic]]\ncpus = \"all\"\nperiod = \"1ms\"\n";
    std::fs::write(&scenario, text).expect("a temporary file");
    let out = folder.join("out.pftrace");
    let ran = quietcore(&["sim", &scenario.display().to_string(), "--perfetto", &out.display().to_string()]);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    for name in ["out-pull.pftrace", "out-stay.pftrace"] {
        let bytes = std::fs::read(folder.join(name)).expect(name);
        assert!(bytes.first() == Some(&0x0a) && bytes.windows(8).any(|word| word == b"periodic"), "{name}");
    }
    let socket = folder.join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let refused =
        quietcore(&["sim", &scenario.display().to_string(), "--perfetto", &socket.display().to_string()]);
    let said = String::from_utf8(refused.stderr).expect("UTF-8");
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("socket") && !folder.join("socket-pull").exists(), "{said}");
    std::fs::remove_dir_all(folder).expect("it is ours");
}

/// Goal: random runtimes are played from the seed that was asked for, and said to be simulated. Method: two
/// of them as JSON, and one of the two alone.
#[test]
fn runtimes_are_played_from_a_seed() {
    let json = |args: &[&str]| -> serde_json::Value {
        let output = quietcore(&[&["sim", "--json", "--runtimes"], args].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let (both, second) = (json(&["2", "--seed", "7"]), json(&["1", "--seed", "8"]));
    assert_eq!((&both["simulated"], &both["failure"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!((&both["first_seed"], &both["runs"], &second["runs"]), (&7.into(), &2.into(), &1.into()));
    let events = |of: &serde_json::Value| of["events"].as_u64().expect("a number");
    assert!(events(&second) > 0 && events(&both) > events(&second));
}
