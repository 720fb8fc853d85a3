//! Memory that the kernel's program writes and this process reads: one map of words.
//!
//! The words are changed by other CPUs at any moment, so all of them are read and written as atomics.

#![allow(unsafe_code, reason = "the kernel hands out memory as an address and a length")]

use core::ptr::NonNull;
use core::slice;
use core::sync::atomic::AtomicU64;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::AsFd;

/// The words of a map. Any thread may read and write them.
#[derive(Debug)]
pub(crate) struct Words {
    start: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is accessed as atomics alone.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    /// Maps the first `count` words of a map of the kernel's that may be mapped.
    ///
    /// # Errors
    /// What the system said.
    pub(crate) fn of(map: impl AsFd, count: usize) -> io::Result<Self> {
        let bytes = count * size_of::<u64>();
        // SAFETY: a new mapping, at an address that the kernel chooses, of a length that is not 0.
        let start = unsafe {
            mmap(core::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, map, 0)
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { start, count })
    }

    /// All of them.
    pub(crate) const fn all(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has `count` words, is aligned to a page, lives as long as `self`, and is accessed as atomics
        // alone: by this process through this function, by the kernel in whole words.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: the mapping that `of` made; no reference to it outlives `self`.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.count * size_of::<u64>()) };
        debug_assert!(unmapped.is_ok(), "it was mapped");
    }
}
