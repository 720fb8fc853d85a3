//! The host as the source of isolation: which CPUs its kernel isolates, and what becomes of that when it
//! changes.
//!
//! Three masks: `isolated` and `nohz_full` of `/sys/devices/system/cpu`, and what cpusets isolate
//! (`cpusets.rs`). Which of the first two were set at boot is what is left without the cpusets: newer kernels
//! list those in `isolated`, too. A machine takes them once, when it starts
//! (`MachineBuilder::isolation_from_host`), or follows them (`Machine::watch_host_isolation`).
//!
//! Invariants: reading is a pure function of files, below any root; it has bounds and never fails. What is
//! there and cannot be read isolates nothing and is named ([`IsolationProblem`]). Absent: writing any file.

use super::cpusets;
use super::files::{Below, Files};
use super::problems::{IsolationProblem, Problems};
use crate::machine::StartError;
use quietcore_core::CpuSet;
use quietcore_core::place::{Housekeeping, Isolation};
use std::fs::File;
use std::path::{Path, PathBuf};

const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";

/// Partitions whose changes are waited for; the others are looked at once per interval.
const OPEN_COUNT_MAX: usize = 64;

/// Which CPUs the kernel of this host isolates, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostIsolation {
    /// What the kernel lists as isolated: `isolcpus=domain`, and, if it is new enough, cpusets.
    pub isolated: CpuSet,
    /// Without a tick while they run one task: `nohz_full=`.
    pub nohz_full: CpuSet,
    /// What cpusets isolate, as far as this process can see: partitions of version 2, or CPUs that no cpuset
    /// of version 1 balances.
    pub cpusets: CpuSet,
    /// What could not be learned; at most 32 of them.
    pub problems: Vec<IsolationProblem>,
}

/// And by which files the kernel tells of changes.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) host: HostIsolation,
    pub(super) partitions: Vec<String>,
}

/// The first partitions of `known`, opened for changes, and what is read after that: so a change after the
/// reading is told of.
pub(super) fn look(files: &dyn Files, known: &[String]) -> (Vec<File>, Reading) {
    let opened = known.iter().take(OPEN_COUNT_MAX).filter_map(|path| files.open_for_changes(path));
    let opened = opened.collect();
    (opened, read(files))
}

pub(super) fn read(files: &dyn Files) -> Reading {
    let mut problems = Problems::default();
    let isolated = mask(files, ISOLATED, &mut problems);
    let nohz_full = mask(files, NOHZ_FULL, &mut problems);
    let cpusets = cpusets::read(files, &mut problems);
    let host = HostIsolation { isolated, nohz_full, cpusets: cpusets.isolated, problems: problems.0 };
    Reading { host, partitions: cpusets.partitions }
}

/// A list of CPUs in sysfs.
fn mask(files: &dyn Files, path: &str, problems: &mut Problems) -> CpuSet {
    // A kernel that was not told of any prints its null pointer.
    if matches!(files.text(path), Ok(Some(text)) if text.trim() == "(null)") {
        return CpuSet::new();
    }
    cpusets::value(files, path, problems).unwrap_or_default()
}

impl HostIsolation {
    /// Of this host. Cost: two files, and those of control groups (1024 groups at most).
    #[must_use]
    pub fn read() -> Self {
        Self::read_below("/")
    }

    /// The same of a host whose files are below `root`: for a container that has its host's there, or a copy.
    #[must_use]
    pub fn read_below(root: impl AsRef<Path>) -> Self {
        read(&Below(root.as_ref().to_owned())).host
    }

    /// CPUs that are isolated from scheduling, at boot or by cpusets.
    #[must_use]
    pub fn from_tasks(&self) -> CpuSet {
        self.isolated.union(&self.cpusets)
    }

    /// In a machine's words, of the CPUs that it has.
    pub(super) fn masks(&self, cpus: &CpuSet) -> Isolation {
        let domain = self.isolated.difference(&self.cpusets);
        Isolation {
            domain: domain.intersection(cpus),
            nohz_full: self.nohz_full.intersection(cpus),
            runtime: self.cpusets.intersection(cpus),
        }
    }

    /// Whether some of it may be missing.
    pub(super) fn is_incomplete(&self) -> bool {
        self.problems.iter().any(|problem| matches!(problem, IsolationProblem::Unreadable { .. }))
    }
}

/// Where a builder's masks come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FromHost(pub(super) Option<PathBuf>);

impl FromHost {
    /// The host's masks, if they were asked for; otherwise `builder`'s.
    ///
    /// # Errors
    /// When the host leaves none of `cpus` for housekeeping. (A spare would be, but it has no CPU to run on.)
    pub(crate) fn or(&self, builder: Isolation, cpus: &CpuSet) -> Result<Isolation, StartError> {
        let Some(root) = &self.0 else { return Ok(builder) };
        let isolation = HostIsolation::read_below(root).masks(cpus);
        Housekeeping::new(cpus, &isolation).map_err(StartError::Housekeeping)?;
        Ok(isolation)
    }
}
