//! What a host is, as data: the same facts as the rows for people, in lists and numbers.
//!
//! Decides the keys of `summary` in the JSON (docs/reference/doctor.md). Invariant: what is not known is
//! `None`, and never empty or 0 for that reason; every text is printable.

use super::text::clean;
use crate::host::{CpuFrequency, Facts, Partition, Quota, Version};
use quietcore_core::CpuSet;
use quietcore_trace::TimerModel;
use serde::Serialize;

/// Numbers of CPUs, ascending.
type CpuNumbers = Vec<u64>;

/// A host. CPUs are lists of their numbers; what is not known is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostSummary {
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Ticks per second.
    pub hz: Option<u32>,
    /// Whether the kernel has PREEMPT_RT.
    pub preempt_rt: Option<bool>,
    /// Where unpinned timers go: `push`, `pull` or `pull-excludes-isolated`.
    pub timers: Option<&'static str>,
    /// The sysctl `kernel.timer_migration`.
    pub timer_migration: Option<i64>,
    /// CPUs that may ever come online.
    pub possible: Option<CpuNumbers>,
    /// CPUs that are online.
    pub online: Option<CpuNumbers>,
    /// CPUs by NUMA node, for nodes that have any.
    pub nodes: Vec<NodeSummary>,
    /// Most hardware threads that a core has.
    pub threads_per_core: Option<usize>,
    /// CPUs kept out of the scheduling domains.
    pub isolated: Option<CpuNumbers>,
    /// The CPUs of `isolated` by what isolates them.
    pub isolated_by: IsolationSummary,
    /// CPUs whose tick stops while they run one task.
    pub nohz_full: Option<CpuNumbers>,
    /// CPUs that are online and neither isolated nor nohz_full.
    pub housekeeping: Option<CpuNumbers>,
    /// CPUs that the check-up itself may use.
    pub affinity: Option<CpuNumbers>,
    /// Who made the virtual machine that the host is; an empty text if that is not shown.
    pub virtual_machine: Option<String>,
    /// The container engine that the check-up runs in.
    pub container: Option<&'static str>,
    /// The kernel's clock source.
    pub clocksource: Option<String>,
    /// What chooses frequencies, with the CPUs of each choice.
    pub frequency: Vec<FrequencySummary>,
    /// Whether handlers of interrupts run in threads.
    pub threaded_interrupts: Option<bool>,
    /// The program that moves interrupts about.
    pub irqbalance: IrqbalanceSummary,
    /// The profile that tuned applied last.
    pub tuned_profile: Option<String>,
    /// System management interrupts since the machine was reset.
    pub smi_count: Option<u64>,
    /// Control groups.
    pub cgroup: CgroupSummary,
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeSummary {
    /// Its number.
    pub node: u32,
    /// Its CPUs.
    pub cpus: CpuNumbers,
}

/// What isolates CPUs; one may be in several lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IsolationSummary {
    /// `isolcpus=` on the command line.
    pub isolcpus: CpuNumbers,
    /// Isolated cpuset partitions.
    pub partitions: CpuNumbers,
    /// Cpusets of the first version that no other one balances.
    pub v1_cpusets: CpuNumbers,
}

/// CPUs whose frequency is chosen alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FrequencySummary {
    /// The CPUs.
    pub cpus: CpuNumbers,
    /// Their governor.
    pub governor: String,
    /// The energy-performance preference, where the processor takes part.
    pub preference: Option<String>,
}

/// What irqbalance does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IrqbalanceSummary {
    /// Whether it runs.
    pub runs: Option<bool>,
    /// The CPUs that it puts (or would put) no interrupt on.
    pub spared: Option<CpuNumbers>,
}

/// Control groups, as far as they bear on CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CgroupSummary {
    /// 1 or 2; `None` where no hierarchy is mounted.
    pub version: Option<u8>,
    /// The cgroup of the check-up.
    pub own: Option<String>,
    /// CPU quotas that hold there, the innermost first.
    pub quotas: Vec<QuotaSummary>,
    /// Cpusets that are partitions, or were meant to be.
    pub partitions: Vec<PartitionSummary>,
}

/// A CPU quota.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QuotaSummary {
    /// The file that sets it.
    pub path: String,
    /// CPU time, in us, ...
    pub quota_us: u64,
    /// ... per so many us.
    pub period_us: u64,
}

/// A cpuset partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartitionSummary {
    /// The file with its state.
    pub path: String,
    /// `root` or `isolated`, as the kernel says; with `invalid` and the reason if it is not in force.
    pub state: String,
    /// Its CPUs.
    pub cpus: Option<CpuNumbers>,
}

/// The host of `facts`.
pub(super) fn host_summary(facts: &Facts) -> HostSummary {
    let known = facts.knows_online();
    let if_known = |set: CpuSet| known.then(|| numbers(&set));
    let virt = &facts.system.virt;
    HostSummary {
        kernel: facts.kernel().map(|release| clean(&release.text)),
        hz: facts.hz,
        preempt_rt: (facts.release.is_some() || facts.system.realtime.is_some())
            .then(|| facts.is_preempt_rt()),
        timers: facts.kernel().map(|release| model_name(release.timer_model())),
        timer_migration: facts.system.timer_migration.as_ref().map(|fact| fact.value),
        possible: facts.cpus.possible.as_ref().map(|fact| numbers(&fact.value)),
        online: if_known(facts.online()),
        nodes: nodes(facts),
        threads_per_core: known
            .then(|| facts.cpus.siblings.iter().map(|core| core.value.len()).fold(1, usize::max)),
        isolated: facts.knows_isolated().then(|| numbers(&facts.domain_isolated())),
        isolated_by: isolated_by(facts),
        nohz_full: facts.cpus.nohz_full.as_ref().map(|_| numbers(&facts.nohz_full())),
        housekeeping: if_known(facts.housekeeping()),
        affinity: facts.cpus.allowed.as_ref().map(|fact| numbers(&fact.value)),
        virtual_machine: virt.guest.as_ref().map(|guest| clean(&guest.value)),
        container: virt.container,
        clocksource: facts.system.clocksource.as_ref().map(|fact| clean(&fact.value)),
        frequency: frequency(&facts.frequency),
        threaded_interrupts: (facts.cmdline.is_some() || facts.is_preempt_rt())
            .then(|| facts.has_threaded_interrupts()),
        irqbalance: IrqbalanceSummary {
            runs: facts.irqbalance_runs(),
            spared: facts.spared_by_irqbalance().and_then(if_known),
        },
        tuned_profile: facts.services.tuned_profile.as_ref().map(|fact| clean(&fact.value)),
        smi_count: facts.system.smi_count.as_ref().map(|fact| fact.value),
        cgroup: cgroup(facts),
    }
}

fn numbers(set: &CpuSet) -> CpuNumbers {
    set.iter().map(|cpu| cpu.index() as u64).collect()
}

fn model_name(model: TimerModel) -> &'static str {
    match model {
        TimerModel::Push => "push",
        TimerModel::Pull => "pull",
        TimerModel::PullExcludesIsolated => "pull-excludes-isolated",
    }
}

fn nodes(facts: &Facts) -> Vec<NodeSummary> {
    let number = |path: &str| path.split('/').rev().nth(1)?.strip_prefix("node")?.parse().ok();
    let nodes = facts.cpus.nodes.iter();
    nodes
        .filter_map(|fact| Some(NodeSummary { node: number(&fact.path)?, cpus: numbers(&fact.value) }))
        .collect()
}

fn isolated_by(facts: &Facts) -> IsolationSummary {
    let set = facts.domain_isolated();
    let of = |cpus: &CpuSet| numbers(&cpus.intersection(&set));
    IsolationSummary {
        isolcpus: of(&facts.asked_to_isolate()),
        partitions: of(&facts.groups.partition_isolated()),
        v1_cpusets: of(&facts.groups.unbalanced()),
    }
}

fn frequency(all: &[CpuFrequency]) -> Vec<FrequencySummary> {
    let mut found: Vec<FrequencySummary> = Vec::new();
    for one in all {
        let governor = clean(&one.governor.value);
        let preference = one.preference.as_ref().map(|fact| clean(&fact.value));
        let cpu = one.cpu.index() as u64;
        match found.iter_mut().find(|known| known.governor == governor && known.preference == preference) {
            Some(known) => known.cpus.push(cpu),
            None => found.push(FrequencySummary { cpus: vec![cpu], governor, preference }),
        }
    }
    found
}

fn cgroup(facts: &Facts) -> CgroupSummary {
    let groups = &facts.groups;
    let version = match groups.version {
        Version::None => return CgroupSummary::default(),
        Version::V1 => 1,
        Version::V2 => 2,
    };
    let quotas = groups.quotas.iter().map(|fact| {
        let Quota { quota_us, period_us } = fact.value;
        QuotaSummary { path: clean(&fact.path), quota_us, period_us }
    });
    let partition = |one: &Partition| PartitionSummary {
        path: clean(&one.state.path),
        state: clean(&one.state.value),
        cpus: one.cpus.as_ref().map(|fact| numbers(&fact.value)),
    };
    CgroupSummary {
        version: Some(version),
        own: Some(clean(&groups.own)),
        quotas: quotas.collect(),
        partitions: groups.partitions.iter().map(partition).collect(),
    }
}
