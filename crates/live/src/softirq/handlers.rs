//! What a program gives and raises: handlers, and what a handler may know of its run.

use crate::machine::Machine;
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
///
/// ```
/// use quietcore::{Machine, softirq::{RaiseError, Vector}};
///
/// let machine = Machine::builder().lanes("0".parse()?).start()?;
/// let error = machine.raise(quietcore::CpuId::new(0)?, Vector::NET_RX).expect_err("it has no handler");
/// assert_eq!(error.to_string(), "NET_RX has no handler: `MachineBuilder::softirq`");
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RaiseError {
    /// The CPU is not one of the machine's lanes.
    NotALane {
        /// The CPU.
        cpu: CpuId,
    },
    /// No handler was given for these.
    NoHandler {
        /// The vectors.
        vectors: VectorSet,
    },
    /// The machine was shut down, or is a forked parent's.
    NotRunning,
}

impl fmt::Display for RaiseError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotALane { cpu } => write!(out, "CPU {cpu} is not one of this machine's lanes"),
            Self::NoHandler { vectors } => write!(out, "{vectors} has no handler: `MachineBuilder::softirq`"),
            Self::NotRunning => out.write_str("the machine does not run in this process"),
        }
    }
}

impl core::error::Error for RaiseError {}

/// What a handler may know of its run.
///
/// ```
/// use quietcore::{LaneThreads, Machine, softirq::{Runner, Vector}};
/// use std::sync::{Mutex, mpsc};
///
/// let (sender, receiver) = mpsc::channel();
/// let sender = Mutex::new(sender);
/// let builder = Machine::builder().lanes("0".parse()?).lane_threads(LaneThreads::new());
/// let machine = builder
///     .softirq(Vector::TASKLET, move |run| {
///         let seen = (run.cpu().index(), run.vector(), run.runner());
///         sender.lock().expect("no panic").send(seen).expect("somebody waits");
///     })
///     .start()?;
/// machine.raise(quietcore::CpuId::new(0)?, Vector::TASKLET)?;
/// assert_eq!(receiver.recv()?, (0, Vector::TASKLET, Runner::Lane));
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SoftirqRun<'a> {
    pub(super) machine: &'static Machine,
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

impl SoftirqRun<'_> {
    /// The CPU that the vector was raised for.
    ///
    /// ```
    /// # use quietcore::{Machine, softirq::Vector};
    /// let builder = Machine::builder().softirq(Vector::BLOCK, |run| println!("on {}", run.cpu()));
    /// # let _ = builder;
    /// ```
    #[must_use]
    pub const fn cpu(&self) -> CpuId {
        self.cpu
    }

    /// The vector.
    ///
    /// ```
    /// # use quietcore::{Machine, softirq::Vector};
    /// let builder = Machine::builder().softirq(Vector::HI, |run| assert_eq!(run.vector(), Vector::HI));
    /// # let _ = builder;
    /// ```
    #[must_use]
    pub const fn vector(&self) -> Vector {
        self.vector
    }

    /// Who runs it: the lane, or its ksoftirqd.
    ///
    /// ```
    /// # use quietcore::{Machine, softirq::{Runner, Vector}};
    /// let builder = Machine::builder().softirq(Vector::HI, |run| assert_eq!(run.runner(), Runner::Lane));
    /// # let _ = builder;
    /// ```
    #[must_use]
    pub const fn runner(&self) -> Runner {
        self.runner
    }

    /// The machine.
    ///
    /// ```
    /// # use quietcore::{Machine, softirq::Vector};
    /// let builder = Machine::builder().softirq(Vector::RCU, |run| assert!(run.machine().is_running()));
    /// # let _ = builder;
    /// ```
    #[must_use]
    pub const fn machine(&self) -> &'static Machine {
        self.machine
    }

    /// Whether the handler should return soon: the time of this round is used up, or on a lane a real-time
    /// task waits. One that has more to do calls [`raise_again`](Self::raise_again) first.
    /// Cost: a look at the clock.
    ///
    /// ```
    /// # use quietcore::{Machine, softirq::Vector};
    /// let builder = Machine::builder().softirq(Vector::NET_RX, |run| {
    ///     while let Some(packet) = next_packet() {
    ///         drop(packet);
    ///         if run.should_end() {
    ///             return run.raise_again();
    ///         }
    ///     }
    /// });
    /// # fn next_packet() -> Option<u32> { None }
    /// # let _ = builder;
    /// ```
    #[must_use]
    pub fn should_end(&self) -> bool {
        self.must_end_early.must_end_early() || self.machine.now() >= self.until
    }

    /// The vector is pending again for this CPU: it runs in another pass.
    ///
    /// ```
    /// # use quietcore::{Machine, softirq::Vector};
    /// let builder = Machine::builder().softirq(Vector::TASKLET, |run| {
    ///     if run.should_end() {
    ///         run.raise_again();
    ///     }
    /// });
    /// # let _ = builder;
    /// ```
    pub fn raise_again(&self) {
        self.machine.raise_known(self.cpu, self.vector.into());
    }
}

impl Machine {
    /// Makes `vectors` pending for `cpu`, one or a set of them; its lane runs them soon. A vector that is
    /// pending already stays so once; one that is being run will be run again. From any thread, also from
    /// handlers and callbacks. Cost: a read-modify-write; 7 us if the lane has to be woken.
    ///
    /// # Errors
    /// See [`RaiseError`].
    ///
    /// ```
    /// # use quietcore::{LaneThreads, Machine, softirq::{Vector, VectorSet}};
    /// # let builder = Machine::builder().lanes("0".parse()?).lane_threads(LaneThreads::new());
    /// let machine = builder.softirq(Vector::HI, |_| ()).softirq(Vector::RCU, |_| ()).start()?;
    /// machine.raise(quietcore::CpuId::new(0)?, VectorSet::from(Vector::HI).union(Vector::RCU.into()))?;
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn raise(&self, cpu: CpuId, vectors: impl Into<VectorSet>) -> Result<(), RaiseError> {
        let vectors = vectors.into();
        if !self.is_running() {
            return Err(RaiseError::NotRunning);
        }
        if !self.lane_set.contains(cpu) {
            return Err(RaiseError::NotALane { cpu });
        }
        let missing = vectors.difference(self.softirqs.vectors());
        if !missing.is_empty() {
            return Err(RaiseError::NoHandler { vectors: missing });
        }
        self.raise_known(cpu, vectors);
        Ok(())
    }
}
