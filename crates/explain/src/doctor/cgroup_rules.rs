//! Rules about cgroups: cpuset partitions, v1 cpusets, CPU quota, and this process's affinity.
//!
//! Decides what isolates at run time (a *valid* v2 partition of the isolated kind, or v1 cpusets
//! outside every load-balanced one) and what only looks like it.
//! Source: Linux v6.12 Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/cpusets.rst,
//! Documentation/scheduler/sched-bwc.rst.

use super::text::{Cite, cpus};
use crate::host::{Facts, OldCpuset, Partition, Quota, Version};
use crate::{Finding, Severity};
use quietcore_core::CpuSet;
use quietcore_trace::{Question, shell_word};

/// A partition that the kernel calls invalid isolates nothing.
pub(super) fn partition_invalid(facts: &Facts) -> Option<Finding> {
    let bad = facts.groups.partitions.iter().find(|partition| partition.state.value.contains("invalid"))?;
    let kind = bad.state.value.split(' ').next().unwrap_or("isolated");
    Some(
        Finding::new("cpuset-partition-invalid", Question::Isolation, Severity::Critical)
            .what(format!("A cpuset partition is not in force: the kernel says \"{}\".", bad.state.text))
            .why(
                "A partition needs CPUs that no sibling uses and that the parent can give away; when \
                 that fails, or a CPU goes offline, the kernel keeps the setting but treats the cgroup \
                 as a plain member (isolated partitions: 6.1 on; the reason in parentheses likewise).",
            )
            .change(format!(
                "Remove the reason it names, then:\n$ echo {} > {}",
                shell_word(kind),
                shell_word(&bad.state.path)
            ))
            .predicted(
                "The file reads back without \"invalid\", and the CPUs leave the other scheduling \
                 domains.",
            )
            .verify(format!("cat {}", shell_word(&bad.state.path)))
            .cite(Some(&bad.state))
            .cite(bad.cpus.as_ref()),
    )
}

fn partition_cpus(partitions: &[&Partition]) -> CpuSet {
    let cpus = partitions.iter().filter_map(|partition| partition.cpus.as_ref());
    cpus.fold(CpuSet::new(), |all, fact| all.union(&fact.value))
}

/// Isolation at run time, and what it does not include.
pub(super) fn partition_isolated(facts: &Facts) -> Option<Finding> {
    let isolated = facts.groups.partitions.iter().filter(|partition| partition.state.value == "isolated");
    let isolated: Vec<&Partition> = isolated.collect();
    let first = *isolated.first()?;
    let set = partition_cpus(&isolated);
    Some(
        Finding::new("cpuset-partition-isolated", Question::Isolation, Severity::Note)
            .what(format!("A cpuset partition isolates {} at run time.", cpus(&set)))
            .why(
                "An isolated partition (6.1 on) takes its CPUs out of load balancing; unbound work \
                 follows from 6.8 on, and timers from 6.19 on. Interrupts, the tick and RCU callbacks \
                 stay: those are boot parameters or IRQ masks.",
            )
            .change(format!("boot with nohz_full={}", set.union(&facts.nohz_full())))
            .predicted("With it the partition's CPUs also lose the tick while they run one task.")
            .verify("cat /sys/fs/cgroup/cpuset.cpus.isolated /sys/devices/system/cpu/isolated")
            .cite(Some(&first.state))
            .cite(first.cpus.as_ref())
            .cite(facts.groups.isolated.as_ref()),
    )
}

/// A partition of the root kind is balanced inside.
pub(super) fn partition_root(facts: &Facts) -> Option<Finding> {
    // The mount's own root has no such file; a cgroup namespace may show one for the container.
    let roots: Vec<&Partition> =
        facts.groups.partitions.iter().filter(|partition| partition.state.value == "root").collect();
    let first = *roots.first()?;
    let set = partition_cpus(&roots);
    Some(
        Finding::new("cpuset-partition-root", Question::Isolation, Severity::Note)
            .what(format!(
                "A cpuset partition gives {} a scheduling domain of their own, but does not isolate \
                 them.",
                cpus(&set)
            ))
            .why(
                "A partition of the kind \"root\" (5.1 on) keeps other tasks out and balances its own \
                 tasks over its CPUs; timers, unbound work and the migration hierarchy do not see it. \
                 The kind \"isolated\" (6.1 on) does more.",
            )
            .change(format!("$ echo isolated > {}", shell_word(&first.state.path)))
            .predicted(
                "No balancing inside either: each task stays where it is bound; kernel work moves \
                 away.",
            )
            .verify(format!("cat {}", shell_word(&first.state.path)))
            .cite(Some(&first.state))
            .cite(first.cpus.as_ref()),
    )
}

/// v1: exclusive cpusets whose CPUs are still balanced with the rest.
fn balanced_cpusets(facts: &Facts) -> impl Iterator<Item = &OldCpuset> {
    let root = facts.groups.cpusets.first().filter(|root| root.is_balanced());
    let all = root.map(|root| &root.cpus.value);
    // The root, and what leads to an exclusive cpuset, are exclusive too.
    let reserves =
        move |set: &&OldCpuset| set.is_exclusive() && all.is_some_and(|all| set.cpus.value != *all);
    facts.groups.cpusets.iter().filter(reserves)
}

/// v1: CPUs of exclusive cpusets that are still balanced with the rest.
pub(super) fn balanced_exclusive(facts: &Facts) -> CpuSet {
    balanced_cpusets(facts).fold(CpuSet::new(), |all, set| all.union(&set.cpus.value))
}

/// v1: an exclusive cpuset keeps other cpusets out, not the load balancer.
pub(super) fn cpuset_v1_balanced(facts: &Facts) -> Option<Finding> {
    let root = facts.groups.cpusets.first()?;
    let open = balanced_exclusive(facts).difference(&facts.domain_isolated());
    if open.is_empty() {
        return None;
    }
    let owner = balanced_cpusets(facts).find(|set| !set.cpus.value.intersection(&open).is_empty())?;
    let balance = root.balance.as_ref()?;
    Some(
        Finding::new("cpuset-v1-balanced", Question::Isolation, Severity::Warning)
            .what(format!(
                "An exclusive cpuset reserves {}, but the root cpuset still balances tasks over them.",
                cpus(&open)
            ))
            .why(
                "In v1 cpuset.cpu_exclusive only keeps sibling cpusets out; tasks of the root cpuset, \
                 and busy-CPU timer placement (up to 6.8), use these CPUs until the root's \
                 sched_load_balance is 0 (any version with v1).",
            )
            .change(format!("$ echo 0 > {}", shell_word(&balance.path)))
            .predicted(
                "Each cpuset gets its own scheduling domain; tasks of the root cpuset are no longer \
                 balanced.",
            )
            .verify(format!("cat {}", shell_word(&balance.path)))
            .cite(Some(balance))
            .cite(Some(&owner.cpus)),
    )
}

/// A quota stops every ordinary task of the cgroup, on isolated CPUs as well.
pub(super) fn cpu_quota(facts: &Facts) -> Option<Finding> {
    let share = |quota: &Quota| quota.quota_us as f64 / quota.period_us as f64;
    let least = |a: &&crate::host::Fact<Quota>, b: &&crate::host::Fact<Quota>| {
        share(&a.value).total_cmp(&share(&b.value))
    };
    let tightest = facts.groups.quotas.iter().min_by(least)?;
    let Quota { quota_us, period_us } = tightest.value;
    let allowed = facts.cpus.allowed.as_ref().map(|fact| fact.value.clone()).unwrap_or_default();
    let quiet = !allowed.intersection(&facts.isolated()).is_empty();
    let off = match facts.groups.version {
        Version::V1 => "-1",
        Version::V2 | Version::None => "max",
    };
    Some(
        Finding::new("cpu-quota", Question::RealTime, if quiet { Severity::Warning } else { Severity::Note })
            .what(format!(
                "This cgroup may use {quota_us} us of CPU time per {period_us} us ({:.2} CPUs); then \
                 everything in it stops.",
                share(&tightest.value)
            ))
            .why(
                "CFS bandwidth control (3.2 on) throttles all ordinary tasks of the cgroup on a CPU \
                 once the quota is used up, until the next period; a spinning thread uses it up in no \
                 time, and others then miss their timers.",
            )
            .change(format!("$ echo {off} > {}", shell_word(&tightest.path)))
            .predicted("No throttled periods; latency no longer has steps of up to one period.")
            .verify(format!("grep throttled {}", shell_word(&stat_file(&tightest.path))))
            .cite(Some(tightest)),
    )
}

fn stat_file(quota_path: &str) -> String {
    quota_path.rsplit_once('/').map_or_else(String::new, |(dir, _)| format!("{dir}/cpu.stat"))
}

/// This process cannot use every CPU.
pub(super) fn affinity_narrow(facts: &Facts) -> Option<Finding> {
    let allowed = facts.cpus.allowed.as_ref()?;
    let barred = facts.housekeeping().difference(&allowed.value);
    if barred.is_empty() {
        return None;
    }
    Some(
        Finding::new("affinity-narrow", Question::RealTime, Severity::Note)
            .what(format!(
                "This process may run on {} only; it cannot use {}.",
                cpus(&allowed.value),
                cpus(&barred)
            ))
            .why(
                "A cpuset, a container engine or taskset narrowed it; the limit is inherited, and a \
                 real-time task cannot evade a busy CPU outside it (any version).",
            )
            .change(format!("$ taskset -cp {} $$", facts.housekeeping()))
            .predicted(
                "Threads started from this shell may use all housekeeping CPUs, unless a cpuset above \
                 forbids it.",
            )
            .verify("grep Cpus_allowed_list /proc/self/status")
            .cite(Some(allowed))
            .cite(facts.cpus.online.as_ref()),
    )
}
