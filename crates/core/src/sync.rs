//! Atomics, and the marks at which tests interleave: the only file that names either.
//!
//! Three builds of one code. Normally the atomics are `core`'s, those of 64 bits a library's where the
//! processor has none, and [`interleave!`] is nothing. With `--cfg loom` they are loom's, which explores
//! memory orderings. With `--cfg site` each mark calls the hook of its thread, so that a test can say "CPU 0
//! until `AfterCas`, CPU 1 to its end, CPU 0 to its end"; that explores the order of steps and is
//! sequentially consistent.
//!
//! Absent: anything that waits. A lock comes from the world.

#[cfg(all(not(loom), target_has_atomic = "64"))]
pub(crate) use core::sync::atomic::AtomicU64;
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU8, AtomicU32, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(all(not(loom), not(target_has_atomic = "64")))]
pub(crate) use portable_atomic::AtomicU64;

/// Writes `value` behind a full fence: what this thread reads after this is at least as new as what another
/// one has left that does not see `value` behind a fence of its own.
///
/// Where a read-modify-write is a fence by itself (x86-64) it is that, which costs half of a store and a
/// fence. Rust's rules do not say so of loads that follow it and are not sequentially consistent: the
/// compiler is kept from moving them.
#[inline]
pub(crate) fn store_then_fence(word: &AtomicU64, value: u64) {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    {
        use core::sync::atomic::compiler_fence;
        // Relaxed, between fences of the compiler: the instruction is the fence, for the partner that the
        // caller names.
        compiler_fence(Ordering::SeqCst);
        word.swap(value, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    {
        // Relaxed, fence: for the partner that the caller names.
        word.store(value, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}

/// Marks a place between two steps, where another CPU may come in.
macro_rules! interleave {
    ($name:ident) => {{
        #[cfg(site)]
        $crate::sync::script::reached($crate::sync::script::Site::$name);
    }};
}
pub(crate) use interleave;

/// What a test sees of the marks. Exists only with `--cfg site`.
#[cfg(site)]
pub mod script {
    extern crate std;
    use std::boxed::Box;
    use std::cell::RefCell;
    use std::thread_local;

    /// The places that are marked.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Site {
        /// A group's word was read; the child's state was not, yet.
        BeforeChildRead,
        /// The child's state was read; the group's word was not changed, yet.
        BeforeCas,
        /// The group's word was changed; events and parent were not looked at, yet.
        AfterCas,
        /// Before a group's link to its parent is read.
        BeforeParent,
        /// Before the lock of a CPU's record.
        BeforeCpuLock,
        /// Before the lock of a group's events.
        BeforeGroupLock,
        /// Before a base's lock.
        BeforeBaseLock,
        /// A new root is linked above the old one, which was not brought up to date, yet.
        AfterLink,
        /// A due event was found; its CPU's base was not locked, yet.
        BeforePull,
        /// Due timers were collected; what comes next was not published, yet.
        BeforeRepublish,
        /// A timer is marked as running; its callback was not handed out, yet.
        BeforeRun,
    }

    /// What is done at a mark.
    pub type Hook = Box<dyn FnMut(Site)>;

    thread_local! {
        static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    }

    /// What the calling thread does at each mark from now on.
    pub fn set_hook(hook: Option<Hook>) {
        HOOK.with_borrow_mut(|slot| *slot = hook);
    }

    pub(crate) fn reached(site: Site) {
        let hook = HOOK.with_borrow_mut(Option::take);
        if let Some(mut hook) = hook {
            hook(site);
            HOOK.with_borrow_mut(|slot| *slot = Some(hook));
        }
    }
}

#[cfg(all(test, loom))]
pub(crate) mod models;
