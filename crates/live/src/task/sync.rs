//! The words of a task: where it ran last, and whether it is to end.

use crate::words::sync::{AtomicU8, AtomicU32, Ordering};
use quietcore_core::CpuId;

/// Where a task ran last.
#[derive(Debug)]
pub(crate) struct LastCpu(AtomicU32);

impl LastCpu {
    pub(crate) fn new(cpu: CpuId) -> Self {
        Self(AtomicU32::new(cpu.index() as u32))
    }

    pub(crate) fn get(&self) -> CpuId {
        // Relaxed: a hint for who places it.
        CpuId::new(self.0.load(Ordering::Relaxed).into()).expect("only CPUs are stored")
    }

    /// Says where it was.
    pub(crate) fn replace(&self, cpu: CpuId) -> CpuId {
        let before = self.get();
        if before != cpu {
            // Relaxed: see `get`.
            self.0.store(cpu.index() as u32, Ordering::Relaxed);
        }
        before
    }
}

/// Whether a thread wants a task to end.
#[derive(Debug)]
pub(super) struct Aborted(AtomicU8);

impl Aborted {
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    pub(super) fn set(&self) {
        // Relaxed: the wake-up that follows hands it to the thread that runs the task next.
        self.0.store(1, Ordering::Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        // Relaxed: see `set`.
        self.0.load(Ordering::Relaxed) != 0
    }
}
