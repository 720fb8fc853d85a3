//! Following the host: a thread that looks at its masks again and again, and isolates what they say.
//!
//! It looks once per interval; and at once when the kernel says that a partition it knows has become valid or
//! invalid, which it does by `POLLPRI` on `cpuset.cpus.partition`. Notifications of the file system do not
//! come for control groups: no thread writes those files.
//!
//! Invariants: what cannot be read takes no isolation back: then CPUs are added and none leaves. A CPU is
//! left for housekeeping: the machine refuses to isolate all, which is reported once for each set that was
//! refused, and nothing changes. The thread ends with its guard, or with the machine. It holds no lock while
//! it calls the program.

use super::change::IsolationChange;
use super::files::Below;
use super::host::{HostIsolation, Reading, look};
use crate::machine::{Machine, StartError};
use core::time::Duration;
use quietcore_core::CpuSet;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Between two looks, however often the kernel tells of changes.
const PAUSE: Duration = Duration::from_millis(10);

/// Within this the thread sees that its machine has ended.
const PART: Duration = Duration::from_secs(1);

/// How a machine follows its host's isolation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostWatch {
    interval: Duration,
    files: Below,
}

impl Default for HostWatch {
    fn default() -> Self {
        Self::new()
    }
}

impl HostWatch {
    /// Once per second, of this host.
    #[must_use]
    pub fn new() -> Self {
        Self { interval: Duration::from_secs(1), files: Below(PathBuf::from("/")) }
    }

    /// Between two looks; 10 ms at least.
    #[must_use]
    pub fn every(self, interval: Duration) -> Self {
        Self { interval: interval.max(PAUSE), ..self }
    }

    /// Of a host whose files are below `root`: for a container that has its host's there.
    #[must_use]
    pub fn below(self, root: impl Into<PathBuf>) -> Self {
        Self { files: Below(root.into()), ..self }
    }
}

/// As long as it lives, a machine follows its host's isolation. Dropping it waits for the look that is under
/// way, and leaves isolated what is. To follow for ever, forget it.
#[derive(Debug)]
#[must_use = "a watch ends when this is dropped"]
pub struct HostWatchGuard {
    machine: &'static Machine,
    end: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for HostWatchGuard {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        // The thread is the parent's, and so is what the descriptor leads to.
        if self.machine.is_forked() {
            return;
        }
        // It can take more ends than there are guards.
        let _ = rustix::io::write(&*self.end, &1_u64.to_ne_bytes());
        if thread.thread().id() != thread::current().id() {
            // If it panicked, it has said so.
            let _ = thread.join();
        }
    }
}

impl Machine {
    /// From now on a thread isolates what the host isolates from scheduling, and tells `report` of each
    /// change: the first look is compared with what is [isolated](Self::set_isolated) at run time now. CPUs
    /// that are isolated since the machine started stay so. A set that the machine refuses, because no CPU
    /// would be left for housekeeping, is reported once and changes nothing.
    ///
    /// What the program isolates by [`set_isolated`](Self::set_isolated) itself holds until the host's masks
    /// change. `report` runs on the thread; a panic of it ends the watch. It costs reading some files per
    /// interval.
    ///
    /// # Errors
    /// [`StartError::System`] when there is no thread or descriptor to be had.
    pub fn watch_host_isolation(
        &'static self,
        watch: HostWatch,
        report: impl FnMut(&IsolationChange) + Send + 'static,
    ) -> Result<HostWatchGuard, StartError> {
        let refused = |what, error| StartError::System { what, error };
        let end = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let end = Arc::new(end.map_err(|error| refused("make a descriptor", error.into()))?);
        let watcher = Watcher { machine: self, watch, end: Arc::clone(&end), seen: None, partitions: vec![] };
        let thread = thread::Builder::new().name("quietcore-host".to_owned());
        let thread = thread.spawn(move || watcher.run(report));
        let thread = thread.map_err(|error| refused("start a thread", error))?;
        Ok(HostWatchGuard { machine: self, end, thread: Some(thread) })
    }
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    Over,
    ByTime,
    ByChange,
}

struct Watcher {
    machine: &'static Machine,
    watch: HostWatch,
    end: Arc<OwnedFd>,
    /// What the last look made of the host, done or refused.
    seen: Option<CpuSet>,
    partitions: Vec<String>,
}

impl Watcher {
    fn run(mut self, mut report: impl FnMut(&IsolationChange)) {
        self.machine.keep_off_isolated();
        let _own = self.machine.join_own_threads();
        while self.machine.is_running() {
            let (told, host) = self.look();
            if let Some(change) = self.follow(host) {
                crate::events::host_isolation_changed(&change);
                report(&change);
            }
            if self.rest(&told) == Woken::Over {
                return;
            }
        }
    }

    /// What the host says, and the partitions that were known before, opened for changes.
    fn look(&mut self) -> (Vec<File>, HostIsolation) {
        let (told, Reading { host, partitions }) = look(&self.watch.files, &self.partitions);
        self.partitions = partitions;
        (told, host)
    }

    /// Until the next look, which a change of `told` brings forward; a pause at least.
    fn rest(&self, told: &[File]) -> Woken {
        let mut left = self.watch.interval;
        loop {
            // The end of the machine wakes no thread here.
            let part = left.min(PART);
            match self.wait(told, part) {
                Woken::ByTime if part < left && self.machine.is_running() => left -= part,
                Woken::ByChange => return self.wait(&[], PAUSE),
                woken => return woken,
            }
        }
    }

    /// Isolates what `host` says, if that is news.
    fn follow(&mut self, host: HostIsolation) -> Option<IsolationChange> {
        let now = self.machine.core.isolation();
        let mut wanted = host.from_tasks().intersection(&self.machine.cpus).difference(&now.domain);
        if host.is_incomplete() {
            wanted = wanted.union(self.seen.as_ref().unwrap_or(&now.runtime));
        }
        let is_news = match &self.seen {
            Some(seen) => *seen != wanted,
            None => now.runtime != wanted,
        };
        self.seen = Some(wanted.clone());
        if !is_news {
            return None;
        }
        let outcome = self.machine.set_isolated(&wanted);
        Some(IsolationChange { host, before: now.runtime, wanted, outcome })
    }

    /// Until the guard was dropped, one of `told` changed, or `latest` is over.
    fn wait(&self, told: &[File], latest: Duration) -> Woken {
        let mut fds = vec![PollFd::new(&*self.end, PollFlags::IN)];
        fds.extend(told.iter().map(|file| PollFd::new(file, PollFlags::PRI)));
        let latest = Timespec::try_from(latest).ok();
        // Whatever ends it, what counts is read again.
        let _ = poll(&mut fds, latest.as_ref());
        if fds[0].revents().contains(PollFlags::IN) {
            return Woken::Over;
        }
        let is_told = fds.iter().skip(1).any(|fd| !fd.revents().is_empty());
        if is_told { Woken::ByChange } else { Woken::ByTime }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::host::HostIsolation;
    use super::super::problems::IsolationProblem;
    use super::super::tests::{Folder, next, runtime, two_cpus};
    use super::{File, HostWatch, Machine, PAUSE, Watcher, Woken};
    use core::time::Duration;
    use rustix::event::{EventfdFlags, eventfd};
    use std::io::Read;
    use std::sync::Arc;
    use std::sync::mpsc::{RecvTimeoutError, channel};

    /// Longer than any test takes on a machine that works.
    const PATIENCE: Duration = Duration::from_secs(20);

    /// A watcher that no thread runs.
    fn watcher(machine: &'static Machine) -> Watcher {
        let end = Arc::new(eventfd(0, EventfdFlags::NONBLOCK).expect("a descriptor can be had"));
        Watcher { machine, watch: HostWatch::new(), end, seen: None, partitions: vec![] }
    }

    /// Goal: no program makes the thread spin. Method: an interval of nothing.
    #[test]
    fn two_looks_are_apart() {
        assert_eq!(HostWatch::new().every(Duration::ZERO), HostWatch::new().every(PAUSE));
        assert_ne!(HostWatch::new().every(2 * PAUSE), HostWatch::new().every(PAUSE));
    }

    /// Goal: what a look made of the host is news once, be it refused or done; what the program isolates by
    /// itself holds until the host changes. Method: looks at hosts, by hand.
    #[test]
    fn a_set_is_news_once() {
        let Some((cpus, last)) = two_cpus("a_set_is_news_once") else { return };
        let machine = Machine::start().expect("starts");
        let mut watcher = watcher(machine);
        let host = |cpusets: &_| HostIsolation { cpusets: Clone::clone(cpusets), ..HostIsolation::default() };
        let all = host(&cpus);
        let refused = watcher.follow(all.clone()).expect("it is news");
        assert!(refused.outcome.is_err());
        assert_eq!(watcher.follow(all), None);
        assert!(watcher.follow(host(&crate::CpuSet::new())).is_some());
        machine.set_isolated(&last).expect("one is left");
        assert_eq!(watcher.follow(host(&crate::CpuSet::new())), None);
        assert_eq!(runtime(machine), last);
        machine.shutdown();
    }

    /// Goal: what the program isolates by itself holds over a look that was incomplete, and until the host
    /// changes. Method: the program adds a CPU to what the host isolates; a part of the host is missing, and
    /// is there again.
    #[test]
    fn an_incomplete_look_is_no_news() {
        let Some((_, last)) = two_cpus("an_incomplete_look_is_no_news") else { return };
        let machine = Machine::start().expect("starts");
        let mut watcher = watcher(machine);
        assert_eq!(watcher.follow(HostIsolation::default()), None);
        machine.set_isolated(&last).expect("one is left");
        let unreadable = IsolationProblem::Unreadable { path: "/file".to_owned(), reason: "why".to_owned() };
        let incomplete = HostIsolation { problems: vec![unreadable], ..HostIsolation::default() };
        for host in [incomplete, HostIsolation::default()] {
            assert_eq!(watcher.follow(host), None);
            assert_eq!(runtime(machine), last);
        }
        machine.shutdown();
    }

    /// Goal: the kernel is asked to tell of the partitions that the look before has found. Method: two looks
    /// at a host with one.
    #[test]
    fn the_next_look_knows_the_partitions() {
        let folder = Folder::new();
        folder.write("/cg/cpuset.cpus.partition", "root\n");
        let machine = Machine::start().expect("starts");
        let mut watcher = watcher(machine);
        watcher.watch = HostWatch::new().below(&folder.0);
        assert_eq!([(); 2].map(|()| watcher.look().0.len()), [0, 1]);
        machine.shutdown();
    }

    /// Goal: a wait ends with a change that the kernel tells of, else when its time is over. Method: a file
    /// of sysfs, which counts as changed until it is read; a wait that has no other end than that, and one
    /// that has. The pause between two looks is not ended by it.
    #[test]
    fn a_change_ends_the_wait() {
        let Ok(mut file) = File::open("/sys/devices/system/cpu/online") else {
            quietcore_testing::left_out("a_change_ends_the_wait", "needs sysfs");
            return;
        };
        let machine = Machine::start().expect("starts");
        let watcher = watcher(machine);
        let unread = file.try_clone().expect("a descriptor can be had");
        let unread = [unread];
        assert_eq!(watcher.wait(&unread, PATIENCE), Woken::ByChange);
        assert_eq!(watcher.rest(&unread), Woken::ByTime);
        file.read_to_string(&mut String::new()).expect("a list of CPUs");
        assert_eq!(watcher.wait(&[file], PAUSE), Woken::ByTime);
        machine.shutdown();
    }

    /// Goal: the thread ends with its machine, though its guard lives, and looks no more then. Method: the
    /// end of its callback is seen; of a watch that looks often, of one that hardly ever does, and of one
    /// that comes too late.
    #[test]
    fn the_end_of_the_machine_ends_the_watch() {
        let folder = Folder::new();
        // All of them, which is refused, and reported.
        folder.isolate("0-8191");
        for (interval, is_late) in [(PAUSE, false), (Duration::MAX, false), (PAUSE, true)] {
            let machine = Machine::start().expect("starts");
            if is_late {
                machine.shutdown();
            }
            let (sender, changes) = channel();
            let watch = HostWatch::new().every(interval).below(&folder.0);
            let guard = machine.watch_host_isolation(watch, move |change| _ = sender.send(change.clone()));
            if !is_late {
                assert!(next(&changes).outcome.is_err(), "it has looked");
            }
            machine.shutdown();
            assert!(matches!(changes.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected)));
            drop(guard);
        }
    }

    /// Goal: dropping the guard waits for the report that is under way. Method: a report that takes its time
    /// once the guard is about to be dropped.
    #[test]
    fn the_guard_waits_for_the_report() {
        let Some((_, last)) = two_cpus("the_guard_waits_for_the_report") else { return };
        let folder = Folder::new();
        folder.isolate(&last.to_string());
        let machine = Machine::start().expect("starts");
        let ((began, has_begun), (ended, has_ended)) = (channel(), channel());
        let watch = HostWatch::new().every(PAUSE).below(&folder.0);
        let report = move |_: &_| {
            began.send(()).expect("the test waits");
            std::thread::sleep(Duration::from_millis(50));
            ended.send(()).expect("the test waits");
        };
        let guard = machine.watch_host_isolation(watch, report).expect("there is a thread to be had");
        has_begun.recv_timeout(PATIENCE).expect("the host isolates one");
        drop(guard);
        assert_eq!(has_ended.try_recv(), Ok(()));
        machine.shutdown();
    }

    /// Goal: a report may drop the guard of its own thread, which then ends. Method: it does, at the first
    /// change; the end of the callback is seen.
    #[test]
    fn a_report_may_drop_the_guard() {
        let Some((_, last)) = two_cpus("a_report_may_drop_the_guard") else { return };
        let folder = Folder::new();
        let machine = Machine::start().expect("starts");
        let ((give, given), (sender, changes)) = (channel(), channel());
        let watch = HostWatch::new().every(PAUSE).below(&folder.0);
        let report = move |change: &super::IsolationChange| {
            drop(given.recv_timeout(PATIENCE).expect("the test gives it"));
            sender.send(change.clone()).expect("the test waits");
        };
        let guard = machine.watch_host_isolation(watch, report).expect("there is a thread to be had");
        give.send(guard).expect("the thread runs");
        folder.isolate(&last.to_string());
        assert_eq!(next(&changes).wanted, last);
        assert!(matches!(changes.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected)));
        machine.shutdown();
    }
}
