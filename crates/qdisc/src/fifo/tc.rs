//! `pfifo` and `bfifo` in `tc`: the options, their defaults, what is shown.
//!
//! Source: tc-pfifo(8), and `tc` by behaviour.

use super::{Fifo, FifoLimit, PFIFO_LIMIT};
use crate::Packet;
use crate::classful::{Classful, TcDescription};
use crate::kind::{QdiscContext, QdiscKind};
use crate::refusal::TcRefusal;
use crate::tc::table::{Complete, options};
use crate::tc::units::Bytes;
use crate::tc::{TcProperties, TcValue};
use core::fmt::Debug;

/// Bytes of a `bfifo` without a limit: a `pfifo`'s packets, of Ethernet.
const BFIFO_LIMIT: u32 = PFIFO_LIMIT * 1514;

options! {
    /// What was typed behind `pfifo`.
    pub struct PfifoOptions of "pfifo" {
        /// Packets that it holds at most.
        limit: u32 = "limit",
    }
}

options! {
    /// What was typed behind `bfifo`.
    pub struct BfifoOptions of "bfifo" {
        /// Bytes that it holds at most.
        limit: Bytes = "limit",
    }
}

impl Complete for PfifoOptions {}
impl Complete for BfifoOptions {}

impl FifoLimit {
    /// What `tc` shows of it.
    #[must_use]
    pub fn describe(self) -> TcDescription {
        let mut options = TcProperties::default();
        match self {
            Self::Packets(packets) => options.add("limit", "limit {}p", packets),
            Self::Bytes(bytes) => options.add("limit", "limit {}", TcValue::size(bytes)),
        }
        TcDescription { options, ..TcDescription::default() }
    }
}

impl<P: Packet + Debug + Send> Classful<P> for Fifo<P> {}

/// What the two kinds differ in.
trait FifoOptions {
    fn told(&self) -> FifoLimit;
}

impl FifoOptions for PfifoOptions {
    fn told(&self) -> FifoLimit {
        FifoLimit::Packets(self.limit.unwrap_or(PFIFO_LIMIT))
    }
}

impl FifoOptions for BfifoOptions {
    fn told(&self) -> FifoLimit {
        FifoLimit::Bytes(u64::from(self.limit.map_or(BFIFO_LIMIT, |limit| limit.0)))
    }
}

impl<P: Packet + Debug + Send, O: FifoOptions> QdiscKind<P> for O {
    type Made = Fifo<P>;

    fn make(&self, _: &QdiscContext) -> Result<Fifo<P>, TcRefusal> {
        Ok(Fifo::new(self.told()))
    }

    fn change(self, queue: &mut Fifo<P>, _: &Self, _: &QdiscContext) -> Result<Self, TcRefusal> {
        queue.set_limit(self.told());
        Ok(self)
    }

    fn describe(&self, queue: &Fifo<P>) -> TcDescription {
        queue.limit().describe()
    }
}
