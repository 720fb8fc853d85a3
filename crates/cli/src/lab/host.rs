//! The host that a run of the lab was on, as far as figures depend on it. Only reads; what cannot be read is absent.

use quietcore_core::CpuSet;
use quietcore_trace::Facts;
use serde::Serialize;

/// See the module.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Host {
    pub(super) kernel: Option<String>,
    pub(super) processor: Option<String>,
    /// Whether the processor says that it is a virtual machine's.
    pub(super) is_virtual: Option<bool>,
    pub(super) cpus_online: String,
    /// Those that this process may run on.
    pub(super) cpus_allowed: String,
    pub(super) isolated: String,
    pub(super) nohz_full: String,
    /// Of the last 1, 5 and 15 minutes, when the run began.
    pub(super) load_average: Option<String>,
    /// Of the first CPU.
    pub(super) governor: Option<String>,
    pub(super) clock_source: Option<String>,
}

impl Host {
    pub(super) fn read(allowed: &CpuSet) -> Self {
        let facts: Facts = crate::host::facts();
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
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
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

/// A file of the kernel's, or nothing.
fn line(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// One line without what could drive a terminal.
fn printable(text: &str) -> String {
    text.trim().chars().filter(|char| !char.is_control()).take(200).collect()
}
