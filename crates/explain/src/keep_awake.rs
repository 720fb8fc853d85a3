//! Which housekeeping CPUs have to stay awake so that no isolated CPU runs the timers of others, and whether
//! that helps on a host at all.
//!
//! Source: Linux v6.9 to v6.18, kernel/time/timer_migration.c: one CPU that is awake in each group that has a
//! housekeeping CPU is migrator up to the top, and serves groups without one. Shown with nine machines of
//! 6.12.

use crate::host::Facts;
use quietcore_core::{CpuId, CpuSet};
use quietcore_trace::TimerModel;
use std::fmt;

/// What to keep awake.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeepAwakePlan {
    /// The CPUs that are to stay quiet.
    pub isolated: CpuSet,
    /// One CPU of each group that has one, and the group.
    pub cpus: Vec<(CpuId, CpuSet)>,
}

/// Why keeping CPUs awake is of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeepAwakeRefusal {
    /// No CPU is isolated.
    NothingIsolated,
    /// Kernels of this release let no CPU run the timers of others so.
    Kernel {
        /// The release.
        release: String,
        /// What it does instead.
        model: TimerModel,
    },
    /// With `nohz_full` CPUs the one that keeps the time never stops its tick.
    TickNeverStops {
        /// Those CPUs.
        nohz_full: CpuSet,
    },
    /// All CPUs are isolated, or none of the others may be used.
    NoneToKeepAwake,
}

impl fmt::Display for KeepAwakeRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingIsolated => {
                write!(
                    out,
                    "no CPU is isolated, so none is to be kept from others' timers; name them with --isolated"
                )
            }
            Self::Kernel { release, model } => write!(
                out,
                "Linux {release} needs no CPU that is awake: wheel timers are placed by {model}. If this kernel \
                 has the change of another release, say --force"
            ),
            Self::TickNeverStops { nohz_full } => write!(
                out,
                "CPUs {nohz_full} are nohz_full, so the CPU that keeps the time never stops its tick: it is awake \
                 already"
            ),
            Self::NoneToKeepAwake => write!(out, "no CPU is left that is not isolated and may be used"),
        }
    }
}

impl std::error::Error for KeepAwakeRefusal {}

/// Chooses the CPUs for a host; `isolated` in place of what the host says, `is_forced` whatever the kernel.
///
/// # Errors
/// Why it is of no use there.
pub fn plan_keep_awake(
    facts: &Facts,
    isolated: Option<&CpuSet>,
    is_forced: bool,
) -> Result<KeepAwakePlan, KeepAwakeRefusal> {
    let isolated = isolated.cloned().unwrap_or_else(|| facts.domain_isolated());
    if isolated.is_empty() {
        return Err(KeepAwakeRefusal::NothingIsolated);
    }
    if !is_forced {
        if let Some(kernel) = facts.kernel().filter(|kernel| kernel.timer_model() != TimerModel::Pull) {
            let (release, model) = (kernel.text.clone(), kernel.timer_model());
            return Err(KeepAwakeRefusal::Kernel { release, model });
        }
        let nohz_full = facts.nohz_full();
        if !nohz_full.is_empty() {
            return Err(KeepAwakeRefusal::TickNeverStops { nohz_full });
        }
    }
    let usable = facts.housekeeping().difference(&isolated);
    let groups = facts.cpus.groups().into_iter();
    let cpus: Vec<_> =
        groups.filter_map(|group| Some((group.intersection(&usable).first()?, group))).collect();
    if cpus.is_empty() {
        return Err(KeepAwakeRefusal::NoneToKeepAwake);
    }
    Ok(KeepAwakePlan { isolated, cpus })
}

#[cfg(test)]
mod tests {
    use super::{KeepAwakePlan, KeepAwakeRefusal, plan_keep_awake};
    use crate::host::{Fact, Facts};
    use quietcore_core::CpuSet;
    use quietcore_trace::{KernelRelease, TimerModel};

    fn list(text: &str) -> CpuSet {
        text.parse().expect("a list")
    }

    fn host(release: &str, online: &str, isolated: &str) -> Facts {
        let mut facts = Facts::default();
        let kernel = KernelRelease::parse(release).expect("a release");
        facts.release = Some(Fact::new("/r", release, kernel));
        facts.cpus.online = Some(Fact::new("/o", online, list(online)));
        facts.cpus.isolated = Some(Fact::new("/i", isolated, list(isolated)));
        facts
    }

    fn chosen(plan: KeepAwakePlan) -> Vec<(u64, String)> {
        plan.cpus.into_iter().map(|(cpu, group)| (cpu.index() as u64, group.to_string())).collect()
    }

    /// Goal: one housekeeping CPU of each group that has one. Method: groups with the first, a later and no
    /// CPU that is not isolated; what was typed in place of the host's list.
    #[test]
    fn each_group_with_a_housekeeping_cpu_has_one_awake() {
        let facts = host("6.12.48", "0-23", "1-7,8-10,16-23");
        let plan = plan_keep_awake(&facts, None, false).expect("it helps");
        assert_eq!(plan.isolated.to_string(), "1-10,16-23");
        assert_eq!(chosen(plan), [(0, "0-7".into()), (11, "8-15".into())]);
        let typed = list("0-7");
        let plan = plan_keep_awake(&facts, Some(&typed), false).expect("it helps");
        assert_eq!(chosen(plan), [(11, "8-15".into())], "those that the host isolates are not used either");
    }

    /// Goal: it is refused where it is of no use, with the reason. Method: each reason, and by force.
    #[test]
    fn it_is_refused_where_it_is_of_no_use() {
        let refused = |facts: &Facts| plan_keep_awake(facts, None, false).expect_err("it is of no use");
        assert_eq!(refused(&host("6.12.1", "0-3", "")), KeepAwakeRefusal::NothingIsolated);
        assert_eq!(refused(&host("6.12.1", "0-3", "0-3")), KeepAwakeRefusal::NoneToKeepAwake);
        for (release, model) in [
            ("6.8.12", TimerModel::Push),
            ("6.19.0", TimerModel::PullExcludesIsolated),
            ("7.2.1", TimerModel::PullExcludesIsolated),
        ] {
            let facts = host(release, "0-3", "1");
            let expected = KeepAwakeRefusal::Kernel { release: release.into(), model };
            assert_eq!(refused(&facts), expected);
            assert!(expected.to_string().contains(release), "{expected}");
            assert!(plan_keep_awake(&facts, None, true).is_ok());
        }
        for release in ["6.9.0", "6.18.44"] {
            assert!(plan_keep_awake(&host(release, "0-3", "1"), None, false).is_ok(), "{release}");
        }
        let mut facts = host("6.12.1", "0-3", "1");
        facts.cpus.nohz_full = Some(Fact::new("/n", "1", list("1")));
        assert_eq!(refused(&facts), KeepAwakeRefusal::TickNeverStops { nohz_full: list("1") });
    }
}
