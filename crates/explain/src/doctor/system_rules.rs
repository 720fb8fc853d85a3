//! Rules about the whole machine: real-time throttling, clock, hypervisor, idle states, memory.
//!
//! Decides severity by whether some CPU is meant to be quiet; on an ordinary host these are notes
//! or nothing.
//! Source: Linux v6.11 and v6.12 kernel/sched/{rt,deadline}.c, kernel/time/clocksource.c,
//! Documentation/admin-guide/pm/{cpuidle,cpufreq,intel_pstate,amd-pstate}.rst, mm/{khugepaged,ksm}.c (v6.12).

use super::text::{Cite, cpus, first_of, severity};
use crate::host::{CpuFrequency, Facts};
use crate::{Finding, Severity};
use quietcore_core::CpuSet;
use quietcore_trace::Question;

/// How many choices of a frequency are named.
pub(super) const CHOICES_SHOWN: usize = 4;

/// Up to 6.11 real-time tasks lose a slice of every period; from 6.12 on only to starving tasks.
pub(super) fn rt_throttling(facts: &Facts) -> Option<Finding> {
    let runtime = facts.system.rt_runtime_us.as_ref()?;
    let period = facts.system.rt_period_us.as_ref()?;
    let realtime = facts.system.realtime.as_ref().is_some_and(|fact| fact.value == 1);
    if runtime.value < 0 || runtime.value >= period.value || !realtime && facts.isolated().is_empty() {
        return None;
    }
    let lost_ms = period.value.saturating_sub(runtime.value) / 1000;
    let finding = if facts.at_least(6, 12) == Some(true) {
        Finding::new("rt-throttling", Question::RealTime, Severity::Note)
            .what(
                "A CPU-bound real-time task yields up to 5 % of its CPU when ordinary tasks starve \
                 there.",
            )
            .why(
                "From 6.12 on stock kernels guard ordinary tasks with a deadline server (50 ms per \
                 second by default) instead of throttling; it acts only while an ordinary task waits \
                 on that CPU. The old limit still counts in kernels built with real-time group \
                 scheduling.",
            )
            .change(
                "Keep ordinary tasks (kworkers included) off the CPU; as root: \
                 /sys/kernel/debug/sched/fair_server/.",
            )
            .predicted("Without a starving ordinary task the real-time task runs undisturbed.")
            .verify("ps -eLo psr,cls,comm | sort -n")
    } else {
        Finding::new("rt-throttling", Question::RealTime, severity(facts))
            .what(format!(
                "Real-time tasks that do not sleep are stopped for {lost_ms} ms of every {} ms.",
                period.value / 1000
            ))
            .why(
                "Up to 6.11 stock kernels stop all SCHED_FIFO and SCHED_RR tasks of a CPU once they \
                 used sched_rt_runtime_us of a period, even if nothing else wants to run.",
            )
            .change("$ sysctl -w kernel.sched_rt_runtime_us=-1")
            .predicted("No such gaps; a runaway real-time task can then occupy its CPU for good.")
            .verify("sysctl kernel.sched_rt_runtime_us; dmesg | grep 'RT throttling'")
    };
    Some(finding.cite(Some(runtime)).cite(Some(period)).cite(facts.release.as_ref()))
}

/// A slow clock is read at every timer.
pub(super) fn clocksource(facts: &Facts) -> Option<Finding> {
    let current = facts.system.clocksource.as_ref()?;
    let name = current.value.as_str();
    if !facts.system.virt.x86 || name == "tsc" {
        return None;
    }
    let slow = ["hpet", "acpi_pm", "refined-jiffies", "jiffies", "pit"].contains(&name);
    if !slow && facts.system.virt.guest.is_none() {
        return None;
    }
    let available = facts.system.clocksources.as_ref();
    let has_tsc = available.is_some_and(|fact| fact.value.split_whitespace().any(|name| name == "tsc"));
    let (change, cost) = match (slow, has_tsc) {
        (true, true) => {
            ("$ echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource", "about 1 us")
        }
        (true, false) => (
            "Boot with tsc=reliable if the TSC is known to be sound (the kernel found it unstable).",
            "about 1 us",
        ),
        (false, _) => (
            "None needed; it is what this hypervisor offers (tsc, where listed, is a little faster).",
            "20 to 60 ns",
        ),
    };
    let severity = if slow { severity(facts) } else { Severity::Note };
    Some(
        Finding::new("clocksource", Question::Placement, severity)
            .what(format!("The clock is {name}, not tsc; a reading costs {cost}."))
            .why(
                "hrtimers, the scheduler's accounting and clock_gettime() read the clock source; hpet \
                 and acpi_pm are device registers shared by all CPUs, jiffies has the resolution of \
                 the tick. The kernel leaves tsc when it looks unstable (any version on x86).",
            )
            .change(change)
            .predicted("A clock reading costs 10 to 30 ns and no longer serialises CPUs.")
            .verify(
                "cat /sys/devices/system/clocksource/clocksource0/current_clocksource; dmesg | grep \
                 -i tsc",
            )
            .cite(Some(current))
            .cite(available),
    )
}

/// A guest's CPUs can be taken away.
pub(super) fn virtual_machine(facts: &Facts) -> Option<Finding> {
    let guest = facts.system.virt.guest.as_ref()?;
    let by = if guest.value.is_empty() { String::new() } else { format!(" ({})", guest.value) };
    Some(
        Finding::new("virtual-machine", Question::Isolation, Severity::Note)
            .what(format!("This is a virtual machine{by}: the host can stop any of its CPUs."))
            .why(
                "A virtual CPU is a thread of the host; isolation inside the guest does not reach it, \
                 and a gap it causes looks like one of the guest kernel (any version).",
            )
            .change("On the host: bind each virtual CPU to an isolated CPU, and do not overcommit.")
            .predicted(
                "Stolen time (in ticks, per CPU) stops growing, and gaps measured inside are the \
                 guest's own.",
            )
            .verify("awk '/^cpu/ { print $1, $9 }' /proc/stat")
            .cite(Some(guest)),
    )
}

/// Whether the command line keeps CPUs from all deep states, with this driver of idle states. Source:
/// Documentation/admin-guide/kernel-parameters.txt of 6.12. intel_idle.max_cstate=0 only chooses `acpi_idle`;
/// idle=nomwait leaves all states.
fn limits_idle(facts: &Facts, driver: &str) -> bool {
    let is = |name, values: &[&str]| facts.boot(name).is_some_and(|value| values.contains(&value));
    let limits_driver = match driver {
        "intel_idle" => is("intel_idle.max_cstate", &["1"]),
        "acpi_idle" => is("processor.max_cstate", &["0", "1"]),
        _ => false,
    };
    limits_driver || is("idle", &["poll", "halt"])
}

/// Deep idle states make the first interrupt late.
pub(super) fn deep_idle(facts: &Facts) -> Option<Finding> {
    let driver = facts.system.cpuidle_driver.as_ref().filter(|fact| fact.value != "none")?;
    let isolated = facts.isolated();
    if isolated.is_empty() || limits_idle(facts, &driver.value) {
        return None;
    }
    Some(
        Finding::new("deep-idle", Question::Placement, Severity::Note)
            .what(format!("Idle {} may enter deep sleep states ({}).", cpus(&isolated), driver.value))
            .why(
                "Leaving a deep state takes tens to hundreds of microseconds, added to the first \
                 timer or interrupt after idling; a CPU that polls never pays it (any version).",
            )
            .change(
                "boot with intel_idle.max_cstate=1 processor.max_cstate=1, or hold 0 in /dev/cpu_dma_latency \
                 while it matters.",
            )
            .predicted("Wake-ups from idle take a few microseconds at most; idle power and heat rise.")
            .verify("grep . /sys/devices/system/cpu/cpu*/cpuidle/state*/name")
            .cite(Some(driver))
            .cite(facts.system.cpuidle_governor.as_ref()),
    )
}

/// A frequency that follows the load is low when work arrives, and takes time to change.
pub(super) fn cpu_frequency(facts: &Facts) -> Option<Finding> {
    let isolated = facts.isolated();
    let slow: Vec<&CpuFrequency> = facts
        .frequency
        .iter()
        .filter(|one| isolated.contains(one.cpu) && !one.is_for_performance())
        .collect();
    let first = *slow.first()?;
    let set: CpuSet = slow.iter().map(|one| one.cpu).collect();
    let choices: Vec<String> = frequency_choices(slow.iter().copied())
        .iter()
        .map(|(choice, set)| format!("{choice} on {}", cpus(set)))
        .collect();
    let governors = slow.iter().any(|one| one.governor.value != "performance");
    let change = if governors {
        format!("$ cpupower -c {set} frequency-set -g performance")
    } else {
        let preference = first.preference.as_ref()?;
        format!("$ echo performance > {}\nLikewise for the other CPUs.", preference.path)
    };
    Some(
        Finding::new("cpu-frequency", Question::RealTime, Severity::Note)
            .what(format!(
                "The frequency of isolated {} follows the load there: {}.",
                cpus(&set),
                first_of(&choices, CHOICES_SHOWN)
            ))
            .why(
                "A CPU that was idle or waited is slow when work arrives, and each change of the frequency \
                 takes 10 to 500 us, in which some processors stand still. The governors ondemand and \
                 conservative queue work on the CPU, and schedutil may wake a thread sugov there; powersave of \
                 intel_pstate and amd-pstate leaves the choice to the processor, which follows the preference \
                 (in parentheses).",
            )
            .change(change)
            .predicted(
                "The time from a wake-up to its work varies less, and no work item or thread changes the \
                 frequency there; power use and heat rise.",
            )
            .verify(
                "grep . /sys/devices/system/cpu/cpu*/cpufreq/{scaling_governor,energy_performance_preference}",
            )
            .cite(Some(&first.governor))
            .cite(first.preference.as_ref()),
    )
}

/// Governors with their preference, and the CPUs of each, in the order of the first.
pub(super) fn frequency_choices<'a>(all: impl Iterator<Item = &'a CpuFrequency>) -> Vec<(String, CpuSet)> {
    let mut choices: Vec<(String, CpuSet)> = Vec::new();
    for one in all {
        let choice = one.choice();
        match choices.iter_mut().find(|(known, _)| *known == choice) {
            Some((_, set)) => {
                set.insert(one.cpu);
            }
            None => choices.push((choice, CpuSet::from_iter([one.cpu]))),
        }
    }
    choices
}

/// Daemons that from time to time ask every CPU to empty its page lists.
pub(super) fn memory_daemons(facts: &Facts) -> Option<Finding> {
    let ksm = facts.system.ksm_run.as_ref().filter(|fact| fact.value == 1);
    let huge = facts.system.hugepages.as_ref().filter(|fact| fact.value == "always");
    if facts.isolated().is_empty() || ksm.is_none() && huge.is_none() {
        return None;
    }
    let change = match (ksm, huge) {
        (Some(_), Some(_)) => {
            "$ echo 0 > /sys/kernel/mm/ksm/run\n\
             $ echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
        }
        (Some(_), None) => "$ echo 0 > /sys/kernel/mm/ksm/run",
        (None, _) => "$ echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
    };
    Some(
        Finding::new("memory-daemons", Question::Isolation, Severity::Note)
            .what("khugepaged or ksmd may queue work on isolated CPUs.")
            .why(
                "Before they merge pages they drain the per-CPU page lists, by a work item on every \
                 CPU whose list is not empty, isolated or not; changed mappings also cost an interrupt \
                 per CPU that runs the process.",
            )
            .change(change)
            .predicted("Fewer lru_add_drain work items and TLB interrupts on CPUs that run a busy process.")
            .verify("grep -E 'TLB|CAL' /proc/interrupts")
            .cite(ksm)
            .cite(huge),
    )
}
