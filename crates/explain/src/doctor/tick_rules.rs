//! Rules about what still interrupts an isolated CPU from within: tick, RCU, watchdog, statistics.
//!
//! Decides notes mostly: these cost microseconds at a known rate, and each has a known remedy.
//! Source: Linux v6.12 kernel/time/tick-sched.c, kernel/rcu/tree_nocb.h, kernel/watchdog.c,
//! mm/vmstat.c; Documentation/admin-guide/kernel-per-CPU-kthreads.rst.

use super::text::{Cite, agreed, cpus};
use crate::host::{Facts, cpu_list};
use crate::{Finding, Severity};
use quietcore_core::CpuSet;
use quietcore_trace::Question;

/// `rcu_nocbs=` leaves out isolated CPUs that `nohz_full=` does not cover either.
pub(super) fn rcu_nocbs_narrow(facts: &Facts) -> Option<Finding> {
    let text = facts.boot("rcu_nocbs")?;
    let offloaded = cpu_list(text, &facts.possible()).ok()?;
    let open = facts.isolated().difference(&facts.nohz_full()).difference(&offloaded);
    if open.is_empty() {
        return None;
    }
    let all = facts.isolated().union(&offloaded);
    Some(
        Finding::new("rcu-nocbs-narrow", Question::EmptySoftirqs, Severity::Note)
            .what(format!("RCU callbacks still run on isolated {}.", cpus(&open)))
            .why(
                "rcu_nocbs= moves RCU callbacks to kernel threads; nohz_full= implies it for its own \
                 CPUs, every other CPU has to be listed (kernels with CONFIG_RCU_NOCB_CPU).",
            )
            .change(format!("boot with rcu_nocbs={all}"))
            .predicted(
                "RCU softirqs on the isolated CPUs drop to none; rcuo threads run on housekeeping \
                 CPUs.",
            )
            .verify("grep RCU /proc/softirqs")
            .cite(facts.cmdline.as_ref()),
    )
}

/// PREEMPT_RT: an isolated CPU whose RCU callbacks are offloaded wakes the thread that takes them.
pub(super) fn rcu_nocb_poll(facts: &Facts) -> Option<Finding> {
    let listed = facts.boot("rcu_nocbs").and_then(|text| cpu_list(text, &facts.possible()).ok());
    let offloaded = listed.unwrap_or_default().union(&facts.nohz_full());
    let wakers = offloaded.intersection(&facts.isolated());
    let polls = facts.has_param("rcu_nocb_poll");
    if !facts.is_preempt_rt() || polls || wakers.is_empty() || facts.housekeeping().is_empty() {
        return None;
    }
    Some(
        Finding::new("rcu-nocb-poll", Question::RealTime, Severity::Note)
            .what(format!(
                "The threads that run RCU callbacks of isolated {} are woken from there.",
                cpus(&wakers)
            ))
            .why(
                "A system call that frees memory by RCU on an offloaded CPU wakes a thread rcuog/N of a \
                 housekeeping CPU, at times with an interrupt to that CPU; with rcu_nocb_poll the threads \
                 look for callbacks by themselves. It is of use to real-time tasks that make system calls; \
                 one that only polls in user space queues no callback (all kernels with \
                 CONFIG_RCU_NOCB_CPU).",
            )
            .change("boot with rcu_nocb_poll, if the time of single system calls matters there")
            .predicted(
                "No such wake-ups from the isolated CPUs; in return the rcuog threads wake up in every \
                 tick on housekeeping CPUs, which costs some power there.",
            )
            .verify("grep -ow rcu_nocb_poll /proc/cmdline; ps -eLo psr,comm | grep rcuog")
            .cite(facts.cmdline.as_ref())
            .cite(facts.system.realtime.as_ref())
            .cite(facts.cpus.nohz_full.as_ref()),
    )
}

/// Isolated CPUs without `nohz_full` are interrupted at every tick.
pub(super) fn isolated_keeps_tick(facts: &Facts) -> Option<Finding> {
    let ticking = facts.domain_isolated().difference(&facts.nohz_full());
    if ticking.is_empty() {
        return None;
    }
    Some(
        Finding::new("isolated-keeps-tick", Question::EmptySoftirqs, Severity::Note)
            .what(format!(
                "Isolated {} {} the tick while a task runs there.",
                cpus(&ticking),
                agreed(&ticking, "keeps", "keep")
            ))
            .why(
                "Isolation moves tasks, not the tick: 100 to 1000 times a second (CONFIG_HZ) it \
                 interrupts, and up to 5.8 it also raised the timer softirq nearly every time. Only \
                 nohz_full= stops it, with one runnable task.",
            )
            .change(format!("boot with nohz_full={0} rcu_nocbs={0}", ticking.union(&facts.nohz_full())))
            .predicted("Local timer interrupts on these CPUs drop from CONFIG_HZ to about one per second.")
            .verify("grep LOC /proc/interrupts; sleep 1; grep LOC /proc/interrupts")
            .cite(facts.cpus.isolated.as_ref())
            .cite(facts.cpus.nohz_full.as_ref()),
    )
}

/// All ticks at the same instant fight for the same locks.
pub(super) fn skew_tick(facts: &Facts) -> Option<Finding> {
    let ticking = facts.isolated().difference(&facts.nohz_full());
    if ticking.len() < 2 || facts.boot("skew_tick").is_some_and(|value| value != "0") {
        return None;
    }
    Some(
        Finding::new("skew-tick", Question::EmptySoftirqs, Severity::Note)
            .what(format!("The ticks of {} come at the same instant.", cpus(&ticking)))
            .why(
                "Without skew_tick=1 all CPUs tick together and contend for the timekeeping and RCU \
                 locks (any version).",
            )
            .change("boot with skew_tick=1")
            .predicted(
                "The worst tick gets shorter; power use rises a little, as CPUs wake at different \
                 times.",
            )
            .verify("grep -o 'skew_tick=[0-9]*' /proc/cmdline")
            .cite(facts.cmdline.as_ref()),
    )
}

/// The lockup detectors run a timer and a thread on each watched CPU.
pub(super) fn watchdog_on_isolated(facts: &Facts) -> Option<Finding> {
    let enabled = facts.system.watchdog.as_ref().filter(|fact| fact.value != 0)?;
    let watched = facts.system.watchdog_cpus.as_ref()?;
    let hit = watched.value.intersection(&facts.isolated());
    if hit.is_empty() {
        return None;
    }
    let nmi = facts.system.nmi_watchdog.as_ref().filter(|fact| fact.value != 0);
    let kind = if nmi.is_some() {
        "soft and hard (NMI) lockup detectors watch"
    } else {
        "soft lockup detector watches"
    };
    let rest: CpuSet = watched.value.difference(&facts.isolated());
    let change = if rest.is_empty() {
        "$ sysctl -w kernel.watchdog=0".to_owned()
    } else {
        format!("$ sysctl -w kernel.watchdog_cpumask={rest}")
    };
    Some(
        Finding::new("watchdog-on-isolated", Question::Isolation, Severity::Warning)
            .what(format!("The {kind} isolated {}.", cpus(&hit)))
            .why(
                "Every 4 seconds (two fifths of kernel.watchdog_thresh) a timer interrupts each \
                 watched CPU and wakes its stopper thread; the NMI watchdog adds a performance counter \
                 interrupt about every 10 seconds of busy time. Only nohz_full CPUs are left out by \
                 default (4.2 on); isolcpus= does not do it.",
            )
            .change(change)
            .predicted("These interruptions stop on the isolated CPUs; lockups there are no longer reported.")
            .verify("sysctl kernel.watchdog kernel.watchdog_cpumask")
            .cite(Some(watched))
            .cite(Some(enabled))
            .cite(nmi),
    )
}

/// Per-CPU counters are folded by a work item once per interval.
pub(super) fn vmstat_interval(facts: &Facts) -> Option<Finding> {
    let interval = facts.system.stat_interval.as_ref().filter(|fact| (0..10).contains(&fact.value))?;
    let isolated = facts.isolated();
    // From 6.5 on the kernel itself skips isolated CPUs.
    if isolated.is_empty() || facts.at_least(6, 5) != Some(false) {
        return None;
    }
    Some(
        Finding::new("vmstat-interval", Question::Isolation, Severity::Note)
            .what(format!(
                "Every {} s a work item may fold memory statistics on isolated {}.",
                interval.value,
                cpus(&isolated)
            ))
            .why(
                "vmstat_update is queued on each CPU whose counters changed, every vm.stat_interval \
                 seconds; from 6.5 on the kernel leaves isolated CPUs out.",
            )
            .change("$ sysctl -w vm.stat_interval=120")
            .predicted("At most one such work item per CPU in two minutes; /proc/vmstat is that much older.")
            .verify("sysctl vm.stat_interval")
            .cite(Some(interval))
            .cite(facts.release.as_ref()),
    )
}
