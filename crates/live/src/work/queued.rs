//! Work as a queue has it.

use crate::machine_ref::MachineRef;
use crate::stall::{Callback, RunningCode};
use crate::task::LastCpu;
use crate::words::work::WorkState;
use core::fmt;
use quietcore_core::CpuId;
use std::sync::Arc;

/// What its clones share.
pub(super) struct WorkInner {
    pub(super) machine: MachineRef,
    pub(super) bound: Option<CpuId>,
    pub(super) last: LastCpu,
    pub(super) state: WorkState,
    /// What a stall report says of it.
    pub(super) callback: &'static Callback,
    pub(super) run: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for WorkInner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bound, state, .. } = self;
        out.debug_struct("Work").field("bound", bound).field("state", state).finish_non_exhaustive()
    }
}

/// Work that waits in a queue.
#[derive(Debug)]
pub(crate) struct Queued(pub(super) Arc<WorkInner>);

impl Queued {
    pub(crate) fn bound_to(&self) -> Option<CpuId> {
        self.0.bound
    }

    pub(crate) fn last(&self) -> CpuId {
        self.0.last.get()
    }

    /// What a lane says that it runs.
    pub(crate) fn running(&self) -> RunningCode {
        RunningCode::of(self.0.callback, 0, None)
    }
}
