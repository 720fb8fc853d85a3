//! Probes for tracers (`perf`, `bpftrace`, `gdb`): places in the program that have a name and arguments, by
//! the feature `usdt`. A place costs a `nop` and having its arguments in registers; a tracer makes a trap of
//! it. Without the feature there is nothing.
//!
//! | probe of `quietcore` | arguments |
//! | --- | --- |
//! | `timer_expire_entry` | CPU that runs, CPU of the timer's base, lateness in ns |
//! | `timer_expire_exit` | CPU that runs, CPU of the timer's base, lateness in ns when it began |
//! | `lane_park`, `lane_unpark` | CPU |
//! | `lane_kick` | CPU that is to look |
//! | `lane_stall` | CPU that did not turn |
//! | `isolate` | CPUs 0 to 63 that are isolated at run time, a bit each |
//!
//! Wakers that are taken out of a base together (8 at most) are one expiry, with the lateness of the first.
//! All arguments are signed 64-bit words. Source: SystemTap's UserSpaceProbeImplementation, by the crate
//! `probe`.
#![cfg_attr(feature = "usdt", allow(unsafe_code, reason = "the probe's macro is one assembler line"))]

use quietcore_core::{CpuId, CpuSet};

macro_rules! probe {
    ($name:ident $(, $argument:expr)*) => {
        #[cfg(feature = "usdt")]
        ::probe::probe!(quietcore, $name $(, $argument)*);
        #[cfg(not(feature = "usdt"))]
        let _ = ($($argument,)*);
    };
}

#[inline]
pub(crate) fn timer_expire_entry(cpu: CpuId, base: CpuId, late_ns: u64) {
    probe!(timer_expire_entry, cpu.index(), base.index(), late_ns);
}

#[inline]
pub(crate) fn timer_expire_exit(cpu: CpuId, base: CpuId, late_ns: u64) {
    probe!(timer_expire_exit, cpu.index(), base.index(), late_ns);
}

#[inline]
pub(crate) fn lane_park(cpu: CpuId) {
    probe!(lane_park, cpu.index());
}

#[inline]
pub(crate) fn lane_unpark(cpu: CpuId) {
    probe!(lane_unpark, cpu.index());
}

#[inline]
pub(crate) fn lane_kick(cpu: CpuId) {
    probe!(lane_kick, cpu.index());
}

#[inline]
pub(crate) fn lane_stall(cpu: CpuId) {
    probe!(lane_stall, cpu.index());
}

#[inline]
pub(crate) fn isolate(isolated: &CpuSet) {
    probe!(isolate, first_bits(isolated));
}

/// A bit for each of the CPUs 0 to 63 that is in `set`.
fn first_bits(set: &CpuSet) -> u64 {
    set.iter().filter(|cpu| cpu.index() < 64).fold(0, |bits, cpu| bits | 1 << cpu.index())
}

#[cfg(test)]
mod tests {
    use super::first_bits;

    /// Goal: a probe has a bit for each CPU that its word has room for, and none for others. Method: both
    /// ends of the word, and what is beyond it.
    #[test]
    fn a_word_has_the_first_cpus() {
        let set = "0,2,63-64,66,1000".parse().expect("a list");
        assert_eq!(first_bits(&set), 1 << 63 | 0b101);
    }
}
