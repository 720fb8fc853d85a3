//! Hrtimers of housekeeping CPUs expired on isolated CPUs.

use super::text::{severity, verify_live};
use crate::figures::Explanation;
use crate::finding::Finding;
use quietcore_trace::{Question, counted};

pub(super) fn rule(report: &Explanation) -> Option<Finding> {
    let foreign = report.hrtimers.foreign.filter(|&count| count > 0)?;
    Some(
        Finding::new("foreign-hrtimers", Question::Isolation, severity(report, foreign))
            .what(format!(
                "{} started on housekeeping CPUs expired on isolated CPUs.",
                counted(foreign, "hrtimer", "hrtimers")
            ))
            .why(
                "An unpinned hrtimer started on an idle CPU is pushed to a busy CPU when it is started (all \
                 versions; kernel.timer_migration still governs this). Only nohz_full, not \
                 isolcpus=domain, keeps a CPU out of that choice. A task that was moved to an isolated CPU \
                 while it slept is woken there too.",
            )
            .change("$ sysctl -w kernel.timer_migration=0\nOr boot with the isolated CPUs in nohz_full=.")
            .predicted(format!("hrtimers.foreign: {foreign} -> 0."))
            .verify(verify_live(report)),
    )
}
