//! The number of the CPU that the calling thread is on: a hint, out of date the moment it is read.
#![allow(unsafe_code, reason = "the C library's call reads a word that the kernel keeps; the vDSO is slower")]

/// Cost: about 2 ns where the C library registers restartable sequences (glibc 2.35), else a vDSO call.
#[inline]
pub(crate) fn number() -> usize {
    // SAFETY: it takes nothing and fails with -1 only.
    let number = unsafe { libc::sched_getcpu() };
    usize::try_from(number).unwrap_or(0)
}
