//! What a cake is told.

use core::fmt;
use quietcore_core::Nanos;

/// The longest packet of an Ethernet device, its header included.
const ETHERNET_PACKET: u32 = 1_514;
/// The range of overheads that `tc` takes.
pub(super) const OVERHEAD: core::ops::RangeInclusive<i32> = -64..=256;
/// The largest packet that the smallest can count as.
pub(super) const MPU_MAX: u32 = 256;

/// How packets are spread over tins, by their DSCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CakeTins {
    /// One for all.
    BestEffort,
    /// Eight, by the three upper bits.
    Precedence,
    /// Bulk, best effort, voice.
    #[default]
    Diffserv3,
    /// Bulk, best effort, video, voice.
    Diffserv4,
    /// Eight, by kinds of applications.
    Diffserv8,
}

/// What shares a queue, and among what queues share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CakeIsolation {
    /// All packets of a tin share one queue.
    FlowBlind,
    /// What one address sends.
    SourceHost,
    /// What is sent to one address.
    DestinationHost,
    /// What one address sends to another.
    Hosts,
    /// What belongs to one connection.
    Flows,
    /// The same, and addresses that send share before connections do.
    DualSourceHost,
    /// The same of addresses to which is sent.
    DualDestinationHost,
    /// Both, whichever has more connections.
    #[default]
    Triple,
}

impl CakeIsolation {
    /// Whether each connection has a queue.
    pub(super) const fn has_flows(self) -> bool {
        matches!(self, Self::Flows | Self::DualSourceHost | Self::DualDestinationHost | Self::Triple)
    }

    /// Whether addresses that send share.
    pub(super) const fn shares_sources(self) -> bool {
        matches!(self, Self::DualSourceHost | Self::Triple)
    }

    /// Whether addresses to which is sent share.
    pub(super) const fn shares_destinations(self) -> bool {
        matches!(self, Self::DualDestinationHost | Self::Triple)
    }
}

/// Whether acknowledgements of TCP are dropped that later ones of the same queue say again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CakeAckFilter {
    /// None is.
    #[default]
    Off,
    /// The earlier of two that are queued before a later one.
    Conservative,
    /// The same, and one that is queued right before a later one.
    Aggressive,
}

/// In which units a link carries packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CakeCells {
    /// Bytes.
    #[default]
    Plain,
    /// Cells that carry 48 bytes and take 53.
    Atm,
    /// One byte more for every 64, begun ones included.
    Ptm,
}

/// What a link adds to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CakeFraming {
    /// Whether the link header counts that packets have here.
    pub raw: bool,
    /// Bytes that are added to each packet: -64 to 256.
    pub overhead: i32,
    /// Bytes that a packet counts at least: at most 256.
    pub mpu: u32,
    /// In which units packets are carried.
    pub cells: CakeCells,
}

impl Default for CakeFraming {
    /// Packets count as they are.
    fn default() -> Self {
        Self { raw: true, overhead: 0, mpu: 0, cells: CakeCells::Plain }
    }
}

/// What a [`Cake`](crate::Cake) is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CakeSettings {
    /// The major number of its name: a packet's priority `major:N` names the N-th tin.
    pub major: u16,
    /// Bytes per second; of nothing, packets leave as fast as they are asked for.
    pub bandwidth: Option<u64>,
    /// Whether the bandwidth follows what arrives.
    pub autorate_ingress: bool,
    /// The round trip time of what passes: at least 1 ns.
    pub interval: Nanos,
    /// The delay that is fine: at least 1 ns.
    pub target: Nanos,
    /// How packets are spread over tins.
    pub tins: CakeTins,
    /// What shares a queue.
    pub isolation: CakeIsolation,
    /// Whether packets leave without their DSCP.
    pub wash: bool,
    /// Whether acknowledgements are dropped.
    pub ack_filter: CakeAckFilter,
    /// Whether pieces of a stream are cut into packets before they are queued.
    pub split_gso: bool,
    /// Whether packets that are dropped count for the shaper, too, as on the far side of a link they passed.
    pub ingress: bool,
    /// What the link adds.
    pub framing: CakeFraming,
    /// Bytes of memory that packets take at most; of nothing, four times what passes in `interval`, at least
    /// 4 MiB.
    pub memory_limit: Option<u32>,
    /// Of a packet's mark, the bits that name a tin, the first being 1.
    pub fwmark: u32,
    /// Bytes of the device's longest packet.
    pub mtu: u32,
}

impl Default for CakeSettings {
    /// As Linux has it, on an Ethernet device.
    fn default() -> Self {
        Self {
            major: 1,
            bandwidth: None,
            autorate_ingress: false,
            interval: Nanos(100_000_000),
            target: Nanos(5_000_000),
            tins: CakeTins::default(),
            isolation: CakeIsolation::default(),
            wash: false,
            ack_filter: CakeAckFilter::Off,
            split_gso: true,
            ingress: false,
            framing: CakeFraming::default(),
            memory_limit: None,
            fwmark: 0,
            mtu: ETHERNET_PACKET,
        }
    }
}

impl CakeSettings {
    pub(super) fn check(&self) -> Result<(), CakeError> {
        let CakeFraming { overhead, mpu, .. } = self.framing;
        if !OVERHEAD.contains(&overhead) {
            return Err(CakeError::Overhead(overhead));
        }
        if mpu > MPU_MAX {
            return Err(CakeError::Mpu(mpu));
        }
        if self.interval.0 == 0 || self.target.0 == 0 { Err(CakeError::NoTime) } else { Ok(()) }
    }
}

/// Why settings cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CakeError {
    /// A link cannot add so many bytes.
    Overhead(i32),
    /// The smallest packet cannot count as so many bytes.
    Mpu(u32),
    /// The interval or the target is 0.
    NoTime,
}

impl fmt::Display for CakeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overhead(bytes) => {
                write!(out, "overhead of {bytes} bytes: it is {} to {}", OVERHEAD.start(), OVERHEAD.end())
            }
            Self::Mpu(bytes) => write!(out, "mpu of {bytes} bytes: it is 0 to {MPU_MAX}"),
            Self::NoTime => write!(out, "an interval or a target of 0: each is at least 1 ns"),
        }
    }
}

impl core::error::Error for CakeError {}
