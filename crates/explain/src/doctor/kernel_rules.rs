//! Rules about what this kernel version does with timers, given the isolated CPUs.
//!
//! Decides by [`TimerModel`]; all texts say "stock kernels", because a vendor kernel may carry a
//! later version's change under an older number.
//! Source: Linux v6.8 kernel/sched/core.c (`get_nohz_timer_target`), v6.9, v6.12 and v6.19
//! kernel/time/timer_migration.c; our recordings of 6.1, 6.12 and 6.19.

use super::text::{Cite, agreed, cpus, first_of};
use crate::host::Facts;
use crate::{Finding, Severity};
use quietcore_core::{CpuId, CpuSet};
use quietcore_trace::{Question, TimerModel};
use std::cmp::Reverse;

/// How many groups, and how many CPUs with their counts, are named.
const GROUPS_SHOWN: usize = 4;
const CPUS_SHOWN: usize = 3;

fn model(facts: &Facts) -> Option<TimerModel> {
    facts.release.as_ref().map(|fact| fact.value.timer_model())
}

/// 6.9 to 6.18: a busy isolated CPU that keeps its tick pulls the timers of idle CPUs.
pub(super) fn isolated_pull_timers(facts: &Facts) -> Option<Finding> {
    let pullers = facts.domain_isolated().difference(&facts.nohz_full());
    if model(facts)? != TimerModel::Pull || pullers.is_empty() {
        return None;
    }
    let release = facts.release.as_ref()?;
    Some(
        Finding::new("isolated-pull-timers", Question::Isolation, Severity::Warning)
            .what(format!(
                "On kernel {} isolated {} will run timers that were armed on other CPUs.",
                release.value.text,
                cpus(&pullers)
            ))
            .why(
                "From 6.9 to 6.18 stock kernels let a busy CPU of each group of eight pull the timers \
                 of its idle neighbours when they expire, isolated or not; a polling task makes an \
                 isolated CPU look permanently busy. 6.19 takes domain-isolated CPUs out. \
                 kernel.timer_migration=0 does not help: since 6.9 it governs hrtimers only.",
            )
            .change(awake_commands(facts))
            .predicted(
                "Timers that other CPUs armed no longer run on the isolated CPUs (measured with \
                 housekeeping CPUs awake: 0 in 9 of 9 machines); with 6.19 that holds with nothing kept \
                 awake.",
            )
            .verify(format!("quietcore explain --live 10s --isolated {}", facts.isolated()))
            .cite(Some(release))
            .cite(facts.cpus.isolated.as_ref())
            .cite(facts.groups.isolated.as_ref()),
    )
}

/// A housekeeping CPU to keep awake in each group of eight that has one: that serves groups without one, too.
fn awake_commands(facts: &Facts) -> String {
    let housekeeping = facts.housekeeping();
    let groups = facts.cpus.groups();
    let awake: CpuSet = groups.iter().filter_map(|group| group.intersection(&housekeeping).first()).collect();
    let mut text = "Run a kernel from 6.19 on.".to_owned();
    if !awake.is_empty() {
        text += &format!(
            "\nOr keep one housekeeping CPU awake in each group of eight that has one (groups counted in \
             ascending order per NUMA node); that serves the groups that have none, too. Start it before \
             the isolated load, because an awake migrator is never replaced:\n\
             $ quietcore keep-awake # keeps CPUs {awake} awake"
        );
    }
    text
}

/// Up to 6.8: a timer armed on an idle CPU goes to a busy one of the same scheduling domain.
pub(super) fn timers_pushed_when_armed(facts: &Facts) -> Option<Finding> {
    let migration = facts.system.timer_migration.as_ref()?;
    let shielded = shielded(facts);
    if model(facts)? != TimerModel::Push || migration.value == 0 {
        return None;
    }
    if shielded.is_empty() && facts.isolated().is_empty() {
        return None;
    }
    let (severity, what) = if shielded.is_empty() {
        let what = format!(
            "An idle CPU hands each timer it arms to a busy CPU; isolated {} {} spared, CPUs \
             reserved by affinity alone are not.",
            cpus(&facts.isolated()),
            agreed(&facts.isolated(), "is", "are")
        );
        (Severity::Note, what)
    } else {
        let what = format!(
            "Timers armed on idle CPUs can be placed on {}, which are reserved but share a scheduling \
             domain with them.",
            cpus(&shielded)
        );
        (Severity::Warning, what)
    };
    Some(
        Finding::new("timers-pushed-when-armed", Question::Placement, severity)
            .what(what)
            .why(
                "Up to 6.8, with kernel.timer_migration=1, stock kernels place an unpinned timer on \
                 the nearest busy CPU in the scheduling domains of an idle arming CPU. nohz_full CPUs \
                 are never chosen and domain-isolated ones are in no domain; every other busy CPU is a \
                 candidate.",
            )
            .change("$ sysctl -w kernel.timer_migration=0")
            .predicted(
                "Timers stay on the CPU that arms them (up to 6.8 only; from 6.9 on this does not \
                 help).",
            )
            .verify("sysctl kernel.timer_migration; quietcore explain --live 10s")
            .cite(facts.release.as_ref())
            .cite(Some(migration))
            .cite(facts.cmdline.as_ref()),
    )
}

/// CPUs that were reserved by means that leave them in the scheduling domains.
fn shielded(facts: &Facts) -> CpuSet {
    let asked = facts.isolcpus().iter().fold(CpuSet::new(), |all, one| all.union(&one.cpus));
    let exclusive = super::cgroup_rules::balanced_exclusive(facts);
    asked.union(&exclusive).intersection(&facts.online()).difference(&facts.isolated())
}

/// From 6.9 on: a nohz_full CPU stays in the hierarchy, and others run its timers.
pub(super) fn nohz_full_stays_in_hierarchy(facts: &Facts) -> Option<Finding> {
    let nohz_full = facts.nohz_full();
    if model(facts)? == TimerModel::Push || nohz_full.is_empty() {
        return None;
    }
    Some(
        Finding::new("nohz-full-stays-in-hierarchy", Question::Isolation, Severity::Note)
            .what(format!(
                "nohz_full {} {} taking part in timer migration.",
                cpus(&nohz_full),
                agreed(&nohz_full, "keeps", "keep")
            ))
            .why(
                "Since 6.9 a CPU whose tick is stopped looks idle, so the timekeeper (which never stops \
                 its tick) runs its timers; it pulls foreign timers only while its own tick runs: for \
                 a moment after idling, or with two or more runnable tasks. 6.19 excludes \
                 domain-isolated CPUs, but not those that are also nohz_full.",
            )
            .change("Keep exactly one runnable task on each nohz_full CPU.")
            .predicted(
                "The tick stays off, so these CPUs neither tick nor pull; the timekeeper carries \
                 their timers.",
            )
            .verify(format!("quietcore explain --live 10s --isolated {nohz_full}"))
            .cite(facts.release.as_ref())
            .cite(facts.cpus.nohz_full.as_ref()),
    )
}

/// From 6.19 on: domain-isolated CPUs are out of the hierarchy, with one consequence.
pub(super) fn isolated_left_hierarchy(facts: &Facts) -> Option<Finding> {
    let excluded = facts.domain_isolated().difference(&facts.nohz_full());
    if model(facts)? != TimerModel::PullExcludesIsolated || excluded.is_empty() {
        return None;
    }
    Some(
        Finding::new("isolated-left-hierarchy", Question::Isolation, Severity::Note)
            .what(format!(
                "Isolated {} {} not pull timers; a timer that is armed there runs there.",
                cpus(&excluded),
                agreed(&excluded, "does", "do")
            ))
            .why(
                "Since 6.19 stock kernels keep domain-isolated CPUs (isolcpus=domain or an isolated \
                 cpuset partition, unless also nohz_full) out of timer migration in both directions.",
            )
            .change(
                "None needed; move interrupts and helper threads off these CPUs so that they arm \
                 nothing there.",
            )
            .predicted("0 timers armed elsewhere run on the isolated CPUs.")
            .verify(format!("quietcore explain --live 10s --isolated {excluded}"))
            .cite(facts.release.as_ref())
            .cite(facts.cpus.isolated.as_ref()),
    )
}

/// From 6.9 on `timer_migration=0` does not do what it is set for.
pub(super) fn timer_migration_hrtimers_only(facts: &Facts) -> Option<Finding> {
    let migration = facts.system.timer_migration.as_ref().filter(|fact| fact.value == 0)?;
    let model = model(facts)?;
    if model == TimerModel::Push {
        return None;
    }
    let still_pulled = !facts.domain_isolated().is_empty() && model == TimerModel::Pull;
    let severity = if still_pulled { Severity::Warning } else { Severity::Note };
    Some(
        Finding::new("timer-migration-hrtimers-only", Question::Placement, severity)
            .what("kernel.timer_migration is 0, but ordinary (wheel) timers are pulled all the same.")
            .why(format!(
                "{} It still decides where an unpinned hrtimer is armed. Up to 6.8 it governed both.",
                model.sysctl_governs()
            ))
            .change("$ sysctl -w kernel.timer_migration=1")
            .predicted(
                "No change for wheel timers; unpinned hrtimers of idle CPUs go to busy ones again. \
                 Leave it at 0 if that is what it was set for.",
            )
            .verify("sysctl kernel.timer_migration")
            .cite(Some(migration))
            .cite(facts.release.as_ref()),
    )
}

/// No CPU is left to do the work that isolation moves away.
pub(super) fn housekeeping_empty(facts: &Facts) -> Option<Finding> {
    let first = facts.online().iter().next()?;
    if !facts.housekeeping().is_empty() {
        return None;
    }
    Some(
        Finding::new("housekeeping-empty", Question::Isolation, Severity::Critical)
            .what(format!("All online {} are isolated; no housekeeping CPU remains.", cpus(&facts.online())))
            .why(
                "Interrupts, timers and unbound work must run somewhere; with every CPU isolated they \
                 run on isolated ones. Kernels from 6.19 on refuse boot parameters that leave no \
                 housekeeping CPU; earlier ones check isolcpus= and nohz_full= one by one only.",
            )
            .change(format!(
                "Take CPU {first} (and its hardware sibling) out of isolcpus=, nohz_full= and \
                 partitions."
            ))
            .predicted("Housekeeping moves to that CPU; the others become quiet.")
            .verify("cat /sys/devices/system/cpu/isolated /sys/devices/system/cpu/nohz_full")
            .cite(facts.cpus.online.as_ref())
            .cite(facts.cpus.isolated.as_ref())
            .cite(facts.cpus.nohz_full.as_ref()),
    )
}

/// Whether no CPU is isolated, and none was meant to be.
fn isolates_nothing(facts: &Facts) -> bool {
    let asked = !facts.isolcpus().is_empty() || facts.boot("nohz_full").is_some();
    let asked = asked || !facts.groups.partitions.is_empty() || !shielded(facts).is_empty();
    facts.cpus.online.is_some() && facts.isolated().is_empty() && !asked
}

/// What to say about isolation on a host that isolates nothing.
pub(super) fn nothing_isolated(facts: &Facts) -> Option<Finding> {
    if !isolates_nothing(facts) {
        return None;
    }
    Some(
        Finding::new("nothing-isolated", Question::Isolation, Severity::Note)
            .what("Nothing is isolated: every CPU runs any task, timer, interrupt and deferred work.")
            .why(
                "Neither isolcpus=, nohz_full= nor an isolated cpuset partition is in force, so the \
                 rules about isolated CPUs have nothing to say (any kernel version).",
            )
            .change(
                "None needed, unless some CPUs must be quiet; then boot with \
                 isolcpus=managed_irq,domain,LIST, or (cgroup v2, kernel 6.1 on) echo isolated > \
                 cpuset.cpus.partition in a cgroup whose cpuset.cpus is LIST.",
            )
            .predicted("The CPUs in LIST get no task, and (from 6.19 on) no timer, that was not sent there.")
            .verify("cat /sys/devices/system/cpu/isolated; quietcore doctor")
            .cite(facts.cpus.isolated.as_ref())
            .cite(facts.cmdline.as_ref()),
    )
}

/// A host that isolates nothing: which CPUs have the timers, and how to see whose they are.
pub(super) fn timer_owners(facts: &Facts) -> Option<Finding> {
    let release = facts.release.as_ref()?;
    if !isolates_nothing(facts) {
        return None;
    }
    let softirqs = facts.irq.timer_softirqs.as_ref().filter(|fact| !fact.value.is_empty());
    let counted = softirqs.map_or(String::new(), |fact| busiest(&fact.value));
    Some(
        Finding::new("timer-owners", Question::Placement, Severity::Note)
            .what(format!("Each timer belongs to the CPU that armed it{}.{counted}", exceptions(facts)))
            .why(
                "Where an unpinned timer runs is the kernel's choice (push up to 6.8, pull from 6.9 on); \
                 which function armed it is in no file that every user may read (/proc/timer_stats was \
                 removed in 4.11), so only a recording names functions and tasks.",
            )
            .change(
                "None needed. To see which functions and tasks own the timers:\n\
                 $ quietcore explain --live 10s",
            )
            .predicted(
                "The table of that report lists, for each CPU, the callbacks of timers by function, and \
                 what armed them on which CPU.",
            )
            .verify("grep -E 'CPU|TIMER' /proc/softirqs")
            .cite(Some(release))
            .cite(facts.system.timer_migration.as_ref())
            .cite(softirqs),
    )
}

/// On which other CPU a timer may run, by version and setting.
fn exceptions(facts: &Facts) -> String {
    let migration = facts.system.timer_migration.as_ref().map(|fact| fact.value);
    match (model(facts), migration) {
        (Some(TimerModel::Push), Some(0)) => " and runs there".to_owned(),
        (Some(TimerModel::Push), _) => {
            " and runs there; an idle CPU hands it to the nearest busy one when it arms it".to_owned()
        }
        _ => {
            let groups: Vec<String> = facts.cpus.groups().iter().map(ToString::to_string).collect();
            let groups = first_of(&groups, GROUPS_SHOWN);
            format!("; while that is idle, a busy CPU of its group of eight runs it (groups: {groups})")
        }
    }
}

/// The CPUs that ran most TIMER softirqs, which run timers or find none due.
fn busiest(softirqs: &[(CpuId, u64)]) -> String {
    let all = softirqs.iter().fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
    let mut counts = softirqs.to_vec();
    counts.sort_by_key(|(cpu, count)| (Reverse(*count), *cpu));
    let first: Vec<String> =
        counts.iter().take(CPUS_SHOWN).map(|(cpu, count)| format!("CPU {cpu}: {count}")).collect();
    format!(" Most TIMER softirqs since boot: {} of {all}.", first.join(", "))
}

/// Two hardware threads share a core: a busy sibling slows the isolated one.
pub(super) fn smt_sibling(facts: &Facts) -> Option<Finding> {
    let (isolated, housekeeping) = (facts.isolated(), facts.housekeeping());
    let mixed =
        |set: &CpuSet| !set.intersection(&isolated).is_empty() && !set.intersection(&housekeeping).is_empty();
    let cores: Vec<_> = facts.cpus.siblings.iter().filter(|core| mixed(&core.value)).collect();
    let first = *cores.first()?;
    let loud =
        cores.iter().fold(CpuSet::new(), |all, core| all.union(&core.value.intersection(&housekeeping)));
    let hurt = cores.iter().fold(CpuSet::new(), |all, core| all.union(&core.value.intersection(&isolated)));
    Some(
        Finding::new("smt-sibling", Question::Isolation, Severity::Warning)
            .what(format!(
                "Isolated {} {} a core with housekeeping {}.",
                cpus(&hurt),
                agreed(&hurt, "shares", "share"),
                cpus(&loud)
            ))
            .why(
                "Hardware threads of one core share its execution units and caches, so work on one \
                 slows the other; no kernel version hides that.",
            )
            .change(format!(
                "Isolate whole cores: add {} to the isolated set or take {} out of it, or boot with nosmt.",
                cpus(&loud),
                cpus(&hurt)
            ))
            .predicted("Isolated CPUs no longer lose cycles to their siblings.")
            .verify("grep . /sys/devices/system/cpu/cpu*/topology/thread_siblings_list")
            .cite(Some(first)),
    )
}
