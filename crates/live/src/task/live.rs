//! All tasks that have not ended: when the machine or a lane's thread ends, their futures are dropped.
//!
//! A task that waits is in no queue, only its wakers know it. So each is listed with a waker of its own from
//! before its first poll until its future is gone; at the end every thread is woken, and the thread that
//! would put one into a queue drops it instead. The list is cut in several, so that spawning threads rarely
//! meet.

use core::task::Waker;
use slab::Slab;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Parts of the list.
const PARTS: usize = 8;

/// The list of a machine, or of a lane's thread.
#[derive(Debug, Default)]
pub(crate) struct LiveTasks {
    parts: [Part; PARTS],
}

type Part = Arc<Mutex<Slab<Waker>>>;

/// Takes a task off the list when its future is dropped.
#[derive(Debug)]
pub(super) struct Listed {
    part: Part,
    key: usize,
}

impl Drop for Listed {
    fn drop(&mut self) {
        let waker = lock(&self.part).try_remove(self.key);
        // After the lock: it may be the last that keeps the task's memory.
        drop(waker);
    }
}

fn lock(part: &Part) -> MutexGuard<'_, Slab<Waker>> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LiveTasks {
    /// Puts a task on the list that `make` makes, given what it must keep until its future is dropped, with
    /// the waker that `make` gives.
    pub(super) fn list<R>(&self, turn: usize, make: impl FnOnce(Listed) -> (R, Waker)) -> R {
        let part = &self.parts[turn % PARTS];
        let mut slab = lock(part);
        let entry = slab.vacant_entry();
        let (result, waker) = make(Listed { part: Arc::clone(part), key: entry.key() });
        entry.insert(waker);
        result
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.parts.iter().map(|part| lock(part).len()).sum()
    }

    /// Wakes all of them.
    pub(crate) fn wake_all(&self) {
        for part in &self.parts {
            // None of them is woken under the lock: that may drop it.
            let wakers: Vec<Waker> = lock(part).iter().map(|(_, waker)| waker.clone()).collect();
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}
