//! `kernel.timer_migration` is off, and timers were pulled all the same.

use super::text::{model, severity};
use crate::figures::Explanation;
use crate::finding::Finding;
use quietcore_trace::{Question, TimerModel, counted};

pub(super) fn rule(report: &Explanation) -> Option<Finding> {
    let migrates = matches!(model(report)?, TimerModel::Pull | TimerModel::PullExcludesIsolated);
    let pulled = report.foreign.pulled.filter(|&count| count > 0)?;
    (migrates && report.timer_migration == Some(false)).then(|| {
        Finding::new("timer-migration-sysctl-without-effect", Question::Isolation, severity(report, pulled))
            .what(format!(
                "kernel.timer_migration is 0, and {} pulled all the same.",
                counted(pulled, "timer was", "timers were")
            ))
            .why(TimerModel::Pull.sysctl_governs())
            .change("$ sysctl -w kernel.timer_migration=1\nIt only changes where hrtimers go. For wheel timers see foreign-timers-pulled.")
            .predicted("none for wheel timers: 74 pulled with 1, 90 with 0 on the same load (6.12).")
            .verify("sysctl kernel.timer_migration")
    })
}
