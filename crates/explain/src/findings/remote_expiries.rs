//! What the pull model costs in remote expiries and ping-pongs.

use super::text::by_cpu;
use crate::figures::Explanation;
use crate::finding::{Finding, Severity};
use quietcore_trace::{Question, counted};

pub(super) fn rule(report: &Explanation) -> Option<Finding> {
    let total = report.remote.total.filter(|&count| count > 0)?;
    let ping_pongs = report.ping_pong.count?;
    // All events at one time stamp, or stamps without a unit: a count, but no rate.
    let rate = report.ping_pong.per_s.map_or("rate unknown".to_owned(), |rate| format!("{rate:.1}/s"));
    let share = total as f64 * 100.0 / report.timers.expired? as f64;
    Some(
        Finding::new("remote-expiries", Question::Placement, Severity::Note)
            .what(format!(
                "{} ({share:.0} %) ran on another CPU than the timer's base ({}); {} again ({rate}: \
                 ping-pong).",
                counted(total, "expiry", "expiries"),
                by_cpu(report.remote.by_cpu.as_ref()?),
                counted(ping_pongs, "of these timers was armed on its old base", "of these timers were armed on their old base")
            ))
            .why(
                "The pull model (6.9 on) trades these for cheaper arming and longer idle. A sleeper whose \
                 timeout runs elsewhere wakes its old CPU, arms there again and sleeps: one wasted wake-up each.",
            )
            .change("Nothing is wrong. To see who benefits: quietcore explain --live 30s, remote.by_cpu.")
            .predicted("No change is asked for.")
            .verify("quietcore explain --live 30s"),
    )
}
