//! The check-up of whole hosts: every directory of `tests/hosts` is a copy of one, made by hand.
//!
//! One table says which findings each host gets; the tests below it look at the texts, at the
//! documentation, and at hosts that mean harm.

use quietcore_explain::{Evidence, Examination, Facts, Finding, Severity, examine};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const CRITICAL: Severity = Severity::Critical;
const WARNING: Severity = Severity::Warning;
const NOTE: Severity = Severity::Note;

/// Host, and its findings in the order reported.
const HOSTS: &[(&str, &[(Severity, &str)])] = &[
    (
        "all-isolated-6.12",
        &[
            (CRITICAL, "housekeeping-empty"),
            (WARNING, "isolated-pull-timers"),
            (WARNING, "nohz-full-no-domain"),
            (WARNING, "watchdog-on-isolated"),
            (NOTE, "nohz-full-stays-in-hierarchy"),
            (NOTE, "isolated-keeps-tick"),
            (NOTE, "skew-tick"),
            (NOTE, "rt-throttling"),
        ],
    ),
    (
        "container-6.8",
        &[(NOTE, "nothing-isolated"), (NOTE, "timer-owners"), (NOTE, "cpu-quota"), (NOTE, "affinity-narrow")],
    ),
    ("desktop-6.17", &[(NOTE, "nothing-isolated"), (NOTE, "timer-owners")]),
    ("garbled", &[]),
    (
        "isolcpus-conflict-5.15",
        &[
            (CRITICAL, "isolcpus-ignored"),
            (WARNING, "timers-pushed-when-armed"),
            (WARNING, "nohz-full-no-domain"),
            (WARNING, "rt-throttling"),
            (NOTE, "vmstat-interval"),
        ],
    ),
    ("isolcpus-flag-6.8", &[(CRITICAL, "isolcpus-ignored")]),
    (
        "isolcpus-range-6.12",
        &[
            (CRITICAL, "isolcpus-ignored"),
            (CRITICAL, "nohz-full-ignored"),
            (NOTE, "timer-migration-hrtimers-only"),
            (NOTE, "isolcpus-unknown-flag"),
        ],
    ),
    (
        "nohz-full-6.19",
        &[
            (WARNING, "nohz-full-no-domain"),
            (WARNING, "irqbalance-on-isolated"),
            (WARNING, "workqueue-on-isolated"),
            (WARNING, "rps-on-isolated"),
            (WARNING, "xps-shared-queue"),
            (NOTE, "nohz-full-stays-in-hierarchy"),
            (NOTE, "isolated-left-hierarchy"),
            (NOTE, "timer-migration-hrtimers-only"),
            (NOTE, "isolated-keeps-tick"),
            (NOTE, "rt-throttling"),
        ],
    ),
    (
        "partitions-6.14",
        &[
            (CRITICAL, "cpuset-partition-invalid"),
            (WARNING, "isolated-pull-timers"),
            (WARNING, "timer-migration-hrtimers-only"),
            (WARNING, "smt-sibling"),
            (WARNING, "irqbalance-on-isolated"),
            (NOTE, "isolated-keeps-tick"),
            (NOTE, "skew-tick"),
            (NOTE, "cpuset-partition-isolated"),
            (NOTE, "cpuset-partition-root"),
            (NOTE, "rt-throttling"),
            (NOTE, "deep-idle"),
        ],
    ),
    (
        "realtime-6.12",
        &[
            (WARNING, "irq-on-isolated"),
            (NOTE, "nohz-full-stays-in-hierarchy"),
            (NOTE, "rcu-nocb-poll"),
            (NOTE, "cpu-frequency"),
        ],
    ),
    (
        "telco-6.12",
        &[
            (WARNING, "isolated-pull-timers"),
            (WARNING, "irq-on-isolated"),
            (WARNING, "irq-default-mask"),
            (WARNING, "xps-shared-queue"),
            (WARNING, "watchdog-on-isolated"),
            (NOTE, "rcu-nocbs-narrow"),
            (NOTE, "isolated-keeps-tick"),
            (NOTE, "skew-tick"),
            (NOTE, "rt-throttling"),
            (NOTE, "deep-idle"),
            (NOTE, "cpu-frequency"),
            (NOTE, "memory-daemons"),
        ],
    ),
    (
        "v1-balanced-5.15",
        &[
            (WARNING, "timers-pushed-when-armed"),
            (WARNING, "isolcpus-no-domain"),
            (WARNING, "cpuset-v1-balanced"),
        ],
    ),
    (
        "v1-cpusets-6.1",
        &[
            (WARNING, "cpu-quota"),
            (WARNING, "rt-throttling"),
            (WARNING, "clocksource"),
            (NOTE, "timers-pushed-when-armed"),
            (NOTE, "isolated-keeps-tick"),
            (NOTE, "skew-tick"),
            (NOTE, "affinity-narrow"),
            (NOTE, "vmstat-interval"),
        ],
    ),
    (
        "vm-kvm-clock-6.12",
        &[
            (NOTE, "nothing-isolated"),
            (NOTE, "timer-owners"),
            (NOTE, "clocksource"),
            (NOTE, "virtual-machine"),
        ],
    ),
];

fn host_dir(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts").join(name)
}

fn check_up(name: &str) -> Examination {
    examine(&Facts::read(&host_dir(name)))
}

fn finding(host: &str, id: &str) -> Finding {
    let found = check_up(host).findings.into_iter().find(|finding| finding.id == id);
    found.unwrap_or_else(|| panic!("host {host} has no finding {id}"))
}

fn row(host: &str, name: &str) -> String {
    let found = check_up(host).summary.into_iter().find(|(row, _)| *row == name);
    found.unwrap_or_else(|| panic!("host {host} has no row {name}")).1
}

fn docs() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/doctor.md");
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Goal: each host gets exactly its findings. Method: the table above, which names every host.
#[test]
fn every_host_gets_exactly_its_findings() {
    let named: BTreeSet<String> = HOSTS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let entries = fs::read_dir(host_dir("")).unwrap();
    let there: BTreeSet<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(there, named, "tests/hosts and the table differ");
    for (name, expected) in HOSTS {
        let examination = check_up(name);
        let found: Vec<_> = examination.findings.iter().map(|one| (one.severity, one.id)).collect();
        assert_eq!(found, *expected, "host {name}");
    }
}

/// Goal: every rule can fire and can stay silent, and is documented as it behaves. Method: the
/// rows of docs/reference/doctor.md against all findings of all hosts.
#[test]
fn every_rule_is_documented_and_fires_on_some_host_only() {
    let docs = docs();
    let rules = docs.split("\n## ").find(|section| section.starts_with("Rules\n")).expect("its section");
    let rows: Vec<Vec<&str>> = rules
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let mut fired = BTreeSet::new();
    for (name, _) in HOSTS {
        for finding in check_up(name).findings {
            let cell = format!("`{}`", finding.id);
            let row = rows.iter().find(|row| row[1] == cell);
            let row = row.unwrap_or_else(|| panic!("docs/reference/doctor.md has no row for {cell}"));
            assert_eq!(row[2], finding.question.name(), "question of {cell}");
            let word = finding.severity.to_string();
            assert!(
                row[3].split(", ").any(|one| one == word),
                "host {name}: {cell} is {word}, not {}",
                row[3]
            );
            fired.insert(cell);
        }
    }
    let documented: BTreeSet<String> = rows.iter().map(|row| row[1].to_owned()).collect();
    assert_eq!(fired, documented, "fired on some host, and documented");
    for cell in &documented {
        let id = cell.trim_matches('`');
        let silent = HOSTS.iter().any(|(_, findings)| findings.iter().all(|(_, other)| *other != id));
        assert!(silent, "{id} fires on every host");
    }
}

/// Goal: a finding is complete, and printable, on every host.
#[test]
fn every_finding_has_all_its_texts_and_evidence() {
    for (name, _) in HOSTS {
        for one in check_up(name).findings {
            for text in [&one.what, &one.why, &one.change, &one.predicted, &one.verify] {
                assert!(!text.is_empty() && !text.contains("  "), "host {name}, {}: {text:?}", one.id);
                // Only `change` has lines: a command to copy stands alone on its own.
                let stray = |letter: char| letter.is_control() && (letter != '\n' || text != &one.change);
                assert!(!text.chars().any(stray), "host {name}, {}: {text:?}", one.id);
            }
            assert!(one.what.ends_with('.') && one.predicted.ends_with('.'), "host {name}, {}", one.id);
            assert!(!one.evidence.is_empty(), "host {name}, {}", one.id);
            for evidence in &one.evidence {
                let Evidence::File { path, .. } = evidence else { panic!("host {name}: {evidence:?}") };
                let known = ["/proc/", "/sys/", "/etc/"].iter().any(|folder| path.starts_with(folder));
                assert!(known, "host {name}: {path}");
            }
        }
    }
}

/// A text of a finding.
type Part = fn(&Finding) -> &str;

/// What was seen, why, and what to change.
const PARTS: (Part, Part, Part) = (|one| &one.what, |one| &one.why, |one| &one.change);

fn assert_words(host: &str, id: &str, part: Part, words: &str) {
    let one = finding(host, id);
    assert!(part(&one).contains(words), "host {host}, {id}: {:?} lacks {words:?}", part(&one));
}

/// Goal: texts name the CPUs and commands of this very host. Method: words each must contain.
#[test]
fn texts_name_cpus_and_commands() {
    let (what, why, change) = PARTS;
    for (host, id, part, words) in [
        ("telco-6.12", "isolated-pull-timers", what, "kernel 6.12.48-generic isolated CPUs 2-7,10-15"),
        ("telco-6.12", "isolated-pull-timers", change, "$ quietcore keep-awake # keeps CPUs 0,8 awake"),
        ("telco-6.12", "isolated-pull-timers", why, "kernel.timer_migration=0 does not help"),
        ("telco-6.12", "irq-on-isolated", what, "3 interrupts reach isolated CPUs 2-3,10, 204 deliveries"),
        ("telco-6.12", "irq-on-isolated", what, "36 (eth0-TxRx-2), 37 (eth0-TxRx-3), 39 (xhci_hcd)"),
        ("telco-6.12", "irq-on-isolated", change, "echo 0-1,8-9 > /proc/irq/36/smp_affinity_list"),
        ("telco-6.12", "irq-default-mask", change, "echo 303 > /proc/irq/default_smp_affinity"),
        ("telco-6.12", "xps-shared-queue", change, "echo 3 > /sys/class/net/eth0/queues/tx-0/xps_cpus"),
        ("telco-6.12", "watchdog-on-isolated", change, "sysctl -w kernel.watchdog_cpumask=0-1,8-9"),
        ("telco-6.12", "rcu-nocbs-narrow", what, "CPUs 6-7,10-15"),
        ("nohz-full-6.19", "workqueue-on-isolated", what, "CPUs 2-3"),
        (
            "nohz-full-6.19",
            "workqueue-on-isolated",
            change,
            "echo c03 > /sys/devices/virtual/workqueue/cpumask",
        ),
        ("nohz-full-6.19", "rps-on-isolated", change, "echo 0 > /sys/class/net/eth0/queues/rx-0/rps_cpus"),
        ("nohz-full-6.19", "isolated-left-hierarchy", what, "CPUs 8-9"),
        ("isolcpus-conflict-5.15", "isolcpus-ignored", why, "\"nohz_full= must match isolcpus=\""),
        ("isolcpus-conflict-5.15", "isolcpus-ignored", change, "domain,2-7 nohz_full=2-7"),
        ("isolcpus-flag-6.8", "isolcpus-ignored", why, "\"managed-irq\" holds a character no flag has"),
        ("isolcpus-range-6.12", "isolcpus-ignored", why, "CPUs 0-15 only"),
        ("isolcpus-range-6.12", "isolcpus-ignored", change, "isolcpus=managed_irq,domain,4-15"),
        ("isolcpus-range-6.12", "nohz-full-ignored", why, "without CONFIG_NO_HZ_FULL"),
        ("isolcpus-range-6.12", "isolcpus-unknown-flag", what, "quiet_please"),
        ("v1-balanced-5.15", "isolcpus-no-domain", what, "isolcpus=managed_irq,6-7"),
        ("v1-balanced-5.15", "timers-pushed-when-armed", what, "CPUs 4-7"),
        ("v1-balanced-5.15", "timers-pushed-when-armed", change, "sysctl -w kernel.timer_migration=0"),
        (
            "v1-balanced-5.15",
            "cpuset-v1-balanced",
            change,
            "echo 0 > /sys/fs/cgroup/cpuset/cpuset.sched_load_balance",
        ),
        ("v1-cpusets-6.1", "rt-throttling", what, "50 ms of every 1000 ms"),
        ("v1-cpusets-6.1", "cpu-quota", change, "echo -1 > /sys/fs/cgroup/cpu,cpuacct/rt/cpu.cfs_quota_us"),
        ("partitions-6.14", "cpuset-partition-invalid", what, "Cpu list in cpuset.cpus not exclusive"),
        ("partitions-6.14", "smt-sibling", what, "Isolated CPUs 5-6 share a core with housekeeping CPUs 4,7"),
        ("container-6.8", "cpu-quota", what, "150000 us of CPU time per 100000 us (1.50 CPUs)"),
        ("container-6.8", "affinity-narrow", what, "CPUs 2-3 only; it cannot use CPUs 0-1,4-7"),
    ] {
        assert_words(host, id, part, words);
    }
}

/// Goal: so do those about services, frequencies, threads and the owners of timers. Method: as above.
#[test]
fn texts_about_services_name_cpus_and_commands() {
    let (what, why, change) = PARTS;
    for (host, id, part, words) in [
        ("telco-6.12", "cpu-frequency", change, "cpupower -c 2-7,10-15 frequency-set -g performance"),
        (
            "telco-6.12",
            "cpu-frequency",
            what,
            "powersave (balance_performance) on CPUs 2-7, schedutil on CPUs 10-15",
        ),
        (
            "realtime-6.12",
            "cpu-frequency",
            change,
            "> /sys/devices/system/cpu/cpu2/cpufreq/energy_performance_preference",
        ),
        ("realtime-6.12", "irq-on-isolated", why, "handlers run in threads"),
        ("realtime-6.12", "rcu-nocb-poll", what, "CPUs 2-3"),
        ("partitions-6.14", "irqbalance-on-isolated", what, "isolated CPUs 5-6"),
        ("partitions-6.14", "irqbalance-on-isolated", change, "IRQBALANCE_BANNED_CPULIST=5-6"),
        ("nohz-full-6.19", "irqbalance-on-isolated", what, "isolated CPUs 8-9"),
        (
            "nohz-full-6.19",
            "irqbalance-on-isolated",
            change,
            "In /etc/sysconfig/irqbalance: IRQBALANCE_BANNED_CPULIST=2-9",
        ),
        ("desktop-6.17", "timer-owners", what, "CPU 3: 52000, CPU 0: 20100, CPU 1: 18000 of 121100"),
        ("desktop-6.17", "timer-owners", what, "(groups: 0-7)"),
        ("desktop-6.17", "timer-owners", change, "$ quietcore explain --live 10s"),
    ] {
        assert_words(host, id, part, words);
    }
}

/// Goal: a parameter that is proposed keeps the CPUs that it names now. Method: copies of hosts on which
/// those are others than the ones the finding is about: one file changed each, and the whole proposal.
#[test]
fn proposals_keep_what_is_named_now() {
    let nohz_full = "sys/devices/system/cpu/nohz_full";
    for (host, file, text, id, change) in [
        ("partitions-6.14", nohz_full, "2\n", "cpuset-partition-isolated", "boot with nohz_full=2,5-6"),
        (
            "partitions-6.14",
            nohz_full,
            "2\n",
            "isolated-keeps-tick",
            "boot with nohz_full=2,5-6 rcu_nocbs=2,5-6",
        ),
        (
            "telco-6.12",
            "proc/cmdline",
            "isolcpus=managed_irq,domain,2-7,10-15 rcu_nocbs=1-5\n",
            "rcu-nocbs-narrow",
            "boot with rcu_nocbs=1-7,10-15",
        ),
        (
            "telco-6.12",
            "proc/cmdline",
            "isolcpus=domain,2-7,10-15 isolcpus=domain,1\n",
            "isolcpus-ignored",
            "isolcpus=managed_irq,domain,1-7,10-15",
        ),
    ] {
        let root = scratch(&format!("proposal-{id}"));
        copy(&host_dir(host), &root).unwrap();
        fs::write(root.join(file), text).unwrap();
        let found = examine(&Facts::read(&root)).findings;
        let one = found.iter().find(|one| one.id == id).unwrap_or_else(|| panic!("{host} has no {id}"));
        assert_eq!(one.change, change, "host {host}, {id}");
        fs::remove_dir_all(root).unwrap();
    }
}

/// Goal: what the command line already does is no finding, and each value that does not do it leaves the
/// finding. Method: a host with words appended to its command line, and its driver of idle states.
#[test]
fn what_the_command_line_does_is_no_finding() {
    for (id, driver, appended, is_found) in [
        ("skew-tick", "intel_idle", "", true),
        ("skew-tick", "intel_idle", "skew_tick=0", true),
        ("skew-tick", "intel_idle", "skew_tick=1", false),
        ("deep-idle", "intel_idle", "", true),
        ("deep-idle", "none", "", false),
        ("deep-idle", "intel_idle", "intel_idle.max_cstate=1", false),
        ("deep-idle", "intel_idle", "intel_idle.max_cstate=2", true),
        ("deep-idle", "intel_idle", "processor.max_cstate=1", true),
        ("deep-idle", "acpi_idle", "processor.max_cstate=1", false),
        ("deep-idle", "acpi_idle", "processor.max_cstate=0", false),
        ("deep-idle", "acpi_idle", "processor.max_cstate=3", true),
        ("deep-idle", "acpi_idle", "intel_idle.max_cstate=0", true),
        ("deep-idle", "acpi_idle", "intel_idle.max_cstate=1", true),
        ("deep-idle", "acpi_idle", "idle=nomwait", true),
        ("deep-idle", "acpi_idle", "idle=halt", false),
        ("deep-idle", "acpi_idle", "idle=poll", false),
    ] {
        let root = scratch("command-line");
        let _ = copy(&host_dir("telco-6.12"), &root).unwrap();
        let file = root.join("proc/cmdline");
        let line = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("{} {appended}\n", line.trim_end())).unwrap();
        fs::write(root.join("sys/devices/system/cpu/cpuidle/current_driver"), driver).unwrap();
        let found = examine(&Facts::read(&root)).findings;
        assert_eq!(found.iter().any(|one| one.id == id), is_found, "{id}: {driver}, {appended:?}");
        fs::remove_dir_all(root).unwrap();
    }
}

/// Goal: the summary says how the isolation came about. Method: one host per way.
#[test]
fn the_summary_names_the_isolation_and_its_origin() {
    for (host, name, value) in [
        ("telco-6.12", "isolated", "2-7,10-15 (by isolcpus=)"),
        ("nohz-full-6.19", "isolated", "4-9 (by isolcpus=)"),
        ("partitions-6.14", "isolated", "5-6 (by cpuset partition)"),
        ("nohz-full-6.19", "nohz_full", "2-7"),
        ("nohz-full-6.19", "housekeeping", "0-1,10-11"),
        ("v1-cpusets-6.1", "isolated", "4-7 (by v1 cpusets)"),
        ("v1-cpusets-6.1", "cgroup", "v1, /rt, 1 CPU quota in force"),
        ("desktop-6.17", "isolated", "none"),
        ("vm-kvm-clock-6.12", "virtualisation", "virtual machine (QEMU Standard PC)"),
        ("container-6.8", "virtualisation", "none seen; in a container (docker)"),
        ("telco-6.12", "tick", "1000 per second"),
        ("desktop-6.17", "tick", "unknown"),
        ("telco-6.12", "tuned", "cpu-partitioning"),
        ("telco-6.12", "SMIs", "42 since the machine was reset"),
        ("partitions-6.14", "SMIs", "unknown (root sees them on Intel's processors, with the module msr)"),
        (
            "telco-6.12",
            "interrupts",
            "not in threads, unless a driver asks for it; irqbalance runs, and spares CPUs 2-7,10-15",
        ),
        ("realtime-6.12", "interrupts", "in threads (PREEMPT_RT); irqbalance does not run"),
        ("desktop-6.17", "frequency", "powersave (balance_power) on CPUs 0-7"),
        ("desktop-6.17", "tuned", "no profile seen"),
        ("garbled", "frequency", "unknown"),
        ("garbled", "kernel", "unknown"),
    ] {
        assert_eq!(row(host, name), value, "host {host}, row {name}");
    }
    assert!(row("v1-cpusets-6.1", "timer_migration").contains("(up to 6.8)"));
}

/// Goal: every garbled file is named, none is believed. Method: the garbled host.
#[test]
fn a_garbled_host_is_reported_file_by_file() {
    let facts = Facts::read(&host_dir("garbled"));
    for (path, reason) in [
        ("/proc/cmdline", "leads out of the root"),
        ("/sys/devices/system/cpu/possible", "leads out of the root"),
        ("/proc/sys/kernel/timer_migration", "not UTF-8 text"),
        (
            "/sys/devices/system/cpu/online",
            "CPU number 4000000000 is out of range (expected a number below 8192)",
        ),
        ("/proc/self/status", "CPU range 7-3 ends before it begins (expected 3-7)"),
        ("/sys/kernel/mm/ksm/run", "not a regular file"),
    ] {
        let there = facts.unreadable.iter().any(|(one, why)| one == path && why == reason);
        assert!(there, "{path} ({reason}) is not in {:?}", facts.unreadable);
    }
    assert!(facts.isolated().is_empty() && facts.online().is_empty());
    assert!(row("garbled", "unreadable").starts_with(&facts.unreadable.len().to_string()));
}

fn scratch(name: &str) -> PathBuf {
    let root = std::env::temp_dir().join(format!("quietcore-doctor-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    root
}

/// Copies `from` into `to` and returns the regular files written.
fn copy(from: &Path, to: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            files.extend(copy(&entry.path(), &target)?);
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, target)?;
        } else {
            fs::copy(entry.path(), &target)?;
            files.push(target);
        }
    }
    Ok(files)
}

/// Goal: no content of any one file makes it panic or hang. Method: each file of the three richest
/// hosts is replaced by each kind of junk in turn, the rest of the host being sound.
#[test]
fn junk_in_any_file_is_survived() {
    let huge = "9".repeat(2 << 20);
    let lists = "0-8191,".repeat(1000);
    let junk: [&[u8]; 9] = [
        b"",
        b"\n",
        b"\xff\xfe\x00",
        b"-1",
        b"0-8191",
        b"18446744073709551615",
        b"max 0",
        huge.as_bytes(),
        lists.as_bytes(),
    ];
    for host in ["telco-6.12", "v1-cpusets-6.1", "partitions-6.14"] {
        let root = scratch(host);
        for file in copy(&host_dir(host), &root).unwrap() {
            let sound = fs::read(&file).unwrap();
            for bytes in junk {
                fs::write(&file, bytes).unwrap();
                let examination = examine(&Facts::read(&root));
                assert_eq!(examination.summary.len(), 17, "{}", file.display());
            }
            fs::write(&file, sound).unwrap();
        }
        fs::remove_dir_all(root).unwrap();
    }
}

/// Goal: names chosen by others become neither commands nor terminal escapes, and a FIFO does not
/// stop the check-up. Method: a cgroup with a hostile name, a FIFO for the command line, a link to
/// itself, and an absolute link out of the root.
#[test]
fn hostile_names_are_quoted_and_fifos_are_refused() {
    let root = scratch("hostile");
    copy(&host_dir("partitions-6.14"), &root).unwrap();
    let groups = root.join("sys/fs/cgroup");
    fs::rename(groups.join("dpdk.slice"), groups.join("a$(reboot)'\u{1b}[2J\u{202e}")).unwrap();
    let cmdline = root.join("proc/cmdline");
    fs::remove_file(&cmdline).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &cmdline, rustix::fs::FileType::Fifo, mode, 0).unwrap();

    // Not in tests/hosts: packaging follows links.
    let (vendor, status) = (root.join("sys/class/dmi/id/sys_vendor"), root.join("proc/self/status"));
    fs::remove_file(&vendor).unwrap();
    symlink("sys_vendor", vendor).unwrap();
    fs::remove_file(&status).unwrap();
    symlink("/proc/self/status", status).unwrap();

    let facts = Facts::read(&root);
    let findings = examine(&facts).findings;
    let one = findings.iter().find(|one| one.id == "cpuset-partition-invalid").expect("still invalid");
    assert!(one.change.contains(r"'/sys/fs/cgroup/a$(reboot)'\''"), "{}", one.change);
    assert!(!format!("{one:?}").contains("\\u{1b}") && !one.change.contains('\u{1b}'), "{one:?}");
    assert!(!one.change.contains('\u{202e}'), "{one:?}");
    let fifo = ("/proc/cmdline".to_owned(), "not a regular file".to_owned());
    assert!(facts.unreadable.contains(&fifo), "{:?}", facts.unreadable);
    let absolute = ("/proc/self/status".to_owned(), "leads out of the root".to_owned());
    assert!(facts.unreadable.contains(&absolute), "{:?}", facts.unreadable);
    let looped = facts.unreadable.iter().any(|(path, _)| path.ends_with("sys_vendor"));
    assert!(looped, "{:?}", facts.unreadable);
    fs::remove_dir_all(root).unwrap();
}

/// Goal: on a host without isolation nothing is a warning, so the command exits with 0.
#[test]
fn an_ordinary_host_gets_no_warning() {
    for host in ["desktop-6.17", "vm-kvm-clock-6.12", "container-6.8"] {
        let worst = check_up(host).findings.iter().map(|one| one.severity).max();
        assert_eq!(worst, Some(NOTE), "host {host}");
    }
}

/// Goal: the live host can be read by any user, and reading it twice gives the same facts.
#[test]
fn the_live_host_can_be_examined() {
    let once = examine(&Facts::read(Path::new("/")));
    assert_eq!(once.summary.len(), 17);
    assert!(once.summary.iter().all(|(_, value)| !value.is_empty()), "{:?}", once.summary);
    let ids: BTreeSet<&str> = once.findings.iter().map(|one| one.id).collect();
    assert_eq!(ids.len(), once.findings.len(), "a rule fired twice: {ids:?}");
}
