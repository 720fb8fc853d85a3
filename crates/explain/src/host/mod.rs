//! The facts of a host that decide who disturbs which CPU, read from `/proc` and `/sys`.
//!
//! Decides which files are read and what they say; the same code reads the live host and a copy
//! of one below any directory. Invariants: reading never writes, needs no privilege, is bounded in
//! time and memory whatever the files hold, and never fails: what is missing is absent, what is
//! garbled is listed in [`Facts::unreadable`]. One count is read where root asks (`firmware.rs`).
//! Not here: judgement (see [`examine`](crate::examine)), and anything else that only root may read.

mod below;
mod cgroup;
mod cmdline;
mod config;
mod copy;
mod cpus;
mod files;
mod firmware;
mod frequency;
mod irq;
mod net;
mod services;
mod system;

pub(crate) use cgroup::{Cgroups, OldCpuset, Partition, Quota, Version};
pub(crate) use cmdline::{Cmdline, Isolcpus, Refusal, cpu_list};
pub use copy::{CopiedEntry, CopyTooLarge, HostCopy};
pub(crate) use cpus::Cpus;
pub(crate) use files::{Fact, printable};
pub(crate) use frequency::CpuFrequency;
pub(crate) use irq::Interrupts;
pub(crate) use net::Queues;
pub(crate) use services::{BannedCpus, Services};
pub(crate) use system::System;

use config::read_hz;
use files::Reader;
use firmware::read_smi_count;
use quietcore_core::CpuSet;
use quietcore_trace::KernelRelease;
use std::path::Path;

/// Everything about one host that [`examine`](crate::examine) looks at.
#[derive(Debug, Default)]
pub struct Facts {
    /// Files that exist but could not be used: path on the host, and the reason. Both printable.
    pub unreadable: Vec<(String, String)>,
    /// Ticks per second of its kernel, as far as the kernel's configuration is there.
    pub hz: Option<u32>,
    pub(crate) release: Option<Fact<KernelRelease>>,
    pub(crate) cmdline: Option<Fact<Cmdline>>,
    pub(crate) cpus: Cpus,
    pub(crate) irq: Interrupts,
    pub(crate) groups: Cgroups,
    pub(crate) queues: Queues,
    pub(crate) frequency: Vec<CpuFrequency>,
    pub(crate) services: Services,
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
        let mut reader = Reader::new(root);
        let facts = Self::gather(&mut reader);
        Self { unreadable: reader.into_parts().0, ..facts }
    }

    /// As [`Facts::read`], with a copy of all that was read: unpacked below another directory, it gives the
    /// same facts there.
    ///
    /// # Errors
    /// There is more to copy than 64 MiB.
    pub fn read_and_copy(root: &Path) -> Result<(Self, HostCopy), CopyTooLarge> {
        let mut reader = Reader::copying(root);
        let facts = Self::gather(&mut reader);
        let (unreadable, copy) = reader.into_parts();
        Ok((Self { unreadable, ..facts }, copy.whole()?))
    }

    fn gather(reader: &mut Reader) -> Self {
        let release = reader.fact("/proc/sys/kernel/osrelease", |text| {
            KernelRelease::parse(text).ok_or("not a kernel release")
        });
        let cmdline = Cmdline::read(reader);
        let hz = release.as_ref().and_then(|fact| read_hz(reader, &fact.value.text));
        let cpus = Cpus::read(reader);
        let mut facts = Self {
            unreadable: Vec::new(),
            hz,
            release,
            cmdline,
            frequency: CpuFrequency::read(reader, &value(cpus.online.as_ref())),
            cpus,
            irq: Interrupts::read(reader),
            groups: Cgroups::read(reader),
            queues: Queues::read(reader),
            services: Services::read(reader),
            system: System::read(reader),
        };
        let housekeeping = facts.housekeeping();
        facts.system.smi_count = read_smi_count(reader, facts.system.virt.intel, &housekeeping);
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
            None => self.asked_to_isolate(),
        };
        let later = self.groups.partition_isolated().union(&self.groups.unbalanced());
        self.if_online(&boot.union(&later))
    }

    /// Whether the host says which CPUs are online.
    pub(crate) fn knows_online(&self) -> bool {
        !self.online().is_empty()
    }

    /// Whether the host says which CPUs are isolated, or that none is.
    pub(crate) fn knows_isolated(&self) -> bool {
        let says = self.cpus.isolated.is_some() || self.cmdline.is_some();
        !self.domain_isolated().is_empty() || says && self.knows_online()
    }

    /// What the `isolcpus=` parameters ask to keep out of the scheduling domains.
    pub(crate) fn asked_to_isolate(&self) -> CpuSet {
        let params = self.isolcpus();
        params.iter().filter(|one| one.domain).fold(CpuSet::new(), |all, one| all.union(&one.cpus))
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

    /// Whether the kernel has PREEMPT_RT, by its own word or its name.
    pub(crate) fn is_preempt_rt(&self) -> bool {
        let says = self.system.realtime.as_ref().is_some_and(|fact| fact.value == 1);
        says || self.kernel().is_some_and(KernelRelease::is_preempt_rt)
    }

    /// Whether handlers of interrupts run in threads: asked for at boot, and always with PREEMPT_RT.
    pub(crate) fn has_threaded_interrupts(&self) -> bool {
        self.is_preempt_rt() || self.has_param("threadirqs")
    }

    /// Whether irqbalance runs, if the host says; a container does not show the processes of its host.
    pub(crate) fn irqbalance_runs(&self) -> Option<bool> {
        let runs = self.services.irqbalance.as_ref().map(|fact| fact.value);
        runs.filter(|runs| *runs || self.system.virt.container.is_none())
    }

    /// The CPUs that irqbalance puts no interrupt on; `None` if its settings cannot be read.
    pub(crate) fn spared_by_irqbalance(&self) -> Option<CpuSet> {
        match &self.services.banned {
            BannedCpus::AsTheKernelSays => {
                Some(value(self.cpus.isolated.as_ref()).union(&value(self.cpus.nohz_full.as_ref())))
            }
            BannedCpus::Named(list) => Some(list.value.clone()),
            BannedCpus::Unclear => None,
        }
    }

    /// Whether a boot parameter is there, with a value or without.
    pub(crate) fn has_param(&self, name: &str) -> bool {
        self.cmdline.as_ref().is_some_and(|line| line.value.all(name).next().is_some())
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
