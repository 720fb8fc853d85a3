//! The rows above the findings: what this host is, in the words a person would ask for.
//!
//! Decides the names and order of the rows; each is always present, so a program may rely on it.

use super::system_rules::{CHOICES_SHOWN, frequency_choices};
use super::text::{cpus, first_of};
use crate::host::{Facts, Version};
use quietcore_core::CpuSet;

const UNKNOWN: &str = "unknown";

pub(super) fn rows(facts: &Facts) -> Vec<(&'static str, String)> {
    vec![
        ("kernel", facts.release.as_ref().map_or(UNKNOWN.to_owned(), |fact| fact.value.text.clone())),
        ("tick", facts.hz.map_or(UNKNOWN.to_owned(), |hz| format!("{hz} per second"))),
        ("timers", timers(facts)),
        ("cpus", online(facts)),
        ("isolated", isolated(facts)),
        ("nohz_full", nohz_full(facts)),
        ("housekeeping", housekeeping(facts)),
        ("affinity", facts.cpus.allowed.as_ref().map_or(UNKNOWN.to_owned(), |fact| or_none(&fact.value))),
        ("virtualisation", virtualisation(facts)),
        (
            "clocksource",
            facts.system.clocksource.as_ref().map_or(UNKNOWN.to_owned(), |fact| fact.value.clone()),
        ),
        ("frequency", frequency(facts)),
        ("interrupts", interrupts(facts)),
        ("tuned", tuned(facts)),
        ("SMIs", smis(facts)),
        ("cgroup", cgroup(facts)),
        ("timer_migration", timer_migration(facts)),
        ("unreadable", unreadable(facts)),
    ]
}

fn timers(facts: &Facts) -> String {
    facts.release.as_ref().map_or(UNKNOWN.to_owned(), |fact| fact.value.timer_model().to_string())
}

fn or_none(set: &CpuSet) -> String {
    if set.is_empty() { "none".to_owned() } else { set.to_string() }
}

fn online(facts: &Facts) -> String {
    let online = facts.online();
    if !facts.knows_online() {
        return UNKNOWN.to_owned();
    }
    let nodes = facts.cpus.nodes.len();
    let threads = if facts.cpus.siblings.is_empty() { "" } else { ", several hardware threads per core" };
    format!(
        "{} online ({online}), {} NUMA node{}{threads}",
        online.len(),
        nodes.max(1),
        if nodes > 1 { "s" } else { "" }
    )
}

/// The set, and by which means it came about.
fn isolated(facts: &Facts) -> String {
    let set = facts.domain_isolated();
    let boot = facts.asked_to_isolate().intersection(&set);
    let later = set.difference(&boot);
    let partition = facts.groups.partition_isolated().intersection(&later);
    let old = facts.groups.unbalanced().intersection(&later);
    let means = [(boot, "isolcpus="), (partition, "cpuset partition"), (old, "v1 cpusets")];
    let names: Vec<&str> = means.iter().filter(|(set, _)| !set.is_empty()).map(|(_, name)| *name).collect();
    if !facts.knows_isolated() {
        return UNKNOWN.to_owned();
    }
    if names.is_empty() {
        return or_none(&set);
    }
    format!("{set} (by {})", names.join(" and "))
}

fn housekeeping(facts: &Facts) -> String {
    if facts.knows_online() { or_none(&facts.housekeeping()) } else { UNKNOWN.to_owned() }
}

fn nohz_full(facts: &Facts) -> String {
    match &facts.cpus.nohz_full {
        Some(fact) => or_none(&fact.value),
        None => "none (not built in, or not shown)".to_owned(),
    }
}

fn virtualisation(facts: &Facts) -> String {
    let virt = &facts.system.virt;
    let machine = match &virt.guest {
        Some(guest) if guest.value.is_empty() => "virtual machine".to_owned(),
        Some(guest) => format!("virtual machine ({})", guest.value),
        None => "none seen".to_owned(),
    };
    match &virt.container {
        Some(engine) => format!("{machine}; in a container ({engine})"),
        None => machine,
    }
}

fn frequency(facts: &Facts) -> String {
    let choices = frequency_choices(facts.frequency.iter());
    let shown: Vec<String> =
        choices.iter().map(|(choice, set)| format!("{choice} on {}", cpus(set))).collect();
    if shown.is_empty() { UNKNOWN.to_owned() } else { first_of(&shown, CHOICES_SHOWN) }
}

/// Where handlers run, and whether a program moves them about.
fn interrupts(facts: &Facts) -> String {
    let handlers = if facts.is_preempt_rt() {
        "in threads (PREEMPT_RT)"
    } else if facts.has_threaded_interrupts() {
        "in threads (threadirqs)"
    } else if facts.cmdline.is_some() {
        "not in threads, unless a driver asks for it"
    } else {
        UNKNOWN
    };
    let balanced = match (facts.irqbalance_runs(), facts.spared_by_irqbalance()) {
        (Some(true), Some(spared)) if spared.is_empty() => "irqbalance runs, and spares no CPU".to_owned(),
        (Some(true), Some(spared)) => format!("irqbalance runs, and spares {}", cpus(&spared)),
        (Some(true), None) => "irqbalance runs; which CPUs it spares is unknown".to_owned(),
        (Some(false), _) => "irqbalance does not run".to_owned(),
        (None, _) => "whether irqbalance runs is unknown".to_owned(),
    };
    format!("{handlers}; {balanced}")
}

fn tuned(facts: &Facts) -> String {
    let profile = facts.services.tuned_profile.as_ref();
    profile.map_or("no profile seen".to_owned(), |fact| fact.value.clone())
}

fn smis(facts: &Facts) -> String {
    match &facts.system.smi_count {
        Some(fact) => format!("{} since the machine was reset", fact.value),
        None => "unknown (root sees them on Intel's processors, with the module msr)".to_owned(),
    }
}

fn cgroup(facts: &Facts) -> String {
    let groups = &facts.groups;
    let version = match groups.version {
        Version::None => return "not mounted".to_owned(),
        Version::V1 => "v1",
        Version::V2 => "v2",
    };
    let quota = match groups.quotas.len() {
        0 => "no CPU quota".to_owned(),
        count => format!("{count} CPU quota{} in force", if count == 1 { "" } else { "s" }),
    };
    format!("{version}, {}, {quota}", groups.own)
}

fn timer_migration(facts: &Facts) -> String {
    let value =
        facts.system.timer_migration.as_ref().map_or(UNKNOWN.to_owned(), |fact| fact.value.to_string());
    match &facts.release {
        Some(release) => format!("{value}; {}", release.value.timer_model().sysctl_governs()),
        None => value,
    }
}

fn unreadable(facts: &Facts) -> String {
    match facts.unreadable.first() {
        None => "nothing".to_owned(),
        Some((path, reason)) => format!("{} file(s), the first {path}: {reason}", facts.unreadable.len()),
    }
}
