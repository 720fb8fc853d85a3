//! Real-time tasks were woken onto a CPU inside a long softirq.

use super::text::severity;
use crate::figures::Explanation;
use crate::finding::Finding;
use quietcore_trace::Question;

const WHY: &str = "Stock kernels (all versions without PREEMPT_RT) neither look at running softirqs when they place a \
                   real-time task nor interrupt a softirq for it.";
const WHY_RT: &str = "With PREEMPT_RT softirqs run in tasks, which a task of a higher priority interrupts; one of a lower \
                      waits, and so does one that needs a lock which the softirq holds.";
const CHANGE: &str = "Move the device interrupts off the real-time CPUs, poll the network in threads, or give the task a \
                      CPU of its own:\n\
                      $ echo HOUSEKEEPING_LIST > /proc/irq/N/smp_affinity_list\n\
                      $ echo 1 > /sys/class/net/DEV/threaded\n\
                      $ taskset -pc CPU PID";
const CHANGE_RT: &str = "Give the task a priority above that of the thread of the interrupt (50) and of ktimers/N (1), or move \
                         the device interrupts off its CPU:\n\
                         $ chrt -f -p 51 PID\n\
                         $ echo HOUSEKEEPING_LIST > /proc/irq/N/smp_affinity_list";

pub(super) fn rule(report: &Explanation) -> Option<Finding> {
    let behind = report.rt_wakeups.behind_softirq.filter(|&count| count > 0)?;
    let count = report.rt_wakeups.count?;
    let delay = |nanos: Option<u64>| {
        nanos.map_or_else(|| "unknown".to_owned(), |nanos| quietcore_core::Nanos(nanos).to_string())
    };
    let delays = report.rt_wakeups.delay_ns;
    let apart = match report.rt_wakeups.kernel_threads {
        None | Some(0) => String::new(),
        Some(own) => format!(" ({own} of them of the kernel's own threads, which are not asked about)"),
    };
    Some(
        Finding::new("rt-wakeups-behind-softirq", Question::RealTime, severity(report, behind))
            .what(format!(
                "{behind} of {count} real-time wake-ups{apart} went to a CPU inside a NET or BLOCK softirq; they \
                 waited p50 {}, p99 {}, at most {}.",
                delay(delays.p50),
                delay(delays.p99),
                delay(delays.max)
            ))
            .why(if report.preempt_rt { WHY_RT } else { WHY })
            .change(if report.preempt_rt { CHANGE_RT } else { CHANGE })
            .predicted(format!("behind_softirq: {behind} -> 0 on CPUs that serve no device."))
            .verify("quietcore explain --live 30s --questions real-time"),
    )
}
