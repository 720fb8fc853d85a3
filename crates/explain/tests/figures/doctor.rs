//! The check-up's texts, word for word on every host of `tests/hosts`, and the kernel versions at which a
//! rule begins or ends. `INSTA_UPDATE=always cargo test -p quietcore-explain` accepts new texts.

use crate::made::facts;
use quietcore_explain::{CopiedEntry, Evidence, Examination, Facts, Finding, HostCopy, Severity, examine};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn hosts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts");
    let mut hosts: Vec<_> =
        fs::read_dir(folder).expect("hosts").map(|host| host.expect("an entry").path()).collect();
    hosts.sort();
    hosts
}

pub(crate) fn text(finding: &Finding) -> String {
    let Finding { id, question, severity, what, why, change, predicted, verify, evidence, .. } = finding;
    let change = change.replace('\n', "\n           ");
    let mut text = format!("{severity} {id} ({question})\n  what     {what}\n  why      {why}\n");
    text += &format!("  change   {change}\n  predicted {predicted}\n  verify   {verify}\n");
    for evidence in evidence {
        text += &match evidence {
            Evidence::File { path, text } => format!("  proof    {path}: {text}\n"),
            Evidence::Line { line, text } => format!("  proof    line {line}: {text}\n"),
        };
    }
    text
}

pub(crate) fn page(examination: &Examination) -> String {
    let rows = examination.summary.iter().map(|(row, value)| format!("{row}: {value}\n"));
    rows.chain(examination.findings.iter().map(text)).collect()
}

/// Goal: every command, number and version in a text is as reviewed. Method: all findings of all hosts.
#[test]
fn every_text_is_as_reviewed() {
    for host in hosts() {
        let name = host.file_name().expect("a folder").to_string_lossy().replace('.', "-");
        let examination = examine(&Facts::read(&host));
        insta::assert_snapshot!(name, page(&examination));
    }
}

/// A host with CPUs 0 to 3: 2 and 3 isolated, 1 and 3 with nohz_full.
fn host(release: &str, timer_migration: &str) -> Facts {
    let files = [
        ("proc/cmdline", "isolcpus=domain,quiet_please,2-3 nohz_full=1,3"),
        ("proc/sys/kernel/osrelease", release),
        ("proc/sys/kernel/timer_migration", timer_migration),
        ("proc/sys/kernel/sched_rt_runtime_us", "950000"),
        ("proc/sys/kernel/sched_rt_period_us", "1000000"),
        ("proc/sys/vm/stat_interval", "1"),
        ("sys/devices/system/cpu/possible", "0-3"),
        ("sys/devices/system/cpu/online", "0-3"),
        ("sys/devices/system/cpu/isolated", "2-3"),
        ("sys/devices/system/cpu/nohz_full", "1,3"),
    ];
    facts("versions", &files)
}

/// Goal: each rule begins and ends with the version that its text names. Method: the same host with the
/// release on either side of each; the rules that no version changes are left out.
#[test]
fn every_version_is_where_the_texts_say() {
    use Severity::{Note, Warning};
    let always = ["nohz-full-no-domain", "isolated-keeps-tick"];
    let (push, pull) = ((Note, "timers-pushed-when-armed"), (Warning, "isolated-pull-timers"));
    let (stays, left) = ((Note, "nohz-full-stays-in-hierarchy"), (Note, "isolated-left-hierarchy"));
    let (flag, vmstat) = ((Note, "isolcpus-unknown-flag"), (Note, "vmstat-interval"));
    let (stopped, server) = ((Warning, "rt-throttling"), (Note, "rt-throttling"));
    let hrtimers = |severity| (severity, "timer-migration-hrtimers-only");
    for (release, migration, expected) in [
        ("5.7.19", "1", vec![stopped, push, vmstat]),
        ("5.8.0", "1", vec![stopped, push, flag, vmstat]),
        ("5.17.15", "1", vec![stopped, push, flag, vmstat]),
        ("5.18.0", "1", vec![stopped, push, flag, vmstat]),
        ("6.4.16", "1", vec![stopped, push, flag, vmstat]),
        ("6.5.0", "1", vec![stopped, push, flag]),
        ("6.8.12", "1", vec![stopped, push, flag]),
        ("6.9.0", "1", vec![pull, stopped, stays, flag]),
        ("6.11.11", "1", vec![pull, stopped, stays, flag]),
        ("6.12.0", "1", vec![pull, stays, flag, server]),
        ("6.18.44", "1", vec![pull, stays, flag, server]),
        ("6.19.0", "1", vec![stays, left, flag, server]),
        ("7.0.0", "1", vec![stays, left, flag, server]),
        ("6.8.12", "0", vec![stopped, flag]),
        ("6.9.0", "0", vec![pull, hrtimers(Warning), stopped, stays, flag]),
        ("6.18.44", "0", vec![pull, hrtimers(Warning), stays, flag, server]),
        ("6.19.0", "0", vec![stays, left, hrtimers(Note), flag, server]),
    ] {
        let host = host(release, migration);
        assert_eq!(host.timer_migration(), Some(migration == "1"));
        let findings = examine(&host).findings;
        let changing = findings.iter().filter(|finding| !always.contains(&finding.id));
        let found: Vec<_> = changing.map(|finding| (finding.severity, finding.id)).collect();
        assert_eq!(found, expected, "{release}, timer_migration={migration}");
        let one = findings.iter().find(|finding| finding.id == "nohz-full-no-domain").expect("all versions");
        let list = if matches!(release, "5.7.19" | "5.8.0" | "5.17.15") { "1-3" } else { "1,3" };
        assert!(one.change.contains(&format!(" nohz_full={list}, ")), "{release}: {}", one.change);
    }
}

/// A host of two files, of which the command line has these permissions, and its copy.
fn copied(name: &str, mode: u32) -> HostCopy {
    let root = std::env::temp_dir().join(format!("quietcore-copied-{name}-{}", std::process::id()));
    fs::create_dir_all(root.join("proc/sys/kernel")).expect("a scratch folder");
    fs::write(root.join("proc/sys/kernel/osrelease"), "6.12.1").expect("a scratch file");
    let line = root.join("proc/cmdline");
    fs::write(&line, "token=hush isolcpus=domain,1 quiet").expect("a scratch file");
    fs::set_permissions(&line, PermissionsExt::from_mode(mode)).expect("its own file");
    let (_, copy) = Facts::read_and_copy(&root).expect("it is small");
    fs::remove_dir_all(root).expect("the scratch folder");
    copy
}

/// Goal: a copy is public only if every file in it is. Method: a file that all users, its group or its owner
/// may read.
#[test]
fn a_private_file_makes_a_copy_private() {
    for (mode, is_public) in [(0o644, true), (0o640, false), (0o600, false), (0o404, true)] {
        assert_eq!(copied("private", mode).is_public(), is_public, "{mode:o}");
    }
}

/// Goal: a copy has what was read and nothing else. Method: a host with words on its command line that do not
/// matter; the whole copy.
#[test]
fn a_copy_has_no_more_than_was_read() {
    let copy = copied("whole", 0o644);
    let file = |text: &str| CopiedEntry::File { bytes: text.as_bytes().to_vec(), is_public: true };
    let files: Vec<_> = copy.entries().filter(|(_, entry)| **entry != CopiedEntry::Folder).collect();
    let (line, release) = (file("isolcpus=domain,1"), file("6.12.1"));
    assert_eq!(files, [("proc/cmdline", &line), ("proc/sys/kernel/osrelease", &release)]);
}
