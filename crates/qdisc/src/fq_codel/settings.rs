//! What an fq_codel is told, and what it cannot be told.

use crate::CodelLaw;
use core::fmt;

/// The most flows that there can be.
const FLOWS_MAX: u32 = 65_536;
/// The most bytes that a flow can send in its turn.
const QUANTUM_MAX: u32 = 1 << 20;

/// What an [`FqCodel`](crate::FqCodel) is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodelSettings {
    /// The major number of its classes, of which `major:1` is the first flow.
    pub major: u16,
    /// Packets that it holds at most.
    pub limit: u32,
    /// How many queues there are, among which flows are spread by their numbers: 1 to 65536.
    pub flows: u32,
    /// Bytes that a flow sends in its turn: 1 to 2^20.
    pub quantum: u32,
    /// Bytes that its packets take at most, of each 256 more than its own.
    pub memory_limit: u32,
    /// Packets that are dropped at once, at most, when there is no room: at least 1.
    pub drop_batch: u32,
    /// What CoDel goes by in each flow.
    pub law: CodelLaw,
}

impl Default for FqCodelSettings {
    /// As Linux and RFC 8290 have it, for packets of up to 1514 bytes.
    fn default() -> Self {
        let law = CodelLaw { ecn: true, ..CodelLaw::default() };
        let (quantum, memory_limit) = (law.mtu, 32 << 20);
        Self { major: 1, limit: 10_240, flows: 1_024, quantum, memory_limit, drop_batch: 64, law }
    }
}

impl FqCodelSettings {
    pub(super) fn check(&self) -> Result<(), FqCodelError> {
        let Self { flows, quantum, drop_batch, .. } = *self;
        if !(1..=FLOWS_MAX).contains(&flows) {
            return Err(FqCodelError::Flows(flows));
        }
        if !(1..=QUANTUM_MAX).contains(&quantum) {
            return Err(FqCodelError::Quantum(quantum));
        }
        if drop_batch == 0 { Err(FqCodelError::DropBatch) } else { Ok(()) }
    }
}

/// Why settings cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FqCodelError {
    /// There cannot be so many flows.
    Flows(u32),
    /// The number of flows stays what it was at first.
    FlowsChanged {
        /// How many there are.
        are: u32,
    },
    /// A turn cannot have so many bytes.
    Quantum(u32),
    /// Nothing is dropped at once.
    DropBatch,
}

impl fmt::Display for FqCodelError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flows(count) => write!(out, "{count} flows: there are 1 to {FLOWS_MAX}"),
            Self::FlowsChanged { are } => {
                write!(out, "there are {are} flows, for as long as it runs; `del` it and add it again")
            }
            Self::Quantum(bytes) => write!(out, "quantum of {bytes} bytes: it is 1 to {QUANTUM_MAX}"),
            Self::DropBatch => write!(out, "a batch of 0 makes no room"),
        }
    }
}

impl core::error::Error for FqCodelError {}
