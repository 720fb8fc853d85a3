//! The facts of a host that decide who disturbs which CPU, read from `/proc` and `/sys`.
//!
//! Decides which files are read and what they say; the same code reads the live host and a copy
//! of one below any directory. Invariants: reading never writes, needs no privilege, is bounded in
//! time and memory whatever the files hold, and never fails: what is missing is absent, what is
//! garbled is listed in [`Facts::unreadable`].
//! Not here: judgement (see [`examine`](crate::examine)), and anything that only root may read.

mod below;
mod cgroup;
mod cmdline;
mod cpus;
mod files;
mod irq;
mod net;
mod system;

pub(crate) use cgroup::{Cgroups, OldCpuset, Partition, Quota, Version};
pub(crate) use cmdline::{Cmdline, Isolcpus, Refusal, cpu_list};
pub(crate) use cpus::Cpus;
pub(crate) use files::{Fact, printable};
pub(crate) use irq::Interrupts;
pub(crate) use net::Queues;
pub(crate) use system::System;

use files::Reader;
use quietcore_core::CpuSet;
use quietcore_trace::KernelRelease;
use std::path::Path;

/// Everything about one host that [`examine`](crate::examine) looks at.
#[derive(Debug, Default)]
pub struct Facts {
    /// Files that exist but could not be used: path on the host, and the reason. Both printable.
    pub unreadable: Vec<(String, String)>,
    pub(crate) release: Option<Fact<KernelRelease>>,
    pub(crate) cmdline: Option<Fact<Cmdline>>,
    pub(crate) cpus: Cpus,
    pub(crate) irq: Interrupts,
    pub(crate) groups: Cgroups,
    pub(crate) queues: Queues,
    pub(crate) system: System,
}

impl Facts {
    /// Reads the host whose root directory is `root`: `/` for this one, any directory with `proc`
    /// and `sys` below it for a copy. Links that lead out of `root` are refused.
    ///
    /// Cost: some hundred small files; bounded by 65536 files of at most 1 MiB each (8 MiB for
    /// `/proc/interrupts`). Any thread may call it.
    #[must_use]
    pub fn read(root: &Path) -> Self {
        let reader = &mut Reader::new(root);
        let release = reader.fact("/proc/sys/kernel/osrelease", |text| {
            KernelRelease::parse(text).ok_or("not a kernel release")
        });
        let cmdline = Cmdline::read(reader);
        let mut facts = Self {
            unreadable: Vec::new(),
            release,
            cmdline,
            cpus: Cpus::read(reader),
            irq: Interrupts::read(reader),
            groups: Cgroups::read(reader),
            queues: Queues::read(reader),
            system: System::read(reader),
        };
        facts.unreadable = std::mem::replace(reader, Reader::new(Path::new("/"))).into_unreadable();
        facts
    }

    /// CPUs that are online, by the kernel's word; empty if it is not known.
    #[must_use]
    pub fn online(&self) -> CpuSet {
        value(self.cpus.online.as_ref())
    }

    /// CPUs kept out of the scheduling domains: `isolcpus=domain`, isolated cpuset partitions
    /// (v2), and CPUs that no load-balanced cpuset covers (v1). Not `nohz_full=`.
    #[must_use]
    pub fn domain_isolated(&self) -> CpuSet {
        let boot = match &self.cpus.isolated {
            Some(fact) => fact.value.clone(),
            // Kernels before 4.2 do not show it; the command line is the next best witness.
            None => self
                .isolcpus()
                .iter()
                .filter(|one| one.domain)
                .fold(CpuSet::new(), |all, one| all.union(&one.cpus)),
        };
        let later = self.groups.partition_isolated().union(&self.groups.unbalanced());
        self.if_online(&boot.union(&later))
    }

    /// CPUs whose tick stops while they run one task (`nohz_full=` or `isolcpus=nohz`).
    #[must_use]
    pub fn nohz_full(&self) -> CpuSet {
        self.if_online(&value(self.cpus.nohz_full.as_ref()))
    }

    /// CPUs that are meant to be quiet: [`Facts::domain_isolated`] and [`Facts::nohz_full`].
    #[must_use]
    pub fn isolated(&self) -> CpuSet {
        self.domain_isolated().union(&self.nohz_full())
    }

    /// CPUs left for everything else: online and not isolated.
    #[must_use]
    pub fn housekeeping(&self) -> CpuSet {
        self.online().difference(&self.isolated())
    }

    /// Every `isolcpus=` of the command line, as the kernel reads it.
    pub(crate) fn isolcpus(&self) -> Vec<Isolcpus> {
        let Some(cmdline) = &self.cmdline else { return Vec::new() };
        let possible = self.possible();
        cmdline.value.all("isolcpus").map(|(at, text)| Isolcpus::parse(at, text, &possible)).collect()
    }

    /// The kernel's release, if the host says.
    #[must_use]
    pub fn kernel(&self) -> Option<&KernelRelease> {
        self.release.as_ref().map(|fact| &fact.value)
    }

    /// Whether the sysctl `kernel.timer_migration` is on, if the host says.
    #[must_use]
    pub fn timer_migration(&self) -> Option<bool> {
        self.system.timer_migration.as_ref().map(|fact| fact.value != 0)
    }

    /// The CPUs of each NUMA node that has any.
    #[must_use]
    pub fn nodes(&self) -> Vec<CpuSet> {
        self.cpus.nodes.iter().map(|node| node.value.clone()).collect()
    }

    /// CPUs that may ever come online; the online ones if that is not known.
    #[must_use]
    pub fn possible(&self) -> CpuSet {
        self.cpus
            .possible
            .as_ref()
            .or(self.cpus.online.as_ref())
            .map(|fact| fact.value.clone())
            .unwrap_or_default()
    }

    /// The value of a boot parameter.
    pub(crate) fn boot(&self, name: &str) -> Option<&str> {
        self.cmdline.as_ref()?.value.value(name)
    }

    /// Whether the running kernel is known to be at least `major.minor`.
    pub(crate) fn at_least(&self, major: u32, minor: u32) -> Option<bool> {
        self.release.as_ref().map(|fact| fact.value.at_least(major, minor))
    }

    fn if_online(&self, cpus: &CpuSet) -> CpuSet {
        match &self.cpus.online {
            Some(online) => online.value.intersection(cpus),
            None => cpus.clone(),
        }
    }
}

fn value(fact: Option<&Fact<CpuSet>>) -> CpuSet {
    fact.map(|fact| fact.value.clone()).unwrap_or_default()
}
