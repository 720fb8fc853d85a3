//! Housekeeping: which CPUs do the chores, by kind of chore.
//!
//! Decides how three masks follow from three ways of isolating a CPU:
//!
//! | mask    | what may go there                        | without                           |
//! | ------- | ---------------------------------------- | --------------------------------- |
//! | `timers`| timers that other CPUs armed (push)      | `nohz_full`                       |
//! | `tasks` | tasks that the scheduler moves           | `isolcpus=domain`, run-time set   |
//! | `work`  | unbound work, stealing                   | all three                         |
//!
//! Invariants: no mask is empty; `work` is what `timers` and `tasks` have in common. Not here: per-interrupt
//! affinity (`managed_irq`), and changing the masks of a running machine. Source: Linux 6.12
//! Documentation/admin-guide/kernel-parameters.txt (`isolcpus`, `nohz_full`). Deviation: the kernel drops an
//! isolation that leaves no CPU, with a warning; here it is an error.

use crate::CpuSet;
use core::fmt;

/// The ways in which CPUs are isolated; a CPU may be in several. CPUs that the machine does not have
/// mean nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Isolation {
    /// At boot, from scheduling: `isolcpus=domain`.
    pub domain: CpuSet,
    /// At boot, from the tick and other kernel noise: `nohz_full=`.
    pub nohz_full: CpuSet,
    /// At run time, from scheduling: isolated cpuset partitions, `set_isolated`.
    pub runtime: CpuSet,
}

impl Isolation {
    /// CPUs that are isolated in any way.
    #[must_use]
    pub fn any(&self) -> CpuSet {
        self.from_tasks().union(&self.nohz_full)
    }

    /// CPUs that are isolated from scheduling, at boot or at run time.
    #[must_use]
    pub fn from_tasks(&self) -> CpuSet {
        self.domain.union(&self.runtime)
    }
}

/// The three housekeeping masks of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Housekeeping {
    timers: CpuSet,
    work: CpuSet,
    tasks: CpuSet,
}

impl Housekeeping {
    /// The masks that `isolation` leaves of `cpus`: all possible CPUs for a setting, the online ones for a
    /// placement.
    ///
    /// # Errors
    /// [`HousekeepingError::NoneLeft`] names the mask that would be empty; the narrowest reason first.
    /// [`HousekeepingError::NoCpus`] if `cpus` is empty.
    pub fn new(cpus: &CpuSet, isolation: &Isolation) -> Result<Self, HousekeepingError> {
        if cpus.is_empty() {
            return Err(HousekeepingError::NoCpus);
        }
        let timers = cpus.difference(&isolation.nohz_full);
        let tasks = cpus.difference(&isolation.from_tasks());
        let work = timers.intersection(&tasks);
        for (mask, left) in [(Mask::Timers, &timers), (Mask::Tasks, &tasks), (Mask::Work, &work)] {
            if left.is_empty() {
                return Err(HousekeepingError::NoneLeft {
                    mask,
                    cpus: cpus.clone(),
                    isolation: isolation.clone(),
                });
            }
        }
        Ok(Self { timers, work, tasks })
    }

    /// CPUs that take timers which others arm (the kernel's `HK_TYPE_TIMER`).
    #[must_use]
    pub const fn timers(&self) -> &CpuSet {
        &self.timers
    }

    /// CPUs that take unbound work, and may steal; those that are isolated in no way.
    #[must_use]
    pub const fn work(&self) -> &CpuSet {
        &self.work
    }

    /// CPUs that tasks are moved to and from (the kernel's `HK_TYPE_DOMAIN`).
    #[must_use]
    pub const fn tasks(&self) -> &CpuSet {
        &self.tasks
    }
}

/// One of the masks of [`Housekeeping`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// [`Housekeeping::timers`].
    Timers,
    /// [`Housekeeping::work`].
    Work,
    /// [`Housekeeping::tasks`].
    Tasks,
}

/// Why [`Housekeeping::new`] refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HousekeepingError {
    /// There is no CPU at all.
    NoCpus,
    /// The isolation leaves no CPU for one kind of chores.
    NoneLeft {
        /// Which kind.
        mask: Mask,
        /// The CPUs there are.
        cpus: CpuSet,
        /// What isolates them.
        isolation: Isolation,
    },
}

impl fmt::Display for HousekeepingError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::NoneLeft { mask, cpus, isolation } = self else {
            return out.write_str("no CPU at all (expected at least one housekeeping CPU)");
        };
        let (chore, counts): (_, &[_]) = match mask {
            Mask::Timers => ("take timers", &[("nohz_full", &isolation.nohz_full)]),
            Mask::Tasks => (
                "run tasks",
                &[("the domain set", &isolation.domain), ("the run-time set", &isolation.runtime)],
            ),
            Mask::Work => (
                "run unbound work",
                &[
                    ("the domain set", &isolation.domain),
                    ("nohz_full", &isolation.nohz_full),
                    ("the run-time set", &isolation.runtime),
                ],
            ),
        };
        write!(out, "no CPU of {cpus} is left to {chore}: ")?;
        let given = counts.iter().filter(|(_, set)| !set.is_empty());
        for (at, (name, set)) in given.enumerate() {
            write!(out, "{}{name} is {set}", if at == 0 { "" } else { ", " })?;
        }
        out.write_str(" (expected at least one housekeeping CPU)")
    }
}

impl core::error::Error for HousekeepingError {}

#[cfg(test)]
mod tests {
    use super::{Housekeeping, HousekeepingError, Isolation, Mask};
    use crate::CpuSet;
    use alloc::string::ToString;

    fn set(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    fn isolation([domain, nohz_full, runtime]: [&str; 3]) -> Isolation {
        Isolation { domain: set(domain), nohz_full: set(nohz_full), runtime: set(runtime) }
    }

    /// Goal: each isolation takes its CPUs out of its masks only. Method: each alone, then all.
    #[test]
    fn each_isolation_has_its_masks() {
        for (given, timers, work, tasks) in [
            (["", "", ""], "0-7", "0-7", "0-7"),
            (["1-2", "", ""], "0-7", "0,3-7", "0,3-7"),
            (["", "3-4", ""], "0-2,5-7", "0-2,5-7", "0-7"),
            (["", "", "5-6"], "0-7", "0-4,7", "0-4,7"),
            (["1-2", "3-4", "5-6"], "0-2,5-7", "0,7", "0,3-4,7"),
            (["1-7", "1-7", "1-7,9-100"], "0", "0", "0"),
        ] {
            let masks = Housekeeping::new(&set("0-7"), &isolation(given)).unwrap();
            let found = [masks.timers(), masks.work(), masks.tasks()].map(CpuSet::to_string);
            assert_eq!(found, [timers, work, tasks], "domain, nohz_full, run time: {given:?}");
        }
    }

    /// Goal: the error says which chore has no CPU and why. Method: every way of isolating all.
    #[test]
    fn the_empty_mask_is_named() {
        for (given, mask, reason) in [
            (["", "0-7", ""], Mask::Timers, "take timers: nohz_full is 0-7 ("),
            (["0-7", "", ""], Mask::Tasks, "run tasks: the domain set is 0-7 ("),
            (["0-3", "", "4-7"], Mask::Tasks, "run tasks: the domain set is 0-3, the run-time set is 4-7 ("),
            (["0-3", "4-7", ""], Mask::Work, "run unbound work: the domain set is 0-3, nohz_full is 4-7 ("),
        ] {
            let error = Housekeeping::new(&set("0-7"), &isolation(given)).unwrap_err();
            let named = matches!(&error, HousekeepingError::NoneLeft { mask: found, .. } if *found == mask);
            assert!(named && error.to_string().contains(reason), "{given:?}: {error}");
        }
        assert_eq!(Housekeeping::new(&set(""), &isolation([""; 3])), Err(HousekeepingError::NoCpus));
    }
}
