//! The words of a machine that its callers read without a lock: whether it lives, and where they arm.

use crate::stall::RecordLocations;
use core::sync::atomic::{AtomicU8, AtomicU16, Ordering};
use quietcore_core::CpuId;

/// Whether a machine takes arms.
#[derive(Debug)]
pub(super) struct Life {
    word: AtomicU8,
    /// Forks of this process's ancestors when it was made.
    forks: u32,
}

/// In the order in which a machine can come to them.
const RUNNING: u8 = 0;
/// Running, and timers keep where they are armed.
const RECORDS_LOCATIONS: u8 = 1;
/// The helper died of a bug of ours.
const BROKEN: u8 = 2;
const SHUT_DOWN: u8 = 3;

impl Life {
    pub(super) fn new(locations: RecordLocations) -> Self {
        let word = if locations == RecordLocations::Yes { RECORDS_LOCATIONS } else { RUNNING };
        // Relaxed: no other thread has the word yet.
        Self { word: AtomicU8::new(word), forks: crate::fork::count() }
    }

    #[inline]
    pub(super) fn is_running(&self) -> bool {
        // Relaxed: an arm that comes at the same moment as a shutdown may win.
        self.word.load(Ordering::Relaxed) <= RECORDS_LOCATIONS
    }

    /// Whether it ended by a bug of ours.
    pub(super) fn is_broken(&self) -> bool {
        // Relaxed: see `is_running`.
        self.word.load(Ordering::Relaxed) == BROKEN
    }

    /// Whether it is, and arm locations are not recorded.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        // Relaxed: see `is_running`.
        self.word.load(Ordering::Relaxed) == RUNNING
    }

    /// Whether this process is a child that got the machine by a fork, without its threads.
    #[inline]
    pub(super) fn is_forked(&self) -> bool {
        crate::fork::count() != self.forks
    }

    /// Says whether it was running.
    pub(super) fn shut_down(&self) -> bool {
        // Release: pairs with Acquire in `is_over`: who joins the threads sees what was done before.
        self.word.swap(SHUT_DOWN, Ordering::Release) <= RECORDS_LOCATIONS
    }

    /// Says whether it was running. One that was shut down stays so.
    pub(super) fn break_down(&self) -> bool {
        // Release: as in `shut_down`.
        self.word.fetch_max(BROKEN, Ordering::Release) <= RECORDS_LOCATIONS
    }

    pub(super) fn is_over(&self) -> bool {
        // Acquire: pairs with Release in `shut_down` and `break_down`.
        self.word.load(Ordering::Acquire) >= BROKEN
    }
}

/// For every CPU of the host the CPU of the machine on whose GUEST base its threads arm.
#[derive(Debug)]
pub(crate) struct Hosts {
    table: Box<[AtomicU16]>,
}

impl Hosts {
    /// For CPUs below `count`, at least one, whose threads arm on `all`.
    pub(super) fn new(count: usize, all: CpuId) -> Self {
        Self { table: (0..count).map(|_| AtomicU16::new(all.index() as u16)).collect() }
    }

    /// Where a thread on CPU `number` arms; beyond the table as if on CPU 0.
    #[inline]
    pub(crate) fn near(&self, number: usize) -> CpuId {
        let entry = self.table.get(number).unwrap_or(&self.table[0]);
        // Relaxed: a choice that may be out of date; the core looks again after the arm.
        let number = entry.load(Ordering::Relaxed);
        CpuId::new(u64::from(number)).expect("the table holds CPUs")
    }

    /// Writes the table anew.
    pub(super) fn fill(&self, near: impl Fn(CpuId) -> Option<CpuId>) {
        for (number, entry) in self.table.iter().enumerate() {
            let Ok(cpu) = CpuId::new(number as u64) else { continue };
            if let Some(host) = near(cpu) {
                // Relaxed: see `near`.
                entry.store(host.index() as u16, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Life;
    use crate::stall::RecordLocations;

    /// Goal: the end of a machine is told once, to the first that ends it, and its own threads see it,
    /// whether it recorded locations or not. Method: a helper that dies, and a shutdown, before and after
    /// each other.
    #[test]
    fn an_end_is_told_once() {
        for locations in [RecordLocations::No, RecordLocations::Yes] {
            let life = Life::new(locations);
            assert!(life.is_running() && !life.is_over());
            assert!(life.break_down(), "{locations:?}: it was running");
            assert!(life.is_over() && life.is_broken());
            assert!(!life.break_down() && !life.shut_down());
            let life = Life::new(locations);
            assert!(life.shut_down(), "{locations:?}: it was running");
            assert!(life.is_over() && !life.is_broken());
            assert!(!life.shut_down() && !life.break_down());
        }
    }
}
