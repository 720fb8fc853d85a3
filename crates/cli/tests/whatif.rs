//! `quietcore whatif` as a user meets it: exit codes, what is said about bad input, the text, the JSON.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Runs `quietcore whatif` in the repository's root, without colours, with `input` as standard input.
fn whatif(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_quietcore"))
        .arg("whatif")
        .args(args)
        .current_dir(repository())
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("quietcore runs");
    // The child may refuse the input before it is all written; that is its right.
    let _ = std::io::Write::write_all(&mut child.stdin.take().expect("piped"), input);
    child.wait_with_output().expect("quietcore ends")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("our output is UTF-8")
}

const ISO: &str = "recordings/g612-c16-iso.txt.zst";

/// Goal: 0 answered, 2 an error; a wrong question is one.
#[test]
fn exit_codes_say_what_happened() {
    for (args, code) in [
        (vec![ISO, "--exclude", "1-7,9-15"], 0),
        (vec![ISO, "--policy", "push", "--json"], 0),
        (vec!["recordings/g61-c16-iso.txt.zst", "--policy", "pull"], 0),
        (vec!["recordings/g612-c4-levels.txt.zst", "--policy", "stay"], 0),
        (vec![ISO], 2),
        (vec![ISO, "--policy", "shove"], 2),
        (vec![ISO, "--exclude", "7-3"], 2),
        (vec![ISO, "--exclude", "0-15"], 2),
        (vec![ISO, "--keep-awake", "16"], 2),
        (vec![ISO, "--kernel", "six", "--policy", "pull"], 2),
        (vec!["no/such/file", "--policy", "pull"], 2),
        (vec!["LICENSE-MIT", "--policy", "pull"], 2),
        (vec!["recordings/trace-cmd-618-c2.txt.zst", "--policy", "pull"], 2),
    ] {
        let output = whatif(&args, b"");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "quietcore whatif {args:?}: {said}");
        assert!(!said.contains("panicked"), "{args:?}: {said}");
    }
}

/// Goal: an error names the input and the remedy.
#[test]
fn errors_name_the_input_and_the_remedy() {
    let said = |args: &[&str], input: &[u8]| text(&whatif(args, input).stderr);
    let line = b"  a-7 [001] d..2. 1.000000: timer_start: timer=1 function=f expires=9 [timeout=1] cpu=1 idx=1 flags=\n";
    let pull = ["-", "--policy", "pull"];
    let isolated = said(&pull, line);
    assert!(isolated.starts_with("quietcore: -: ") && isolated.contains("--isolated 1-7,9-15"), "{isolated}");
    let with = |more: &[&'static str]| [&pull[..], more].concat();
    let tick = said(&with(&["--isolated", "none"]), line);
    assert!(tick.contains("-: ") && tick.contains("HZ="), "{tick}");
    let kernel = [b"# kernel: HZ=250\n".as_slice(), line].concat();
    let kernel = said(&with(&["--isolated", "1"]), &kernel);
    assert!(kernel.contains("-: ") && kernel.contains("--kernel 6.12"), "{kernel}");
    let arms = said(&with(&["--isolated", "1"]), b"  a-7 [001] d..2. 1.000000: timer_cancel: timer=1\n");
    assert!(arms.contains("no timer_start event"), "{arms}");
    let list = said(&pull, &[b"# isolated: 1-9000; nohz_full: -\n".as_slice(), line].concat());
    assert!(list.contains("1-9000") && list.contains("--isolated LIST"), "{list}");
    let absent = said(&[ISO, "--keep-awake", "0,16"], b"");
    assert!(absent.contains(ISO) && absent.contains("16") && absent.contains("0 to 15"), "{absent}");
    let nobody = said(&[ISO, "--exclude", "0-15"], b"");
    assert!(nobody.contains(ISO) && nobody.contains("leave out at least one CPU fewer"), "{nobody}");
    let clock =
        b"# kernel: Linux 6.12.1, HZ=250\n  a-7 [001] d..2. 17: timer_start: timer=1 function=f expires=9 \
                  [timeout=1] cpu=1 idx=1 flags=\n";
    let clock = said(&with(&["--isolated", "1"]), clock);
    assert!(clock.contains("trace_clock mono"), "{clock}");
}

/// Goal: what a recorder caught while it switched its events on is not replayed. Method: two timers, the
/// first one before all events were on.
#[test]
fn what_comes_before_all_events_are_on_is_not_replayed() {
    let start = |at: u64, timer: u64| {
        format!(
            "  a-7 [001] d..2. {at}.000000: timer_start: timer={timer} function=f expires={} \
             [timeout=9] cpu=1 idx=1 flags=\n",
            1009 + 250 * at
        )
    };
    let pending = |header: &str| {
        let starts = start(1, 1) + &start(2, 2);
        let recording = format!("# kernel: Linux 6.12.1, HZ=250\n{header}{starts}");
        let output = whatif(&["-", "--policy", "stay", "--isolated", "0", "--json"], recording.as_bytes());
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let count = |place| answer.pointer(place).and_then(serde_json::Value::as_u64).expect("a count");
        (count("/recorded/timers/started"), count("/after/pending") + count("/after/expired"))
    };
    assert_eq!(pending(""), (2, 2));
    assert_eq!(pending("# whole from: 1.000000001\n"), (1, 1));
}

/// Goal: the text has the table, the CPUs, and every assumption, within 100 columns. Method: one question of
/// each kind.
#[test]
fn the_text_has_before_after_and_the_assumptions() {
    for question in [["--exclude", "1-7,9-15"], ["--keep-awake", "0"], ["--policy", "push"]] {
        let shown = text(&whatif(&[&[ISO], &question[..]].concat(), b"").stdout);
        for line in shown.lines() {
            assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
        }
        let row = shown.lines().find(|line| line.contains("foreign timers on isolated CPUs"));
        let cells: Vec<&str> = row.expect("a row").split_whitespace().rev().take(3).collect();
        assert_eq!(cells[2], "74", "{question:?}: recorded");
        assert!(cells[1].parse::<u64>().is_ok_and(|before| before > 60), "{question:?}: {cells:?}");
        let after = cells[0].parse::<u64>().expect("a count");
        assert_eq!(after == 0, question[0] != "--keep-awake", "{question:?}: {cells:?}");
        assert!(shown.contains("How far \"before\" is what was recorded"), "{shown}");
        let json = whatif(&[&[ISO, "--json"], &question[..]].concat(), b"");
        let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
        let said = json["assumptions"].as_array().expect("a list");
        assert!(said.len() >= 7, "{said:?}");
        let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        for sentence in said {
            assert!(flat.contains(sentence.as_str().expect("a sentence")), "{sentence} is not in the text");
        }
    }
}

/// Goal: every figure of a real recording stands in its place. Method: a snapshot; one CPU takes no part,
/// another never sleeps.
#[test]
fn the_text_of_an_answer_is_as_reviewed() {
    let question = [ISO, "--policy", "pull", "--exclude", "12", "--keep-awake", "0"];
    insta::assert_snapshot!("whatif", text(&whatif(&question, b"").stdout));
}

/// Goal: lost events are said, and of many CPUs the first are shown. Method: CPU 0 arms, each of 26 isolated
/// CPUs runs one, after a mark of lost events.
#[test]
fn losses_and_further_cpus_are_said() {
    let timer = |cpu: u32| {
        format!(
            "a-8 [000] d..2. 1.000000: timer_start: timer={cpu} function=f expires=1001 [timeout=1] cpu=0 \
             idx=1 flags=\n\
             b-9 [{cpu:03}] d..2. 1.004000: timer_expire_entry: timer={cpu} function=f now=1001 baseclk=1001\n"
        )
    };
    let head = "# kernel: Linux 6.12.1, HZ=250\n# isolated: 1-26; nohz_full: -\nCPU:0 [LOST 3 EVENTS]\n";
    let timers: String = (1..=26).map(timer).collect();
    let shown = text(&whatif(&["-", "--policy", "stay"], [head, &timers].concat().as_bytes()).stdout);
    assert!(shown.contains("\n  recorded   52 events, 3 LOST\n  INCOMPLETE "), "{shown}");
    assert!(shown.contains("\n  24                1          0          0 "), "{shown}");
    assert!(shown.contains("\n  and 2 more; --json has all of them\n"), "{shown}");
}

/// Goal: what was not recorded is no number, beside replays that have one. Method: CPU 0 arms a timer and
/// goes idle, CPU 1 is isolated and busy; the recording has no expiries.
#[test]
fn what_was_not_recorded_is_no_number() {
    let (late, soon) = ("expires=9999 [timeout=8999] cpu=1", "expires=1009 [timeout=9] cpu=0");
    let input = format!(
        "# kernel: Linux 6.12.1, HZ=250\n# isolated: 1; nohz_full: -\n\
         a-9 [001] d..2. 1.000000: timer_start: timer=02 function=g {late} idx=1 flags=\n\
         a-8 [000] d..2. 1.000100: timer_start: timer=01 function=f {soon} idx=1 flags=\n\
         b-0 [000] d..2. 1.000200: timer_base_idle: is_idle=1 cpu=0\n\
         a-9 [001] d..2. 1.100000: timer_cancel: timer=02\n"
    );
    let shown = text(&whatif(&["-", "--policy", "stay"], input.as_bytes()).stdout);
    let row = |name: &str| {
        let line = shown.lines().find(|line| line.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("no {name} in {shown}"))
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(row("foreign timers"), "foreign timers on isolated CPUs - 1 0");
    assert!(row("1 ").starts_with("1 - 1 0 "), "{shown}");
    assert_eq!(row("same CPU"), "same CPU not known: no expiry was recorded");
}

/// Goal: of CPUs with as many foreign timers the lowest is named, and one with more before it. Method: CPU 0
/// arms, the isolated CPUs 1 and 2 each run one, then CPU 2 a second.
#[test]
fn the_lowest_of_equals_is_named() {
    let timer = |number: u32, cpu: u32| {
        format!(
            "a-8 [000] d..2. 1.000000: timer_start: timer={number} function=f expires=1001 [timeout=1] cpu=0 \
             idx=1 flags=\n\
             b-9 [00{cpu}] d..2. 1.004000: timer_expire_entry: timer={number} function=f now=1001 baseclk=1001\n"
        )
    };
    let most = |timers: &[String]| {
        let head = "# kernel: Linux 6.12.1, HZ=250\n# isolated: 1-2; nohz_full: -\n";
        let input = [head, &timers.concat()].concat();
        let shown = text(&whatif(&["-", "--policy", "stay"], input.as_bytes()).stdout);
        let line = shown.lines().find(|line| line.contains("most of them on"));
        line.unwrap_or_else(|| panic!("{shown}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (one, two, more) = (timer(1, 1), timer(2, 2), timer(3, 2));
    assert_eq!(most(&[one.clone(), two.clone()]), "most of them on CPU 1: 1 - -");
    assert_eq!(most(&[one, two, more]), "most of them on CPU 2: 2 - -");
}

/// Goal: every key is documented, and what explain counts has explain's names and numbers.
#[test]
fn the_json_has_the_documented_keys_and_explains_numbers() {
    let documented = std::fs::read_to_string(repository().join("docs/reference/whatif.md")).expect("docs");
    let output = whatif(&[ISO, "--keep-awake", "0,8", "--json"], b"");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for object in [&json, &json["recorded"], &json["after"], &json["agreement"]] {
        for key in object.as_object().expect("an object").keys() {
            assert!(documented.contains(key.as_str()), "{key} is not in docs/reference/whatif.md");
        }
    }
    let explained = Command::new(env!("CARGO_BIN_EXE_quietcore"))
        .args(["explain", ISO, "--json"])
        .current_dir(repository())
        .output()
        .expect("quietcore runs");
    let explained: serde_json::Value = serde_json::from_slice(&explained.stdout).expect("JSON");
    for key in ["kernel", "cpus", "isolated", "timers", "foreign", "between_isolated", "remote", "groups"] {
        assert_eq!(json["recorded"][key], explained[key], "{key}");
    }
    for side in ["before", "after"] {
        let names =
            |of: &serde_json::Value| of.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&json[side]["foreign"]), names(&explained["foreign"]), "{side}");
        assert_eq!(names(&json[side]["remote"]), names(&explained["remote"]), "{side}");
    }
    assert_eq!(json["after"]["foreign"]["total"], 0);
    assert_eq!(json["after"]["kept_awake"], "0,8");
    assert!(json["after"]["wakeups"]["by_cpu"]["0"].is_null(), "a CPU that is kept awake is not woken");
}

/// Goal: function names and kernel strings of a hostile trace cannot drive the terminal.
#[test]
fn control_characters_never_reach_the_terminal() {
    let hostile =
        b"# kernel: Linux 6.12.\x1b[31m1, HZ=250\n# isolated: 1; nohz_full: -\n  a-7 [001] d..2. 1.000000: \
                    timer_start: timer=1 function=\x1b[2J expires=9 [timeout=1] cpu=0 idx=1 flags=\n";
    let output = whatif(&["-", "--policy", "pull", "--kernel", "6.12.\u{1b}[2J"], hostile);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!text(&output.stdout).contains('\u{1b}'), "{:?}", text(&output.stdout));
}
