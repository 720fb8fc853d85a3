//! The number of the CPU that the calling thread is on: a hint, out of date the moment it is read.
//!
//! A thread remembers it, and spares its locks the call: a lane from one look at its neighbours to the next,
//! any other from one arm to the next.
#![allow(unsafe_code, reason = "the C library's call reads a word that the kernel keeps; the vDSO is slower")]

use core::cell::Cell;

/// Nothing is remembered.
const NOTHING: i32 = -1;

thread_local! {
    /// What the thread remembers. Needs no destructor: it can be read while a thread ends.
    static REMEMBERED: Cell<i32> = const { Cell::new(NOTHING) };
}

/// What this thread remembers; if nothing, the number as it is now. Cost: a load, or as [`remember`].
#[inline]
pub(crate) fn recent_number() -> usize {
    match REMEMBERED.get() {
        NOTHING => read() as usize,
        remembered => remembered as usize,
    }
}

/// The number as it is now; the thread remembers it until it does so again. Cost: about 2 ns where the C
/// library registers restartable sequences (glibc 2.35), else a vDSO call.
#[inline]
pub(crate) fn remember() -> usize {
    let number = read();
    REMEMBERED.set(number);
    number as usize
}

#[cfg(not(miri))]
#[inline]
fn read() -> i32 {
    // SAFETY: it takes nothing and fails with -1 only.
    unsafe { libc::sched_getcpu() }.max(0)
}

/// Miri does not know that call. There a thread stays on one of two CPUs. Which follows from an address: a
/// count of threads would order them.
#[cfg(miri)]
fn read() -> i32 {
    REMEMBERED.with(|cell| core::ptr::from_ref(cell).addr() / 64 % 2) as i32
}

/// The thread is not a lane any more.
pub(crate) fn forget() {
    REMEMBERED.set(NOTHING);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{forget, recent_number, remember};
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    /// Goal: a thread that remembers is asked no more, and one that forgets is. Method: a thread of its own
    /// moves from one CPU to another, where the host has two.
    #[test]
    fn a_number_is_remembered_until_it_is_forgotten() {
        let moves = || {
            let all = sched_getaffinity(None).expect("a mask");
            let cpus: Vec<_> = (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu)).collect();
            let move_to = |cpu| {
                let mut one = CpuSet::new();
                one.set(cpu);
                sched_setaffinity(None, &one).expect("it may run there");
            };
            let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
            move_to(first);
            assert_eq!((remember(), recent_number()), (first, first));
            move_to(last);
            assert_eq!(recent_number(), first);
            forget();
            assert_eq!(recent_number(), last);
            move_to(first);
            assert_eq!((remember(), recent_number()), (first, first));
        };
        std::thread::spawn(moves).join().expect("no panic");
    }
}
