//! Control groups: CPU quota, cpusets and their partitions, for both versions of the interface.
//!
//! Decides where the hierarchies are mounted, which directory is this process's, and what is kept:
//! quotas from that directory up to the root; v2 cpusets that are not plain members; all v1
//! cpusets. The trees are walked to a bounded depth and a bounded number of directories.
//! Invariant: a v2 partition counts as isolated only if its file says exactly `isolated`; one that
//! the kernel calls invalid isolates nothing.
//! Source: Linux Documentation/admin-guide/cgroup-v2.rst (cpuset.cpus.partition, cpu.max) and
//! cgroup-v1/cpusets.rst (v6.12).

use super::files::{Fact, Reader};
use quietcore_core::CpuSet;

/// Levels below the mount point that are searched for cpusets.
const DEPTH_MAX: usize = 4;
/// Directories looked at per hierarchy.
const DIR_COUNT_MAX: usize = 1024;

/// Which interface this host mounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Version {
    /// No cgroup mount is visible.
    #[default]
    None,
    /// A cpu or cpuset controller is mounted the old way.
    V1,
    /// Only the unified hierarchy.
    V2,
}

#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    pub(crate) version: Version,
    /// This process's cgroup (cpuset, or the unified one).
    pub(crate) own: String,
    /// Limits that hold for this process, innermost first.
    pub(crate) quotas: Vec<Fact<Quota>>,
    /// v2 cpusets that are partitions, or were meant to be.
    pub(crate) partitions: Vec<Partition>,
    /// v2: what all partitions together isolate.
    pub(crate) isolated: Option<Fact<CpuSet>>,
    /// v1: every cpuset, the root first.
    pub(crate) cpusets: Vec<OldCpuset>,
}

/// At most `quota_us` of CPU time per `period_us`, over all CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) quota_us: u64,
    pub(crate) period_us: u64,
}

/// A v2 cpuset with `cpuset.cpus.partition` other than `member`.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) state: Fact<String>,
    pub(crate) cpus: Option<Fact<CpuSet>>,
}

/// A v1 cpuset.
#[derive(Debug)]
pub(crate) struct OldCpuset {
    pub(crate) cpus: Fact<CpuSet>,
    pub(crate) balance: Option<Fact<i64>>,
    pub(crate) exclusive: Option<Fact<i64>>,
}

impl Cgroups {
    pub(crate) fn read(reader: &mut Reader) -> Self {
        let mounts = Mounts::read(reader);
        let cgroup = reader.text("/proc/self/cgroup").unwrap_or_default();
        let mut groups = Self { version: mounts.version(), ..Self::default() };
        if let Some(mount) = &mounts.unified {
            groups.own = own_path(&cgroup, "");
            groups.isolated = reader.list(&format!("{mount}/cpuset.cpus.isolated"));
            groups.partitions = walk(reader, mount, read_partition);
            for dir in ancestors(mount, &groups.own) {
                groups.quotas.extend(read_quota(reader, &dir));
            }
        }
        if let Some(mount) = &mounts.cpu {
            for dir in ancestors(mount, &own_path(&cgroup, "cpu")) {
                groups.quotas.extend(read_old_quota(reader, &dir));
            }
        }
        if let Some(mount) = &mounts.cpuset {
            groups.own = own_path(&cgroup, "cpuset");
            groups.cpusets = walk(reader, mount, read_old_cpuset);
        }
        groups
    }

    /// CPUs of valid v2 partitions of the isolated kind.
    pub(crate) fn partition_isolated(&self) -> CpuSet {
        let valid = self.partitions.iter().filter(|partition| partition.state.value == "isolated");
        let cpus = valid.filter_map(|partition| partition.cpus.as_ref());
        cpus.chain(&self.isolated).fold(CpuSet::new(), |all, fact| all.union(&fact.value))
    }

    /// v1: CPUs of the root that no load-balanced cpuset covers. A container's root has its own CPUs only.
    pub(crate) fn unbalanced(&self) -> CpuSet {
        let Some(root) = self.cpusets.first().map(|root| &root.cpus.value) else {
            return CpuSet::new();
        };
        let covered = self.cpusets.iter().filter(|set| set.is_balanced());
        let rest = covered.fold(root.clone(), |rest, set| rest.difference(&set.cpus.value));
        // A root without any balanced child is a host without balancing, not one with isolation.
        if rest == *root { CpuSet::new() } else { rest }
    }
}

impl OldCpuset {
    pub(crate) fn is_balanced(&self) -> bool {
        self.balance.as_ref().is_none_or(|fact| fact.value != 0)
    }

    pub(crate) fn is_exclusive(&self) -> bool {
        self.exclusive.as_ref().is_some_and(|fact| fact.value != 0)
    }
}

#[derive(Debug, Default)]
struct Mounts {
    unified: Option<String>,
    cpu: Option<String>,
    cpuset: Option<String>,
}

impl Mounts {
    fn read(reader: &mut Reader) -> Self {
        let text = reader.text("/proc/self/mounts").or_else(|| reader.text("/proc/mounts"));
        let [mut unified, mut cpu, mut cpuset] = [Vec::new(), Vec::new(), Vec::new()];
        for line in text.unwrap_or_default().lines() {
            let mut words = line.split(' ').skip(1);
            let (Some(dir), Some(kind), Some(options)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let has = |name: &str| options.split(',').any(|option| option == name);
            for (places, is_here) in [
                (&mut unified, kind == "cgroup2"),
                (&mut cpu, kind == "cgroup" && has("cpu")),
                (&mut cpuset, kind == "cgroup" && has("cpuset")),
            ] {
                if is_here {
                    places.push(unescape(dir));
                }
            }
        }
        let [unified, cpu, cpuset] = [unified, cpu, cpuset].map(|places| chosen(reader, places));
        Self { unified, cpu, cpuset }
    }

    fn version(&self) -> Version {
        match self {
            Self { cpu: Some(_), .. } | Self { cpuset: Some(_), .. } => Version::V1,
            Self { unified: Some(_), .. } => Version::V2,
            _ => Version::None,
        }
    }
}

/// The first place that is there: a hierarchy may be mounted several times, and a copy have one of them. If
/// none is there, it is the first that is not known.
fn chosen(reader: &mut Reader, places: Vec<String>) -> Option<String> {
    let is_plain = |place: &&String| !place.split('/').any(|part| part == "..");
    let found = places.iter().filter(is_plain).find(|place| reader.is_folder(place));
    found.or(places.first()).cloned()
}

/// `\040` is a blank; the kernel escapes blank, tab, line break and backslash this way.
fn unescape(text: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.iter().fold(text.to_owned(), |text, (code, letter)| text.replace(code, letter))
}

/// The path in `/proc/self/cgroup` for `controller`; "" is the unified hierarchy.
fn own_path(text: &str, controller: &str) -> String {
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(names), Some(path)) = (parts.next(), parts.next()) else { continue };
        // A path that climbs is one outside this cgroup namespace: nothing of it is visible here.
        if names.split(',').any(|name| name == controller) && !path.split('/').any(|part| part == "..") {
            return path.to_owned();
        }
    }
    "/".to_owned()
}

/// `mount` and the directories below it that lead to `own`, innermost first.
fn ancestors(mount: &str, own: &str) -> Vec<String> {
    let mut dirs = vec![mount.to_owned()];
    for part in own.split('/').filter(|part| !part.is_empty()).take(64) {
        let inner = format!("{}/{part}", dirs[dirs.len() - 1]);
        dirs.push(inner);
    }
    dirs.reverse();
    dirs
}

/// Calls `read` for `mount` and everything below it, level by level.
fn walk<T>(reader: &mut Reader, mount: &str, read: impl Fn(&mut Reader, &str) -> Option<T>) -> Vec<T> {
    let mut found = Vec::new();
    let mut level = vec![mount.to_owned()];
    let mut seen = 0;
    for depth in 0..=DEPTH_MAX {
        let mut next = Vec::new();
        for dir in level {
            seen += 1;
            if seen > DIR_COUNT_MAX {
                reader.refuse(
                    &dir,
                    format!("more than {DIR_COUNT_MAX} cgroups; this and later ones were not read"),
                );
                return found;
            }
            found.extend(read(reader, &dir));
            if depth < DEPTH_MAX {
                next.extend(reader.dirs(&dir).into_iter().map(|name| format!("{dir}/{name}")));
            }
        }
        level = next;
    }
    found
}

fn read_partition(reader: &mut Reader, dir: &str) -> Option<Partition> {
    let state = reader.word(&format!("{dir}/cpuset.cpus.partition"))?;
    if state.value.is_empty() || state.value == "member" {
        return None;
    }
    Some(Partition { state, cpus: reader.list(&format!("{dir}/cpuset.cpus.effective")) })
}

fn read_old_cpuset(reader: &mut Reader, dir: &str) -> Option<OldCpuset> {
    let wanted = reader.list(&format!("{dir}/cpuset.cpus"));
    let effective = reader.list(&format!("{dir}/cpuset.effective_cpus"));
    Some(OldCpuset {
        cpus: wanted.filter(|fact| !fact.value.is_empty()).or(effective)?,
        balance: reader.number(&format!("{dir}/cpuset.sched_load_balance")),
        exclusive: reader.number(&format!("{dir}/cpuset.cpu_exclusive")),
    })
}

fn read_quota(reader: &mut Reader, dir: &str) -> Option<Fact<Quota>> {
    let fact = reader.fact(&format!("{dir}/cpu.max"), |text| {
        let (quota, period) = text.split_once(' ').ok_or("not a quota and a period")?;
        let period_us = period.trim().parse().map_err(|_| "the period is not a number")?;
        if quota == "max" {
            return Ok(None);
        }
        let quota_us = quota.parse().map_err(|_| "the quota is neither a number nor max")?;
        Ok::<_, &str>(Some(Quota { quota_us, period_us }))
    })?;
    fact.value.map(|value| Fact { path: fact.path, text: fact.text, value })
}

fn read_old_quota(reader: &mut Reader, dir: &str) -> Option<Fact<Quota>> {
    let quota = reader.number(&format!("{dir}/cpu.cfs_quota_us"))?;
    let quota_us = u64::try_from(quota.value).ok()?;
    let period = reader.number(&format!("{dir}/cpu.cfs_period_us"))?;
    let period_us = u64::try_from(period.value).ok()?;
    let text = format!("{} (period {period_us})", quota.text);
    Some(Fact { path: quota.path, text, value: Quota { quota_us, period_us } })
}

#[cfg(test)]
mod tests {
    use super::{Reader, ancestors, own_path, unescape, walk};
    use crate::host::files::tests::scratch;
    use std::fs;

    /// Goal: the right line of `/proc/self/cgroup`. Method: mixed hierarchies, and a climbing path.
    #[test]
    fn the_own_path_belongs_to_the_controller() {
        let text = "4:cpu,cpuacct:/a\n3:cpuset:/b:c\n1:name=systemd:/d\n0::/e\n";
        assert_eq!(own_path(text, "cpu"), "/a");
        assert_eq!(own_path(text, "cpuset"), "/b:c");
        assert_eq!(own_path(text, ""), "/e");
        assert_eq!(own_path("0::/../../x", ""), "/");
        assert_eq!(own_path("junk", ""), "/");
    }

    /// Goal: limits are looked for from the inside out.
    #[test]
    fn ancestors_end_at_the_mount() {
        assert_eq!(ancestors("/m", "/a/b"), ["/m/a/b", "/m/a", "/m"]);
        assert_eq!(ancestors("/m", "/"), ["/m"]);
        assert_eq!(unescape("/a\\040b"), "/a b");
    }

    /// Goal: 1024 cgroups are looked at, to a depth of four, and the first one left out is named. Method: as
    /// many, one of them deeper; then one more.
    #[test]
    fn cgroups_are_looked_at_to_a_bound() {
        let root = scratch("cgroups");
        fs::create_dir_all(root.join("inner/0/1/2/3/deeper")).unwrap();
        for name in 1..=1019 {
            fs::create_dir(root.join(format!("inner/{name}"))).unwrap();
        }
        let mut reader = Reader::new(&root);
        let walked = |reader: &mut Reader| walk(reader, "/inner", |_, dir| Some(dir.to_owned()));
        let all = walked(&mut reader);
        assert_eq!((all.len(), all[0].as_str(), all[2].as_str()), (1024, "/inner", "/inner/1"));
        assert_eq!(all[1021..], ["/inner/0/1", "/inner/0/1/2", "/inner/0/1/2/3"]);
        fs::create_dir(root.join("inner/1020")).unwrap();
        assert_eq!(walked(&mut reader)[1023], "/inner/0/1/2");
        let told = "more than 1024 cgroups; this and later ones were not read";
        assert_eq!(reader.into_parts().0, [("/inner/0/1/2/3".to_owned(), told.to_owned())]);
        fs::remove_dir_all(root).unwrap();
    }
}
