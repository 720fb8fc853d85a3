//! Rules about boot parameters that the kernel dropped, whole or in part, and why.
//!
//! Decides by comparing what the command line asks for with what `/sys` shows, then by looking for
//! the first reason that the kernel's own checks would give. A reason that cannot be told apart
//! from outside ends in the command that shows the kernel's own message.
//! Source: Linux v5.17 and v6.19 kernel/sched/isolation.c (`housekeeping_setup`).

use super::text::{Cite, cpus};
use crate::host::{Facts, Isolcpus, Refusal, cpu_list};
use crate::{Finding, Severity};
use quietcore_core::CpuSet;
use quietcore_trace::Question;

const LOOK: &str = "dmesg | grep -iE 'housekeeping|isolcpus|nohz'";

/// `isolcpus=` asks for more than the kernel isolates.
pub(super) fn isolcpus_ignored(facts: &Facts) -> Option<Finding> {
    let shown = facts.cpus.isolated.as_ref()?;
    let params = facts.isolcpus();
    let lost = |one: &Isolcpus| -> Option<CpuSet> {
        let missing = one.cpus.difference(&shown.value);
        (one.refusal.is_some() || one.domain && !missing.is_empty()).then_some(missing)
    };
    let (one, missing) = params.iter().find_map(|one| lost(one).map(|missing| (one, missing)))?;
    let what = if missing.is_empty() {
        format!("The kernel ignores isolcpus={}.", one.text)
    } else {
        format!("isolcpus={} asks for {}, which the kernel does not isolate.", one.text, cpus(&missing))
    };
    let (why, change) = isolcpus_reason(facts, one, &params);
    Some(
        Finding::new("isolcpus-ignored", Question::Isolation, Severity::Critical)
            .what(what)
            .why(why)
            .change(change)
            .predicted("/sys/devices/system/cpu/isolated shows the whole list after the next boot.")
            .verify(format!("cat /sys/devices/system/cpu/isolated; {LOOK}"))
            .cite(facts.cmdline.as_ref())
            .cite(Some(shown)),
    )
}

/// Mechanism and remedy, by the first check of the kernel that `one` fails.
fn isolcpus_reason(facts: &Facts, one: &Isolcpus, all: &[Isolcpus]) -> (String, String) {
    if let Some(refusal) = &one.refusal {
        return refused(refusal);
    }
    let possible = facts.possible();
    let beyond = one.cpus.difference(&possible);
    if !one.unknown.is_empty() && facts.at_least(5, 8) == Some(false) {
        let flags = one.unknown.join(", ");
        return (
            format!("Up to 5.7 an unknown flag ({flags}) makes the kernel drop the whole parameter."),
            format!("isolcpus=domain,{}", one.cpus),
        );
    }
    if !beyond.is_empty() && !possible.is_empty() {
        return (
            format!(
                "This machine has CPUs {possible} only; kernels whose masks are sized at boot (most \
                 distributions) refuse the whole list for one number beyond that (\"incorrect CPU \
                 range\")."
            ),
            format!("isolcpus=managed_irq,domain,{}", one.cpus.intersection(&possible)),
        );
    }
    if leaves_none(&one.cpus, &possible) {
        let rest: CpuSet = possible.iter().skip(1).collect();
        return (
            "No housekeeping CPU would remain, so the kernel keeps the boot CPU (\"must include one \
             present CPU\")."
                .to_owned(),
            format!("isolcpus=managed_irq,domain,{rest}"),
        );
    }
    conflict(facts, one, all)
}

/// Whether no housekeeping CPU remains beside `isolated`; not known without the possible CPUs.
fn leaves_none(isolated: &CpuSet, possible: &CpuSet) -> bool {
    !possible.is_empty() && possible.difference(isolated).is_empty()
}

fn refused(refusal: &Refusal) -> (String, String) {
    let spelling = "isolcpus=managed_irq,domain,LIST".to_owned();
    match refusal {
        Refusal::BadFlag(flag) => {
            let why = format!(
                "\"{flag}\" holds a character no flag has, so the kernel drops the whole parameter \
                 (\"isolcpus: Invalid flag\"; up to 5.7 any unknown flag did). The flags are nohz, \
                 domain and managed_irq."
            );
            (why, spelling)
        }
        Refusal::NoList => (
            "No CPU list follows the flags, so there is nothing to isolate (any version).".to_owned(),
            spelling,
        ),
        Refusal::BadList(error) => (
            format!("The CPU list cannot be read: {error} (\"incorrect CPU range\", any version)."),
            spelling,
        ),
    }
}

/// Two parameters share a mask, and the later one is dropped if they differ.
fn conflict(facts: &Facts, one: &Isolcpus, all: &[Isolcpus]) -> (String, String) {
    let possible = facts.possible();
    let line = facts.cmdline.as_ref().map(|fact| &fact.value);
    let earlier = line.and_then(|line| line.all("nohz_full").find(|(at, _)| *at < one.at));
    if let Some((_, text)) = earlier {
        let other = cpu_list(text, &possible).unwrap_or_default();
        let shares = one.nohz || facts.at_least(5, 18) == Some(false);
        if other != one.cpus && shares {
            return (
                format!(
                    "\"nohz_full= must match isolcpus=\": nohz_full={other} comes first, and the \
                     kernel drops an isolcpus= that {} and names other CPUs.",
                    if one.nohz { "has the nohz flag" } else { "shares its mask with it (up to 5.17)" }
                ),
                format!("isolcpus=managed_irq,domain,{0} nohz_full={0}", one.cpus),
            );
        }
        if leaves_none(&one.cpus.union(&other), &possible) {
            return (
                format!(
                    "isolcpus= and nohz_full={other} together leave no housekeeping CPU; from 6.19 on \
                     the kernel drops the later one."
                ),
                format!("isolcpus=managed_irq,domain,{other}"),
            );
        }
    }
    if let Some(first) = all.iter().find(|first| first.at < one.at && first.cpus != one.cpus) {
        return (
            format!(
                "isolcpus= is given twice; the kernel keeps the first ({}) and drops the other.",
                first.text
            ),
            format!("isolcpus=managed_irq,domain,{}", one.cpus.union(&first.cpus)),
        );
    }
    (
        "The reason cannot be told from outside; the kernel's message at boot names it. A partition \
         that was dissolved since, or a boot loader that shows another command line, looks the same."
            .to_owned(),
        LOOK.to_owned(),
    )
}

/// `nohz_full=` asks for CPUs whose tick the kernel does not stop.
pub(super) fn nohz_full_ignored(facts: &Facts) -> Option<Finding> {
    let text = facts.boot("nohz_full")?;
    // Without /sys nothing can be said about what the kernel does.
    facts.cpus.online.as_ref()?;
    let possible = facts.possible();
    let wanted = cpu_list(text, &possible);
    let shown = facts.cpus.nohz_full.as_ref().map(|fact| fact.value.clone()).unwrap_or_default();
    let missing = wanted.as_ref().map(|wanted| wanted.difference(&shown)).unwrap_or_default();
    if missing.is_empty() && wanted.is_ok() {
        return None;
    }
    let garbled = facts.unreadable.iter().any(|(path, _)| path.ends_with("/cpu/nohz_full"));
    if garbled {
        return None;
    }
    let (why, change) = nohz_full_reason(facts, text, &possible);
    Some(
        Finding::new("nohz-full-ignored", Question::EmptySoftirqs, Severity::Critical)
            .what(format!(
                "nohz_full={text} is on the command line, but the kernel stops no tick on {}.",
                match &wanted {
                    Ok(_) => cpus(&missing),
                    Err(_) => "any CPU".to_owned(),
                }
            ))
            .why(why)
            .change(change)
            .predicted(
                "With it a CPU that runs one task gets no tick (about one per second remains for the \
                 scheduler).",
            )
            .verify(format!("cat /sys/devices/system/cpu/nohz_full; {LOOK}"))
            .cite(facts.cmdline.as_ref())
            .cite(facts.cpus.nohz_full.as_ref()),
    )
}

fn nohz_full_reason(facts: &Facts, text: &str, possible: &CpuSet) -> (String, String) {
    let line = facts.cmdline.as_ref().map(|fact| &fact.value);
    if facts.cpus.nohz_full.is_none() {
        return (
            "/sys/devices/system/cpu/nohz_full is missing: this kernel is built without \
             CONFIG_NO_HZ_FULL, and drops the parameter."
                .to_owned(),
            "Run a kernel built with CONFIG_NO_HZ_FULL=y.".to_owned(),
        );
    }
    let wanted = match cpu_list(text, possible) {
        Ok(wanted) => wanted,
        Err(error) => {
            return (
                format!("The CPU list cannot be read: {error} (any version)."),
                "nohz_full=LIST".to_owned(),
            );
        }
    };
    let beyond = wanted.difference(possible);
    if !beyond.is_empty() {
        return (
            format!(
                "This machine has CPUs {possible} only; one number beyond that makes the kernel drop \
                 the list."
            ),
            format!("nohz_full={}", wanted.intersection(possible)),
        );
    }
    let at = line.and_then(|line| line.all("nohz_full").next()).map_or(0, |(at, _)| at);
    let all = facts.isolcpus();
    let earlier = all.iter().find(|one| one.at < at && one.refusal.is_none() && one.cpus != wanted);
    if let Some(one) = earlier.filter(|one| one.nohz || facts.at_least(5, 18) == Some(false)) {
        return (
            format!(
                "\"nohz_full= must match isolcpus=\": isolcpus={} comes first, and the kernel drops \
                 the later of two that share a mask (with the nohz flag; up to 5.17 with any flag) and \
                 differ.",
                one.text
            ),
            format!("isolcpus=managed_irq,domain,{wanted} nohz_full={wanted}"),
        );
    }
    (
        "The kernel's message at boot names the reason. Some kernels take the boot CPU out of the \
         list (\"Clearing ... for timekeeping\"), and from 6.19 on a list that leaves no housekeeping \
         CPU is dropped."
            .to_owned(),
        LOOK.to_owned(),
    )
}
