//! The bundled recordings of real kernels: every line agrees with the wheel.

use crate::trace::verify;
use quietcore_trace::open;
use std::io::Read;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings")
}

pub(crate) fn text_of(name: &str) -> String {
    let mut text = String::new();
    let mut source = open(&folder().join(format!("{name}.txt.zst"))).expect("bundled");
    source.read_to_string(&mut text).expect("text");
    text
}

/// Names of all of them, in order.
pub(crate) fn names() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).expect("recordings/");
    let files = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    let mut names: Vec<_> =
        files.filter_map(|file| file.strip_suffix(".txt.zst").map(str::to_owned)).collect();
    names.sort();
    names
}

/// Goal: no line of any recording contradicts the wheel, and few need another clock than jiffies.
#[test]
fn every_recording_agrees() {
    let names = names();
    assert_eq!(names.len(), 16, "the bundled recordings");
    for name in names {
        let verification = verify(&text_of(&name));
        assert!(verification.ok, "{name}: {:?}", verification.first_mismatch);
        assert!(verification.timer_starts > 300, "{name}");
        assert!(verification.exact as f64 >= 0.98 * verification.timer_starts as f64, "{name}");
        assert_eq!(verification.classes.after_loss, 0, "{name}");
        assert_eq!(verification.notes.forgotten, 0, "{name}");
        if let Some(runs) = verification.runs {
            assert!(runs.of_several > 10 && runs.total > 100, "{name}: {runs:?}");
        }
    }
}

/// Goal: the counts of the table in docs/reference/verify.md. Method: those of the recordings that are here.
#[test]
fn the_documented_counts_are_ours() {
    let table = std::fs::read_to_string(folder().join("../docs/reference/verify.md"))
        .expect("docs/reference/verify.md");
    let mut compared = 0;
    for name in names() {
        let Some(row) = table.lines().find(|line| line.starts_with(&format!("| {name} |"))) else { continue };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let written: Vec<u64> =
            cells[2..cells.len() - 1].iter().map(|cell| cell.parse().expect(row)).collect();
        let found = verify(&text_of(&name));
        let (classes, runs) = (found.classes, found.runs.expect("replayed"));
        let counted = [
            found.timer_starts,
            found.exact,
            classes.ahead_run,
            classes.ahead_empty,
            classes.behind_due,
            classes.behind_deleted,
            classes.tick_between,
            found.mismatches_of_all_kinds(),
            found.notes.two_places,
            found.expiries.total,
            found.expiries.classes.start_unseen,
            runs.total,
            runs.of_several,
        ];
        assert_eq!(written, counted, "{name}");
        compared += 1;
    }
    assert_eq!(compared, 15, "all but the recording of trace-cmd");
}

/// Goal: text of `trace-cmd report` has no flags, so only places are compared; that is said.
#[test]
fn text_without_flags_is_compared_with_jiffies() {
    let verification = verify(&text_of("trace-cmd-618-c2"));
    assert_eq!((verification.timer_starts, verification.exact), (319, 319));
    assert!(verification.runs.is_none() && verification.not_recorded.contains(&"runs"));
    assert_eq!(verification.incomplete.len(), 1, "{:?}", verification.incomplete);
    let altered =
        text_of("trace-cmd-618-c2").replacen("bucket_expiry=4296080594", "bucket_expiry=4296080595", 1);
    assert_eq!(verify(&altered).mismatches, 1);
}

/// Goal: without the header, the kernel's shape is found from the events. Method: 6.1 and 6.12, headers cut.
#[test]
fn a_header_is_not_needed() {
    for name in ["g61-c16-iso", "g612-c4-levels"] {
        let text = text_of(name);
        let events: String =
            text.lines().filter(|line| !line.starts_with("# ")).map(|line| format!("{line}\n")).collect();
        let [with, without] = [&text, &events].map(|text| verify(text));
        assert_eq!((without.hz, without.kernel.as_ref()), (None, None), "{name}");
        assert_eq!(without.bases_per_cpu, with.bases_per_cpu, "{name}");
        assert_eq!((without.exact, without.classes, without.ok), (with.exact, with.classes, true), "{name}");
    }
}

/// Goal: the seven columns of the flags with the PREEMPT_RT patches of 6.1 allow the same replay. Method: a
/// recording with the two columns added.
#[test]
fn flags_of_seven_columns_allow_the_same_replay() {
    let text = text_of("g61-c16-iso");
    let wide = text.lines().map(|line| match line.find("] ").filter(|_| !line.starts_with('#')) {
        Some(end) => {
            let (task, flags, rest) = (&line[..end + 2], &line[end + 2..end + 7], &line[end + 7..]);
            format!("{task}{}.{}1{}{rest}\n", &flags[..2], &flags[2..4], &flags[4..])
        }
        None => format!("{line}\n"),
    });
    let [wide, usual] = [wide.collect(), text].map(|text| verify(&text));
    assert!(wide.ok && wide.incomplete.is_empty(), "{:?}", wide.first_mismatch);
    assert_eq!((wide.exact, wide.expiries, wide.runs), (usual.exact, usual.expiries, usual.runs));
}
