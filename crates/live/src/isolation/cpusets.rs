//! What cpusets isolate while the host runs, by either version of the interface.
//!
//! Version 2 has partitions: a group whose `cpuset.cpus.partition` says exactly `isolated` isolates what its
//! `cpuset.cpus.effective` lists, which leaves out what partitions inside of it got. One that the kernel
//! calls invalid isolates nothing. The root of all groups lists what all of them isolate in
//! `cpuset.cpus.isolated` (6.7 and later); where that file is, it alone counts. A container does not see that
//! root, and reads its own groups.
//!
//! Version 1 has no word for it: a CPU is isolated when no cpuset that balances load covers it. A group whose
//! load balancing is on covers its CPUs whatever the groups inside of it say: as long as the root balances,
//! no CPU is isolated; and a root without any balanced group is a host without balancing, not one with
//! isolation. A container that does not see the root goes by the group that it sees: its CPUs are isolated if
//! they are exclusive and not balanced.
//!
//! Invariants: a tree is looked at to a bounded depth and a bounded number of groups; what cannot be read
//! isolates nothing and is named. Source: Linux Documentation/admin-guide/cgroup-v2.rst and
//! cgroup-v1/cpusets.rst (v6.12). Deviation: version 1 mounted with `noprefix` is not read.

use super::files::{Files, excerpt};
use super::problems::Problems;
use core::str::FromStr;
use quietcore_core::CpuSet;

/// Levels below a mount that are looked at.
const DEPTH_MAX: usize = 32;
/// Groups looked at per mount.
const GROUP_COUNT_MAX: usize = 1024;

/// What was found of cpusets.
#[derive(Debug, Default)]
pub(super) struct Cpusets {
    pub(super) isolated: CpuSet,
    /// Files by which the kernel tells of changes.
    pub(super) partitions: Vec<String>,
}

/// Reads one value of a host; what is not there is not known.
pub(super) fn value<T>(files: &dyn Files, path: &str, problems: &mut Problems) -> Option<T>
where
    T: FromStr<Err: ToString>,
{
    let text = text(files, path, problems)?;
    match text.parse() {
        Ok(value) => Some(value),
        Err(error) => {
            let error: T::Err = error;
            problems.unreadable(path, &format!("{} in `{}`", error.to_string(), excerpt(&text)));
            None
        }
    }
}

fn text(files: &dyn Files, path: &str, problems: &mut Problems) -> Option<String> {
    match files.text(path) {
        Ok(text) => text.map(|text| text.trim().to_owned()),
        Err(error) => {
            problems.unreadable(path, &error.to_string());
            None
        }
    }
}

pub(super) fn read(files: &dyn Files, problems: &mut Problems) -> Cpusets {
    let mounts = text(files, "/proc/self/mounts", problems).unwrap_or_default();
    let own = text(files, "/proc/self/cgroup", problems).unwrap_or_default();
    let mut found = Cpusets::default();
    for mount in mounts.lines().filter_map(Mount::parse) {
        let one = match mount.version {
            Version::Two => unified(files, &mount.folder, own_path(&own), problems),
            Version::One => {
                let isolated = balanced(files, &mount.folder, problems);
                Cpusets { isolated, partitions: Vec::new() }
            }
        };
        found.isolated = found.isolated.union(&one.isolated);
        found.partitions.extend(one.partitions);
    }
    found
}

fn unified(files: &dyn Files, mount: &str, own: &str, problems: &mut Problems) -> Cpusets {
    let mut found = Cpusets::default();
    let all = value(files, &format!("{mount}/cpuset.cpus.isolated"), problems);
    let is_known = all.is_some();
    found.isolated = all.unwrap_or_default();
    let groups = if is_known { ancestors(mount, own) } else { groups(files, mount, problems).folders };
    for group in groups {
        let path = format!("{group}/cpuset.cpus.partition");
        let Some(state) = text(files, &path, problems).filter(|state| !state.is_empty()) else { continue };
        if state == "isolated" && !is_known {
            let cpus: Option<CpuSet> = value(files, &format!("{group}/cpuset.cpus.effective"), problems);
            found.isolated = found.isolated.union(&cpus.unwrap_or_default());
        } else if state.starts_with("isolated ") {
            problems.invalid(&path, &state);
        }
        if state != "member" {
            found.partitions.push(path);
        }
    }
    found
}

/// A cpuset of version 1.
struct Group {
    cpus: CpuSet,
    is_balanced: bool,
    is_exclusive: bool,
}

impl Group {
    fn read(files: &dyn Files, folder: &str, problems: &mut Problems) -> Self {
        let number = |name: &str, problems: &mut Problems| -> Option<i64> {
            value(files, &format!("{folder}/{name}"), problems)
        };
        Self {
            cpus: value(files, &format!("{folder}/cpuset.cpus"), problems).unwrap_or_default(),
            // What is not known isolates no CPU.
            is_balanced: number("cpuset.sched_load_balance", problems) != Some(0),
            is_exclusive: number("cpuset.cpu_exclusive", problems) == Some(1),
        }
    }
}

/// What no cpuset balances that could.
fn balanced(files: &dyn Files, mount: &str, problems: &mut Problems) -> CpuSet {
    let root = Group::read(files, mount, problems);
    // Only the root of all groups has this file.
    let is_root = matches!(files.text(&format!("{mount}/release_agent")), Ok(Some(_)) | Err(_));
    if root.is_balanced || !is_root && !root.is_exclusive {
        return CpuSet::new();
    }
    let groups = groups(files, mount, problems);
    if !groups.are_all {
        // Another one may balance what these do not.
        return CpuSet::new();
    }
    let inner = groups.folders.into_iter().skip(1);
    let inner = inner.map(|folder| Group::read(files, &folder, problems)).collect::<Vec<_>>();
    let covered = inner.iter().filter(|group| group.is_balanced);
    let rest = covered.fold(root.cpus.clone(), |rest, group| rest.difference(&group.cpus));
    if is_root && rest == root.cpus { CpuSet::new() } else { rest }
}

/// The groups of a hierarchy.
struct Groups {
    /// The root and what is below it, level by level.
    folders: Vec<String>,
    /// No other one is there.
    are_all: bool,
}

fn groups(files: &dyn Files, mount: &str, problems: &mut Problems) -> Groups {
    let mut found = Groups { folders: vec![mount.to_owned()], are_all: true };
    let mut level = 0..1;
    for depth in 0..=DEPTH_MAX {
        for at in level.clone() {
            let folder = found.folders[at].clone();
            let names = files.folders(&folder).unwrap_or_else(|error| {
                problems.unreadable(&folder, &error.to_string());
                found.are_all = false;
                Vec::new()
            });
            for name in names {
                let is_deep = depth == DEPTH_MAX;
                if is_deep || found.folders.len() == GROUP_COUNT_MAX {
                    let most = if is_deep { DEPTH_MAX } else { GROUP_COUNT_MAX };
                    let what = if is_deep { "levels of groups" } else { "groups" };
                    problems.unreadable(mount, &format!("more than {most} {what}"));
                    return Groups { are_all: false, ..found };
                }
                found.folders.push(format!("{folder}/{name}"));
            }
        }
        level = level.end..found.folders.len();
    }
    found
}

/// `mount` and the folders below it that lead to `own`.
fn ancestors(mount: &str, own: &str) -> Vec<String> {
    let mut folders = vec![mount.to_owned()];
    for part in own.split('/').filter(|part| !part.is_empty()).take(DEPTH_MAX) {
        folders.push(format!("{}/{part}", folders[folders.len() - 1]));
    }
    folders
}

/// The process's group in the unified hierarchy; the root if that is not told, or lies outside of what the
/// process can see.
fn own_path(groups: &str) -> &str {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"));
    path.filter(|path| !path.split('/').any(|part| part == "..")).unwrap_or("/")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A mounted hierarchy that may have cpusets.
#[derive(Debug)]
struct Mount {
    folder: String,
    version: Version,
}

impl Mount {
    /// One line of `/proc/self/mounts`.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ').skip(1);
        let (folder, kind, options) = (words.next()?, words.next()?, words.next()?);
        let version = match kind {
            "cgroup2" => Version::Two,
            "cgroup" if options.split(',').any(|option| option == "cpuset") => Version::One,
            _ => return None,
        };
        // The kernel writes blank, tab, line break and backslash this way.
        let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
        let folder =
            escapes.iter().fold(folder.to_owned(), |text, (code, letter)| text.replace(code, letter));
        Some(Self { folder, version })
    }
}
