//! Where a lane leaves what it found, without waiting for a subscriber.

use super::found::Found;
use crate::stall::StallReport;
use quietcore_core::CpuId;

/// What waits to be told.
#[derive(Debug, Default)]
pub(crate) struct Events {
    #[cfg(feature = "tracing")]
    pub(super) queue: super::queue::FoundQueue,
}

impl Events {
    /// From a turn.
    pub(crate) fn stalled(&self, report: StallReport) {
        self.find(Found::Stall(report));
    }

    /// From a turn: a callback or a waker panicked on `cpu`.
    pub(crate) fn panicked(&self, cpu: CpuId) {
        self.find(Found::Panic(cpu));
    }

    #[cfg(feature = "tracing")]
    fn find(&self, found: Found) {
        self.queue.push(found);
    }

    #[cfg(not(feature = "tracing"))]
    #[expect(clippy::unused_self, reason = "the feature `tracing` has a queue")]
    fn find(&self, _found: Found) {}

    /// The machine ends: what waits is told, and the thread ends.
    pub(crate) fn end(&self) {
        #[cfg(feature = "tracing")]
        self.queue.end();
    }
}
