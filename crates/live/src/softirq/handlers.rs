//! What a program gives and raises: handlers, and what a handler may know of its run.

use crate::machine_ref::MachineRef;
use core::fmt;
use quietcore_core::softirq::{Runner, Vector, VectorSet};
use quietcore_core::{CpuId, Nanos};
use std::sync::Arc;

type Handler = Arc<dyn Fn(&SoftirqRun<'_>) + Send + Sync>;

/// The handlers of a machine.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    handlers: [Option<Handler>; 16],
    /// Those that have one.
    vectors: VectorSet,
}

impl fmt::Debug for Handlers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.vectors, out)
    }
}

impl Handlers {
    pub(crate) fn set(&mut self, vector: Vector, handler: Handler) {
        self.handlers[vector.index()] = Some(handler);
        self.vectors = self.vectors.union(vector.into());
    }

    pub(crate) const fn vectors(&self) -> VectorSet {
        self.vectors
    }

    pub(super) fn get(&self, vector: Vector) -> Option<&Handler> {
        self.handlers[vector.index()].as_ref()
    }
}

/// Why vectors were not raised. None of them was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RaiseError {
    /// The CPU is not one of the machine's lanes.
    #[error("CPU {cpu} is not one of this machine's lanes")]
    NotALane {
        /// The CPU.
        cpu: CpuId,
    },
    /// No handler was given for these.
    #[error("{vectors} has no handler: `MachineBuilder::softirq`")]
    NoHandler {
        /// The vectors.
        vectors: VectorSet,
    },
    /// The machine was shut down, or is a forked parent's.
    #[error("the machine does not run in this process")]
    NotRunning,
}

/// What a handler may know of its run.
///
/// ```
/// use quietcore::{LaneThreads, Machine, softirq::{Runner, Vector}};
/// use std::sync::mpsc;
///
/// let (sender, receiver) = mpsc::channel();
/// let builder = Machine::builder().lanes("0".parse()?).lane_threads(LaneThreads::new());
/// let machine = builder
///     .softirq(Vector::TASKLET, move |run| {
///         let seen = (run.cpu().index(), run.vector(), run.runner());
///         sender.send(seen).expect("a thread waits");
///     })
///     .start()?;
/// machine.raise(quietcore::CpuId::new(0)?, Vector::TASKLET)?;
/// assert_eq!(receiver.recv()?, (0, Vector::TASKLET, Runner::Lane));
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SoftirqRun<'a> {
    pub(super) machine: MachineRef,
    pub(super) cpu: CpuId,
    pub(super) vector: Vector,
    pub(super) runner: Runner,
    /// When the round's time is used up.
    pub(super) until: Nanos,
    pub(super) must_end_early: &'a dyn EndEarly,
}

/// Whether something waits that a handler holds up.
pub(super) trait EndEarly: fmt::Debug {
    fn must_end_early(&self) -> bool;
}
