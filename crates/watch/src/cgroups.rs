//! Names of control groups by their numbers, and what they belong to: a pod, a container, a unit.
//!
//! A group's number is that of its folder's inode. Folders are walked anew when a number is asked for that is
//! not known yet, and a name stays known when its group is gone.
//!
//! Source: Linux 6.12, Documentation/admin-guide/cgroup-v2.rst; the folders are those that systemd,
//! containerd, CRI-O, Docker and the kubelet make, with either of its two drivers.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};

/// Groups that are remembered; hosts have some hundreds.
const GROUPS_MAX: usize = 65_536;
/// Folders are not nested deeper where they are made by hand or by machine.
const DEPTH_MAX: usize = 32;
/// The root's number in either version.
const ROOT: u64 = 1;

/// What a control group belongs to, as far as its path says.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Owner {
    /// The path below the root of control groups: `/system.slice/sshd.service`.
    pub path: String,
    /// A unit of systemd: `sshd.service`.
    pub unit: Option<String>,
    /// The first 12 digits of a container's number.
    pub container: Option<String>,
    /// A pod's number, as the kubelet writes it.
    pub pod: Option<String>,
    /// A pod's namespace and name, where the kubelet's log folders tell them.
    pub pod_name: Option<String>,
}

impl Owner {
    /// The name that tells most: of the pod, the container, the unit, or the path.
    #[must_use]
    pub fn name(&self) -> &str {
        let names = [&self.pod_name, &self.pod, &self.container, &self.unit];
        names.into_iter().flatten().next().unwrap_or(&self.path)
    }
}

/// The version of control groups that names tasks, and where its folders are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CgroupHierarchy {
    pub(crate) root: PathBuf,
    /// Of version 1: the place of its subsystem among the kernel's.
    pub(crate) subsystem: Option<u32>,
}

impl CgroupHierarchy {
    /// Of this host. Version 2 where it is mounted with controllers of its own; else the CPU controller of
    /// version 1, or cpuset's.
    pub(crate) fn of_host(root: &Path, subsystems: &str) -> Self {
        let second = root.join("sys/fs/cgroup");
        if second.join("cgroup.controllers").exists() {
            return Self { root: second, subsystem: None };
        }
        // A line for each, in the kernel's order, behind a head.
        let names = subsystems.lines().filter(|line| !line.starts_with('#'));
        let names: Vec<&str> = names.filter_map(|line| line.split_ascii_whitespace().next()).collect();
        for controller in ["cpu", "cpuset"] {
            let folder = second.join(controller);
            let place = names.iter().position(|name| *name == controller);
            if let (true, Some(place)) = (folder.is_dir(), place) {
                return Self { root: folder, subsystem: u32::try_from(place).ok() };
            }
        }
        Self { root: second, subsystem: None }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct CgroupNames {
    root: PathBuf,
    /// Where the kubelet keeps logs, a folder for each pod.
    pod_logs: PathBuf,
    /// `None`: it was gone when it was looked for.
    known: HashMap<u64, Option<Owner>>,
    asked: BTreeSet<u64>,
}

impl CgroupNames {
    pub(crate) fn new(hierarchy: &CgroupHierarchy) -> Self {
        Self {
            root: hierarchy.root.clone(),
            pod_logs: PathBuf::from("/var/log/pods"),
            known: HashMap::new(),
            asked: BTreeSet::new(),
        }
    }

    /// Asks for the name of a group, which [`CgroupNames::look_up`] finds.
    pub(crate) fn ask(&mut self, number: u64) {
        if number != 0 && !self.known.contains_key(&number) {
            self.asked.insert(number);
        }
    }

    /// Finds all that were asked for and are there. Cost: nothing if there are none; otherwise all folders
    /// are walked.
    pub(crate) fn look_up(&mut self) {
        let asked = std::mem::take(&mut self.asked);
        if asked.is_empty() {
            return;
        }
        let pods = pod_names(&self.pod_logs);
        let root = || Some(Owner { path: "/".to_owned(), ..Owner::default() });
        self.known.entry(ROOT).or_insert_with(root);
        let mut folders = vec![(self.root.clone(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.filter_map(Result::ok) {
                if depth >= DEPTH_MAX || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    continue;
                }
                let path = entry.path();
                if self.known.len() < GROUPS_MAX {
                    let below = path.strip_prefix(&self.root).unwrap_or(&path);
                    let text = format!("/{}", below.display());
                    self.known.entry(entry.ino()).or_insert_with(|| Some(owner(&text, &pods)));
                }
                folders.push((path, depth + 1));
            }
        }
        for number in asked {
            self.known.entry(number).or_insert(None);
        }
    }

    /// What a group belongs to; `None` if it was gone before it was looked up.
    pub(crate) fn owner(&self, number: u64) -> Option<&Owner> {
        self.known.get(&number)?.as_ref()
    }
}

/// Names of pods by their numbers: the kubelet's folders are called `NAMESPACE_NAME_NUMBER`.
fn pod_names(folder: &Path) -> HashMap<String, String> {
    let Ok(entries) = fs::read_dir(folder) else { return HashMap::new() };
    let names = entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok());
    let pod = |name: String| {
        let mut parts = name.splitn(3, '_');
        let (space, pod, number) = (parts.next()?, parts.next()?, parts.next()?);
        Some((number.to_owned(), format!("{space}/{pod}")))
    };
    names.filter_map(pod).collect()
}

/// What a path says.
fn owner(path: &str, pods: &HashMap<String, String>) -> Owner {
    let mut owner = Owner { path: path.to_owned(), ..Owner::default() };
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let (stem, is_unit) = match part.rsplit_once('.') {
            Some((stem, "service" | "scope" | "socket" | "mount" | "swap")) => (stem, true),
            Some((stem, "slice")) => (stem, false),
            _ => (part, false),
        };
        if let Some(pod) = pod_number(stem) {
            owner.pod_name = pods.get(&pod).cloned();
            owner.pod = Some(pod);
        } else if let Some(container) = container_number(stem) {
            owner.container = Some(container);
        } else if is_unit {
            owner.unit = Some(part.to_owned());
        }
    }
    owner
}

/// `pod` and its number, behind the class of service where systemd makes the folders, with lines below for
/// dashes.
fn pod_number(stem: &str) -> Option<String> {
    let (before, number) = stem.rsplit_once("pod")?;
    let is_place = before.is_empty() || before.starts_with("kubepods") && before.ends_with('-');
    let number = number.replace('_', "-");
    let is_number =
        number.len() >= 32 && number.chars().all(|digit| digit.is_ascii_hexdigit() || digit == '-');
    (is_place && is_number).then_some(number)
}

/// The 64 digits of a container, alone or behind what runs it: `cri-containerd-`, `crio-`, `docker-`,
/// `libpod-`.
fn container_number(stem: &str) -> Option<String> {
    let digits = stem.rsplit(['-', ':']).next()?;
    let is_number = digits.len() == 64 && digits.chars().all(|digit| digit.is_ascii_hexdigit());
    is_number.then(|| digits[..12].to_owned())
}

#[cfg(test)]
mod tests {
    use super::{CgroupHierarchy, Owner, owner, pod_names};
    use std::collections::HashMap;
    use std::fs;

    const POD: &str = "0f3b1d1e-6c1f-4a53-9d6c-0a4f6f0a1b2c";
    const CONTAINER: &str = "4c01db0b339c4c01db0b339c4c01db0b339c4c01db0b339c4c01db0b339c4c01";

    fn of(path: &str) -> Owner {
        owner(path, &HashMap::from([(POD.to_owned(), "shop/web-0".to_owned())]))
    }

    /// Goal: pods, containers and units are named from what systemd, the kubelet's two drivers, containerd,
    /// CRI-O, Docker and podman call their folders; nothing else is taken for one. Method: a path of each.
    #[test]
    fn folders_say_what_they_belong_to() {
        let below = POD.replace('-', "_");
        let slice = format!("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{below}.slice");
        for (path, pod, container, unit) in [
            (format!("{slice}/cri-containerd-{CONTAINER}.scope"), true, true, None),
            (format!("{slice}/crio-{CONTAINER}.scope"), true, true, None),
            (format!("/kubepods/besteffort/pod{POD}/{CONTAINER}"), true, true, None),
            (format!("/docker/{CONTAINER}"), false, true, None),
            (format!("/system.slice/docker-{CONTAINER}.scope"), false, true, None),
            (format!("/machine.slice/libpod-{CONTAINER}.scope/container"), false, true, None),
            ("/system.slice/sshd.service".to_owned(), false, false, Some("sshd.service")),
            ("/user.slice/user-0.slice/session-3.scope".to_owned(), false, false, Some("session-3.scope")),
            ("/podium/tripod-1".to_owned(), false, false, None),
            ("/".to_owned(), false, false, None),
        ] {
            let owner = of(&path);
            assert_eq!(owner.pod.as_deref(), pod.then_some(POD), "{path}");
            assert_eq!(owner.pod_name.as_deref(), pod.then_some("shop/web-0"), "{path}");
            assert_eq!(owner.container.as_deref(), container.then_some("4c01db0b339c"), "{path}");
            assert_eq!(owner.unit.as_deref(), unit, "{path}");
            assert_eq!(owner.path, path);
        }
    }

    /// Goal: the version of control groups is found, and of the first one the subsystem's place among all of
    /// the kernel's. Method: folders as both have them, and a host without any.
    #[test]
    fn the_version_is_found() {
        let folder = std::env::temp_dir().join(format!("quietcore-cgroups-{}", std::process::id()));
        let groups = folder.join("sys/fs/cgroup");
        fs::create_dir_all(groups.join("cpu")).expect("it is ours");
        let subsystems = "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpuset\t4\t1\t1\ncpu\t2\t1\t1\n";
        let first = CgroupHierarchy::of_host(&folder, subsystems);
        assert_eq!((first.root, first.subsystem), (groups.join("cpu"), Some(1)));
        fs::write(groups.join("cgroup.controllers"), "cpu").expect("it is ours");
        let second = CgroupHierarchy::of_host(&folder, subsystems);
        assert_eq!((second.root, second.subsystem), (groups, None));
        fs::create_dir_all(folder.join(format!("shop_web-0_{POD}"))).expect("it is ours");
        assert_eq!(pod_names(&folder).get(POD).map(String::as_str), Some("shop/web-0"));
        fs::remove_dir_all(&folder).expect("it is ours");
        assert!(pod_names(&folder).is_empty());
        assert_eq!(CgroupHierarchy::of_host(&folder, "").subsystem, None);
    }
}
