//! `flower`: fields of headers by their names.
//!
//! What a packet does not have is 0, as in the kernel's flow dissector. Fragments, the first one included,
//! have no ports, flags of TCP or ICMP type. Source: tc-flower(8); Linux 6.12 net/sched/cls_flower.c,
//! net/core/flow_dissector.c, by behaviour. Deviation: what is behind an authentication header of IPv6 is
//! found.

use super::bytes_at;
use crate::IpHeader;
use core::net::IpAddr;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const ICMPV6: u8 = 58;
/// The flags in the last two bytes of the fourth word of TCP's header.
const TCP_FLAGS: u16 = 0x0fff;

/// An address of which the first bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowerAddress {
    /// The address.
    pub address: IpAddr,
    /// How many of its bits count.
    pub length: u8,
}

impl FlowerAddress {
    /// The bits that count, the others 0.
    fn masked(self) -> (bool, u128) {
        let (is_v4, bits) = widened(self.address);
        (is_v4, bits & u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0))
    }

    fn is_met(self, address: IpAddr) -> bool {
        Self { address, ..self }.masked() == self.masked()
    }
}

/// Whether it is one of IPv4, and its bits from the first one on.
fn widened(address: IpAddr) -> (bool, u128) {
    match address {
        IpAddr::V4(address) => (true, u128::from(address.to_bits()) << 96),
        IpAddr::V6(address) => (false, address.to_bits()),
    }
}

/// A value and the bits of it that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowerField<T> {
    /// What it has to be, where the mask has ones.
    pub value: T,
    /// Which bits count.
    pub mask: T,
}

impl FlowerField<u16> {
    const fn is_met(self, value: u16) -> bool {
        (value ^ self.value) & self.mask == 0
    }
}

impl FlowerField<u8> {
    const fn is_met(self, value: u8) -> bool {
        (value ^ self.value) & self.mask == 0
    }
}

/// Ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowerPort {
    /// One, or as many as the mask leaves.
    Masked(FlowerField<u16>),
    /// From the first to the last.
    Range {
        /// The lowest.
        low: u16,
        /// The highest, which is higher.
        high: u16,
    },
}

impl FlowerPort {
    fn is_met(self, port: u16) -> bool {
        match self {
            Self::Masked(field) => field.is_met(port),
            Self::Range { low, high } => (low..=high).contains(&port),
        }
    }
}

/// What has to be true of a packet; of what is not named nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowerKeys {
    /// What the IP packet carries.
    pub ip_protocol: Option<u8>,
    /// Type of service, or traffic class.
    pub tos: Option<FlowerField<u8>>,
    /// Time to live, or hop limit.
    pub ttl: Option<FlowerField<u8>>,
    /// Where it goes.
    pub destination: Option<FlowerAddress>,
    /// Where it comes from.
    pub source: Option<FlowerAddress>,
    /// The port to which it goes.
    pub destination_port: Option<FlowerPort>,
    /// The port from which it comes.
    pub source_port: Option<FlowerPort>,
    /// The flags of TCP.
    pub tcp_flags: Option<FlowerField<u16>>,
    /// ICMP's type.
    pub icmp_type: Option<u8>,
    /// ICMP's code.
    pub icmp_code: Option<u8>,
    /// Whether it is a fragment.
    pub fragment: Option<bool>,
    /// Whether it is the first fragment.
    pub first_fragment: Option<bool>,
}

/// What a packet has of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fields {
    ports: (u16, u16),
    tcp_flags: u16,
    icmp: [u8; 2],
}

impl Fields {
    fn new(network: &[u8], header: &IpHeader) -> Self {
        let payload = header.payload.filter(|_| !header.fragment).map(usize::from);
        let two = |protocols: [u8; 2], offset: usize| {
            let at = payload.filter(|_| protocols.contains(&header.protocol))? + offset;
            bytes_at::<2>(network, i64::try_from(at).ok()?)
        };
        Self {
            ports: header.ports.filter(|_| !header.fragment).unwrap_or_default(),
            tcp_flags: two([TCP, TCP], 12).map_or(0, u16::from_be_bytes) & TCP_FLAGS,
            icmp: two([ICMP, ICMPV6], 0).unwrap_or_default(),
        }
    }
}

impl FlowerKeys {
    /// Whether all is true of a packet.
    ///
    /// Cost: one pass over its headers.
    #[must_use]
    pub fn is_met(&self, network: &[u8]) -> bool {
        let looks_at_nothing = *self == Self::default();
        let Some(header) = IpHeader::parse(network) else { return looks_at_nothing };
        let fields = Fields::new(network, &header);
        let is_first = header.fragment && header.payload.is_some();
        let byte = |wanted: Option<u8>, found| wanted.is_none_or(|wanted| wanted == found);
        byte(self.ip_protocol, header.protocol)
            && self.tos.is_none_or(|tos| tos.is_met(header.traffic_class))
            && self.ttl.is_none_or(|ttl| ttl.is_met(header.hop_limit))
            && self.destination.is_none_or(|wanted| wanted.is_met(header.destination))
            && self.source.is_none_or(|wanted| wanted.is_met(header.source))
            && self.destination_port.is_none_or(|port| port.is_met(fields.ports.1))
            && self.source_port.is_none_or(|port| port.is_met(fields.ports.0))
            && self.tcp_flags.is_none_or(|flags| flags.is_met(fields.tcp_flags))
            && byte(self.icmp_type, fields.icmp[0])
            && byte(self.icmp_code, fields.icmp[1])
            && self.fragment.is_none_or(|wanted| wanted == header.fragment)
            && self.first_fragment.is_none_or(|wanted| wanted == is_first)
    }

    /// Whether it looks at the same bits as `other`: such filters are asked together.
    #[must_use]
    pub fn looks_at_as(&self, other: &Self) -> bool {
        self.mask() == other.mask()
    }

    /// Whether it is true of the same packets, by the same bits.
    #[must_use]
    pub fn is_as(&self, other: &Self) -> bool {
        self.looks_at_as(other) && self.masked() == other.masked()
    }

    /// The same with all values 0, so that only what it looks at is left.
    fn mask(&self) -> Self {
        let byte = |field: Option<FlowerField<u8>>| {
            field.map(|FlowerField { mask, .. }| FlowerField { value: 0, mask })
        };
        let port = |port: Option<FlowerPort>| {
            port.map(|port| match port {
                FlowerPort::Masked(field) => FlowerPort::Masked(FlowerField { value: 0, ..field }),
                FlowerPort::Range { .. } => FlowerPort::Range { low: 0, high: u16::MAX },
            })
        };
        let address = |address: Option<FlowerAddress>| {
            address.map(|FlowerAddress { address, length }| FlowerAddress {
                address: match address {
                    IpAddr::V4(_) => IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED),
                    IpAddr::V6(_) => IpAddr::V6(core::net::Ipv6Addr::UNSPECIFIED),
                },
                length,
            })
        };
        Self {
            ip_protocol: self.ip_protocol.map(|_| 0),
            tos: byte(self.tos),
            ttl: byte(self.ttl),
            destination: address(self.destination),
            source: address(self.source),
            destination_port: port(self.destination_port),
            source_port: port(self.source_port),
            tcp_flags: self.tcp_flags.map(|field| FlowerField { value: 0, ..field }),
            icmp_type: self.icmp_type.map(|_| 0),
            icmp_code: self.icmp_code.map(|_| 0),
            fragment: self.fragment.map(|_| false),
            first_fragment: self.first_fragment.map(|_| false),
        }
    }

    /// The same with the bits 0 that do not count.
    fn masked(&self) -> Self {
        let byte = |field: Option<FlowerField<u8>>| {
            field.map(|FlowerField { value, mask }| FlowerField { value: value & mask, mask })
        };
        let half = |FlowerField { value, mask }: FlowerField<u16>| FlowerField { value: value & mask, mask };
        let port = |port: Option<FlowerPort>| {
            port.map(|port| match port {
                FlowerPort::Masked(field) => FlowerPort::Masked(half(field)),
                range @ FlowerPort::Range { .. } => range,
            })
        };
        let address = |address: Option<FlowerAddress>| {
            address.map(|told| {
                let bits = told.masked().1;
                let address = match told.address {
                    IpAddr::V4(_) => IpAddr::V4(core::net::Ipv4Addr::from_bits((bits >> 96) as u32)),
                    IpAddr::V6(_) => IpAddr::V6(core::net::Ipv6Addr::from_bits(bits)),
                };
                FlowerAddress { address, ..told }
            })
        };
        Self {
            tos: byte(self.tos),
            ttl: byte(self.ttl),
            destination: address(self.destination),
            source: address(self.source),
            destination_port: port(self.destination_port),
            source_port: port(self.source_port),
            tcp_flags: self.tcp_flags.map(half),
            ..self.clone()
        }
    }
}
