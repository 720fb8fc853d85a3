//! Settings of a device, and why there is no device.

use super::losses::SystemLosses;
use core::fmt;
use quietcore_live::CpuSet;
use quietcore_qdisc::PacketOrigin;
use std::sync::Arc;

/// Whether a queue's watchdog stays with the CPU that arms it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watchdog {
    /// As Linux's since version 3.18.
    #[default]
    Pinned,
    /// Where the machine's policy puts it.
    Movable,
}

/// Bytes that the packets of a queue may take, unless told otherwise: 64 MiB.
const MEMORY_MAX: u64 = 64 << 20;

/// What a device has.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    pub(super) queues: usize,
    pub(super) map: Option<Vec<CpuSet>>,
    pub(super) watchdog: Watchdog,
    pub(super) memory_max: u64,
    pub(super) losses_ahead: Option<Arc<SystemLosses>>,
    pub(super) origin: PacketOrigin,
}

impl DeviceOptions {
    /// A device with so many transmit queues, dealt out to the lanes in turns.
    #[must_use]
    pub const fn new(queues: usize) -> Self {
        Self {
            queues,
            map: None,
            watchdog: Watchdog::Pinned,
            memory_max: MEMORY_MAX,
            losses_ahead: None,
            origin: PacketOrigin::Program,
        }
    }

    /// XPS: the CPUs of each queue, as in the files `xps_cpus`. A CPU of several queues sends through the one
    /// that a packet's flow picks; one of none through any.
    #[must_use]
    pub fn transmit_map(self, map: Vec<CpuSet>) -> Self {
        Self { map: Some(map), ..self }
    }

    /// Whether watchdogs stay where they are armed. Default: yes.
    #[must_use]
    pub const fn watchdog(mut self, watchdog: Watchdog) -> Self {
        self.watchdog = watchdog;
        self
    }

    /// How many bytes the packets of a queue may take, about; those above it are dropped and counted
    /// ([`QueueStatistics::over_memory`](crate::QueueStatistics::over_memory)). Default: 64 MiB. Limits of
    /// disciplines are of packets, whose length their senders choose.
    #[must_use]
    pub const fn memory_max(mut self, bytes: u64) -> Self {
        self.memory_max = bytes;
        self
    }

    /// Where its packets come from: lines of `tc` whose options rest on what those cannot tell are refused.
    /// Default: from the program. A [`Relay`](crate::Relay)'s devices and those of TUN interfaces have
    /// [`PacketOrigin::Bytes`].
    #[must_use]
    pub const fn origin(mut self, origin: PacketOrigin) -> Self {
        self.origin = origin;
        self
    }

    /// What the system lost before the device sees it.
    pub(super) fn losses_ahead(self, losses: Option<Arc<SystemLosses>>) -> Self {
        Self { losses_ahead: losses, ..self }
    }
}

/// Why a device cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceError {
    /// It has no queues.
    NoQueues,
    /// The machine has no lanes.
    NoLanes,
    /// The map is not of as many queues as there are.
    MapLength {
        /// Entries of the map.
        entries: usize,
        /// Queues of the device.
        queues: usize,
    },
    /// A queue's CPUs are none of the machine's lanes.
    NotLanes {
        /// The queue.
        queue: usize,
        /// Its CPUs.
        cpus: CpuSet,
    },
}

impl fmt::Display for DeviceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoQueues => out.write_str("a device has one queue at least"),
            Self::NoLanes => out.write_str("the machine has no lanes: `MachineBuilder::lanes`"),
            Self::MapLength { entries, queues } => {
                write!(out, "a transmit map of {entries} entries for {queues} queues")
            }
            Self::NotLanes { queue, cpus } => {
                write!(out, "none of the CPUs {cpus} of queue {queue} is a lane of the machine")
            }
        }
    }
}

impl core::error::Error for DeviceError {}
