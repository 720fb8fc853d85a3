//! Hosts as maps of files, as kernels of both versions write them; and folders that change while a machine
//! follows them.

use super::files::{Below, Files};
use super::host::{look, read};
use super::{HostIsolation, HostWatch, HostWatchGuard, IsolationChange, IsolationProblem};
use crate::{CpuSet, Machine, StartError, isolation::IsolateError};
use core::time::Duration;
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};

const V2: &str = "sysfs /sys sysfs rw 0 0\ncgroup2 /cg cgroup2 rw,nsdelegate 0 0\n";
const V1: &str =
    "tmpfs /cg tmpfs rw 0 0\ncgroup /cg/cpu cgroup rw,cpu 0 0\ncgroup /cg/set cgroup rw,cpuset 0 0\n";
const HYBRID: &str = "cgroup /cg/set cgroup rw,cpuset 0 0\ncgroup2 /cg/unified cgroup2 rw 0 0\n";
/// A file that is there and cannot be read.
const SECRET: &str = "<secret>";

/// Longer than any test takes on a machine that works.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Host(BTreeMap<String, String>);

impl Host {
    fn new(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    /// A group of version 2: what its partition file says, and the CPUs that it has.
    fn group(mut self, folder: &str, state: &str, cpus: &str) -> Self {
        self.0.insert(format!("{folder}/cpuset.cpus.partition"), format!("{state}\n"));
        self.0.insert(format!("{folder}/cpuset.cpus.effective"), format!("{cpus}\n"));
        self
    }

    /// A group of version 1: its CPUs, whether it balances, and whether it is exclusive.
    fn cpuset(mut self, folder: &str, cpus: &str, (balance, exclusive): (u8, u8)) -> Self {
        self.0.insert(format!("{folder}/cpuset.cpus"), format!("{cpus}\n"));
        self.0.insert(format!("{folder}/cpuset.sched_load_balance"), format!("{balance}\n"));
        self.0.insert(format!("{folder}/cpuset.cpu_exclusive"), format!("{exclusive}\n"));
        self
    }

    fn with(mut self, path: &str, text: &str) -> Self {
        self.0.insert(path.to_owned(), text.to_owned());
        self
    }

    fn read(&self) -> HostIsolation {
        read(self).host
    }

    /// What its cpusets isolate, and what they say is wrong.
    fn cpusets(&self) -> (String, Vec<IsolationProblem>) {
        let host = self.read();
        (host.cpusets.to_string(), host.problems)
    }
}

impl Files for Host {
    fn text(&self, path: &str) -> io::Result<Option<String>> {
        match self.0.get(path) {
            Some(text) if text == SECRET => Err(io::ErrorKind::PermissionDenied.into()),
            text => Ok(text.cloned()),
        }
    }

    fn folders(&self, path: &str) -> io::Result<Vec<String>> {
        if self.0.get(path).is_some_and(|text| text == SECRET) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let inner = self.0.keys().filter_map(|file| file.strip_prefix(path)?.strip_prefix('/'));
        let folders: BTreeSet<_> =
            inner.filter_map(|rest| Some(rest.split_once('/')?.0.to_owned())).collect();
        Ok(folders.into_iter().collect())
    }

    fn open_for_changes(&self, _path: &str) -> Option<File> {
        None
    }
}

/// A host that keeps what it was asked for.
#[derive(Default)]
struct Asked(Host, RefCell<Vec<String>>);

impl Files for Asked {
    fn text(&self, path: &str) -> io::Result<Option<String>> {
        self.1.borrow_mut().push(format!("read {path}"));
        self.0.text(path)
    }

    fn folders(&self, path: &str) -> io::Result<Vec<String>> {
        self.0.folders(path)
    }

    fn open_for_changes(&self, path: &str) -> Option<File> {
        self.1.borrow_mut().push(format!("open {path}"));
        None
    }
}

/// Goal: a change that comes after the masks were read is told of. Method: the files are opened before that.
#[test]
fn files_are_opened_before_they_are_read() {
    let host = Asked(v2().group("/cg/a", "isolated", "2"), RefCell::default());
    let known = ["/cg/a/cpuset.cpus.partition".to_owned()];
    let (_, reading) = look(&host, &known);
    assert_eq!(reading.partitions, known);
    let asked = host.1.into_inner();
    assert_eq!(asked[0], format!("open {}", known[0]));
    assert!(asked.contains(&format!("read {}", known[0])) && asked.len() > 2, "{asked:?}");
}

/// Goal: nothing is read outside of what cpusets have: neither another controller's hierarchy, nor above a
/// mount, where the own group of a container may be. Method: a host that keeps what it was asked for.
#[test]
fn only_cpusets_are_read() {
    let own = "0::/../../other\n";
    let mounts = format!("{V1}{V2}");
    let host = Host::new(&[("/proc/self/mounts", &mounts), ("/proc/self/cgroup", own)]);
    let asked = Asked(host.with("/cg/cpuset.cpus.isolated", "7"), RefCell::default());
    assert_eq!(read(&asked).host.cpusets, set("7"));
    let asked = asked.1.into_inner();
    assert!(asked.contains(&"read /cg/set/cpuset.cpus".to_owned()), "{asked:?}");
    assert!(!asked.iter().any(|path| path.contains("..") || path.contains("/cg/cpu/")), "{asked:?}");
}

/// Goal: the kernel is asked to tell of partitions, valid or not, and of no other group. Method: one of each
/// kind, and a file that is empty.
#[test]
fn partitions_are_told_of() {
    let host = v2()
        .group("/cg/a", "member", "0")
        .group("/cg/b", "root", "1")
        .group("/cg/c", "isolated", "2")
        .group("/cg/d", "isolated invalid (why)", "3")
        .group("/cg/e", "", "4");
    let expected = ["b", "c", "d"].map(|name| format!("/cg/{name}/cpuset.cpus.partition"));
    assert_eq!(read(&host).partitions, expected);
}

fn set(list: &str) -> CpuSet {
    list.parse().expect("a list")
}

fn v2() -> Host {
    Host::new(&[("/proc/self/mounts", V2), ("/proc/self/cgroup", "0::/a/own\n")])
}

fn v1() -> Host {
    Host::new(&[("/proc/self/mounts", V1), ("/cg/set/release_agent", "\n")])
}

/// Goal: the kernel's masks are read, also when it has none. Method: texts as kernels write them.
#[test]
fn masks_of_sysfs() {
    for (isolated, nohz_full, expected) in [
        ("1-3\n", "2-3\n", ("1-3", "2-3")),
        ("\n", " (null)\n", ("", "")),
        ("1-3,5-7:1/2\n", "\n", ("1-3,5,7", "")),
    ] {
        let host = Host::new(&[
            ("/sys/devices/system/cpu/isolated", isolated),
            ("/sys/devices/system/cpu/nohz_full", nohz_full),
        ]);
        let host = host.read();
        assert_eq!((&*host.isolated.to_string(), &*host.nohz_full.to_string()), expected);
        assert!(host.problems.is_empty(), "{:?}", host.problems);
    }
    assert_eq!(Host::default().read(), HostIsolation::default(), "a host without files");
}

/// Goal: partitions of version 2 isolate what they have, wherever they are; plain members and balanced
/// partitions nothing. Method: none, one, two, and nested ones.
#[test]
fn isolated_partitions() {
    let none = v2().group("/cg/a", "member", "0-3").group("/cg/b", "root", "4-7");
    assert_eq!(none.cpusets(), (String::new(), vec![]));
    let one = v2().group("/cg/a", "member", "0-3").group("/cg/a/own", "isolated", "2-3");
    assert_eq!(one.cpusets(), ("2-3".to_owned(), vec![]));
    let two = one.group("/cg/b", "isolated", "5,7");
    assert_eq!(two.cpusets(), ("2-3,5,7".to_owned(), vec![]));
    // What an inner one has the outer one has not any more; a balanced one inside of it is not isolated.
    let nested = v2()
        .group("/cg/a", "isolated", "1")
        .group("/cg/a/b", "isolated", "2-3")
        .group("/cg/a/c", "root", "4-5");
    assert_eq!(nested.cpusets(), ("1-3".to_owned(), vec![]));
}

/// Goal: where the root of all groups lists what is isolated, that counts, and the tree is not walked; the
/// own groups are still looked at. Method: a list that says something else than the tree.
#[test]
fn the_list_of_the_root_counts() {
    let host = v2().with("/cg/cpuset.cpus.isolated", "6-7\n").group("/cg/elsewhere", "isolated", "1").group(
        "/cg/a",
        "isolated invalid (Cpu list in cpuset.cpus not exclusive)",
        "0-3",
    );
    let (isolated, problems) = host.cpusets();
    assert_eq!(isolated, "6-7");
    let [IsolationProblem::InvalidPartition { path, state }] = problems.as_slice() else {
        panic!("{problems:?}")
    };
    assert_eq!(path, "/cg/a/cpuset.cpus.partition");
    assert!(state.contains("not exclusive"), "{state}");
    assert_eq!(read(&host).partitions, ["/cg/a/cpuset.cpus.partition"]);
    assert_eq!(host.group("/cg/a/own", "isolated", "5").cpusets().0, "6-7");
}

/// Goal: a partition that the kernel calls invalid isolates nothing, is named, and hides no other one.
#[test]
fn an_invalid_partition_isolates_nothing() {
    let host = v2()
        .group("/cg/a", "isolated invalid (Parent is not a partition root)", "0-3")
        .group("/cg/b", "isolated", "5");
    let (isolated, problems) = host.cpusets();
    assert_eq!(isolated, "5");
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(!host.read().is_incomplete(), "the kernel has said what there is");
    let expected = "/cg/a/cpuset.cpus.partition isolates nothing: \
                    isolated invalid (Parent is not a partition root)";
    assert_eq!(problems[0].to_string(), expected);
}

/// Goal: version 1 isolates what no balanced cpuset covers, if the root does not balance. Method: the root on
/// and off, exclusive groups or not, an inner group that balances inside of one that does not.
#[test]
fn unbalanced_cpusets() {
    let balanced = v1().cpuset("/cg/set", "0-7", (1, 1)).cpuset("/cg/set/rt", "4-7", (0, 1));
    assert_eq!(balanced.cpusets(), (String::new(), vec![]), "the root balances all");
    let off = v1().cpuset("/cg/set", "0-7", (0, 1)).cpuset("/cg/set/rt", "4-7", (0, 1));
    assert_eq!(off.cpusets(), (String::new(), vec![]), "a host without balancing");
    let split = off.cpuset("/cg/set/system", "0-3", (1, 0));
    assert_eq!(split.cpusets(), ("4-7".to_owned(), vec![]));
    let shared = split.cpuset("/cg/set", "0-7", (0, 0));
    assert_eq!(shared.cpusets().0, "4-7", "the root need not be exclusive");
    let inner = shared.cpuset("/cg/set/rt/half", "4-5", (1, 0));
    assert_eq!(inner.cpusets(), ("6-7".to_owned(), vec![]));
    let unknown = inner.with("/cg/set/rt/cpuset.sched_load_balance", SECRET);
    let (isolated, problems) = unknown.cpusets();
    assert_eq!((isolated.as_str(), problems.len()), ("", 1), "what is not known isolates nobody");
}

/// Goal: a container that does not see the root of version 1 goes by its own group. Method: that group
/// exclusive and balanced, or not.
#[test]
fn a_container_goes_by_its_own_group() {
    for (flags, expected) in [((0, 1), "2-3"), ((0, 0), ""), ((1, 1), "")] {
        let host = Host::new(&[("/proc/self/mounts", V1)]).cpuset("/cg/set", "2-3", flags);
        assert_eq!(host.cpusets(), (expected.to_owned(), vec![]), "{flags:?}");
    }
}

/// Goal: of a host that mounts both versions each says its part. Method: cpusets in the old one, and a
/// unified hierarchy without that controller; then with it.
#[test]
fn hybrid_mounts() {
    let host = Host::new(&[("/proc/self/mounts", HYBRID), ("/cg/set/release_agent", "")])
        .cpuset("/cg/set", "0-3", (0, 1))
        .cpuset("/cg/set/system", "0-2", (1, 0))
        .with("/cg/unified/cgroup.controllers", "hugetlb\n");
    assert_eq!(host.cpusets(), ("3".to_owned(), vec![]));
    let both = host.group("/cg/unified/a", "isolated", "7");
    assert_eq!(both.cpusets(), ("3,7".to_owned(), vec![]));
}

/// Goal: a machine takes the part of each mask that it has. Method: CPUs of three masks, one each beyond it.
#[test]
fn masks_are_of_the_machines_cpus() {
    let host = v2()
        .with("/sys/devices/system/cpu/isolated", "1,5")
        .with("/sys/devices/system/cpu/nohz_full", "0,6")
        .group("/cg/a", "isolated", "3,7")
        .read();
    let masks = host.masks(&set("0-4"));
    assert_eq!([masks.domain, masks.nohz_full, masks.runtime], [set("1"), set("0"), set("3")]);
}

/// Goal: what cannot be read is named and isolates nothing, and the rest counts. Method: each file in turn.
#[test]
fn what_cannot_be_read_is_named() {
    let host = || {
        v2().with("/sys/devices/system/cpu/isolated", "1\n")
            .with("/sys/devices/system/cpu/nohz_full", "2\n")
            .group("/cg/a", "isolated", "3")
            .group("/cg/b", "isolated", "4")
    };
    assert_eq!(host().read().from_tasks(), set("1,3-4"));
    for (path, left) in [
        ("/sys/devices/system/cpu/isolated", "3-4"),
        ("/sys/devices/system/cpu/nohz_full", "1,3-4"),
        ("/proc/self/mounts", "1"),
        ("/proc/self/cgroup", "1,3-4"),
        ("/cg/cpuset.cpus.isolated", "1,3-4"),
        ("/cg/a/cpuset.cpus.partition", "1,4"),
        ("/cg/a/cpuset.cpus.effective", "1,4"),
    ] {
        let host = host().with(path, SECRET).read();
        assert_eq!(host.from_tasks(), set(left), "{path}");
        assert!(host.is_incomplete(), "{path}");
        let named = format!("cannot use {path}: ");
        assert!(host.problems[0].to_string().starts_with(&named), "{:?}", host.problems);
    }
    let host = v2().with("/sys/devices/system/cpu/isolated", "1-x").read();
    let shown: Vec<String> = host.problems.iter().map(ToString::to_string).collect();
    let error = "1-x".parse::<CpuSet>().expect_err("no list");
    assert_eq!(shown, [format!("cannot use /sys/devices/system/cpu/isolated: {error} in `1-x`")]);
}

/// Goal: a tree of any size is looked at to a bound, and says so. Method: more groups than that, and a chain
/// of groups.
#[test]
fn trees_have_a_bound() {
    let mut host = v2();
    for number in 0..1100 {
        host = host.group(&format!("/cg/g{number:04}"), "member", "0");
    }
    let problems = host.read().problems;
    assert_eq!(problems[0].to_string(), "cannot use /cg: more than 1024 groups");
    let deep = (0..50).fold("/cg".to_owned(), |path, _| path + "/x");
    let (isolated, problems) = v2().group(&deep, "isolated", "3").cpusets();
    assert_eq!((&*isolated, problems.len()), ("", 1));
    assert_eq!(problems[0].to_string(), "cannot use /cg: more than 32 levels of groups");
}

/// Goal: the root of all groups isolates nothing by itself, also if the file cannot be read that only it has.
/// Method: the root does not balance, and nothing is in it.
#[test]
fn the_root_is_known_by_a_file_that_is_there() {
    let root = v1().cpuset("/cg/set", "0-3", (0, 1));
    assert_eq!(root.cpusets().0, "");
    assert_eq!(root.with("/cg/set/release_agent", SECRET).cpusets().0, "");
}

/// Goal: a folder that cannot be read is named, and isolates nothing: what is in it may balance or isolate.
/// Method: of each version, the root and a folder in it.
#[test]
fn folders_that_cannot_be_read_isolate_nothing() {
    let old = || {
        let host = v1().cpuset("/cg/set", "0-3", (0, 1)).cpuset("/cg/set/0", "0", (1, 0));
        host.cpuset("/cg/set/a", "1", (0, 0)).cpuset("/cg/set/a/b", "1", (1, 0))
    };
    let new = || v2().group("/cg/a", "isolated", "2").group("/cg/a/b", "isolated", "3");
    assert_eq!([old().cpusets().0, new().cpusets().0], ["2-3", "2-3"]);
    for (host, folder, left) in
        [(old(), "/cg/set", ""), (old(), "/cg/set/a", ""), (new(), "/cg", ""), (new(), "/cg/a", "2")]
    {
        let host = host.with(folder, SECRET).read();
        assert_eq!(host.cpusets.to_string(), left, "{folder}");
        assert!(host.is_incomplete(), "{folder}");
        assert!(host.problems[0].to_string().starts_with(&format!("cannot use {folder}: ")));
    }
}

/// Any text, or a list of mounts.
fn mounts() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), proptest::sample::select(&[V1, V2, HYBRID][..]).prop_map(str::to_owned)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// Goal: hostile text does no harm: no panic, and what is shown is short and printable.
    #[test]
    fn hostile_text_does_no_harm(
        texts in proptest::collection::vec(
            prop_oneof![any::<String>(), "[0-9,:/ -]{0,40}", "(isolated|root|member|max)[ -~]{0,200}"],
            8,
        ),
        mounts in mounts(),
    ) {
        let paths = [
            "/proc/self/cgroup", "/sys/devices/system/cpu/isolated", "/sys/devices/system/cpu/nohz_full",
            "/cg/a/cpuset.cpus.partition", "/cg/a/cpuset.cpus.effective", "/cg/set/cpuset.cpus",
            "/cg/set/cpuset.sched_load_balance", "/cg/set/x/cpuset.cpus",
        ];
        let mut host = Host::default().with("/proc/self/mounts", &mounts);
        for (path, text) in paths.iter().zip(&texts) {
            host = host.with(path, text);
        }
        for problem in host.read().problems {
            let shown = problem.to_string();
            prop_assert!(shown.chars().count() < 400 && !shown.chars().any(char::is_control), "{shown:?}");
        }
    }
}

/// A folder with a host's files, removed at the end.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // Relaxed: it only has to be another one each time.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("quietcore-host-{}-{number}", std::process::id()));
        let folder = Self(root);
        folder.write("/proc/self/mounts", V2);
        folder.write("/proc/self/cgroup", "0::/\n");
        folder.write("/sys/devices/system/cpu/isolated", "\n");
        folder
    }

    /// As a kernel does it: a reader finds the old text or the new one.
    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder of the test's own");
        let new = path.with_extension("new");
        fs::write(&new, text).expect("it can be written");
        fs::rename(new, path).expect("it can be renamed");
    }

    pub(super) fn isolate(&self, list: &str) {
        self.write("/cg/cpuset.cpus.isolated", &format!("{list}\n"));
    }

    /// Has `machine` follow it; tells of every change.
    pub(super) fn follow(&self, machine: &'static Machine) -> (HostWatchGuard, Receiver<IsolationChange>) {
        let (sender, changes) = channel();
        let watch = HostWatch::new().every(Duration::from_millis(10)).below(&self.0);
        let guard = machine.watch_host_isolation(watch, move |change| _ = sender.send(change.clone()));
        (guard.expect("there is a thread to be had"), changes)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// All CPUs of this host, and the last one, for machines that these tests start; with one CPU `test` has
/// nothing to show, and is left out.
pub(super) fn two_cpus(test: &str) -> Option<(CpuSet, CpuSet)> {
    let machine = Machine::start().expect("starts");
    let cpus = machine.cpus.clone();
    machine.shutdown();
    let (first, last) = (cpus.first()?, cpus.last()?);
    if first == last {
        quietcore_testing::left_out(test, "needs two CPUs");
        return None;
    }
    Some((cpus, CpuSet::range(last, 1).expect("a CPU")))
}

pub(super) fn next(changes: &Receiver<IsolationChange>) -> IsolationChange {
    changes.recv_timeout(PATIENCE).expect("the host changed")
}

pub(super) fn runtime(machine: &Machine) -> CpuSet {
    machine.core.isolation().runtime
}

/// Goal: a machine follows its host's cpusets both ways, and ends with its guard. Method: a folder in which
/// the root's list changes.
#[test]
fn a_machine_follows_its_host() {
    let Some((_, last)) = two_cpus("a_machine_follows_its_host") else { return };
    let folder = Folder::new();
    let machine = Machine::start().expect("starts");
    let (guard, changes) = folder.follow(machine);
    folder.isolate(&last.to_string());
    let change = next(&changes);
    assert_eq!((&change.before, &change.wanted), (&CpuSet::new(), &last));
    assert_eq!(change.outcome.as_ref().map(|report| &report.left), Ok(&last));
    assert_eq!(runtime(machine), last);
    assert!(
        change.to_string().starts_with(&format!("isolated CPUs: none -> {last}; left {last}")),
        "{change}"
    );
    folder.isolate("");
    let change = next(&changes);
    assert_eq!((&change.before, change.outcome.map(|report| report.joined)), (&last, Ok(last.clone())));
    assert!(runtime(machine).is_empty());
    drop(guard);
    folder.isolate(&last.to_string());
    assert!(changes.recv().is_err(), "the thread has ended, and its callback is gone");
    assert!(runtime(machine).is_empty());
    machine.shutdown();
}

/// Goal: a host that isolates everything is refused, once; what comes after it is done. Method: all CPUs,
/// then one.
#[test]
fn somebody_is_left_for_housekeeping() {
    let Some((cpus, last)) = two_cpus("somebody_is_left_for_housekeeping") else { return };
    let folder = Folder::new();
    let machine = Machine::start().expect("starts");
    let (guard, changes) = folder.follow(machine);
    folder.isolate(&cpus.to_string());
    let change = next(&changes);
    assert_eq!((&change.outcome, &change.wanted), (&Err(IsolateError::NoHousekeeping), &cpus));
    assert!(change.to_string().contains("stay none"), "{change}");
    assert!(runtime(machine).is_empty());
    // Some looks later it is still the only report.
    folder.isolate(&last.to_string());
    assert_eq!(next(&changes).wanted, last);
    assert_eq!(runtime(machine), last);
    drop(guard);
    assert!(changes.try_recv().is_err());
    machine.shutdown();
}

/// Goal: what cannot be read takes no isolation back. Method: nonsense in the list after a CPU was isolated,
/// and then an empty list.
#[test]
fn what_cannot_be_read_takes_nothing_back() {
    let Some((_, last)) = two_cpus("what_cannot_be_read_takes_nothing_back") else { return };
    let folder = Folder::new();
    folder.isolate(&last.to_string());
    let machine = Machine::builder().isolation_from(folder.0.clone()).start().expect("one is left");
    assert_eq!(runtime(machine), last, "from the start");
    folder.isolate("x");
    let (guard, changes) = folder.follow(machine);
    let reading = read(&Below(folder.0.clone())).host;
    assert!(reading.is_incomplete() && reading.from_tasks().is_empty());
    assert!(changes.recv_timeout(Duration::from_millis(100)).is_err(), "nothing is taken back");
    folder.isolate("");
    assert_eq!(next(&changes).before, last);
    assert!(runtime(machine).is_empty());
    drop(guard);
    machine.shutdown();
}

/// Goal: masks of boot are for good, those of cpusets are not; and one with no housekeeping CPU does not
/// start. Method: a kernel that lists both in `isolated`, as new ones do.
#[test]
fn a_builder_takes_the_masks_of_its_host() {
    let Some((cpus, last)) = two_cpus("a_builder_takes_the_masks_of_its_host") else { return };
    let folder = Folder::new();
    let from_host = || Machine::builder().isolation_from(folder.0.clone()).start();
    folder.write("/sys/devices/system/cpu/isolated", &format!("{last}\n"));
    let machine = from_host().expect("one is left");
    assert_eq!((machine.core.isolation().domain, runtime(machine)), (last.clone(), CpuSet::new()));
    machine.shutdown();
    folder.isolate(&last.to_string());
    let machine = from_host().expect("one is left");
    assert_eq!((machine.core.isolation().domain, runtime(machine)), (CpuSet::new(), last));
    machine.shutdown();
    folder.isolate(&cpus.to_string());
    assert!(matches!(from_host(), Err(StartError::Housekeeping(_))));
}

/// Goal: this host can be read, whatever it has. Method: its own files, which are hidden from no reader.
#[test]
fn this_host_can_be_read() {
    let host = Machine::host_isolation();
    assert!(!host.is_incomplete(), "{:?}", host.problems);
}
