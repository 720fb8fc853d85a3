//! A trace of Perfetto through the command, from a file and from a pipe, compressed and cut.
//!
//! `fuzz/seeds-binary/perfetto.pftrace` is no recording: `tests/perfetto_input.py` made it with the published
//! schema, an event of each kind.

use serde_json::Value;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn trace() -> Vec<u8> {
    let seeds = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds-binary");
    std::fs::read(seeds.join("perfetto.pftrace")).expect("it is there")
}

/// A folder for the files of one test.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("perfetto-input-{name}"));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    folder
}

/// Runs the command on `contents`: as file `name` of `folder`, or from a pipe if that is `-`.
fn quietcore(args: &[&str], folder: &str, name: &str, contents: &[u8]) -> Output {
    let mut quietcore = Command::new(env!("CARGO_BIN_EXE_quietcore"));
    quietcore.args(args).arg(name).current_dir(self::folder(folder)).env("NO_COLOR", "1");
    if name != "-" {
        std::fs::write(self::folder(folder).join(name), contents).expect("a file");
        return quietcore.stdin(Stdio::null()).output().expect("quietcore runs");
    }
    let pipes = quietcore.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("quietcore runs");
    // The child may refuse the input before it is all written; that is its right.
    let _ = child.stdin.take().expect("piped").write_all(contents);
    child.wait_with_output().expect("quietcore ends")
}

/// The report about isolated CPU 1.
fn report(folder: &str, name: &str, contents: &[u8]) -> Value {
    let output = quietcore(&["explain", "--json", "--isolated", "1"], folder, name, contents);
    assert_eq!(output.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Goal: `explain` counts what is in a trace, and says what is not. Method: the figures that follow from the
/// script that made it.
#[test]
fn what_is_in_a_trace_is_counted() {
    let report = report("counted", "trace.pftrace", &trace());
    for (place, expected) in [
        ("/kernel", "6.12.48".into()),
        ("/cpus", 4.into()),
        ("/events", 33.into()),
        // The mark of a bundle is of one of them.
        ("/lost_events", 7.into()),
        ("/malformed/count", 0.into()),
        ("/timers/expired", 1.into()),
        ("/hrtimers/expired", 1.into()),
        ("/softirq/timer_entries", 0.into()),
        ("/unknown_events/perfetto_event_11", 1.into()),
        ("/unknown_events/sched_switch_from_unknown_task", 1.into()),
    ] {
        assert_eq!(report.pointer(place), Some(&expected), "{place}: {report}");
    }
}

/// Goal: a trace gives the same report as the text that `cat` makes of it, from a file or a pipe, compressed
/// or not.
#[test]
fn every_form_gives_the_report_of_its_text() {
    let (trace, folder) = (trace(), "forms");
    let text = quietcore(&["cat"], folder, "trace.pftrace", &trace).stdout;
    assert!(text.starts_with(b"cpus=4; uname: Linux perfetto 6.12.48 x86_64\n"), "{} bytes", text.len());
    let of_text = report(folder, "text", &text);
    let mut gzip = Vec::new();
    let mut encoder = flate2::read::GzEncoder::new(&*trace, flate2::Compression::best());
    encoder.read_to_end(&mut gzip).expect("memory");
    let zstd = zstd::encode_all(&*trace, 19).expect("memory");
    for (name, contents) in [("trace", &trace), ("trace.gz", &gzip), ("trace.zst", &zstd)] {
        assert_eq!(report(folder, name, contents), of_text, "{name}");
        assert_eq!(report(folder, "-", contents), of_text, "{name} in a pipe");
    }
}

/// Goal: a trace that is cut is no short trace: the error names the file and the place. Method: cuts inside
/// of the last packet, of a file, of one in a pipe, and of one that was cut before it was compressed.
#[test]
fn a_cut_trace_says_so() {
    let trace = trace();
    let cut = &trace[..trace.len() - 3];
    let zstd = zstd::encode_all(cut, 1).expect("memory");
    for (name, contents) in [("cut.pftrace", cut), ("cut.pftrace.zst", &zstd), ("-", cut)] {
        let output = quietcore(&["explain", "--json"], "cut", name, contents);
        let error = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(2), "{name}: {error}");
        assert!(output.stdout.is_empty(), "{name}");
        assert!(error.contains("it ends in the packet at byte "), "{name}: {error}");
        assert!(name == "-" || error.contains(name), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
