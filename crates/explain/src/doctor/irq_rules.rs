//! Rules about work that arrives from outside: interrupts, unbound work, network softirqs.
//!
//! Decides by the *effective* affinity where it is shown. Which interrupts the kernel manages (and
//! refuses to move) is visible to root only, so the text says how to tell.
//! Source: Linux v6.12 kernel/irq/{manage,cpuhotplug}.c, kernel/workqueue.c,
//! Documentation/networking/scaling.rst, Documentation/core-api/workqueue.rst; irqbalance 1.9.

use super::text::{Cite, cpus, first_of, mask};
use crate::host::{BannedCpus, Fact, Facts};
use crate::{Finding, Severity};
use quietcore_core::CpuSet;
use quietcore_trace::{Question, shell_word};

/// How many interrupts, queues or workqueues are shown as evidence.
const SHOWN: usize = 4;

/// What threadirqs and PREEMPT_RT change about a handler, and the command that shows it.
const THREADS: (&str, &str) = (
    " Here most handlers run in threads (irq/NUMBER-NAME, SCHED_FIFO 50), each on the CPU of its interrupt and \
     moved with it: the interrupt itself only wakes the thread, which real-time tasks above 50 delay and all \
     other tasks wait for.",
    "; ps -eLo psr,cls,rtprio,comm | grep irq/",
);

/// Where to move work to; without housekeeping CPUs there is nothing to propose.
fn target(facts: &Facts) -> Option<CpuSet> {
    Some(facts.housekeeping()).filter(|set| !set.is_empty())
}

/// Device interrupts that are delivered to isolated CPUs.
pub(super) fn irq_on_isolated(facts: &Facts) -> Option<Finding> {
    let isolated = facts.isolated();
    // IRQ 0 and 2 of a PC, and the per-CPU timers of others, are not devices and cannot move.
    let device = |action: &str| !["timer", "cascade", "arch_timer", "arm-pmu"].contains(&action);
    let hit: Vec<_> = facts
        .irq
        .lines
        .iter()
        .filter(|irq| device(&irq.action))
        .filter_map(|irq| Some((irq, irq.delivered()?)))
        .filter(|(_, on)| !on.value.intersection(&isolated).is_empty())
        .collect();
    let (first, _) = hit.first()?;
    let names: Vec<String> = hit.iter().map(|(irq, _)| format!("{} ({})", irq.number, irq.action)).collect();
    let reached = hit.iter().fold(CpuSet::new(), |all, (_, on)| all.union(&on.value.intersection(&isolated)));
    let delivered = hit.iter().fold(0u64, |sum, (irq, _)| sum.saturating_add(irq.count_on(&isolated)));
    let housekeeping = target(facts)?;
    let managed = facts.isolcpus().iter().any(|one| one.managed_irq && one.refusal.is_none());
    let boot = if managed {
        "the kernel already keeps managed interrupts away where a queue has a housekeeping CPU \
         (managed_irq is set)."
    } else {
        "then boot with managed_irq among the flags of isolcpus=, or give the driver fewer queues."
    };
    let (threads, look_at_threads) = if facts.has_threaded_interrupts() { THREADS } else { ("", "") };
    let finding = Finding::new("irq-on-isolated", Question::Isolation, Severity::Warning)
        .what(format!(
            "{} interrupt{} isolated {}, {delivered} deliveries since boot: {}.",
            hit.len(),
            if hit.len() == 1 { " reaches" } else { "s reach" },
            cpus(&reached),
            first_of(&names, SHOWN)
        ))
        .why(format!(
            "isolcpus= and cpusets move tasks, not interrupts; each goes where its effective affinity \
             says, and the timers and softirqs its handler starts stay there too (any kernel version).{threads}"
        ))
        .change(format!(
            "$ echo {housekeeping} > /proc/irq/{}/smp_affinity_list\n{}If that fails with an input/output \
             error the kernel manages the interrupt: {boot}",
            first.number,
            if hit.len() == 1 { "" } else { "Likewise for the others. " }
        ))
        .predicted("Device interrupts on the isolated CPUs drop to 0; housekeeping CPUs take them.")
        .verify(format!("grep . /proc/irq/*/effective_affinity_list{look_at_threads}"));
    Some(hit.iter().take(SHOWN).fold(finding, |finding, (_, on)| finding.cite(Some(on))))
}

/// Interrupts requested from now on may land on isolated CPUs.
pub(super) fn irq_default_mask(facts: &Facts) -> Option<Finding> {
    let default = facts.irq.default.as_ref()?;
    let hit = default.value.intersection(&facts.isolated());
    let housekeeping = target(facts)?;
    if hit.is_empty() {
        return None;
    }
    let given =
        if facts.boot("irqaffinity").is_some() { "allows" } else { "is not given, so the default allows" };
    Some(
        Finding::new("irq-default-mask", Question::Isolation, Severity::Warning)
            .what(format!("New interrupts may go to isolated {}: irqaffinity= {given} them.", cpus(&hit)))
            .why(
                "A driver that is loaded or reset later asks for its interrupts with the default \
                 affinity, which knows nothing of isolcpus= (any kernel version).",
            )
            .change(format!(
                "$ echo {} > /proc/irq/default_smp_affinity\nPermanently: boot with irqaffinity={housekeeping}",
                mask(&housekeeping)
            ))
            .predicted(
                "Interrupts requested from then on stay on housekeeping CPUs; existing ones do not \
                 move.",
            )
            .verify("cat /proc/irq/default_smp_affinity")
            .cite(Some(default))
            .cite(facts.cmdline.as_ref()),
    )
}

/// irqbalance puts interrupts on isolated CPUs that it does not know, or is told to use.
pub(super) fn irqbalance_on_isolated(facts: &Facts) -> Option<Finding> {
    let runs = facts.services.irqbalance.as_ref().filter(|fact| fact.value)?;
    let isolated = facts.isolated();
    let open = isolated.difference(&facts.spared_by_irqbalance()?);
    target(facts)?;
    if open.is_empty() {
        return None;
    }
    let (why, named) = match &facts.services.banned {
        BannedCpus::Named(list) => (
            "CPUs that its settings name replace those that it would spare by itself (isolcpus= and nohz_full=): \
             all others get interrupts.",
            Some(list),
        ),
        _ => (
            "By itself it spares the CPUs that /sys/devices/system/cpu/isolated and nohz_full show when it \
             starts: not those of v1 cpusets, nor those of cpuset partitions, which are shown there from 7.0 on \
             only.",
            None,
        ),
    };
    let usual = "/etc/default/irqbalance (Debian) or /etc/sysconfig/irqbalance";
    let settings = named.map_or(usual, |list| list.path.as_str());
    let all = named.map_or(isolated.clone(), |list| isolated.union(&list.value));
    Some(
        Finding::new("irqbalance-on-isolated", Question::Isolation, Severity::Warning)
            .what(format!("irqbalance may move interrupts to isolated {}.", cpus(&open)))
            .why(format!("Every ten seconds it spreads interrupts over the CPUs that it does not spare. {why}"))
            .change(format!(
                "In {settings}: IRQBALANCE_BANNED_CPULIST={all} (old versions know IRQBALANCE_BANNED_CPUS={} \
                 only), and no other line about banned CPUs; then\n$ systemctl restart irqbalance",
                mask(&all)
            ))
            .predicted(
                "It moves no interrupt there; one that is there already moves away, unless the kernel manages \
                 it.",
            )
            .verify("grep . /proc/irq/*/effective_affinity_list")
            .cite(Some(runs))
            .cite(named)
            .cite(facts.cpus.isolated.as_ref()),
    )
}

/// Unbound kernel work may run on isolated CPUs.
pub(super) fn workqueue_on_isolated(facts: &Facts) -> Option<Finding> {
    let work = facts.system.work.as_ref()?;
    let hit = work.value.intersection(&facts.isolated());
    let housekeeping = target(facts)?;
    if hit.is_empty() {
        return None;
    }
    let touched = |queue: &&Fact<CpuSet>| !queue.value.intersection(&hit).is_empty();
    let named: Vec<&Fact<CpuSet>> = facts.system.workqueues.iter().filter(touched).collect();
    let finding = Finding::new("workqueue-on-isolated", Question::Isolation, Severity::Warning)
        .what(format!("Unbound kernel work may run on isolated {}.", cpus(&hit)))
        .why(
            "Work queued on unbound workqueues (writeback, many drivers) runs on any CPU of this \
             mask. isolcpus=domain sets it at boot, isolated cpuset partitions from 6.8 on; nohz_full= \
             alone and v1 cpusets leave it wide.",
        )
        .change(format!("$ echo {} > /sys/devices/virtual/workqueue/cpumask", mask(&housekeeping)))
        .predicted("kworker/u threads stay on housekeeping CPUs.")
        .verify("cat /sys/devices/virtual/workqueue/cpumask")
        .cite(Some(work));
    Some(named.into_iter().take(SHOWN).fold(finding, |finding, queue| finding.cite(Some(queue))))
}

/// RPS makes isolated CPUs process received packets.
pub(super) fn rps_on_isolated(facts: &Facts) -> Option<Finding> {
    let isolated = facts.isolated();
    let hit: Vec<_> =
        facts.queues.receive.iter().filter(|queue| !queue.value.intersection(&isolated).is_empty()).collect();
    let first = hit.first()?;
    let reached =
        hit.iter().fold(CpuSet::new(), |all, queue| all.union(&queue.value.intersection(&isolated)));
    let kept = first.value.difference(&isolated);
    let finding = Finding::new("rps-on-isolated", Question::PacketTimers, Severity::Warning)
        .what(format!("{} receive queue(s) spread packets over isolated {}.", hit.len(), cpus(&reached)))
        .why(
            "RPS sends an inter-processor interrupt to a CPU of rps_cpus, which then runs the receive \
             softirq, and with it the timers of the protocols (2.6.35 on; recent kernels filter \
             housekeeping CPUs only when the mask is set).",
        )
        .change(format!("$ echo {} > {}", mask(&kept), shell_word(&first.path)))
        .predicted("NET_RX softirqs on the isolated CPUs drop to those of their own interrupts.")
        .verify("grep NET_RX /proc/softirqs");
    Some(hit.iter().take(SHOWN).fold(finding, |finding, queue| finding.cite(Some(queue))))
}

/// A transmit queue that isolated and housekeeping CPUs share, and with it its lock and its timer.
pub(super) fn xps_shared_queue(facts: &Facts) -> Option<Finding> {
    let (isolated, housekeeping) = (facts.isolated(), facts.housekeeping());
    let shared = |queue: &&Fact<CpuSet>| {
        !queue.value.intersection(&isolated).is_empty() && !queue.value.intersection(&housekeeping).is_empty()
    };
    let hit: Vec<_> = facts.queues.transmit.iter().filter(shared).collect();
    let first = hit.first()?;
    let reached =
        hit.iter().fold(CpuSet::new(), |all, queue| all.union(&queue.value.intersection(&isolated)));
    let kept = first.value.difference(&isolated);
    let finding = Finding::new("xps-shared-queue", Question::PacketTimers, Severity::Warning)
        .what(format!(
            "{} transmit queue(s) are shared by housekeeping CPUs and isolated {}.",
            hit.len(),
            cpus(&reached)
        ))
        .why(
            "Whoever finds a queue's lock free sends what others left there, and since 3.18 a shaping \
             qdisc's watchdog timer is pinned to the CPU that armed it: a shared queue lets isolated \
             CPUs send for others.",
        )
        .change(format!("$ echo {} > {}", mask(&kept), shell_word(&first.path)))
        .predicted("Packets of housekeeping CPUs no longer contend with, or wait for, an isolated CPU.")
        .verify("grep . /sys/class/net/*/queues/tx-*/xps_cpus");
    Some(hit.iter().take(SHOWN).fold(finding, |finding, queue| finding.cite(Some(queue))))
}
