//! Numbers of CPUs: the world counts them in `u16`, the core has a type.

use quietcore_core::CpuId;

/// The number of a CPU as the core's type; numbers here are always of CPUs that exist.
pub(crate) fn id(cpu: u16) -> CpuId {
    CpuId::new(u64::from(cpu)).expect("CPUs of a plan are below the limit")
}
