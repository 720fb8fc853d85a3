//! A machine as its own parts know it: by its address, without its type.
//!
//! A machine has queues of tasks, and a task knows its machine; the same holds for timers, work and handlers.
//! `Machine` is built from the files that define these parts, so they cannot name it and keep its address;
//! the files that act on a part get the machine back by `Machine::of`.
#![allow(unsafe_code, reason = "an address whose type is known to one file")]

use core::ptr::NonNull;

/// The address of a machine. Machines are never freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MachineRef(NonNull<()>);

// SAFETY: it is made from a `&'static M` of a type that threads share, in `new`.
unsafe impl Send for MachineRef {}
// SAFETY: as above.
unsafe impl Sync for MachineRef {}

impl MachineRef {
    /// For `Machine::reference`.
    pub(crate) const fn new<M: Sync>(machine: &'static M) -> Self {
        // SAFETY: a reference is not null.
        Self(unsafe { NonNull::new_unchecked(core::ptr::from_ref(machine).cast_mut().cast()) })
    }

    /// For `Machine::of`.
    ///
    /// # Safety
    /// It was made from an `M`.
    #[inline]
    pub(crate) const unsafe fn get<M: Sync>(self) -> &'static M {
        // SAFETY: the caller promises the type, and machines are never freed.
        unsafe { self.0.cast().as_ref() }
    }
}
