//! The command as a user meets it: exit codes, streams, what is said about bad input, and
//! snapshots of the text (`INSTA_UPDATE=always cargo test -p quietcore-cli` accepts new ones).

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Runs `quietcore` in the repository's root, without colours.
fn quietcore(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quietcore"))
        .args(args)
        .current_dir(repository())
        .env("NO_COLOR", "1")
        .output()
        .expect("quietcore runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("our output is UTF-8")
}

fn with_input(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_quietcore"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("quietcore runs");
    // The child may refuse the input before it is all written; that is its right.
    let _ = child.stdin.take().expect("piped").write_all(input);
    child.wait_with_output().expect("quietcore ends")
}

/// Goal: 0 fine, 1 found, 2 error; `--exit-zero` turns 1 into 0, and explain finds what --fail-on asks.
#[test]
fn exit_codes_say_what_happened() {
    for (args, code) in [
        (vec!["explain", "recordings/g61-c16-iso.txt.zst"], 0),
        (vec!["explain", "recordings/g612-c16-iso.txt.zst"], 0),
        (vec!["explain", "recordings/g612-c16-iso.txt.zst", "--fail-on", "foreign>0"], 1),
        (
            vec![
                "explain",
                "recordings/g612-c16-iso.txt.zst",
                "--fail-on",
                "foreign>9999,lost_events>0",
                "--json",
            ],
            0,
        ),
        (vec!["explain", "recordings/g612-c16-iso.txt.zst", "--fail-on", "rt_delay_max>1us"], 2),
        (vec!["explain", "recordings/g612-c16-iso.txt.zst", "--fail-on", "foreign"], 2),
        (vec!["explain", "no/such/file"], 2),
        (vec!["explain", "recordings"], 2),
        (vec!["explain", "LICENSE-MIT"], 2),
        (vec!["explain"], 2),
        (vec!["explain", "x", "--isolated", "7-3"], 2),
        (vec!["explain", "recordings/g61-c16-iso.txt.zst", "--kernel", "six"], 2),
        (vec!["explain", "--live", "soon"], 2),
        (vec!["verify", "recordings/g61-c16-iso.txt.zst"], 0),
        (vec!["verify", "crates/cli/tests/data/mismatch.txt"], 1),
        (vec!["verify", "crates/cli/tests/data/mismatch.txt", "--json"], 1),
        (vec!["verify", "crates/cli/tests/data/mismatch.txt", "--exit-zero"], 0),
        (vec!["verify", "no/such/file"], 2),
        (vec!["verify", "LICENSE-MIT"], 2),
        (vec!["verify"], 2),
        (vec!["doctor", "--root", "no/such/folder"], 2),
        (vec!["doctor", "--root", "crates/explain/tests/hosts/telco-6.12"], 1),
        (vec!["doctor", "--root", "crates/explain/tests/hosts/telco-6.12", "--exit-zero"], 0),
        (vec!["--live", "0s"], 0),
        (vec!["doctor", "--root", "docs"], 2),
        (vec!["explain", "--live", "0s"], 2),
        (vec!["explain", "recordings/g61-c16-iso.txt.zst", "--max-identities", "1"], 2),
        (vec!["explain", "recordings/g61-c16-iso.txt.zst", "--perfetto", "/dev/null"], 2),
        (
            vec!["explain", "recordings/g61-c16-iso.txt.zst", "--perfetto", "recordings/g61-c16-iso.txt.zst"],
            2,
        ),
        (vec!["explain", "README.md", "--perfetto", "target/x", "--openmetrics", "target/x"], 2),
        (vec!["no-such-verb"], 2),
    ] {
        let output = quietcore(&args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "quietcore {args:?}: {said}");
        assert!(!said.contains("panicked"), "{args:?}: {said}");
    }
}

/// Goal: bad input gets one sentence that names the input, the place and the remedy.
#[test]
fn bad_input_is_named_with_its_place_and_remedy() {
    let said = |args: &[&str]| text(&quietcore(args).stderr);
    let not_a_trace = said(&["explain", "LICENSE-MIT"]);
    assert!(not_a_trace.contains("LICENSE-MIT") && not_a_trace.contains("line 1:"), "{not_a_trace}");
    assert!(not_a_trace.contains("trace-cmd report"), "{not_a_trace}");
    let missing = said(&["explain", "no/such/file"]);
    assert!(missing.contains("no/such/file: No such file"), "{missing}");
    let list = said(&["explain", "x", "--isolated", "7-3"]);
    assert!(list.contains("7-3 ends before it begins"), "{list}");
    let folder = said(&["explain", "recordings/g61-c16-iso.txt.zst", "--perfetto", "no/such/folder/x"]);
    let nothing = said(&["explain"]);
    assert!(nothing.contains("<TRACE|--live <SPAN>>"), "both inputs are named: {nothing}");
    for of_live in [["--questions", "isolation"], ["--buffer", "4096"]] {
        let ignored = said(&["explain", "recordings/g61-c16-iso.txt.zst", of_live[0], of_live[1]]);
        assert!(ignored.contains(of_live[0]) && ignored.contains("cannot be used"), "{of_live:?}: {ignored}");
    }
    assert!(folder.contains("no/such/folder/x"), "{folder}");
    let empty = text(&with_input(&["explain", "-"], b"").stderr);
    assert!(empty.contains("empty input"), "{empty}");
}

/// Goal: the text of each report is what a person is meant to see.
#[test]
fn the_text_of_a_report_is_as_reviewed() {
    let explained = quietcore(&["explain", "recordings/g612-c16-iso.txt.zst"]);
    insta::assert_snapshot!("explain-g612-c16-iso", text(&explained.stdout));
    let quiet = quietcore(&["explain", "recordings/g61-c16-iso.txt.zst"]);
    insta::assert_snapshot!("explain-g61-c16-iso", text(&quiet.stdout));
    let detail = quietcore(&["explain", "recordings/h618-c2-detail.txt.zst"]);
    insta::assert_snapshot!("explain-h618-c2-detail", text(&detail.stdout));
    let doctor = quietcore(&["doctor", "--root", "crates/explain/tests/hosts/telco-6.12"]);
    insta::assert_snapshot!("doctor-telco", text(&doctor.stdout));
    for (name, trace) in [
        ("verify-g612-c4-levels", "recordings/g612-c4-levels.txt.zst"),
        ("verify-trace-cmd", "recordings/trace-cmd-618-c2.txt.zst"),
        ("verify-mismatch", "crates/cli/tests/data/mismatch.txt"),
    ] {
        insta::assert_snapshot!(name, text(&quietcore(&["verify", trace]).stdout));
    }
    for verb in ["explain", "doctor", "verify", "cat"] {
        insta::assert_snapshot!(format!("help-{verb}"), text(&quietcore(&[verb, "--help"]).stdout));
    }
    insta::assert_snapshot!("help", text(&quietcore(&["--help"]).stdout));
}

/// Goal: the check-up says what needs no look at this machine, and what to type as it was typed. Method: no
/// live recording, called by its name alone; of this machine there is a heading.
#[test]
fn the_check_up_is_as_reviewed() {
    let check_up = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quietcore"));
        command.arg0("quietcore").args(["--live", "0s"]).args(args).output().expect("quietcore runs")
    };
    let output = check_up(&[]);
    assert_eq!(text(&output.stderr), "quietcore: looking at this host and at four bundled recordings\n");
    let shown = text(&output.stdout);
    let (host, rest) = shown.split_once("\nThe same load ").expect("the recordings");
    assert!(
        host.starts_with("quietcore: the check-up\n\nThis host (quietcore doctor)\n  kernel  "),
        "{host}"
    );
    let (recordings, next) = rest.split_once("\nNext\n").expect("what to type");
    insta::assert_snapshot!("check-up", recordings);
    let of_the_host = [
        "  $ quietcore doctor\n  what to change on this host, and how to verify it\n",
        "  $ sudo \"$(which quietcore)\" explain --live 30s\n  the same questions to the running kernel\n",
    ];
    assert!(of_the_host.contains(&next), "{next}");
    let json: serde_json::Value = serde_json::from_slice(&check_up(&["--json"]).stdout).expect("JSON");
    assert_eq!((&json["schema"], &json["live"]), (&3.into(), &serde_json::Value::Null));
    assert_eq!(json["live_not_possible"], "skipped (--live 0s)");
    let recordings = json["recordings"].as_array().expect("a list").iter();
    let foreign: Vec<_> =
        recordings.map(|one| (one["name"].as_str(), one["report"]["foreign"]["total"].as_u64())).collect();
    let expected = [("g61-c16-iso", 0), ("g612-c16-iso", 74), ("g612-c16-iso-tm0", 90), ("g619-c16-iso", 0)];
    assert_eq!(foreign, expected.map(|(name, total)| (Some(name), Some(total))));
}

/// Goal: what of a host cannot be read is listed, as text and as JSON; a copy of a part of one is enough.
#[test]
fn what_of_a_host_cannot_be_read_is_listed() {
    let garbled = ["doctor", "--root", "crates/explain/tests/hosts/garbled"];
    insta::assert_snapshot!("doctor-garbled", text(&quietcore(&garbled).stdout));
    let output = quietcore(&[&garbled[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["schema"], 3);
    let first = serde_json::json!({"path": "/proc/sys/kernel/osrelease", "why": "not a kernel release"});
    assert_eq!(json["unreadable"][0], first);
    let part = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("part-of-a-host");
    std::fs::create_dir_all(part.join("proc/sys/kernel")).expect("a temporary folder");
    assert_eq!(quietcore(&["doctor", "--root", part.to_str().expect("UTF-8")]).status.code(), Some(0));
}

/// Goal: a pipe gets a recording byte for byte, compressed or not.
#[test]
fn cat_changes_no_byte() {
    let plain = std::fs::read(repository().join("crates/cli/tests/data/mismatch.txt")).expect("a trace");
    assert_eq!(quietcore(&["cat", "crates/cli/tests/data/mismatch.txt"]).stdout, plain);
    let hostile = b"\x1b[2J\xff\r\n\0 no line end";
    assert_eq!(with_input(&["cat", "-"], hostile).stdout, hostile);
    let compressed = text(&quietcore(&["cat", "recordings/g61-c16-iso.txt.zst"]).stdout);
    assert!(compressed.starts_with("# ") && compressed.ends_with('\n'), "{:?}", compressed.get(..80));
}

/// Goal: the isolated CPUs are those of the option, else of the host where the trace is no recording of ours,
/// and a table that is full says that it forgot.
#[test]
fn what_is_explained_depends_on_the_options() {
    let trace: String = (1..=4)
        .map(|timer| {
            format!("a-1 [000] 1.0: timer_start: timer={timer} function=f expires=9 [timeout=1] cpu=0 idx=1 flags=\n")
        })
        .collect();
    let json = |more: &[&str]| -> serde_json::Value {
        let output = with_input(&[&["explain", "-", "--json"], more].concat(), trace.as_bytes());
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let (host, option) = (json(&[]), json(&["--isolated", "1", "--max-identities", "2"]));
    assert_eq!((&host["isolated_source"], &host["evicted"]), (&"host".into(), &0.into()));
    assert_eq!((&option["isolated_source"], &option["isolated"]), (&"option".into(), &"1".into()));
    assert!(option["evicted"].as_u64() > Some(0), "{option}");
}

/// Goal: the files besides the report are of the same recording. Method: both, of a bundled one.
#[test]
fn the_files_besides_the_report_are_of_the_same_recording() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("files-besides");
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let [perfetto, metrics] = ["t.pftrace", "m.prom"].map(|name| folder.join(name).display().to_string());
    let trace = "recordings/g612-c16-iso.txt.zst";
    let output = quietcore(&["explain", trace, "--perfetto", &perfetto, "--openmetrics", &metrics]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let metrics = std::fs::read_to_string(metrics).expect("it was written");
    assert!(metrics.contains("\nquietcore_foreign_expiries 74\n"), "{metrics}");
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    let perfetto = std::fs::read(perfetto).expect("it was written");
    let has = |name: &[u8]| perfetto.windows(name.len()).any(|bytes| bytes == name);
    assert!(perfetto.first() == Some(&0x0a) && has(b"process_timeout"), "{} bytes", perfetto.len());
    std::fs::remove_dir_all(folder).expect("it is ours");
}

/// Goal: no line that is not a command to copy is wider than 100 columns.
#[test]
fn text_fits_100_columns() {
    for name in ["g612-c16-iso", "g612-c16-iso-tm0", "h618-c2-detail", "g72-c18n2-isol"] {
        let output = quietcore(&["explain", &format!("recordings/{name}.txt.zst")]);
        for line in text(&output.stdout).lines().filter(|line| !line.contains("$ ")) {
            assert!(line.chars().count() <= 100, "{name}: {} columns: {line}", line.chars().count());
        }
    }
    for trace in ["recordings/trace-cmd-618-c2.txt.zst", "crates/cli/tests/data/mismatch.txt"] {
        for line in text(&quietcore(&["verify", trace]).stdout).lines() {
            assert!(line.chars().count() <= 100, "{trace}: {} columns: {line}", line.chars().count());
        }
    }
    let output = quietcore(&["--live", "0s"]);
    for line in text(&output.stdout).lines().filter(|line| !line.contains("$ ")) {
        assert!(line.chars().count() <= 100, "check-up: {line}");
    }
}

/// Goal: a figure without a sample is a word, and lost events mark every figure. Method: a timer that another
/// CPU ran, armed again at its old base, all at one time stamp, after a mark of lost events.
#[test]
fn a_figure_without_a_sample_is_a_word() {
    let start = "a-1 [000] 1.0: timer_start: timer=1 function=f expires=9 [timeout=1] cpu=0 idx=1 flags=\n";
    let expiry = "b-2 [001] 1.0: timer_expire_entry: timer=1 function=f now=9 baseclk=9\n";
    let trace = ["CPU:0 [LOST 3 EVENTS]\n", start, expiry, start].concat();
    let output = with_input(&["explain", "-", "--isolated", "1"], trace.as_bytes());
    let shown = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "~1 foreign expiries: ~1 pulled, ~0 placed",
        "~1 of ~1 expiries remote, ~1 ping-pongs (rate unknown)",
        "old base again (rate unknown: ping-pong)",
        "real-time tasks wait for no softirq not recorded",
    ] {
        assert!(shown.contains(words), "{words} in {shown}");
    }
    assert!(!shown.contains("/s)"), "{shown}");
}

/// Goal: lost events mark the worst delay, too, and it is unmarked where none were lost. Method: a task is
/// woken towards a CPU inside NET_RX, and runs 4 us later.
#[test]
fn lost_events_mark_the_worst_delay() {
    let trace = "\
        a-1 [001] 1.000000: softirq_entry: vec=3 [action=NET_RX]\n\
        b-2 [000] 1.000001: sched_waking: comm=c pid=7 prio=98 target_cpu=001\n\
        a-1 [001] 1.000004: softirq_exit: vec=3 [action=NET_RX]\n\
        a-1 [001] 1.000005: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=R ==> next_comm=c \
        next_pid=7 next_prio=98\n";
    let shown = |trace: &str| {
        let output = with_input(&["explain", "-", "--isolated", "1"], trace.as_bytes());
        text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (whole, part) = (shown(trace), shown(&format!("CPU:0 [LOST 3 EVENTS]\n{trace}")));
    assert!(whole.contains(" 1 of 1 wake-ups behind a NET or BLOCK softirq, at most 4 us"), "{whole}");
    assert!(part.contains(" ~1 of ~1 wake-ups behind a NET or BLOCK softirq, at most ~4 us"), "{part}");
}

/// Goal: what takes an isolated CPU away stands there with its cause, and what was open at a moment; a
/// moment that is none is refused. Method: a timer that another CPU armed wakes a worker; the moment is in
/// its run.
#[test]
fn a_cause_and_a_moment_are_shown() {
    let trace = "\
        spin-9 [001] ..s1. 1.000000: timer_expire_exit: timer=00000000000000b1\n\
        cron-3 [000] d..1. 1.000010: timer_start: timer=00000000000000a1 function=f expires=9 [timeout=1] cpu=0 \
        idx=1 flags=\n\
        spin-9 [001] ..s1. 1.000020: softirq_entry: vec=1 [action=TIMER]\n\
        spin-9 [001] ..s1. 1.000021: timer_expire_entry: timer=00000000000000a1 function=f now=9 baseclk=9\n\
        spin-9 [001] d.s2. 1.000025: sched_waking: comm=kworker/1:0 pid=7 prio=120 target_cpu=001\n\
        spin-9 [001] ..s1. 1.000031: timer_expire_exit: timer=00000000000000a1\n\
        spin-9 [001] ..s1. 1.000035: softirq_exit: vec=1 [action=TIMER]\n\
        spin-9 [001] d..2. 1.000040: sched_switch: prev_comm=spin prev_pid=9 prev_prio=120 prev_state=R ==> \
        next_comm=kworker/1:0 next_pid=7 next_prio=120\n\
        kworker/1:0-7 [001] d..2. 1.000060: sched_switch: prev_comm=kworker/1:0 prev_pid=7 prev_prio=120 \
        prev_state=I ==> next_comm=spin next_pid=9 next_prio=120\n\
        spin-9 [001] d..2. 1.000900: sched_switch: prev_comm=spin prev_pid=9 prev_prio=120 prev_state=S ==> \
        next_comm=<idle> next_pid=0 next_prio=120\n";
    let run = |more: &[&str]| {
        let output = with_input(&[&["explain", "-", "--isolated", "1"], more].concat(), trace.as_bytes());
        let words = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        (output.status.code(), words, text(&output.stderr))
    };
    let (code, shown, said) = run(&["--at", "1.00005", "--around", "12us"]);
    assert_eq!(code, Some(0), "{said}");
    let why = "woken on CPU 1 in timer f, armed on CPU 0 by cron";
    for words in [
        &format!("1 1 20 us 20 us 20 us task kworker/1:0; 1 of 1 {why}; longest until 1.000060"),
        "1 1 10 us 10 us 10 us timer f; 1 of 1 armed on CPU 0 by cron; longest until 1.000031",
        "1 1 5 us 5 us 5 us softirq TIMER; longest until 1.000035",
        "apart spin on CPU 1: what the CPU is there for, the task that had it longest",
        "What held CPUs at 1.000050 s, and 12 us before and after CPU from until alone what",
        &format!("1 -10 us +10 us 20 us task kworker/1:0; {why} 1 +10 us +850 us 840 us task spin"),
    ] {
        assert!(shown.contains(words), "{words} in {shown}");
    }
    assert!(
        run(&["--at", "9"])
            .1
            .contains("What held CPUs at 9.000000 s, and 100 us before and after nothing that is")
    );
    assert!(!run(&[]).1.contains("What held"));
    let (code, _, said) = run(&["--at", "1s"]);
    assert!(code == Some(2) && said.contains("no time of a recording"), "{said}");
    let (code, _, said) = run(&["--around", "1us"]);
    assert!(code == Some(2) && said.contains("--at"), "{said}");
}

/// Goal: what is part of the program is called by its name. Method: a recording in each command that reads
/// one, the list of scenarios, one of them, and names that are none.
#[test]
fn what_is_in_the_program_has_a_name() {
    let by_name = quietcore(&["explain", "@g612-c16-iso", "--json"]);
    let by_file = quietcore(&["explain", "recordings/g612-c16-iso.txt.zst", "--json"]);
    assert!(by_name.status.success() && by_name.stdout == by_file.stdout);
    assert!(text(&quietcore(&["cat", "@g61-c16-iso"]).stdout).starts_with("# trace: g61-c16-iso\n"));
    let list = text(&quietcore(&["sim", "--list"]).stdout);
    assert!(list.lines().any(|line| line.starts_with("@stall-asleep")), "{list}");
    let listed = text(&quietcore(&["sim", "--list", "--json"]).stdout);
    assert_eq!(listed.matches("\"name\": \"@").count(), 11, "{listed}");
    let ran = quietcore(&["sim", "@stall", "--duration", "20ms", "--exit-zero"]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    for (args, said) in [
        (["explain", "@x"], "@x: no recording of this name is in the program; it has @g61-c16-iso, "),
        (["sim", "@x"], "@x: no scenario of this name is in the program; `sim --list` has them"),
    ] {
        let output = quietcore(&args);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
    }
}

/// Goal: colours and width are what was asked for. Method: the same report with each word; COLUMNS.
#[test]
fn colours_and_width_are_chosen() {
    let run = |more: &[&str], columns: &str| {
        let args = [&["explain", "@g612-c16-iso"], more].concat();
        let mut quietcore = Command::new(env!("CARGO_BIN_EXE_quietcore"));
        text(&quietcore.args(args).env("COLUMNS", columns).output().expect("quietcore runs").stdout)
    };
    assert!(run(&["--color", "always"], "90").contains("\u{1b}[1mquietcore"));
    for plain in [run(&["--color", "never"], "60"), run(&[], "60")] {
        assert!(!plain.contains('\u{1b}'));
        let longest =
            plain.lines().filter(|line| !line.contains("$ ")).map(|line| line.chars().count()).max();
        assert!(longest.is_some_and(|longest| (50..=60).contains(&longest)), "{longest:?}\n{plain}");
    }
}

/// Goal: the JSON has every documented key, and nulls where the recording has no events.
#[test]
fn the_json_has_the_documented_keys() {
    let output = quietcore(&["explain", "recordings/g612-c16-iso.txt.zst", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let documented =
        std::fs::read_to_string(repository().join("docs/reference/explain-json.md")).expect("docs");
    for key in json.as_object().expect("an object").keys() {
        assert!(documented.contains(&format!("`{key}")), "{key} is not in docs/reference/explain-json.md");
    }
    assert_eq!(json["schema"], 2);
    assert_eq!(json["kernel"], "6.12.107");
    assert_eq!(json["foreign"]["by_cpu"]["1"], 27);
    assert_eq!(json["isolated"], "1-7,9-15");
    assert!(json["softirq"]["timer_entries"].is_null() && json["hrtimers"]["by_task"].is_null());
    assert_eq!(json["findings"][0]["evidence"][0]["line"], 3330);
}

/// Goal: the JSON of verify has every documented key, its sums hold, and a mismatch has its place.
#[test]
fn the_json_of_verify_has_the_documented_keys() {
    let documented = std::fs::read_to_string(repository().join("docs/reference/verify.md")).expect("docs");
    for trace in ["recordings/g612-c4-levels.txt.zst", "crates/cli/tests/data/mismatch.txt"] {
        let output = quietcore(&["verify", trace, "--json"]);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        for key in json.as_object().expect("an object").keys() {
            assert!(documented.contains(&format!("`{key}")), "{key} is not in docs/reference/verify.md");
        }
        for key in json["notes"].as_object().expect("an object").keys() {
            assert!(documented.contains(&format!("`{key}`")), "{key} is not in docs/reference/verify.md");
        }
        let classes = json["classes"].as_object().expect("an object").values();
        let classes: u64 = classes.map(|count| count.as_u64().expect("a count")).sum();
        let number = |key: &str| json[key].as_u64().expect("a count");
        assert_eq!(number("explained"), number("exact") + classes, "{trace}");
        assert_eq!(number("timer_starts"), number("explained") + number("mismatches"), "{trace}");
        let first = &json["first_mismatch"];
        let place = (first["line"].as_u64(), first["kind"].as_str());
        let expected = if trace.starts_with("rec") { (None, None) } else { (Some(13), Some("timer_start")) };
        assert_eq!(place, expected, "{trace}");
        assert_eq!(json["ok"].as_bool(), Some(first.is_null()), "{trace}");
    }
}

/// Goal: a reader that goes away early is not an error, and says nothing.
#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_quietcore"))
        .args(["cat", "recordings/h618-c2-detail.txt.zst"])
        .current_dir(repository())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("quietcore runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("quietcore ends");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

/// Goal: a standard error that cannot be written is no reason to panic.
#[test]
fn a_full_standard_error_changes_no_exit_code() {
    for (args, code) in [(vec!["explain", "no/such/file"], 2), (vec!["--live", "0s"], 0)] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
        let status = Command::new(env!("CARGO_BIN_EXE_quietcore"))
            .args(&args)
            .stdout(Stdio::null())
            .stderr(full)
            .status()
            .expect("quietcore runs");
        assert_eq!(status.code(), Some(code), "{args:?}");
    }
}

/// Goal: help that cannot be written is an error, as any output is. Method: a device that is full.
#[test]
fn help_that_cannot_be_written_is_an_error() {
    for words in [&["--help"][..], &["--version"], &["explain", "--help"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
        let output = Command::new(env!("CARGO_BIN_EXE_quietcore"))
            .args(words)
            .stdout(full)
            .output()
            .expect("quietcore runs");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains("writing the output failed"), "{words:?}");
    }
}

/// Goal: a recording that holds no event shows nothing, and is no reason to say "none". Method: a header
/// alone, to each command that reads recordings.
#[test]
fn a_recording_without_events_is_refused() {
    let header = b"# tracer: nop\n#\n# entries-in-buffer/entries-written: 0/0   #P:2\n";
    for words in
        [&["explain", "-"][..], &["verify", "-"], &["whatif", "-", "--policy", "push", "--isolated", "1"]]
    {
        let output = with_input(words, header);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains("-: there is no event in it"), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "", "{words:?}");
    }
}

/// Goal: two recordings in one are no recording: the text says so. Method: one event twice, of which the
/// second is a second earlier.
#[test]
fn time_that_runs_back_is_said() {
    let line = |at| format!("  a-7 [001] {at}: timer_cancel: timer=1\n");
    let twice = [line("5.000000"), line("4.000000")].concat();
    for command in ["explain", "verify"] {
        let output = with_input(&[command, "-"], twice.as_bytes());
        let said = "time runs back by 1 s at line 2: it begins a second recording";
        assert!(text(&output.stdout).replace("\n", " ").contains(said), "{}", text(&output.stdout));
    }
}

/// Goal: an unreadable isolated list is refused, because every figure depends on it.
#[test]
fn an_unreadable_isolated_list_is_refused() {
    let trace =
        b"# trace: x\n# isolated: 1-9000; nohz_full: -\n  a-7 [001] 1.000000: timer_cancel: timer=1\n";
    let refused = with_input(&["explain", "-"], trace);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--isolated LIST"), "{}", text(&refused.stderr));
    assert_eq!(with_input(&["explain", "-", "--isolated", "1"], trace).status.code(), Some(0));
}

/// Goal: a task name in a hostile trace cannot drive the terminal.
#[test]
fn control_characters_never_reach_the_terminal() {
    let hostile = b"  \x1b]0;x\x07-7 [000] d..1. 1.000000: timer_start: timer=\x1b[2J\n\
          a-7 [000] d..1. 1.000000: e\x1b[31mvil: x\n  a-7 [000] d..1. 1.000000: timer_cancel: timer=1\n";
    let output = with_input(&["explain", "-", "--isolated", "1"], hostile);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    assert!(shown.contains("unreadable line 1"), "{shown}");
}
