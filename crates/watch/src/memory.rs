//! Memory that the kernel's program writes and this process reads: one map of words.
//!
//! The words are changed by other CPUs at any moment, so all of them are read and written as atomics.

#![allow(unsafe_code, reason = "the kernel hands out memory as an address and a length")]

use core::ptr::NonNull;
use core::slice;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
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

    /// A word. Cost: a load.
    pub(crate) fn get(&self, at: usize) -> u64 {
        self.all()[at].load(Relaxed) // pairs with nothing: each word is a count of its own
    }

    /// Changes a word.
    pub(crate) fn set(&self, at: usize, value: u64) {
        self.all()[at].store(value, Relaxed); // pairs with nothing: the kernel's program may see it later
    }

    /// How many there are.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    const fn all(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has `count` words, is aligned to a page, lives as long as `self`, and is
        // accessed as atomics alone: by this process through this function, by the kernel in whole words.
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

#[cfg(test)]
impl Words {
    /// Memory of this process alone, all zeros.
    pub(crate) fn own(count: usize) -> Self {
        let bytes = count * size_of::<u64>();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses, of a length that is not 0.
        let start = unsafe {
            rustix::mm::mmap_anonymous(core::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE)
        };
        let start = NonNull::new(start.expect("there is memory").cast()).expect("not at 0");
        Self { start, count }
    }

    /// Adds to a word, as the kernel's program does.
    pub(crate) fn add(&self, at: usize, value: u64) {
        self.all()[at].fetch_add(value, Relaxed); // pairs with nothing: tests have one thread
    }
}
