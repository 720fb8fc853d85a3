//! Who calls, and when.

use crate::{CpuId, Nanos};
use core::fmt;

/// The caller, and the moment of its call.
///
/// It is two words, each written and read as one: it is copied into every call that arms or cancels, and a
/// field that is stored by itself and then loaded as part of something wider makes the processor wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// The CPU, and [`DRIVES`].
    caller: u64,
    now: Nanos,
}

/// Set in `caller` if the calling thread drives the CPU.
const DRIVES: u64 = 1 << 63;

impl Context {
    /// Of the one thread that drives `cpu`.
    #[must_use]
    pub const fn on(cpu: CpuId, now: Nanos) -> Self {
        Self { caller: cpu.0 as u64 | DRIVES, now }
    }

    /// Of any other thread, which happens to be on `cpu`.
    #[must_use]
    pub const fn near(cpu: CpuId, now: Nanos) -> Self {
        Self { caller: cpu.0 as u64, now }
    }

    /// The CPU that the calling thread drives, or the one that it happens to run on.
    #[must_use]
    pub const fn cpu(self) -> CpuId {
        CpuId(self.caller as u16)
    }

    /// Whether it drives that CPU.
    #[must_use]
    pub const fn is_cpu(self) -> bool {
        self.caller & DRIVES != 0
    }

    /// The CPU that the calling thread drives.
    #[must_use]
    pub const fn own_cpu(self) -> Option<CpuId> {
        if self.is_cpu() { Some(self.cpu()) } else { None }
    }

    /// The moment, in ns.
    #[must_use]
    pub const fn now(self) -> Nanos {
        self.now
    }

    /// Of the thread that drives `cpu`, or of one that drives none.
    #[cfg(test)]
    pub(crate) fn by(cpu: Option<CpuId>, now: Nanos) -> Self {
        cpu.map_or(Self::near(CpuId(0), now), |cpu| Self::on(cpu, now))
    }

    /// The same call, as if from `cpu`.
    pub(crate) const fn of(self, cpu: CpuId) -> Self {
        Self { caller: cpu.0 as u64 | (self.caller & DRIVES), now: self.now }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut context = out.debug_struct("Context");
        context.field("cpu", &self.cpu()).field("is_cpu", &self.is_cpu()).field("now", &self.now).finish()
    }
}
