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
        Self::read_below(Path::new("/"), allowed)
    }

    /// The same of files below `root`.
    fn read_below(root: &Path, allowed: &CpuSet) -> Self {
        let facts: Facts = Facts::read(root);
        let shown = |path: &str| text(&root.join(path)).map(|text| printable(&text));
        let info = text(&root.join("proc/cpuinfo"));
        let of_cpu = |name: &str| {
            let found = info.as_deref()?.lines().find(|line| line.starts_with(name))?;
            Some(found.split_once(':')?.1.trim().to_owned())
        };
        let load = text(&root.join("proc/loadavg"));
        Self {
            kernel: shown("proc/sys/kernel/osrelease"),
            processor: of_cpu("model name").map(|text| printable(&text)),
            is_virtual: of_cpu("flags").map(|flags| has_hypervisor(&flags)),
            cpus_online: facts.online().to_string(),
            cpus_allowed: allowed.to_string(),
            isolated: facts.domain_isolated().to_string(),
            nohz_full: facts.nohz_full().to_string(),
            load_average: load.map(|text| printable(&text.split(' ').take(3).collect::<Vec<_>>().join(" "))),
            governor: shown("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            clock_source: shown("sys/devices/system/clocksource/clocksource0/current_clocksource"),
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
        let online = match self.cpus_online.as_str() {
            "" => String::new(),
            cpus => format!("{cpus} online, "),
        };
        vec![
            ("kernel", or(&self.kernel)),
            ("processor", processor),
            ("CPUs", format!("{online}{} for this process", self.cpus_allowed)),
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
        Self::parse(&text(Path::new("/proc/stat"))?, &text(Path::new("/proc/self/stat"))?)
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
fn text(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Whether a processor's flags say that it is a virtual machine's.
fn has_hypervisor(flags: &str) -> bool {
    flags.split(' ').any(|flag| flag == "hypervisor")
}

/// One line without what could drive a terminal.
fn printable(text: &str) -> String {
    text.trim().chars().filter(|char| !char.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::{CpuTimes, LabHost, has_hypervisor, printable};
    use std::fs;

    /// Goal: others are all but the idle and us. Method: two moments, with a name that looks like fields.
    #[test]
    fn others_are_all_but_the_idle_and_us() {
        let at = |stat: &str, own: &str| CpuTimes::parse(stat, own).expect("as the kernel writes it");
        let own =
            |user: u32, system: u32| format!("7 (a) 1 (b) S 1 7 7 0 -1 0 1 0 0 0 {user} {system} 0 0 20 0 3");
        let before = at("cpu  100 0 50 800 10 0 5 0 90 0\ncpu0 1 1\n", &own(40, 10));
        let after = at("cpu  160 0 60 900 14 5 5 20 95 0\n", &own(80, 20));
        // 199 in all, 104 of them idle, 50 ours.
        let percent = before.others_until(after).expect("time went by");
        assert!((percent - 100.0 * 45.0 / 199.0).abs() < 1e-9, "{percent}");
        let one_later = CpuTimes { total: before.total + 1, ..before };
        assert_eq!(before.others_until(one_later), Some(100.0));
        assert_eq!(before.others_until(before), None);
        assert_eq!(after.others_until(before), None);
        for (stat, own) in [("", "7 (a) S"), ("cpu  x 1", "7 (a) S"), ("cpu  1 2 3 4 5 6 7 8", "7 a S")] {
            assert_eq!(CpuTimes::parse(stat, own), None, "{stat:?} {own:?}");
        }
    }

    /// Goal: a host is what its files say, and "cannot be read" or "none" where they say nothing. Method: a
    /// folder of files in which all differ, and none.
    #[test]
    fn a_host_is_what_its_files_say() {
        let root = std::env::temp_dir().join(format!("quietcore-lab-host-{}", std::process::id()));
        let cpu = "processor\t: 0\nmodel name\t: A: one\u{1b}\nflags\t\t: fpu hypervisor sse\n\
                   processor\t: 1\nmodel name\t: Two\nflags\t\t: fpu\n";
        for (path, text) in [
            ("proc/sys/kernel/osrelease", "6.19.0-x\n"),
            ("proc/cpuinfo", cpu),
            ("proc/loadavg", "0.10 0.25 0.75 1/99 4711\n"),
            ("sys/devices/system/cpu/online", "0-5\n"),
            ("sys/devices/system/cpu/isolated", "3\n"),
            ("sys/devices/system/cpu/nohz_full", "4-5\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("it has a folder")).expect("a temporary folder");
            fs::write(path, text).expect("a temporary file");
        }
        let allowed = "1-2".parse().expect("a list");
        let facts = LabHost::read_below(&root, &allowed).facts();
        fs::remove_dir_all(&root).expect("it is ours");
        let nothing = LabHost::read_below(&root, &allowed);
        assert_eq!(nothing.is_virtual, None);
        let expected = [
            ("kernel", "6.19.0-x", "cannot be read"),
            ("processor", "A: one (a virtual machine)", "cannot be read"),
            ("CPUs", "0-5 online, 1-2 for this process", "1-2 for this process"),
            ("isolated", "3 (nohz_full: 4-5)", "none (nohz_full: none)"),
            ("load average", "0.10 0.25 0.75", "cannot be read"),
            ("governor", "powersave", "cannot be read"),
            ("clock source", "hpet", "cannot be read"),
        ];
        assert_eq!(facts, expected.map(|(name, is, _)| (name, is.to_owned())));
        assert_eq!(nothing.facts(), expected.map(|(name, _, absent)| (name, absent.to_owned())));
    }

    /// Goal: a processor is a virtual machine's only if it says so, and a line has an end. Method: flags that
    /// are nearly the right one; a long line.
    #[test]
    fn what_is_shown_is_short_and_what_was_said() {
        let found = ["fpu hypervisor", "fpu nohypervisor sse", ""].map(has_hypervisor);
        assert_eq!(found, [true, false, false]);
        assert_eq!(printable(&format!(" a\tb{}\n", "x".repeat(200))), format!("ab{}", "x".repeat(198)));
    }
}
