//! The rest of a host that bears on timers: sysctls, clock, idle states, unbound work, hypervisor.
//!
//! Decides only which files are read and how; every value keeps its file.
//! Not here: judgement, and anything that needs root (debugfs, `/sys/kernel/debug/sched`); `firmware.rs` has
//! the one exception.

use super::files::{Fact, Reader};
use quietcore_core::CpuSet;

/// Enough of `/proc/cpuinfo` for the flags of the first CPU.
const CPUINFO_BYTES: u64 = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct System {
    pub(crate) timer_migration: Option<Fact<i64>>,
    pub(crate) rt_runtime_us: Option<Fact<i64>>,
    pub(crate) rt_period_us: Option<Fact<i64>>,
    /// `/sys/kernel/realtime` is 1 on PREEMPT_RT.
    pub(crate) realtime: Option<Fact<i64>>,
    pub(crate) watchdog: Option<Fact<i64>>,
    pub(crate) nmi_watchdog: Option<Fact<i64>>,
    pub(crate) watchdog_cpus: Option<Fact<CpuSet>>,
    /// Seconds between two updates of the per-CPU memory counters.
    pub(crate) stat_interval: Option<Fact<i64>>,
    pub(crate) clocksource: Option<Fact<String>>,
    pub(crate) clocksources: Option<Fact<String>>,
    pub(crate) cpuidle_driver: Option<Fact<String>>,
    pub(crate) cpuidle_governor: Option<Fact<String>>,
    pub(crate) hugepages: Option<Fact<String>>,
    pub(crate) ksm_run: Option<Fact<i64>>,
    /// Where unbound work may run at all.
    pub(crate) work: Option<Fact<CpuSet>>,
    /// Where the named workqueues may run, before `work` is applied.
    pub(crate) workqueues: Vec<Fact<CpuSet>>,
    pub(crate) virt: Virt,
    /// System management interrupts since the machine was reset.
    pub(crate) smi_count: Option<Fact<u64>>,
}

/// What tells that this is a guest or a container.
#[derive(Debug, Default)]
pub(crate) struct Virt {
    /// `/proc/cpuinfo` has an x86 `flags` line.
    pub(crate) x86: bool,
    /// It is one of Intel's.
    pub(crate) intel: bool,
    /// The `hypervisor` CPU flag, or a DMI vendor that only makes virtual machines.
    pub(crate) guest: Option<Fact<String>>,
    /// The container engine that left a file or a cgroup name.
    pub(crate) container: Option<&'static str>,
}

impl System {
    pub(crate) fn read(reader: &mut Reader) -> Self {
        let clock = "/sys/devices/system/clocksource/clocksource0";
        let idle = "/sys/devices/system/cpu/cpuidle";
        let work = "/sys/devices/virtual/workqueue";
        Self {
            timer_migration: reader.number("/proc/sys/kernel/timer_migration"),
            rt_runtime_us: reader.number("/proc/sys/kernel/sched_rt_runtime_us"),
            rt_period_us: reader.number("/proc/sys/kernel/sched_rt_period_us"),
            realtime: reader.number("/sys/kernel/realtime"),
            watchdog: reader.number("/proc/sys/kernel/watchdog"),
            nmi_watchdog: reader.number("/proc/sys/kernel/nmi_watchdog"),
            watchdog_cpus: reader.list("/proc/sys/kernel/watchdog_cpumask"),
            stat_interval: reader.number("/proc/sys/vm/stat_interval"),
            clocksource: reader.word(&format!("{clock}/current_clocksource")),
            clocksources: reader.word(&format!("{clock}/available_clocksource")),
            cpuidle_driver: reader.word(&format!("{idle}/current_driver")),
            cpuidle_governor: reader
                .word(&format!("{idle}/current_governor"))
                .or_else(|| reader.word(&format!("{idle}/current_governor_ro"))),
            hugepages: reader.fact("/sys/kernel/mm/transparent_hugepage/enabled", chosen),
            ksm_run: reader.number("/sys/kernel/mm/ksm/run"),
            work: reader.mask(&format!("{work}/cpumask")),
            workqueues: reader
                .dirs(work)
                .iter()
                .filter_map(|name| reader.mask(&format!("{work}/{name}/cpumask")))
                .collect(),
            virt: Virt::read(reader),
            smi_count: None,
        }
    }
}

/// The bracketed word of `always [madvise] never`.
fn chosen(text: &str) -> Result<String, &'static str> {
    let inner = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inner.map(|(word, _)| word.to_owned()).ok_or("no choice in brackets")
}

impl Virt {
    fn read(reader: &mut Reader) -> Self {
        let path = "/proc/cpuinfo";
        let cpuinfo = reader.head(path, CPUINFO_BYTES).unwrap_or_default();
        let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
        let flagged = flags.is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"));
        let flag = flagged.then(|| Fact::new(path, "flags: ... hypervisor ...", String::new()));
        let vendor = cpuinfo.lines().find(|line| line.starts_with("vendor_id"));
        Self {
            x86: flags.is_some(),
            intel: vendor.is_some_and(|line| line.ends_with("GenuineIntel")),
            guest: read_guest(reader, flag, flags.is_some()),
            container: read_container(reader),
        }
    }
}

/// `flag` proves a guest on x86; elsewhere the firmware's vendor string has to do.
fn read_guest(reader: &mut Reader, flag: Option<Fact<String>>, x86: bool) -> Option<Fact<String>> {
    let kind = reader.word("/sys/hypervisor/type").filter(|fact| !fact.value.is_empty());
    let vendor = reader.word("/sys/class/dmi/id/sys_vendor");
    let product = reader.word("/sys/class/dmi/id/product_name");
    let name = |fact: &Option<Fact<String>>| fact.as_ref().map(|fact| fact.value.clone()).unwrap_or_default();
    let made_by = format!("{} {}", name(&vendor), name(&product)).trim().to_owned();
    let virtual_vendor = ["QEMU", "KVM", "VMware", "VirtualBox", "Xen", "Bochs", "Parallels"]
        .iter()
        .any(|vendor| made_by.contains(vendor));
    let proof = flag.or(kind).or_else(|| vendor.filter(|_| virtual_vendor && !x86))?;
    Some(Fact { value: made_by, ..proof })
}

fn read_container(reader: &mut Reader) -> Option<&'static str> {
    for (path, engine) in [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")] {
        if reader.exists(path) {
            return Some(engine);
        }
    }
    let text = reader.text("/proc/self/cgroup")?;
    ["docker", "kubepods", "containerd", "libpod", "lxc"].into_iter().find(|engine| text.contains(engine))
}
