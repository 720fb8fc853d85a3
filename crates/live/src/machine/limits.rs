//! How much of the host this process may use: CPU quotas and exclusive cpusets of control groups.
//!
//! Decides how many lanes make sense: more than the quota allows only get each other throttled. Every group
//! from the process's own up to the mount counts; the tightest quota holds. Both versions of the interface
//! are read, as a host may mount both. What cannot be read limits nothing. Absent: changes while the process
//! runs. Source: Linux Documentation, admin-guide/cgroup-v2.rst (cpu.max, cpuset.cpus.partition),
//! scheduler/sched-bwc.rst, admin-guide/cgroup-v1/cpusets.rst.

use quietcore_core::CpuSet;
use std::fs;

/// What the control groups of this process say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// As many CPUs as the quota comes to, rounded up; `None` without one.
    pub(crate) quota: Option<usize>,
    /// No other group shares this process's CPUs, so its threads may be pinned to them.
    pub(crate) is_exclusive: bool,
}

impl Limits {
    /// Of this process.
    pub(crate) fn of_this_process() -> Self {
        Self::read(|path| fs::read_to_string(path).ok())
    }

    fn read(file: impl Fn(&str) -> Option<String>) -> Self {
        let mounts = file("/proc/self/mounts").unwrap_or_default();
        let groups = file("/proc/self/cgroup").unwrap_or_default();
        let mut limits = Self::default();
        for mount in mounts.lines().filter_map(Mount::parse) {
            let own = own_path(&groups, mount.controller.name());
            for folder in ancestors(mount.folder, own) {
                if let Some(quota) = mount.controller.quota(|name| file(&format!("{folder}/{name}"))) {
                    limits.quota = Some(limits.quota.map_or(quota, |least| least.min(quota)));
                }
                // The root's set is that of all groups.
                let is_root = folder == mount.folder;
                let of = |name: &str| file(&format!("{folder}/{name}"));
                limits.is_exclusive |= !is_root && mount.controller.is_exclusive(of);
            }
        }
        limits
    }

    /// The CPUs of `allowed` that should be lanes when the program does not say which.
    pub(crate) fn lanes(self, allowed: &CpuSet) -> CpuSet {
        allowed.iter().take(self.quota.unwrap_or(usize::MAX).max(1)).collect()
    }
}

/// A hierarchy of groups that says something about CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Controller {
    /// Version 1.
    Cpu,
    /// Version 1.
    Cpuset,
    /// Version 2: all in one.
    Unified,
}

impl Controller {
    /// In `/proc/self/cgroup`.
    const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cpuset => "cpuset",
            Self::Unified => "",
        }
    }

    fn quota(self, file: impl Fn(&str) -> Option<String>) -> Option<usize> {
        let (quota, period) = match self {
            // -1 is none, and no number here.
            Self::Cpu => (file("cpu.cfs_quota_us")?, file("cpu.cfs_period_us")?),
            Self::Unified => {
                let text = file("cpu.max")?;
                let (quota, period) = text.split_once(' ')?;
                (quota.to_owned(), period.to_owned())
            }
            Self::Cpuset => return None,
        };
        let quota: u64 = quota.trim().parse().ok()?;
        let period: u64 = period.trim().parse().ok().filter(|period| *period > 0)?;
        usize::try_from(quota.div_ceil(period)).ok()
    }

    fn is_exclusive(self, file: impl Fn(&str) -> Option<String>) -> bool {
        match self {
            // Both may be mounted together.
            Self::Cpu | Self::Cpuset => file("cpuset.cpu_exclusive").is_some_and(|text| text.trim() == "1"),
            // A partition that is not valid says so after the word.
            Self::Unified => {
                file("cpuset.cpus.partition").is_some_and(|text| matches!(text.trim(), "root" | "isolated"))
            }
        }
    }
}

/// One line of `/proc/self/mounts`. Mount points with blanks in them are passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mount<'a> {
    folder: &'a str,
    controller: Controller,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split(' ').skip(1);
        let (folder, kind, options) = (words.next()?, words.next()?, words.next()?);
        let has = |name: &str| options.split(',').any(|option| option == name);
        let controller = match kind {
            "cgroup2" => Controller::Unified,
            "cgroup" if has("cpu") => Controller::Cpu,
            "cgroup" if has("cpuset") => Controller::Cpuset,
            _ => return None,
        };
        Some(Self { folder, controller })
    }
}

/// The process's group in the hierarchy of `controller`; the root if that is not told, or lies outside of
/// what the process can see.
fn own_path<'a>(groups: &'a str, controller: &str) -> &'a str {
    let path = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (names, path) = (parts.next()?, parts.next()?);
        names.split(',').any(|name| name == controller).then_some(path)
    });
    path.filter(|path| !path.split('/').any(|part| part == "..")).unwrap_or("/")
}

/// `mount` and the folders below it that lead to `own`, the mount first.
fn ancestors(mount: &str, own: &str) -> Vec<String> {
    let mut folders = vec![mount.to_owned()];
    for part in own.split('/').filter(|part| !part.is_empty()) {
        folders.push(format!("{}/{part}", folders[folders.len() - 1]));
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::Limits;
    use quietcore_core::CpuSet;

    const V1: &str = "tmpfs /cg tmpfs rw 0 0\ncgroup /cg/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
                      cgroup /cg/cpuset cgroup rw,cpuset 0 0\n";
    const V2: &str = "cgroup2 /cg cgroup2 rw,nsdelegate 0 0\n";

    /// What a host with these files says.
    fn limits(files: &[(&str, &str)]) -> Limits {
        Limits::read(|path| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned()))
    }

    /// Goal: the tightest quota on the way up holds, rounded up to whole CPUs. Method: texts as kernels write
    /// them, for both versions.
    #[test]
    fn the_tightest_quota_holds() {
        let v1 = [
            ("/proc/self/mounts", V1),
            ("/proc/self/cgroup", "4:cpu,cpuacct:/a/b\n3:cpuset:/\n"),
            ("/cg/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("/cg/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
            ("/cg/cpu,cpuacct/a/cpu.cfs_quota_us", "250000\n"),
            ("/cg/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"),
            ("/cg/cpu,cpuacct/a/b/cpu.cfs_quota_us", "800000\n"),
            ("/cg/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n"),
        ];
        assert_eq!(limits(&v1), Limits { quota: Some(3), is_exclusive: false });
        let v2 = [
            ("/proc/self/mounts", V2),
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/cg/a/cpu.max", "max 100000\n"),
            ("/cg/a/b/cpu.max", "20000 100000\n"),
        ];
        assert_eq!(limits(&v2).quota, Some(1), "a fifth of a CPU is one lane");
        assert_eq!(limits(&v2[..3]).quota, None);
        for (a, b) in [("200000 100000\n", "700000 100000\n"), ("700000 100000\n", "200000 100000\n")] {
            let both = [v2[0], v2[1], ("/cg/a/cpu.max", a), ("/cg/a/b/cpu.max", b)];
            assert_eq!(limits(&both).quota, Some(2), "{a} {b}");
        }
    }

    /// Goal: a container sees its own group as the root, or a path that it cannot reach; its limits count all
    /// the same. Method: files at the mount only.
    #[test]
    fn a_container_reads_its_limits_at_the_mount() {
        for own in ["0::/\n", "0::/../..\n", "0::/far/away\n"] {
            let files =
                [("/proc/self/mounts", V2), ("/proc/self/cgroup", own), ("/cg/cpu.max", "150000 100000\n")];
            assert_eq!(limits(&files).quota, Some(2), "{own}");
        }
    }

    /// Goal: only a group below the root can have CPUs for itself; a partition that the kernel calls invalid
    /// has not. Method: both versions' files.
    #[test]
    fn exclusive_is_what_a_group_below_the_root_says() {
        let v1 = |own| {
            [
                ("/proc/self/mounts", V1),
                ("/proc/self/cgroup", own),
                ("/cg/cpuset/cpuset.cpu_exclusive", "1\n"),
                ("/cg/cpuset/a/cpuset.cpu_exclusive", "1\n"),
                ("/cg/cpuset/b/cpuset.cpu_exclusive", "0\n"),
            ]
        };
        assert!(!limits(&v1("3:cpuset:/\n")).is_exclusive);
        assert!(limits(&v1("3:cpuset:/a/x\n")).is_exclusive);
        assert!(!limits(&v1("3:cpuset:/b\n")).is_exclusive);
        for (state, is_exclusive) in
            [("member\n", false), ("root\n", true), ("isolated\n", true), ("root invalid (no cpus)\n", false)]
        {
            let files = [
                ("/proc/self/mounts", V2),
                ("/proc/self/cgroup", "0::/a\n"),
                ("/cg/a/cpuset.cpus.partition", state),
            ];
            assert_eq!(limits(&files).is_exclusive, is_exclusive, "{state}");
        }
    }

    /// Goal: nonsense limits nothing. Method: files that no kernel writes, and none at all.
    #[test]
    fn what_cannot_be_read_limits_nothing() {
        assert_eq!(limits(&[]), Limits::default());
        for text in ["", "x", "1000", "1000 0", "-5 100000", "99999999999999999999 1"] {
            let files = [("/proc/self/mounts", V2), ("/proc/self/cgroup", "0::/\n"), ("/cg/cpu.max", text)];
            assert_eq!(limits(&files), Limits::default(), "{text}");
        }
    }

    /// Goal: there are as many lanes as the quota comes to, at least one. Method: quotas on four CPUs.
    #[test]
    fn lanes_are_the_lower_of_quota_and_affinity() {
        let allowed: CpuSet = "2-5".parse().expect("a list");
        for (quota, lanes) in [(None, "2-5"), (Some(0), "2"), (Some(2), "2-3"), (Some(9), "2-5")] {
            assert_eq!(Limits { quota, is_exclusive: false }.lanes(&allowed).to_string(), lanes);
        }
    }
}
