//! Rules about boot parameters that the kernel obeys, but that mean less than they seem to.
//!
//! Decides about the flags of `isolcpus=` and about `nohz_full=` without domain isolation.
//! Not here: parameters the kernel drops (see `ignored_rules`).
//! Source: Linux v6.12 Documentation/admin-guide/kernel-parameters.txt, kernel/sched/isolation.c.

use super::text::{Cite, agreed, cpus};
use crate::host::Facts;
use crate::{Finding, Severity};
use quietcore_trace::Question;

/// `isolcpus=managed_irq,4-7` isolates no scheduling domain.
pub(super) fn isolcpus_no_domain(facts: &Facts) -> Option<Finding> {
    let isolated = facts.domain_isolated();
    let params = facts.isolcpus();
    // Another isolcpus= with the domain flag for the same CPUs makes up for one without.
    let domain = params.iter().filter(|one| one.domain).fold(isolated, |all, one| all.union(&one.cpus));
    let one = params.iter().find(|one| !one.cpus.difference(&domain).is_empty())?;
    let open = one.cpus.difference(&domain);
    let flag = if one.nohz { "nohz" } else { "managed_irq" };
    Some(
        Finding::new("isolcpus-no-domain", Question::Isolation, Severity::Warning)
            .what(format!(
                "isolcpus={} isolates no scheduling domain: the scheduler still places tasks on {}.",
                one.text,
                cpus(&open)
            ))
            .why(format!(
                "Since 4.15 isolcpus= takes flags, and \"domain\" is the default only when no other \
                 known flag is given; {flag} alone is legal and leaves the CPUs in the load balancer."
            ))
            .change(format!("boot with isolcpus=managed_irq,domain,{}", one.cpus))
            .predicted(
                "The CPUs leave the scheduling domains, and from 6.19 on the timer migration \
                 hierarchy too.",
            )
            .verify("cat /sys/devices/system/cpu/isolated")
            .cite(facts.cmdline.as_ref())
            .cite(facts.cpus.isolated.as_ref()),
    )
}

/// A flag no kernel knows, skipped in silence.
pub(super) fn isolcpus_unknown_flag(facts: &Facts) -> Option<Finding> {
    // Before 5.8 the whole parameter is dropped: `isolcpus-ignored` says so.
    if facts.at_least(5, 8) == Some(false) {
        return None;
    }
    let params = facts.isolcpus();
    let one = params.iter().find(|one| one.refusal.is_none() && !one.unknown.is_empty())?;
    Some(
        Finding::new("isolcpus-unknown-flag", Question::Isolation, Severity::Note)
            .what(format!("The kernel skips the unknown isolcpus= flag {}.", one.unknown.join(", ")))
            .why(
                "From 5.8 on an unknown flag made of letters is skipped with an information message; \
                 earlier kernels drop the whole parameter. The known flags are nohz, domain and \
                 managed_irq.",
            )
            .change(format!("boot with isolcpus=managed_irq,domain,{}", one.cpus))
            .predicted("The parameter means the same on every kernel from 5.6 on.")
            .verify("dmesg | grep -i isolcpus; cat /sys/devices/system/cpu/isolated")
            .cite(facts.cmdline.as_ref()),
    )
}

/// `nohz_full=` stops ticks, not tasks.
pub(super) fn nohz_full_no_domain(facts: &Facts) -> Option<Finding> {
    let open = facts.nohz_full().difference(&facts.domain_isolated());
    if open.is_empty() {
        return None;
    }
    let isolated = facts.isolated();
    // Up to 5.17 the two parameters share one mask and must name the same CPUs.
    let shared = facts.at_least(5, 18) == Some(false);
    let nohz_full = if shared { isolated.clone() } else { facts.nohz_full() };
    Some(
        Finding::new("nohz-full-no-domain", Question::EmptySoftirqs, Severity::Warning)
            .what(format!(
                "{} {} nohz_full but not isolated: the scheduler still places tasks there.",
                cpus(&open),
                agreed(&open, "is", "are")
            ))
            .why(
                "nohz_full= stops the tick only while a CPU runs one task; on kernels of every \
                 version the load balancer may add a second one, and the tick is back. From 6.9 on \
                 such a CPU then also pulls timers.",
            )
            .change(format!(
                "isolcpus=managed_irq,domain,{isolated} nohz_full={nohz_full}, or put these CPUs into an \
                 isolated cpuset partition."
            ))
            .predicted("Only tasks that are bound to these CPUs run there, so the tick stays off.")
            .verify("cat /sys/devices/system/cpu/isolated /sys/devices/system/cpu/nohz_full")
            .cite(facts.cpus.nohz_full.as_ref())
            .cite(facts.cpus.isolated.as_ref()),
    )
}
