//! What a handler may ask of its run, and raising vectors.

use super::handlers::{RaiseError, SoftirqRun};
use crate::machine::Machine;
use quietcore_core::CpuId;
use quietcore_core::softirq::{Runner, Vector, VectorSet};

impl SoftirqRun<'_> {
    /// The CPU that the vector was raised for.
    #[must_use]
    pub const fn cpu(&self) -> CpuId {
        self.cpu
    }

    /// The vector.
    #[must_use]
    pub const fn vector(&self) -> Vector {
        self.vector
    }

    /// Who runs it: the lane, or its ksoftirqd.
    #[must_use]
    pub const fn runner(&self) -> Runner {
        self.runner
    }

    /// The machine.
    #[must_use]
    pub const fn machine(&self) -> &'static Machine {
        Machine::of(self.machine)
    }

    /// Whether the handler should return soon: the time of this round is used up, or on a lane a real-time
    /// task waits. One that has more to do calls [`raise_again`](Self::raise_again) first.
    /// Cost: a look at the clock.
    #[must_use]
    pub fn should_end(&self) -> bool {
        self.must_end_early.must_end_early() || self.machine().now() >= self.until
    }

    /// The vector is pending again for this CPU: it runs in another pass.
    pub fn raise_again(&self) {
        self.machine().raise_known(self.cpu, self.vector.into());
    }
}

impl Machine {
    /// Makes `vectors` pending for `cpu`, one or a set of them; its lane runs them soon. A vector that is
    /// pending already stays so once; one that is being run will be run again. From any thread, also from
    /// handlers and callbacks. Cost: a read-modify-write; 7 us if the lane has to be woken.
    ///
    /// # Errors
    /// See [`RaiseError`].
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
