//! What a machine has counted: as sums over its CPUs, or of one of them.
#![allow(unsafe_code, reason = "functions with names of their own, for C, which get pointers")]
#![allow(non_camel_case_types, reason = "names of the C interface")]
#![allow(clippy::missing_safety_doc, reason = "the comments become the header's, and speak to C programmers")]

use crate::machine::{machine_at, qc_machine, size_at};
use crate::result::{CallFailure, QC_ERROR_INVALID, QC_OK, guard, place, qc_result};
use quietcore_live::ArmError;
use quietcore_live::metrics::{CpuMetrics, Metrics};

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
    /// Runs of timers of other CPUs: of one CPU, those that it pulled.
    pub ran_for_others: u64,
}

/// Of all CPUs, or of one. Timers of the kernel are the machine's: of one CPU there are none.
fn stats_of(mut metrics: Metrics, only: Option<u32>) -> Result<qc_stats, CallFailure> {
    if let Some(only) = only {
        metrics.cpus.retain(|cpu| u32::try_from(cpu.cpu.index()) == Ok(only));
        metrics.settimes = 0;
    }
    let sum = |of: fn(&CpuMetrics) -> u64| metrics.sum(of);
    if metrics.cpus.is_empty() {
        let cpu = only.unwrap_or_default();
        return Err(CallFailure::told(QC_ERROR_INVALID, format_args!("the machine has no CPU {cpu}")));
    }
    let late = metrics.lateness();
    let quantile = |share| late.quantile(share).map_or(0, |nanos| nanos.as_u64());
    Ok(qc_stats {
        size: size_of::<qc_stats>(),
        armed: sum(|cpu| cpu.bases.armed),
        superseded: sum(|cpu| cpu.bases.superseded),
        cancelled: sum(|cpu| cpu.bases.cancelled),
        ran_here: sum(|cpu| cpu.bases.ran_here),
        ran_elsewhere: sum(|cpu| cpu.bases.ran_elsewhere),
        waited: sum(|cpu| cpu.bases.waited),
        turns: sum(|cpu| cpu.turns),
        kicks: sum(|cpu| cpu.kicks),
        marks: sum(|cpu| cpu.bases.marks),
        settimes: metrics.settimes,
        lateness_count: late.len(),
        lateness_p50: quantile(0.5),
        lateness_p99: quantile(0.99),
        ran_for_others: sum(|cpu| cpu.ran_for_others),
    })
}

/// Fills in `stats`, whose `size` the caller has written. NULL for `machine` is the default one. Any thread.
/// Cost: each base's lock once, and allocations.
///
/// Errors: QC_ERROR_ADDRESS, QC_ERROR_SIZE; QC_ERROR_FORKED in a forked child.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_machine_stats(machine: *const qc_machine, stats: *mut qc_stats) -> qc_result {
    // SAFETY: promised by the caller.
    guard(|| unsafe { fill(machine, None, stats) })
}

/// The same of one CPU of the machine: what it counts itself, and what became of the timers of its bases.
/// `settimes` is 0: timers of the kernel are the machine's. Any thread. Cost: as qc_machine_stats().
///
/// Errors: those of qc_machine_stats(), and QC_ERROR_INVALID when the machine has no such CPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_machine_cpu_stats(
    machine: *const qc_machine,
    cpu: u32,
    stats: *mut qc_stats,
) -> qc_result {
    // SAFETY: promised by the caller.
    guard(|| unsafe { fill(machine, Some(cpu), stats) })
}

/// # Safety
/// `machine` is NULL or a machine; `stats` is NULL or points to as many bytes as its first field says.
unsafe fn fill(
    machine: *const qc_machine,
    only: Option<u32>,
    stats: *mut qc_stats,
) -> Result<qc_result, CallFailure> {
    let stats = place(stats, "stats")?;
    // SAFETY: promised by the caller.
    let size = unsafe { size_at(stats, "qc_stats") }?;
    let machine = machine_at(machine)?;
    if machine.check_alive() == Err(ArmError::Forked) {
        return Err(ArmError::Forked.into());
    }
    let mut filled = stats_of(machine.metrics(), only)?;
    filled.size = size.min(size_of::<qc_stats>());
    let from = (&raw const filled).cast::<u8>();
    // SAFETY: the caller's structure has `size` bytes; ours is made of words, all written.
    unsafe { core::ptr::copy_nonoverlapping(from, stats.as_ptr().cast::<u8>(), filled.size) };
    Ok(QC_OK)
}

#[cfg(test)]
mod tests {
    use super::{CallFailure, stats_of};
    use crate::result::QC_ERROR_INVALID;
    use quietcore_live::Machine;

    /// Goal: each field is its own figure, of all CPUs or of one. Method: two CPUs whose counts are all
    /// different; those of the second CPU are a hundred times as many.
    #[test]
    fn each_field_is_its_own_figure() {
        let machine = Machine::start().expect("starts");
        let mut metrics = machine.metrics();
        machine.shutdown();
        metrics.settimes = 77;
        metrics.cpus.truncate(1);
        metrics.cpus.push(metrics.cpus[0].clone());
        for (cpu, (number, times)) in metrics.cpus.iter_mut().zip([(4, 1), (6, 100)]) {
            cpu.cpu = quietcore_live::CpuId::new(number).expect("a small number");
            let figures = [
                &mut cpu.bases.armed,
                &mut cpu.bases.superseded,
                &mut cpu.bases.cancelled,
                &mut cpu.bases.ran_here,
                &mut cpu.bases.ran_elsewhere,
                &mut cpu.bases.waited,
                &mut cpu.turns,
                &mut cpu.kicks,
                &mut cpu.bases.marks,
                &mut cpu.ran_for_others,
                &mut cpu.ran_own,
            ];
            (11..).zip(figures).for_each(|(value, figure)| *figure = value * times);
        }
        let fields = |only| {
            let stats = stats_of(metrics.clone(), only)?;
            Ok([
                stats.armed,
                stats.superseded,
                stats.cancelled,
                stats.ran_here,
                stats.ran_elsewhere,
                stats.waited,
                stats.turns,
                stats.kicks,
                stats.marks,
                stats.ran_for_others,
                stats.settimes,
            ])
        };
        assert_eq!(fields(None), Ok([1111, 1212, 1313, 1414, 1515, 1616, 1717, 1818, 1919, 2020, 77]));
        assert_eq!(fields(Some(4)), Ok([11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 0]));
        assert_eq!(fields(Some(6)), Ok([1100, 1200, 1300, 1400, 1500, 1600, 1700, 1800, 1900, 2000, 0]));
        let none = CallFailure::told(QC_ERROR_INVALID, "the machine has no CPU 5");
        assert_eq!(fields(Some(5)), Err(none));
    }
}
