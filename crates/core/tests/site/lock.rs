//! The lock of virtual CPUs: who finds it held hands the baton on.
//!
//! Locks are numbered in the order in which they are made, so that a world can name them. On a thread that is
//! no virtual CPU (a test that sets a world up, or looks at the end) a held lock is a mistake.

use crate::stage;
use quietcore_core::RawLock;
use quietcore_core::tmigr::Tree;
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

thread_local! {
    static MADE: Cell<usize> = const { Cell::new(0) };
}

/// Numbers begin at 0 again.
pub(crate) fn restart_numbers() {
    MADE.set(0);
}

/// What a mutex of the test itself protects, also after a failed run.
pub(crate) fn plain<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which lock has which number. A tree makes the locks of its groups' events, of its CPUs' records and of
/// growth; those of the bases come after it, and that of control last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LockNumbers {
    records: usize,
    growth: usize,
    control: usize,
    bases_per_cpu: usize,
}

impl LockNumbers {
    /// Of the world whose tree has `cpus` CPUs, after this thread has made the tree and `later` locks.
    pub(crate) fn new(cpus: usize, later: usize, bases_per_cpu: usize) -> Self {
        let growth = MADE.get() - later - 1;
        Self { records: growth - cpus, growth, control: growth + 1 + cpus * bases_per_cpu, bases_per_cpu }
    }

    /// Locks of a lower rank are taken first: control, growth, bases by their numbers, records, events from
    /// below. Growth is early as it may be wanted by a thread that holds nothing.
    pub(crate) fn rank(self, lock: usize, tree: &Tree) -> usize {
        match lock {
            _ if lock < self.records => {
                let level = tree.groups().get(lock).map_or(0, |group| usize::from(group.level));
                self.control + 1 + level
            }
            _ if lock < self.growth => self.control,
            _ if lock < self.control => 1 + lock - self.growth,
            _ => 0,
        }
    }

    /// Whose base or record it is the lock of.
    pub(crate) fn cpu(self, lock: usize) -> Option<usize> {
        match lock {
            _ if (self.records..self.growth).contains(&lock) => Some(lock - self.records),
            _ if lock > self.growth && lock < self.control => {
                Some((lock - self.growth - 1) / self.bases_per_cpu)
            }
            _ => None,
        }
    }

    pub(crate) fn name(self, lock: usize) -> String {
        match lock {
            _ if lock < self.records => format!("events of group {lock}"),
            _ if lock < self.growth => format!("record of CPU {}", lock - self.records),
            _ if lock == self.growth => "growth".to_owned(),
            _ if lock < self.control => {
                let base = lock - self.growth - 1;
                format!("base {} of CPU {}", base % self.bases_per_cpu, base / self.bases_per_cpu)
            }
            _ => "control".to_owned(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct SiteLock {
    number: usize,
    is_held: Mutex<bool>,
}

impl Default for SiteLock {
    fn default() -> Self {
        let number = MADE.get();
        MADE.set(number + 1);
        Self { number, is_held: Mutex::new(false) }
    }
}

impl SiteLock {
    fn take(&self) -> bool {
        !std::mem::replace(&mut *plain(&self.is_held), true)
    }
}

// SAFETY: one thread at a time moves, and `take` says true once until `unlock`. While an exploration is given
// up, its threads only unwind; they do not take locks any more.
unsafe impl RawLock for SiteLock {
    fn lock_owner(&self) {
        self.lock_remote();
    }

    fn lock_remote(&self) {
        stage::before_lock(self.number);
        while !self.take() {
            stage::blocked_by(self.number);
        }
        stage::took(self.number);
    }

    fn try_lock_remote(&self) -> bool {
        stage::before_lock(self.number);
        let is_mine = self.take();
        if is_mine {
            stage::took(self.number);
        }
        is_mine
    }

    fn unlock(&self) {
        *plain(&self.is_held) = false;
        stage::gave_back(self.number);
    }
}
