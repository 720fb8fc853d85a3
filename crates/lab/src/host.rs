//! The host that a run of the lab was on, as far as figures depend on it. Only reads; what cannot be read is
//! absent.

use quietcore_core::CpuSet;
use quietcore_explain::Facts;
use serde::Serialize;
use std::path::Path;

/// See the module.
#[derive(Clone, Debug, Serialize)]
pub struct LabHost {
    /// Its release.
    pub kernel: Option<String>,
    /// As the processor names itself.
    pub processor: Option<String>,
    /// Whether the processor says that it is a virtual machine's.
    pub is_virtual: Option<bool>,
    /// A kernel list.
    pub cpus_online: String,
    /// Those that this process may run on.
    pub cpus_allowed: String,
    /// A kernel list.
    pub isolated: String,
    /// A kernel list.
    pub nohz_full: String,
    /// Of the last 1, 5 and 15 minutes, when the run began.
    pub load_average: Option<String>,
    /// Of the first CPU.
    pub governor: Option<String>,
    /// The kernel's.
    pub clock_source: Option<String>,
}

impl LabHost {
    pub(crate) fn read(allowed: &CpuSet) -> Self {
        let facts: Facts = Facts::read(Path::new("/"));
        let info = line("/proc/cpuinfo");
        let of_cpu = |name: &str| {
            let found = info.as_deref()?.lines().find(|line| line.starts_with(name))?;
            Some(found.split_once(':')?.1.trim().to_owned())
        };
        let flags = of_cpu("flags");
        let load = line("/proc/loadavg");
        Self {
            kernel: line("/proc/sys/kernel/osrelease").map(|text| printable(&text)),
            processor: of_cpu("model name").map(|text| printable(&text)),
            is_virtual: flags.map(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            cpus_online: facts.online().to_string(),
            cpus_allowed: allowed.to_string(),
            isolated: facts.domain_isolated().to_string(),
            nohz_full: facts.nohz_full().to_string(),
            load_average: load.map(|text| printable(&text.split(' ').take(3).collect::<Vec<_>>().join(" "))),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
                .map(|text| printable(&text)),
            clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource")
                .map(|text| printable(&text)),
        }
    }

    /// Names and values, for people.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let or = |value: &Option<String>| value.clone().unwrap_or_else(|| "cannot be read".to_owned());
        let none = |list: &str| if list.is_empty() { "none".to_owned() } else { list.to_owned() };
        let processor = match self.is_virtual {
            Some(true) => format!("{} (a virtual machine)", or(&self.processor)),
            _ => or(&self.processor),
        };
        vec![
            ("kernel", or(&self.kernel)),
            ("processor", processor),
            ("CPUs", format!("{} online, {} for this process", self.cpus_online, self.cpus_allowed)),
            ("isolated", format!("{} (nohz_full: {})", none(&self.isolated), none(&self.nohz_full))),
            ("load average", or(&self.load_average)),
            ("governor", or(&self.governor)),
            ("clock source", or(&self.clock_source)),
        ]
    }
}

/// Time of all CPUs and of this process, as the kernel counts it, in its own unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuTimes {
    total: u64,
    idle: u64,
    own: u64,
}

impl CpuTimes {
    /// `None` where the kernel does not say.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&line("/proc/stat")?, &line("/proc/self/stat")?)
    }

    fn parse(all: &str, own: &str) -> Option<Self> {
        let first = all.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // User, nice, system, idle, iowait, irq, softirq, steal; what follows is part of the first two.
        let of_all: Vec<u64> =
            first.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        // Behind the name, which may hold anything: state is the first field, user and system the 12th and
        // 13th.
        let fields: Vec<&str> = own.rsplit_once(')')?.1.split_whitespace().collect();
        let time = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let idle = of_all.get(3)? + of_all.get(4)?;
        Some(Self { total: of_all.iter().sum(), idle, own: time(11)? + time(12)? })
    }

    /// Share of all CPUs' time, in percent, that others have taken since: processes, interrupts, the
    /// hypervisor.
    pub(crate) fn others_until(self, later: Self) -> Option<f64> {
        let total = later.total.checked_sub(self.total).filter(|total| *total > 0)?;
        let idle = later.idle.checked_sub(self.idle)?;
        let own = later.own.checked_sub(self.own)?;
        Some(100.0 * total.saturating_sub(idle).saturating_sub(own) as f64 / total as f64)
    }
}

/// Share of all CPUs' time that others took while `work` ran, in percent.
pub(crate) fn beside<T>(work: impl FnOnce() -> T) -> (T, Option<f64>) {
    let before = CpuTimes::now();
    let done = work();
    let after = CpuTimes::now();
    (done, before.zip(after).and_then(|(before, after)| before.others_until(after)))
}

/// A file of the kernel's, or nothing.
fn line(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// One line without what could drive a terminal.
fn printable(text: &str) -> String {
    text.trim().chars().filter(|char| !char.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::CpuTimes;

    /// Goal: others are all but the idle and us. Method: two moments, with a name that looks like fields.
    #[test]
    fn others_are_all_but_the_idle_and_us() {
        let at = |stat: &str, own: &str| CpuTimes::parse(stat, own).expect("as the kernel writes it");
        let own =
            |user: u32, system: u32| format!("7 (a) 1 (b) S 1 7 7 0 -1 0 1 0 0 0 {user} {system} 0 0 20 0 3");
        let before = at("cpu  100 0 50 800 10 0 5 0 90 0\ncpu0 1 1\n", &own(40, 10));
        let after = at("cpu  160 0 60 900 10 5 5 20 95 0\n", &own(80, 20));
        // 195 in all, 100 of them idle, 50 ours.
        let percent = before.others_until(after).expect("time went by");
        assert!((percent - 100.0 * 45.0 / 195.0).abs() < 1e-9, "{percent}");
        assert_eq!(before.others_until(before), None);
        assert_eq!(after.others_until(before), None);
        for (stat, own) in [("", "7 (a) S"), ("cpu  x 1", "7 (a) S"), ("cpu  1 2 3 4 5 6 7 8", "7 a S")] {
            assert_eq!(CpuTimes::parse(stat, own), None, "{stat:?} {own:?}");
        }
    }
}
