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
