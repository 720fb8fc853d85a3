//! What a machine has counted, as sums over its CPUs.
#![allow(unsafe_code, reason = "functions with names of their own, for C, which get pointers")]
#![allow(non_camel_case_types, reason = "names of the C interface")]
#![allow(clippy::missing_safety_doc, reason = "the comments become the header's, and speak to C programmers")]

use crate::machine::{machine_at, qc_machine};
use crate::result::{QC_ERROR_FORKED, QC_ERROR_INVALID, QC_OK, guard, qc_result};
use core::ptr::NonNull;
use quietcore_live::{ArmError, Machine};

/// What a machine has counted since it was started.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct qc_stats {
    /// sizeof(qc_stats), written by the caller: as much is filled in. Afterwards: how much was.
    pub size: usize,
    /// Arms.
    pub armed: u64,
    /// Arms of timers that were pending.
    pub superseded: u64,
    /// Cancels of timers that were pending.
    pub cancelled: u64,
    /// Runs by the CPU that the timer was on.
    pub ran_here: u64,
    /// Runs by another CPU: pulled, or by the helper.
    pub ran_elsewhere: u64,
    /// Timers that were due again while they still ran.
    pub waited: u64,
    /// Turns.
    pub turns: u64,
    /// Kicks.
    pub kicks: u64,
    /// How often a lane was found stuck.
    pub marks: u64,
    /// Timers of the kernel that were set.
    pub settimes: u64,
    /// Runs that are in the figures of lateness.
    pub lateness_count: u64,
    /// Half of the runs were not as late as this, in ns.
    pub lateness_p50: u64,
    /// 99 % of the runs were not as late as this, in ns.
    pub lateness_p99: u64,
}

fn stats_of(machine: &Machine) -> qc_stats {
    let metrics = machine.metrics();
    let late = metrics.lateness();
    let quantile = |share| late.quantile(share).map_or(0, |nanos| nanos.as_u64());
    qc_stats {
        size: size_of::<qc_stats>(),
        armed: metrics.sum(|cpu| cpu.bases.armed),
        superseded: metrics.sum(|cpu| cpu.bases.superseded),
        cancelled: metrics.sum(|cpu| cpu.bases.cancelled),
        ran_here: metrics.sum(|cpu| cpu.bases.ran_here),
        ran_elsewhere: metrics.sum(|cpu| cpu.bases.ran_elsewhere),
        waited: metrics.sum(|cpu| cpu.bases.waited),
        turns: metrics.sum(|cpu| cpu.turns),
        kicks: metrics.sum(|cpu| cpu.kicks),
        marks: metrics.sum(|cpu| cpu.bases.marks),
        settimes: metrics.settimes,
        lateness_count: late.len(),
        lateness_p50: quantile(0.5),
        lateness_p99: quantile(0.99),
    }
}

/// Fills in `stats`, whose `size` the caller has written. NULL for `machine` is the default one. Any thread.
/// Cost: each base's lock once, and allocations.
///
/// Errors: QC_ERROR_INVALID; QC_ERROR_FORKED in a forked child.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_stats_get(machine: *const qc_machine, stats: *mut qc_stats) -> qc_result {
    guard(|| {
        let stats = NonNull::new(stats).ok_or(QC_ERROR_INVALID)?;
        // SAFETY: the caller passes a structure that has a size at least.
        let size = unsafe { stats.cast::<usize>().read() };
        if size < size_of::<usize>() {
            return Err(QC_ERROR_INVALID);
        }
        let machine = machine_at(machine)?;
        if machine.check_alive() == Err(ArmError::Forked) {
            return Err(QC_ERROR_FORKED);
        }
        let mut filled = stats_of(machine);
        filled.size = size.min(size_of::<qc_stats>());
        let from = (&raw const filled).cast::<u8>();
        // SAFETY: the caller's structure has `size` bytes; ours is made of words, all written.
        unsafe { core::ptr::copy_nonoverlapping(from, stats.as_ptr().cast::<u8>(), filled.size) };
        Ok(QC_OK)
    })
}
