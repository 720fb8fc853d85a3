//! The event descriptor of an owner that sleeps in its own `epoll`: who writes, and when it is read.
//!
//! In a round of the park word (from PARKING to RUNNING) at most one sender writes: the one whose swap found
//! PARKING. The round ends with NOTIFIED exactly if there was one. But that sender writes after its swap, so
//! the write may come when the owner is long up again; an owner that reads only what it was notified of would
//! leave it there, and its `epoll` would return at once for ever. So the owner counts the writes that it is
//! owed, and reads until it has had them. A late write ends one sleep too early, and only one.
//!
//! Invariant: after `settle`, what is readable or will be written is `owed`. Source: eventfd(2).

use super::outcome::Woken;
use crate::words::sync::{AtomicU32, Ordering};
#[cfg(not(loom))]
use descriptor::Descriptor;
#[cfg(loom)]
use descriptor::ModelDescriptor as Descriptor;
#[cfg(not(loom))]
use std::{io, os::fd::BorrowedFd};

/// A descriptor, and what its owner is owed.
#[derive(Debug)]
pub(super) struct EventDescriptor {
    descriptor: Descriptor,
    /// Writes that were or will be made and that were not read. The owner's.
    owed: AtomicU32,
}

impl EventDescriptor {
    /// For a sender that found PARKING: once per round.
    pub(super) fn signal(&self) {
        self.descriptor.write();
    }

    /// For the owner at the end of a round.
    pub(super) fn settle(&self, woken: Woken) {
        // Relaxed, both: only the owner touches the count.
        let owed = self.owed.load(Ordering::Relaxed) + u32::from(woken == Woken::Notified);
        if owed == 0 {
            return;
        }
        self.owed.store(owed - self.descriptor.read(), Ordering::Relaxed);
    }
}

#[cfg(not(loom))]
impl EventDescriptor {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { descriptor: Descriptor::new()?, owed: AtomicU32::new(0) })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.borrowed()
    }
}

#[cfg(not(loom))]
mod descriptor {
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::io::Errno;
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    /// The kernel's.
    #[derive(Debug)]
    pub(super) struct Descriptor(OwnedFd);

    impl Descriptor {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
        }

        pub(super) fn borrowed(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }

        pub(super) fn write(&self) {
            let result = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
            assert_eq!(result, Ok(8), "an event descriptor takes a write before 2^64 are owed");
        }

        /// How many writes there were since the last read.
        pub(super) fn read(&self) -> u32 {
            let mut count = [0; 8];
            match rustix::io::read(&self.0, &mut count) {
                Ok(8) => u64::from_ne_bytes(count) as u32,
                Err(Errno::AGAIN) => 0,
                other => panic!("an event descriptor of this process refused a read: {other:?}"),
            }
        }
    }
}

/// As loom sees it: a count under a lock.
#[cfg(loom)]
mod descriptor {
    use loom::sync::{Condvar, Mutex};

    #[derive(Debug, Default)]
    pub(super) struct ModelDescriptor {
        count: Mutex<u32>,
        is_readable: Condvar,
    }

    impl ModelDescriptor {
        pub(super) fn write(&self) {
            *self.count.lock().expect("no thread panicked") += 1;
            self.is_readable.notify_all();
        }

        pub(super) fn read(&self) -> u32 {
            std::mem::take(&mut *self.count.lock().expect("no thread panicked"))
        }

        /// What `epoll` would do.
        pub(super) fn wait(&self) {
            let mut count = self.count.lock().expect("no thread panicked");
            while *count == 0 {
                count = self.is_readable.wait(count).expect("no thread panicked");
            }
        }
    }
}

/// What the models need besides.
#[cfg(loom)]
impl EventDescriptor {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self { descriptor: Descriptor::default(), owed: AtomicU32::new(0) })
    }

    pub(super) fn descriptor(&self) -> std::os::fd::BorrowedFd<'_> {
        unreachable!("a model has no descriptors")
    }

    #[cfg(test)]
    pub(super) fn wait(&self) {
        self.descriptor.wait();
    }

    /// Readable or to be written: what the owner would find.
    #[cfg(test)]
    pub(super) fn left(&self) -> (u32, u32) {
        (self.descriptor.read(), self.owed.load(Ordering::Relaxed))
    }
}
