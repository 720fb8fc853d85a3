//! Hosts of a few files each, for what no host of `tests/hosts` has: parameters that contradict each other or
//! the kernel, and several of a kind where a rule names one of them.

use crate::doctor::page;
use quietcore_explain::{Facts, Finding, examine};
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
    ["6.12.0", "nohz_full=2-5 isolcpus=nohz,domain,2-5", "2-3", "2-5"],
    ["6.12.0", "nohz_full=2-5 isolcpus=nohz,domain,2-3", "", "2-5"],
    // isolcpus= first, likewise.
    ["5.17.15", "isolcpus=2-3 isolcpus=domain,4 nohz_full=2-5", "2-4", ""],
    ["5.18.0", "isolcpus=2-3 nohz_full=2-5", "2-3", ""],
    ["6.12.0", "isolcpus=nohz,domain,2-3 nohz_full=2-5", "2-3", "2-3"],
    ["6.12.0", "isolcpus=nohz,domain,2-5 nohz_full=2-5", "2-5", "2-3"],
    ["5.17.15", "nohz_full=2-5 isolcpus=2-3", "2-3", ""],
    ["5.17.15", "isolcpus=x9,2 nohz_full=2-5", "", ""],
    // A CPU that is not there; a list that is none.
    ["6.12.0", "nohz_full=4-11", "", ""],
    ["6.12.0", "nohz_full=5-2", "", ""],
    // isolcpus= thrice: the last is dropped. Twice: the first is, or a second that names the same CPUs.
    ["6.12.0", "isolcpus=domain,2-3 isolcpus=domain,2 isolcpus=domain,3-4", "2-3", ""],
    ["6.12.0", "isolcpus=domain,4 isolcpus=domain,2-3", "2-3", ""],
    ["6.12.0", "isolcpus=nohz,2-3 isolcpus=domain,2-3", "", ""],
    // Without the domain flag: CPUs that are isolated, or of another parameter that has it, are not open.
    ["6.12.0", "isolcpus=managed_irq,2 isolcpus=nohz,5", "2", ""],
    ["6.12.0", "isolcpus=managed_irq,2 isolcpus=domain,2 isolcpus=nohz,5", "", ""],
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

const POSSIBLE: &str = "sys/devices/system/cpu/possible";
const ONLINE: &str = "sys/devices/system/cpu/online";
const SHOWN: &str = "sys/devices/system/cpu/isolated";
const NOHZ_FULL: &str = "sys/devices/system/cpu/nohz_full";
const STATUS: (&str, &str) = ("proc/self/status", "Cpus_allowed_list: 0-1");

/// Goal: each set of CPUs is the kernel's, and only what is online is isolated; the possible CPUs are those
/// online if the kernel does not say. Method: a host on which no two sets are alike.
#[test]
fn sets_of_cpus_are_told_apart() {
    let assert_sets = |possible: &str, expected: [&str; 6]| {
        let files = [
            (POSSIBLE, possible),
            (ONLINE, "0-6"),
            (SHOWN, "3-4,7"),
            (NOHZ_FULL, "4-5,8"),
            STATUS,
            ("proc/cmdline", "nohz_full=4-11 isolcpus=domain,2-N"),
        ];
        let facts = facts("sets", &files);
        let sets = [facts.possible(), facts.online(), facts.domain_isolated(), facts.nohz_full()];
        let sets = [&sets[..], &[facts.isolated(), facts.housekeeping()]].concat();
        assert_eq!(sets.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    };
    assert_sets("0-9", ["0-9", "0-6", "3-4", "4-5", "3-5", "0-2,6"]);
    assert_sets("x", ["0-6", "0-6", "3-4", "4-5", "3-5", "0-2,6"]);
}

/// Goal: "none" is said of isolated CPUs only where the kernel or its command line says so. Method: hosts
/// that have one file of several.
#[test]
fn unknown_isolation_is_not_none() {
    for (files, expected) in [
        (&[(SHOWN, "")][..], "none"),
        (&[("proc/cmdline", "quiet")], "none"),
        (&[(SHOWN, ""), (ONLINE, "x")], "unknown"),
        (&[STATUS, (NOHZ_FULL, "")], "unknown"),
        (&[("proc/cmdline", "quiet"), (ONLINE, "x")], "unknown"),
    ] {
        let rows = examine(&facts("none", files)).summary;
        assert!(rows.contains(&("isolated", expected.to_owned())), "{files:?}: {rows:?}");
    }
}

/// Goal: who asked for isolation in any way is not told that nothing is isolated. Method: each way alone.
#[test]
fn nothing_is_isolated_where_nobody_asked() {
    let partition = |state| [CGROUPS, ("cg/a/cpuset.cpus.partition", state)];
    let reserved = [
        OLD_CPUSETS,
        ("set/cpuset.cpus", "0-7"),
        ("set/a/cpuset.cpus", "3"),
        ("set/a/cpuset.cpu_exclusive", "1"),
    ];
    for (files, is_told) in [
        (&[][..], true),
        (&[(SHOWN, "")], true),
        (&[(SHOWN, ""), (ONLINE, "x")], false),
        (&[(SHOWN, ""), ("proc/cmdline", "isolcpus=2")], false),
        (&[(SHOWN, ""), ("proc/cmdline", "nohz_full=2")], false),
        (&partition("member"), true),
        // A cgroup file in an archive may be empty.
        (&partition(""), true),
        (&partition("root invalid (x)"), false),
        (&reserved, false),
        (&reserved[..3], true),
    ] {
        let findings = examine(&facts("nobody", files)).findings;
        let found = findings.iter().any(|finding| finding.id == "nothing-isolated");
        assert_eq!(found, is_told, "{files:?}");
    }
}

/// Goal: that no CPU is left, or that one is too many, is no reason where it is not known which there are.
/// Method: a host that does not say.
#[test]
fn unknown_cpus_are_no_reason() {
    for line in ["isolcpus=2-3", "nohz_full=2-3 isolcpus=2-3"] {
        let files = [(POSSIBLE, "x"), (ONLINE, "x"), (SHOWN, ""), ("proc/cmdline", line)];
        let findings = examine(&facts("reason", &files)).findings;
        let ignored =
            findings.iter().find(|finding| finding.id == "isolcpus-ignored").expect("CPUs are lost");
        assert!(ignored.why.starts_with("The reason cannot be told"), "{line}: {}", ignored.why);
    }
}

/// Goal: nothing is said of a parameter when what the kernel made of it is not known.
#[test]
fn an_unknown_nohz_full_is_not_judged() {
    let ids = |files: &[(&str, &str)]| -> Vec<&str> {
        let findings = examine(&facts("unknown", files)).findings;
        findings.iter().map(|finding| finding.id).filter(|id| *id == "nohz-full-ignored").collect()
    };
    let line = ("proc/cmdline", "nohz_full=2-5");
    let shown = |text| (NOHZ_FULL, text);
    assert_eq!(ids(&[line, shown("2-x")]), [""; 0]);
    assert_eq!(ids(&[line, (ONLINE, "0-x")]), [""; 0]);
    assert_eq!(
        ids(&[line, ("proc/self/status", "Cpus_allowed_list: x"), shown("2-4")]),
        ["nohz-full-ignored"]
    );
}

const ISOLATED: (&str, &str) = (SHOWN, "2-3");
const RELEASE: (&str, &str) = ("proc/sys/kernel/osrelease", "6.1.0");
const RUNTIME: &str = "proc/sys/kernel/sched_rt_runtime_us";
const PERIOD: (&str, &str) = ("proc/sys/kernel/sched_rt_period_us", "2000000");
const REALTIME: &str = "sys/kernel/realtime";
const CLOCK: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
const CLOCKS: &str = "sys/devices/system/clocksource/clocksource0/available_clocksource";
const CPUINFO: &str = "proc/cpuinfo";
const VENDOR: &str = "sys/class/dmi/id/sys_vendor";
const CGROUP: &str = "proc/self/cgroup";
const SAME_PAGES: &str = "sys/kernel/mm/ksm/run";
const HUGE_PAGES: &str = "sys/kernel/mm/transparent_hugepage/enabled";
const STATISTICS: &str = "proc/sys/vm/stat_interval";
const WATCHDOG: &str = "proc/sys/kernel/watchdog";
const WATCHED: &str = "proc/sys/kernel/watchdog_cpumask";
const CGROUPS: (&str, &str) = ("proc/self/mounts", "cgroup2 /cg cgroup2 rw 0 0");
const OLD_CPUSETS: (&str, &str) = ("proc/self/mounts", "x /set cgroup rw,cpuset 0 0");

/// What each machine has, besides CPUs 0 to 7 and Linux 6.1.
const MACHINES: &[&[(&str, &str)]] = &[
    // Real-time tasks are throttled, except without a limit, and where nothing is real-time or isolated.
    &[PERIOD, (RUNTIME, "0"), (REALTIME, "1")],
    &[PERIOD, (RUNTIME, "1900000"), ISOLATED],
    &[PERIOD, (RUNTIME, "0"), (REALTIME, "0")],
    &[PERIOD, (RUNTIME, "2000000"), ISOLATED],
    &[PERIOD, (RUNTIME, "-1"), ISOLATED],
    // Slow clocks: tsc is there, is not there, is not known to be there. A guest with tsc; no x86.
    &[(CPUINFO, "flags: fpu"), (CLOCK, "hpet"), (CLOCKS, "acpi_pm tsc hpet"), ISOLATED],
    &[(CPUINFO, "flags: fpu"), (CLOCK, "hpet"), (CLOCKS, "acpi_pm hpet")],
    &[(CPUINFO, "flags: fpu"), (CLOCK, "acpi_pm")],
    &[(CPUINFO, "flags: fpu hypervisor"), (CLOCK, "tsc")],
    &[("sys/hypervisor/type", "xen"), (CLOCK, "arch_sys_counter")],
    &[("sys/hypervisor/type", "")],
    // Who made it tells a guest where no CPU flag does: not on x86.
    &[(VENDOR, "QEMU"), ("sys/class/dmi/id/product_name", "Virtual Machine")],
    &[(VENDOR, "QEMU"), (CPUINFO, "flags: fpu")],
    &[(VENDOR, "Rack Maker")],
    // Containers.
    &[(CGROUP, "1:cpu:/\n0::/kubepods/containerd-7\n"), ("sys/hypervisor/type", "xen")],
    &[("run/.containerenv", ""), (CGROUP, "0::/lxc/7"), ("sys/hypervisor/type", "xen")],
    // Queues are counted, not spelt.
    &[
        ISOLATED,
        ("sys/class/net/a/queues/rx-10/rps_cpus", "c"),
        ("sys/class/net/a/queues/rx-9/rps_cpus", "5"),
    ],
    // Memory daemons: each one, both, none.
    &[ISOLATED, (SAME_PAGES, "1"), (HUGE_PAGES, "always [madvise] never")],
    &[ISOLATED, (SAME_PAGES, "2"), (HUGE_PAGES, "[always] madvise never")],
    &[ISOLATED, (SAME_PAGES, "1"), (HUGE_PAGES, "[always] madvise never")],
    &[ISOLATED, (SAME_PAGES, "0"), (HUGE_PAGES, "always madvise [never]")],
    // v1 cpusets over CPUs 0 to 5 are balanced, as one is unless it says otherwise.
    &[
        OLD_CPUSETS,
        ("set/cpuset.cpus", "0-7"),
        ("set/cpuset.sched_load_balance", "0"),
        ("set/a/cpuset.cpus", "0-3"),
        ("set/a/cpuset.sched_load_balance", "1"),
        ("set/a/cpuset.cpu_exclusive", "1"),
        ("set/b/cpuset.cpus", "4-5"),
        ("set/c/cpuset.cpus", "6"),
        ("set/c/cpuset.sched_load_balance", "0"),
    ],
    // A container's root cpuset has its own CPUs only: of the others nothing is known.
    &[OLD_CPUSETS, ("set/cpuset.cpus", "2-3"), ("set/cpuset.sched_load_balance", "1")],
    &[OLD_CPUSETS, ("set/cpuset.cpus", "2-3"), ("set/cpuset.sched_load_balance", "0")],
    // At boot and later.
    &[
        ISOLATED,
        CGROUPS,
        ("proc/cmdline", "isolcpus=domain,2-3"),
        ("cg/a/cpuset.cpus.partition", "isolated"),
        ("cg/a/cpuset.cpus.effective", "3,5"),
    ],
    // A quota and watchdogs, beside isolated CPUs.
    &[ISOLATED, CGROUPS, ("proc/self/status", "Cpus_allowed_list: 0-1,4-7"), ("cg/cpu.max", "9000 10000")],
    &[ISOLATED, (WATCHDOG, "1"), (WATCHED, "0-2"), ("proc/sys/kernel/nmi_watchdog", "0")],
    &[ISOLATED, (WATCHDOG, "1"), (WATCHED, "0-2"), ("proc/sys/kernel/nmi_watchdog", "1")],
    // From 6.19 on isolated CPUs leave the hierarchy, if there are any.
    &[("proc/sys/kernel/osrelease", "6.19.0")],
    // A kernel that does not show what it isolates.
    &[("proc/cmdline", "isolcpus=2-3 isolcpus=domain,5 isolcpus=managed_irq,6")],
    // Memory statistics: below 10 s is often.
    &[ISOLATED, (STATISTICS, "0")],
    &[ISOLATED, (STATISTICS, "9")],
    &[ISOLATED, (STATISTICS, "10")],
];

/// Goal: what a machine's settings come to, and no finding where there is nothing to say.
/// Method: findings of [`MACHINES`]; what keeps the tick and what is not isolated is told elsewhere.
#[test]
fn settings_of_machines_are_judged() {
    let mut found = String::new();
    for (number, files) in MACHINES.iter().enumerate() {
        let facts = facts(&format!("machine{number}"), &[&[RELEASE], *files].concat());
        found += "==\n";
        for (path, text) in *files {
            found += &format!("{path}: {text}\n");
        }
        let examination = examine(&facts);
        for (row, value) in &examination.summary {
            if ["isolated", "virtualisation"].contains(row) && !value.starts_with("none") {
                found += &format!("{row}: {value}\n");
            }
        }
        let told = ["nothing-isolated", "timer-owners", "isolated-keeps-tick", "skew-tick"];
        for finding in examination.findings.iter().filter(|finding| !told.contains(&finding.id)) {
            let change = finding.change.replace('\n', "\n    ");
            found += &format!("{} {}\n  {}\n  > {change}\n", finding.severity, finding.id, finding.what);
        }
    }
    insta::assert_snapshot!("machines", found);
}

/// Goal: groups of eight are counted per NUMA node, in their order; one thread per core is not several.
/// Method: the whole page of a host with nodes 2, 10 and 11, all CPUs of the last one isolated; its governor
/// cannot be changed.
#[test]
fn nodes_and_cores_are_as_shown() {
    let files = [
        ("proc/sys/kernel/osrelease", "6.12.0"),
        ("sys/devices/system/cpu/isolated", "1,3,5-7"),
        ("sys/devices/system/node/node11/cpulist", "5-7"),
        ("sys/devices/system/node/node10/cpulist", "2-4"),
        ("sys/devices/system/node/node2/cpulist", "0-1"),
        ("sys/devices/system/node/power/cpulist", "0-7"),
        ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0"),
        ("sys/devices/system/cpu/cpuidle/current_driver", "acpi_idle"),
        ("sys/devices/system/cpu/cpuidle/current_governor_ro", "ladder"),
    ];
    insta::assert_snapshot!("nodes", page(&examine(&facts("nodes", &files))));
}

/// Goal: of several quotas the tightest is named, and of several cpusets the open one; interrupts, limits and
/// names are those of this process. Method: the whole page of hosts of a few files.
#[test]
fn several_of_a_kind_are_told_apart() {
    let status = ("proc/self/status", "Cpus_allowed_list:\t2-3,6\n");
    let v2 = [
        RELEASE,
        ISOLATED,
        status,
        CGROUPS,
        ("proc/self/cgroup", "0::/a/b/c"),
        ("cg/a/b/c/cpu.max", "400000 100000"),
        ("cg/a/b/cpu.max", "50000 20000"),
        ("cg/a/cpu.max", "300000 100000"),
        ("cg/cpu.max", "max 100000"),
        ("proc/cmdline", "isolcpus=managed_irq,x9,2 isolcpus=domain,2-3"),
        ("proc/irq/7/edma/x", ""),
        ("proc/irq/7/smp_affinity_list", "1,3"),
    ];
    insta::assert_snapshot!("quotas-v2", page(&examine(&facts("v2", &v2))));
    let v1 = [
        RELEASE,
        ISOLATED,
        status,
        (
            "proc/self/mounts",
            "x /all\\040in cgroup rw,cpuset,cpu 0 0\nx /again cgroup rw,cpu 0 0\nx /set cgroup rw,cpuset 0 0\n",
        ),
        ("proc/self/cgroup", "7:memory:/m\n4:cpu,cpuset:/rt/in\n"),
        ("all in/cpuset.cpus", "0-7"),
        ("all in/cpuset.cpu_exclusive", "1"),
        ("all in/cpuset.sched_load_balance", "1"),
        ("all in/rt/cpuset.cpus", "2-3"),
        ("all in/rt/cpuset.cpu_exclusive", "1"),
        ("all in/vm/cpuset.cpus", ""),
        ("all in/vm/cpuset.effective_cpus", "3,5-6"),
        ("all in/vm/cpuset.cpu_exclusive", "1"),
        ("all in/plain/cpuset.cpus", "4"),
        ("all in/rt/in/cpu.cfs_quota_us", "300000"),
        ("all in/rt/in/cpu.cfs_period_us", "200000"),
        ("all in/rt/cpu.cfs_quota_us", "100000"),
        ("all in/rt/cpu.cfs_period_us", "80000"),
        ("all in/cpu.cfs_quota_us", "-1"),
        ("all in/cpu.cfs_period_us", "80000"),
        ("proc/cmdline", "isolcpus=domain,2-3 isolcpus=managed_irq,2-3"),
        ("proc/interrupts", "     CPU2 CPU3\n 5: 11 23 X 5-edge eth0\n 6: 100 7 X 6-edge eth1, usb\n"),
        ("proc/irq/5/smp_affinity_list", "2"),
        ("proc/irq/5/effective_affinity_list", ""),
        ("proc/irq/6/smp_affinity_list", "0-7"),
        ("proc/irq/6/effective_affinity_list", "3"),
    ];
    insta::assert_snapshot!("quotas-v1", page(&examine(&facts("v1", &v1))));
}

/// The finding `id` of a host of these files.
fn found(id: &str, files: &[(&str, &str)]) -> Option<Finding> {
    examine(&facts(id, files)).findings.into_iter().find(|finding| finding.id == id)
}

/// Goal: only a frequency that follows the load of an isolated CPU is told. Method: governors and preferences
/// of an isolated CPU beside a housekeeping CPU that has another one.
#[test]
fn a_frequency_that_follows_the_load_is_told() {
    let governor = "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor";
    let preference = "sys/devices/system/cpu/cpu2/cpufreq/energy_performance_preference";
    let other = ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "ondemand");
    let told = |files: &[(&str, &str)]| found("cpu-frequency", files).map(|one| (one.what, one.change));
    assert_eq!(told(&[ISOLATED, other]), None);
    assert_eq!(told(&[ISOLATED, other, (governor, "performance")]), None);
    assert_eq!(told(&[ISOLATED, other, (governor, "performance"), (preference, "performance")]), None);
    assert_eq!(told(&[other, (governor, "ondemand")]), None, "it is not isolated");
    for (files, choice, change) in [
        (&[(governor, "schedutil")][..], "schedutil", "$ cpupower -c 2 frequency-set -g performance"),
        (
            &[(governor, "powersave"), (preference, "performance")],
            "powersave (performance)",
            "$ cpupower -c 2 frequency-set -g performance",
        ),
        (
            &[(governor, "performance"), (preference, "128")],
            "performance (128)",
            "$ echo performance > /sys/devices/system/cpu/cpu2/cpufreq/energy_performance_preference\n\
             Likewise for the other CPUs.",
        ),
    ] {
        let what = format!("The frequency of isolated CPU 2 follows the load there: {choice} on CPU 2.");
        assert_eq!(told(&[&[ISOLATED, other], files].concat()), Some((what, change.to_owned())));
    }
}

/// Goal: irqbalance is a finding where it does not spare an isolated CPU, and nowhere else. Method: CPUs
/// isolated at boot, by nohz_full and by a partition, with and without irqbalance and settings of its own.
#[test]
fn irqbalance_is_told_what_it_does_not_spare() {
    let runs = ("proc/9/comm", "irqbalance");
    let settings = |line| ("etc/default/irqbalance", line);
    let partition =
        [CGROUPS, ("cg/a/cpuset.cpus.partition", "isolated"), ("cg/a/cpuset.cpus.effective", "5")];
    let told = |files: &[(&str, &str)]| found("irqbalance-on-isolated", files).map(|one| one.what);
    let open = |cpus: &str| Some(format!("irqbalance may move interrupts to isolated {cpus}."));
    let boot = [ISOLATED, (NOHZ_FULL, "3-4"), runs];
    assert_eq!(told(&boot), None, "it spares them by itself");
    assert_eq!(told(&[&boot[..], &[settings("IRQBALANCE_BANNED_CPULIST=2-7")]].concat()), None);
    assert_eq!(told(&[&boot[..], &[settings("IRQBALANCE_BANNED_CPUS=8")]].concat()), open("CPUs 2,4"));
    assert_eq!(told(&[&boot[..], &[settings("IRQBALANCE_BANNED_CPUS=x")]].concat()), None, "who knows");
    assert_eq!(told(&[&partition[..], &[runs]].concat()), open("CPU 5"));
    assert_eq!(told(&[&partition[..], &[("proc/1/comm", "init")]].concat()), None, "it does not run");
    assert_eq!(told(&partition), None, "processes are not shown");
    let all = [(SHOWN, ""), (NOHZ_FULL, "0-7"), settings("IRQBALANCE_BANNED_CPUS=1"), runs];
    assert_eq!(told(&all), None, "no CPU is left to move them to");
}

/// Goal: in a container the processes are its own, so it is not known that irqbalance does not run; where it
/// is among them it runs. Method: the row of each.
#[test]
fn a_container_does_not_show_irqbalance() {
    let container = ("run/.containerenv", "");
    for (files, expected) in [
        (&[("proc/1/comm", "init")][..], "irqbalance does not run"),
        (&[("proc/1/comm", "init"), container], "whether irqbalance runs is unknown"),
        (&[("proc/1/comm", "irqbalance"), container], "irqbalance runs, and spares no CPU"),
        (
            &[("proc/1/comm", "irqbalance"), ("etc/default/irqbalance", "IRQBALANCE_BANNED_CPULIST=x")],
            "irqbalance runs; which CPUs it spares is unknown",
        ),
    ] {
        let row = examine(&facts("container", files)).summary.into_iter().find(|row| row.0 == "interrupts");
        assert_eq!(row, Some(("interrupts", format!("unknown; {expected}"))), "{files:?}");
    }
}

/// Goal: what is said of interrupts on isolated CPUs is right for handlers in threads. Method: the same host
/// without, with threadirqs, and with PREEMPT_RT by its own word and by its name.
#[test]
fn threads_of_handlers_are_told() {
    let irq = [ISOLATED, ("proc/irq/7/nic/x", ""), ("proc/irq/7/smp_affinity_list", "2")];
    for (file, in_threads) in [
        (("proc/cmdline", "quiet"), false),
        (("proc/cmdline", "threadirqs"), true),
        ((REALTIME, "1"), true),
        ((REALTIME, "0"), false),
        (("proc/sys/kernel/osrelease", "6.1.0-rt7"), true),
    ] {
        let one = found("irq-on-isolated", &[&irq[..], &[file]].concat()).expect("CPU 2 has it");
        assert_eq!(one.why.contains("handlers run in threads (irq/NUMBER-NAME"), in_threads, "{file:?}");
        assert_eq!(one.verify.ends_with("; ps -eLo psr,cls,rtprio,comm | grep irq/"), in_threads, "{file:?}");
    }
}

/// Goal: polling for RCU callbacks is proposed where it is of use: with PREEMPT_RT, on isolated CPUs whose
/// callbacks are offloaded. Method: one of these missing at a time.
#[test]
fn polling_for_callbacks_is_proposed_where_it_is_of_use() {
    let line = |line| ("proc/cmdline", line);
    let told = |files: &[(&str, &str)]| found("rcu-nocb-poll", files).map(|one| one.what);
    let what = |cpus: &str| {
        Some(format!("The threads that run RCU callbacks of isolated {cpus} are woken from there."))
    };
    let realtime = (REALTIME, "1");
    assert_eq!(told(&[realtime, ISOLATED, line("rcu_nocbs=0-2")]), what("CPU 2"));
    assert_eq!(told(&[realtime, ISOLATED, line("rcu_nocbs=0"), (NOHZ_FULL, "3-4")]), what("CPUs 3-4"));
    assert_eq!(told(&[realtime, ISOLATED, line("rcu_nocbs=0-2 rcu_nocb_poll")]), None);
    assert_eq!(told(&[realtime, ISOLATED, line("quiet")]), None);
    assert_eq!(told(&[realtime, line("rcu_nocbs=0-2")]), None);
    assert_eq!(told(&[ISOLATED, line("rcu_nocbs=0-2")]), None);
    assert_eq!(told(&[realtime, (NOHZ_FULL, "0-7")]), None, "no housekeeping CPU");
}

/// Goal: where nothing is isolated, who has the timers is said as the kernel's version and setting have it.
/// Method: each, with counts and without.
#[test]
fn owners_of_timers_are_told_by_version() {
    let migration = |value| ("proc/sys/kernel/timer_migration", value);
    let release = |release| ("proc/sys/kernel/osrelease", release);
    let softirqs = ("proc/softirqs", " CPU0 CPU1 CPU2 CPU3\n TIMER: 5 9 0 5\n");
    let told = |files: &[(&str, &str)]| found("timer-owners", files).map(|one| one.what);
    let groups = [
        ("sys/devices/system/cpu/online", "0-7"),
        ("sys/devices/system/node/node0/cpulist", "0-3"),
        ("sys/devices/system/node/node1/cpulist", "4-7"),
    ];
    let own = "Each timer belongs to the CPU that armed it";
    let pushed = "; an idle CPU hands it to the nearest busy one when it arms it.";
    let pulled = "; while that is idle, a busy CPU of its group of eight runs it (groups: 0-3, 4-7).";
    let counts = " Most TIMER softirqs since boot: CPU 1: 9, CPU 0: 5, CPU 3: 5 of 19.";
    for (files, expected) in [
        (&[release("6.8.12"), migration("0")][..], format!("{own} and runs there.")),
        (&[release("6.8.12"), migration("1")], format!("{own} and runs there{pushed}")),
        (&[release("6.8.12"), softirqs], format!("{own} and runs there{pushed}{counts}")),
        (&[&groups[..], &[release("6.9.0"), migration("0")]].concat(), format!("{own}{pulled}")),
        (&[&groups[..], &[release("7.0.0"), softirqs]].concat(), format!("{own}{pulled}{counts}")),
    ] {
        assert_eq!(told(files), Some(expected), "{files:?}");
    }
    assert_eq!(told(&[softirqs]), None, "the kernel is not known");
    assert_eq!(told(&[release("6.9.0"), ISOLATED]), None);
}

/// The JSON of the host below.
fn data_of_that_host() -> serde_json::Value {
    serde_json::json!({
        "kernel": "6.12.9",
        "hz": 300,
        "preempt_rt": true,
        "timers": "pull",
        "timer_migration": 0,
        "possible": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        "online": [0, 1, 2, 3, 4, 5, 6, 7],
        "nodes": [{"node": 4, "cpus": [0, 1, 2, 3, 4, 5]}, {"node": 7, "cpus": [6, 7]}],
        "threads_per_core": 3,
        "isolated": [1, 2, 5],
        "isolated_by": {"isolcpus": [1, 2], "partitions": [5], "v1_cpusets": []},
        "nohz_full": [2, 3],
        "housekeeping": [0, 4, 6, 7],
        "affinity": [4, 5],
        "virtual_machine": "QEMU",
        "container": "podman",
        "clocksource": "tsc",
        "frequency": [
            {"cpus": [2], "governor": "powersave", "preference": "power"},
            {"cpus": [3], "governor": "schedutil", "preference": null},
        ],
        "threaded_interrupts": true,
        "irqbalance": {"runs": true, "spared": [7]},
        "tuned_profile": "realtime",
        "smi_count": 17,
        "cgroup": {
            "version": 2,
            "own": "/a",
            "quotas": [{"path": "/cg/a/cpu.max", "quota_us": 70, "period_us": 100}],
            "partitions": [
                {"path": "/cg/b/cpuset.cpus.partition", "state": "isolated", "cpus": [5]},
                {"path": "/cg/c/cpuset.cpus.partition", "state": "root invalid (x\u{fffd})", "cpus": null},
            ],
        },
    })
}

/// Goal: every key of the JSON has its own fact. Method: a host on which no two are alike, as JSON.
#[test]
fn a_host_is_data() {
    let cpu = |cpu: u32, file: &str| format!("sys/devices/system/cpu/cpu{cpu}/{file}");
    let [governor, preference, other, threads] = [
        cpu(2, "cpufreq/scaling_governor"),
        cpu(2, "cpufreq/energy_performance_preference"),
        cpu(3, "cpufreq/scaling_governor"),
        cpu(0, "topology/thread_siblings_list"),
    ];
    let mut registers = "\0".repeat(0x34);
    registers.push_str("\u{11}\0\0\0\0\0\0\0");
    let files = [
        ("proc/sys/kernel/osrelease", "6.12.9"),
        ("boot/config-6.12.9", "CONFIG_HZ=300\n"),
        (REALTIME, "1"),
        ("proc/sys/kernel/timer_migration", "0"),
        ("proc/cmdline", "isolcpus=domain,1-2"),
        (POSSIBLE, "0-9"),
        (ONLINE, "0-7"),
        (SHOWN, "1-2"),
        (NOHZ_FULL, "2-3"),
        (threads.as_str(), "0,4,6"),
        ("sys/devices/system/node/node4/cpulist", "0-5"),
        ("sys/devices/system/node/node7/cpulist", "6-7"),
        ("proc/self/status", "Cpus_allowed_list: 4-5"),
        (CPUINFO, "vendor_id: GenuineIntel\nflags: fpu hypervisor"),
        (VENDOR, "QEMU"),
        ("run/.containerenv", ""),
        (CLOCK, "tsc"),
        (governor.as_str(), "powersave"),
        (preference.as_str(), "power"),
        (other.as_str(), "schedutil"),
        ("proc/8/comm", "irqbalance"),
        ("etc/default/irqbalance", "IRQBALANCE_BANNED_CPULIST=7"),
        ("etc/tuned/active_profile", "realtime"),
        ("dev/cpu/0/msr", registers.as_str()),
        CGROUPS,
        (CGROUP, "0::/a"),
        ("cg/a/cpu.max", "70 100"),
        ("cg/b/cpuset.cpus.partition", "isolated"),
        ("cg/b/cpuset.cpus.effective", "5"),
        ("cg/c/cpuset.cpus.partition", "root invalid (x\u{1b})"),
    ];
    let host = examine(&facts("data", &files)).host;
    assert_eq!(serde_json::to_value(&host).expect("JSON"), data_of_that_host());
}

/// Goal: what a host does not say is null, and not empty or 0. Method: a host that says nothing, as JSON.
#[test]
fn what_is_not_known_is_null() {
    let json = serde_json::to_value(examine(&Facts::default()).host).expect("JSON");
    let known: Vec<String> = json
        .as_object()
        .expect("an object")
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| format!("{key} {value}"))
        .collect();
    let expected = [
        r#"cgroup {"own":null,"partitions":[],"quotas":[],"version":null}"#,
        "frequency []",
        r#"irqbalance {"runs":null,"spared":null}"#,
        r#"isolated_by {"isolcpus":[],"partitions":[],"v1_cpusets":[]}"#,
        "nodes []",
    ];
    assert_eq!(known, expected);
}

/// Goal: what is there and empty is not unknown. Method: a host that isolates nothing, as JSON.
#[test]
fn what_is_empty_is_known() {
    let files = [
        ("proc/sys/kernel/osrelease", "6.19.0"),
        ("proc/cmdline", "quiet"),
        (SHOWN, ""),
        (NOHZ_FULL, "(null)"),
    ];
    let host = examine(&facts("empty", &files)).host;
    assert_eq!((host.isolated, host.nohz_full), (Some(vec![]), Some(vec![])));
    assert_eq!(host.housekeeping.map(|cpus| cpus.len()), Some(8));
    assert_eq!((host.preempt_rt, host.threaded_interrupts), (Some(false), Some(false)));
    assert_eq!((host.timers, host.threads_per_core), (Some("pull-excludes-isolated"), Some(1)));
}

/// Goal: a hierarchy that is mounted several times is read where it is there. Method: an isolated partition,
/// and a quota and cpusets of the first version, of which a copy has the second place, the first, both and
/// none.
#[test]
fn a_mount_that_a_copy_lacks_hides_nothing() {
    let mounts = "a /gone cgroup2 rw 0 0\nb /here cgroup2 rw 0 0\n";
    let partition = |place: &str, cpus| {
        let file = |name: &str| format!("{place}/a/cpuset.cpus.{name}");
        [(file("partition"), "isolated"), (file("effective"), cpus)]
    };
    let (gone, here) = (partition("gone", "1"), partition("here", "5-6"));
    for (files, isolated) in
        [(&here[..], "5-6"), (&gone, "1"), (&[gone.clone(), here.clone()].concat(), "1"), (&[], "")]
    {
        let files = files.iter().map(|(path, text)| (path.as_str(), *text));
        let files: Vec<_> = [("proc/self/mounts", mounts), (SHOWN, "")].into_iter().chain(files).collect();
        let facts = facts("mounts", &files);
        assert_eq!(facts.domain_isolated().to_string(), isolated, "{files:?}");
        let told = examine(&facts).findings.iter().any(|finding| finding.id == "nothing-isolated");
        assert_eq!(told, isolated.is_empty(), "{files:?}");
    }
    let old = [
        ("proc/self/mounts", "x /gone cgroup rw,cpu,cpuset 0 0\nx /set cgroup rw,cpu,cpuset 0 0\n"),
        ("proc/self/cgroup", "4:cpu,cpuset:/in\n"),
        ("set/in/cpu.cfs_quota_us", "300000"),
        ("set/in/cpu.cfs_period_us", "200000"),
        ("set/cpuset.cpus", "0-7"),
        ("set/cpuset.sched_load_balance", "0"),
        ("set/in/cpuset.cpus", "0-4"),
    ];
    let host = examine(&facts("old-mounts", &old)).host;
    let quotas: Vec<_> = host.cgroup.quotas.iter().map(|quota| quota.path.as_str()).collect();
    assert_eq!((quotas, host.isolated_by.v1_cpusets), (vec!["/set/in/cpu.cfs_quota_us"], vec![5, 6, 7]));
}
