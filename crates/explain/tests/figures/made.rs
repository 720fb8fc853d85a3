//! Hosts of a few files each, for what no host of `tests/hosts` has: parameters that contradict each other or
//! the kernel, and several of a kind where a rule names one of them.

use quietcore_explain::{Facts, examine};
use std::fs;

/// The facts of a host that has these files only, besides CPUs 0 to 7.
pub(crate) fn facts(name: &str, files: &[(&str, &str)]) -> Facts {
    let root = std::env::temp_dir().join(format!("quietcore-made-{name}-{}", std::process::id()));
    let cpus = [("sys/devices/system/cpu/possible", "0-7"), ("sys/devices/system/cpu/online", "0-7")];
    for (path, text) in cpus.iter().chain(files) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a scratch folder");
        fs::write(path, text).expect("a scratch file");
    }
    let facts = Facts::read(&root);
    fs::remove_dir_all(root).expect("the scratch folder");
    facts
}

/// Release, command line, and what the kernel shows as isolated and as nohz_full.
const BOOTS: &[[&str; 4]] = &[
    // An unknown flag, on either side of 5.8; no flag at all.
    ["5.7.19", "isolcpus=future,later,2-3", "", ""],
    ["5.8.0", "isolcpus=future,later,2-3", "", ""],
    ["5.7.19", "isolcpus=2-3", "", ""],
    // Unknown flags in two parameters, after one that is dropped for another reason.
    ["6.1.0", "isolcpus=past,x9,1 isolcpus=future,2 isolcpus=later,3", "2-3", ""],
    // No CPU is left: by one parameter, and by two together.
    ["6.1.0", "isolcpus=0-7", "1-7", ""],
    ["6.19.0", "nohz_full=0-3 isolcpus=domain,4-7", "", "0-3"],
    // nohz_full= first: up to 5.17 they share a mask, later with the nohz flag only.
    ["5.17.15", "nohz_full=2-5 isolcpus=2-3", "", "2-5"],
    ["5.18.0", "nohz_full=2-5 isolcpus=2-3", "", "2-5"],
    ["6.12.0", "nohz_full=2-5 isolcpus=nohz,domain,2-3", "", "2-5"],
    // isolcpus= first, likewise.
    ["5.17.15", "isolcpus=2-3 isolcpus=domain,4 nohz_full=2-5", "2-4", ""],
    ["5.18.0", "isolcpus=2-3 nohz_full=2-5", "2-3", ""],
    ["6.12.0", "isolcpus=nohz,domain,2-3 nohz_full=2-5", "2-3", "2-3"],
    ["5.17.15", "nohz_full=2-5 isolcpus=2-3", "2-3", ""],
    ["5.17.15", "isolcpus=x9,2 nohz_full=2-5", "", ""],
    // A CPU that is not there.
    ["6.12.0", "nohz_full=4-11", "", ""],
    // isolcpus= thrice: the last is dropped. Twice: the first is.
    ["6.12.0", "isolcpus=domain,2-3 isolcpus=domain,2 isolcpus=domain,3-4", "2-3", ""],
    ["6.12.0", "isolcpus=domain,4 isolcpus=domain,2-3", "2-3", ""],
    // Without the domain flag: CPUs of another parameter that has it are not open.
    ["6.12.0", "isolcpus=domain,1-2 isolcpus=nohz,2-3 isolcpus=managed_irq,5-6", "", ""],
];

/// Goal: of several parameters the right one is named, with the reason for which the kernel drops it.
/// Method: what and why each boot's findings say, and their remedies.
#[test]
fn a_dropped_parameter_is_named_with_its_reason() {
    let mut found = String::new();
    for (number, [release, line, isolated, nohz_full]) in BOOTS.iter().enumerate() {
        let facts = facts(
            &format!("boot{number}"),
            &[
                ("proc/sys/kernel/osrelease", release),
                ("proc/cmdline", line),
                ("sys/devices/system/cpu/isolated", isolated),
                ("sys/devices/system/cpu/nohz_full", nohz_full),
            ],
        );
        found += &format!("== {release} {line}: isolated \"{isolated}\", nohz_full \"{nohz_full}\"\n");
        let about = |id: &str| id.starts_with("isolcpus-") || id == "nohz-full-ignored";
        for finding in examine(&facts).findings.iter().filter(|finding| about(finding.id)) {
            let change = finding.change.replace('\n', "\n    ");
            found += &format!("{}\n  {}\n  {}\n  > {change}\n", finding.id, finding.what, finding.why);
        }
    }
    insta::assert_snapshot!("boots", found);
}

/// Goal: nothing is said of a parameter when what the kernel made of it is not known.
#[test]
fn an_unknown_nohz_full_is_not_judged() {
    let ids = |files: &[(&str, &str)]| -> Vec<&str> {
        let findings = examine(&facts("unknown", files)).findings;
        findings.iter().map(|finding| finding.id).filter(|id| *id == "nohz-full-ignored").collect()
    };
    let line = ("proc/cmdline", "nohz_full=2-5");
    let shown = |text| ("sys/devices/system/cpu/nohz_full", text);
    assert_eq!(ids(&[line, shown("2-x")]), [""; 0]);
    assert_eq!(ids(&[line, ("sys/devices/system/cpu/online", "0-x")]), [""; 0]);
    assert_eq!(
        ids(&[line, ("proc/self/status", "Cpus_allowed_list: x"), shown("2-4")]),
        ["nohz-full-ignored"]
    );
}
