//! The CPUs that an experiment uses: two, of those that this process may run on.

use crate::error::LabError;
use quietcore_core::{CpuId, CpuSet};

/// The CPUs that this process may run on.
///
/// # Errors
///
/// [`LabError::Affinity`] when the kernel does not say.
pub fn allowed_cpus() -> Result<CpuSet, LabError> {
    let set = rustix::thread::sched_getaffinity(None).map_err(|error| LabError::Affinity(error.into()))?;
    let numbers = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&number| set.is_set(number));
    Ok(numbers.filter_map(|number| CpuId::new(number as u64).ok()).collect())
}

/// The first two CPUs of `asked`, or of `allowed` when nothing is asked for.
///
/// # Errors
///
/// [`LabError::CpuNotAllowed`] or [`LabError::TwoCpusNeeded`].
pub fn two_cpus(asked: Option<&CpuSet>, allowed: &CpuSet) -> Result<[CpuId; 2], LabError> {
    let cpus = asked.unwrap_or(allowed);
    if let Some(cpu) = cpus.difference(allowed).first() {
        return Err(LabError::CpuNotAllowed { cpu, allowed: allowed.clone() });
    }
    let mut those = cpus.iter();
    match (those.next(), those.next()) {
        (Some(one), Some(two)) => Ok([one, two]),
        _ => Err(LabError::TwoCpusNeeded { asked: asked.cloned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::two_cpus;

    /// Goal: the first two of those asked for, or of all; the first that is not allowed is refused by its
    /// number, and one CPU by which it is. Method: a list of each kind.
    #[test]
    fn two_of_those_asked_for_or_of_all() {
        let set = |list: &str| list.parse().expect("a list");
        let allowed = set("1,3-7");
        let two = |asked: Option<&str>| match two_cpus(asked.map(set).as_ref(), &allowed) {
            Ok(cpus) => cpus.map(|cpu| cpu.to_string()).join(" and "),
            Err(error) => error.to_string(),
        };
        assert_eq!(two(None), "1 and 3");
        assert_eq!(two(Some("4-6")), "4 and 5");
        assert_eq!(two(Some("1,8-9")), "--cpus: this process may not run on CPU 8; it may on 1,3-7");
        assert_eq!(two(Some("5")), "--cpus: the lab needs two CPUs, and \"5\" is one");
        let only = two_cpus(None, &set("5")).expect_err("one CPU");
        assert_eq!(only.to_string(), "the lab needs two CPUs; this process may use one (see taskset)");
    }
}
