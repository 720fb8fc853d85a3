//! Where the recorder itself runs.

use quietcore_core::{CpuId, CpuSet};
use rustix::thread;
use std::io;

/// Moves the calling thread to those of `cpus` that it may use; threads it starts later inherit
/// that. Returns where it may run now, which is unchanged when it may use none of them.
///
/// # Errors
/// What the system said; the thread then runs where it ran.
pub fn run_on(cpus: &CpuSet) -> io::Result<CpuSet> {
    let allowed = thread::sched_getaffinity(None)?;
    let members = (0..thread::CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    let allowed: CpuSet = members.filter_map(|cpu| CpuId::new(cpu as u64).ok()).collect();
    let chosen = allowed.intersection(cpus);
    if chosen.is_empty() {
        return Ok(allowed);
    }
    let mut mask = thread::CpuSet::new();
    for cpu in chosen.iter() {
        mask.set(cpu.index());
    }
    thread::sched_setaffinity(None, &mask)?;
    Ok(chosen)
}
