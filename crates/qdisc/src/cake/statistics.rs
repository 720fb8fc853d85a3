//! What a cake has counted, in the words of `tc -s`.

use quietcore_core::Nanos;

/// What a [`Cake`](crate::Cake) has counted, and holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CakeStatistics {
    /// The most bytes of memory that packets took.
    pub memory_used: u64,
    /// Those that they may take.
    pub memory_limit: u32,
    /// Bytes per second that arrive; without `autorate_ingress`, those of the first settings.
    pub capacity_estimate: u64,
    /// The smallest and the largest packet, before what the link adds; 65535 and 0 of none.
    pub network_size: (u32, u32),
    /// The same with it.
    pub adjusted_size: (u32, u32),
    /// Bytes of the link's header, a mean that moves.
    pub header: u32,
    /// Of each tin, in the order of `tc`.
    pub tins: alloc::vec::Vec<CakeTinStatistics>,
}

/// What a tin of a [`Cake`](crate::Cake) has counted, and holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CakeTinStatistics {
    /// Bytes per second up to which it goes before others; 0 without a rate.
    pub threshold: u64,
    /// The delay that is fine.
    pub target: Nanos,
    /// How long no delay was fine when it begins to drop.
    pub interval: Nanos,
    /// The delay of packets, a mean that follows what rises.
    pub peak_delay: Nanos,
    /// The same that follows slowly.
    pub average_delay: Nanos,
    /// The same that follows what falls.
    pub base_delay: Nanos,
    /// Bytes that are queued.
    pub backlog: u64,
    /// Packets that arrived.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets of flows that were in another queue than their home.
    pub way_indirect_hits: u64,
    /// Packets whose flow had no queue yet.
    pub way_misses: u64,
    /// Packets whose flow had to share one.
    pub way_collisions: u64,
    /// Packets that were dropped, for whatever.
    pub drops: u64,
    /// Packets that were marked instead.
    pub ecn_marks: u64,
    /// Acknowledgements that were dropped because a later one says the same.
    pub ack_drops: u64,
    /// Flows that have little, and those that had something lately.
    pub sparse_flows: u64,
    /// Flows that have more than a turn.
    pub bulk_flows: u64,
    /// Queues that do not answer to drops.
    pub unresponsive_flows: u64,
    /// The longest packet.
    pub longest_packet: u32,
    /// Bytes of a flow's turn.
    pub flow_quantum: u32,
}

/// A flow of a [`Cake`](crate::Cake), as `tc -s class show` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CakeFlow {
    /// Packets and bytes that are queued, and packets that were dropped.
    pub statistics: crate::Statistics,
    /// Bytes that it may send before others have their turn.
    pub deficit: i64,
    /// Drops and marks that are remembered.
    pub count: u32,
    /// The probability of a drop, in parts of 2^32.
    pub drop_probability: u32,
    /// How long that is so.
    pub blue_timer: Nanos,
    /// Nanoseconds since the next drop was due, below 0 if it is still ahead, while it drops.
    pub drop_next: Option<i64>,
}
