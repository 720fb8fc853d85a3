//! Watchdogs of packet schedulers expired off the CPU that armed them.

use super::text::{by_cpu, severity};
use crate::figures::Explanation;
use crate::finding::{Finding, Severity};
use quietcore_trace::Question;

/// Fewer than one watchdog in so many off its CPU is a stray, not a migration.
const STRAY_ONE_IN: u64 = 100;

pub(super) fn rule(report: &Explanation) -> Option<Finding> {
    let watchdog = &report.hrtimers.qdisc_watchdog;
    let off = watchdog.off_arming_cpu.filter(|&count| count > 0)?;
    let expired = watchdog.expired?;
    // Pinned watchdogs show single ones: armed elsewhere while the expiry was already under way.
    let severity = if off * STRAY_ONE_IN >= expired { severity(report, off) } else { Severity::Note };
    Some(
        Finding::new("qdisc-watchdog-migrates", Question::PacketTimers, severity)
            .what(format!(
                "{off} of {expired} packet-scheduler watchdogs expired off the CPU that armed them (all {expired}: {}).",
                by_cpu(watchdog.by_cpu.as_ref()?)
            ))
            .why(
                "An unpinned hrtimer started on an idle CPU is pushed to a busy one; the dequeue then runs \
                 there and fights for the queue's lock. Stock kernels pin these watchdogs (netem, fq, htb, \
                 tbf, hfsc) since 3.18; out-of-tree schedulers may not. Single ones are races: armed \
                 elsewhere while the expiry was already under way.",
            )
            .change("$ sysctl -w kernel.timer_migration=0")
            .predicted(format!("qdisc_watchdog.off_arming_cpu: {off} -> 0; dequeues follow the XPS map."))
            .verify("quietcore explain --live 30s --questions packet-timers"),
    )
}
