//! What is asked: a policy, who is left out of the hierarchy, and who is kept awake.

use super::load::RecordedLoad;
use quietcore_core::place::{Housekeeping, HousekeepingError, Isolation, Policy};
use quietcore_core::{CpuId, CpuSet};
use quietcore_trace::TimerModel;
use std::fmt;

/// Which CPUs take no part in the hierarchy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Excluded {
    /// Those that the recording's kernel left out.
    #[default]
    AsRecorded,
    /// Exactly these.
    These(CpuSet),
}

/// A question to a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WhatifQuestion {
    /// Where unpinned timers go.
    pub policy: Policy,
    /// Who neither pulls nor is pulled; under a push, who gets no timers of others.
    pub excluded: Excluded,
    /// CPUs that never go idle.
    pub kept_awake: CpuSet,
}

impl WhatifQuestion {
    /// What the recording's own kernel did.
    #[must_use]
    pub fn as_recorded(load: &RecordedLoad) -> Self {
        Self { policy: load.policy, ..Self::default() }
    }

    /// Refuses CPUs that the recording does not have, and an exclusion that leaves no CPU.
    pub(super) fn check(&self, load: &RecordedLoad) -> Result<(), WhatifQuestionError> {
        let possible = possible(load);
        let excluded = match &self.excluded {
            Excluded::These(cpus) => cpus,
            Excluded::AsRecorded => &CpuSet::new(),
        };
        for (option, cpus) in [("--exclude", excluded), ("--keep-awake", &self.kept_awake)] {
            let absent = cpus.difference(&possible);
            if !absent.is_empty() {
                return Err(WhatifQuestionError::NoSuchCpu { option, absent, cpus: load.cpus });
            }
        }
        if possible.is_subset(excluded) {
            return Err(WhatifQuestionError::NobodyLeft { excluded: excluded.clone() });
        }
        Ok(())
    }

    /// Whether `cpu` is out of the hierarchy whatever the recording's events say; `None` when they decide.
    pub(super) fn is_excluded(&self, cpu: CpuId, load: &RecordedLoad) -> Option<bool> {
        match &self.excluded {
            Excluded::These(cpus) => Some(cpus.contains(cpu)),
            Excluded::AsRecorded if load.model != TimerModel::PullExcludesIsolated => Some(false),
            Excluded::AsRecorded if load.appearing.contains(cpu) => None,
            Excluded::AsRecorded => {
                Some(load.facts.isolated.contains(cpu) && !load.facts.nohz_full.contains(cpu))
            }
        }
    }

    /// Who may get timers of others under a push.
    pub(super) fn housekeeping(&self, load: &RecordedLoad) -> Result<Housekeeping, WhatifQuestionError> {
        let mut domain = load.facts.isolated.difference(&load.facts.nohz_full);
        if let Excluded::These(cpus) = &self.excluded {
            domain = domain.union(cpus);
        }
        let isolation = Isolation { domain, nohz_full: load.facts.nohz_full.clone(), ..Isolation::default() };
        Housekeeping::new(&possible(load), &isolation).map_err(WhatifQuestionError::Housekeeping)
    }
}

/// The CPUs of the recording's machine.
pub(super) fn possible(load: &RecordedLoad) -> CpuSet {
    CpuSet::range(CpuId::default(), load.cpus).expect("a load has at most CPU_LIMIT CPUs")
}

/// Why a question cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhatifQuestionError {
    /// An option names CPUs that the recording's machine does not have.
    NoSuchCpu {
        /// The option.
        option: &'static str,
        /// Those CPUs.
        absent: CpuSet,
        /// How many there are.
        cpus: u16,
    },
    /// Everybody would be left out.
    NobodyLeft {
        /// The CPUs of `--exclude`.
        excluded: CpuSet,
    },
    /// A push would find no CPU.
    Housekeeping(HousekeepingError),
}

impl fmt::Display for WhatifQuestionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchCpu { option, absent, cpus } => {
                write!(out, "{option} names CPUs {absent}, but the recording has {cpus} CPUs; ")?;
                write!(out, "name CPUs from 0 to {}", cpus.saturating_sub(1))
            }
            Self::NobodyLeft { excluded } => {
                write!(
                    out,
                    "--exclude {excluded} leaves no CPU to expire timers; leave out at least one CPU fewer"
                )
            }
            Self::Housekeeping(error) => {
                write!(out, "a push needs a CPU that is not isolated: {error}; name fewer CPUs")
            }
        }
    }
}

impl std::error::Error for WhatifQuestionError {}
