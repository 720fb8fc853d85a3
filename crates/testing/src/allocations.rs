//! An allocator that counts, for tests that say that nothing is allocated.
//!
//! It is the system's, and counts by threads, so that tests that run meanwhile do not matter.

#![expect(unsafe_code, reason = "an allocator keeps a promise that no compiler can check")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counted: a test's `#[global_allocator]`.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: quietcore_testing::CountingAllocator = quietcore_testing::CountingAllocator;
///
/// let before = quietcore_testing::allocations();
/// drop(Box::new(7));
/// assert_eq!(quietcore_testing::allocations(), before + 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CountingAllocator;

/// How often the calling thread has asked for memory, or for more of it.
#[must_use]
pub fn allocations() -> u64 {
    COUNT.get()
}

fn count() {
    // A thread that ends asks, too, when its own count is gone.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: the system's allocator keeps the promise; all is handed on to it as it comes. Counting neither
// allocates (the count needs no destructor) nor unwinds.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's layout is as `alloc` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller had `memory` from here with that layout, so from the system.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as in `dealloc`; the size is as `realloc` asks for.
        unsafe { System.realloc(memory, layout, size) }
    }
}
