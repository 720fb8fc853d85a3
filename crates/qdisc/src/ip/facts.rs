//! What of the headers of an IP packet is remembered, so that its bytes tell the rest at once.

use super::IpHeader;
use super::header::flow;
use core::num::NonZeroU16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// At least 20 bytes are there.
    V4,
    /// At least 40 bytes are there.
    V6,
}

/// Of bytes that have the header of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeaderFacts {
    version: Version,
    protocol: u8,
    /// Where the ports of its flow are, if it has some: four bytes that are there.
    ports: Option<NonZeroU16>,
}

impl HeaderFacts {
    /// Nothing if [`IpHeader::parse`] finds none.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let header = IpHeader::parse(bytes)?;
        let payload = header.payload.filter(|_| header.ports.is_some() && !header.fragment);
        Some(Self {
            version: if header.source.is_ipv4() { Version::V4 } else { Version::V6 },
            protocol: header.protocol,
            ports: payload.and_then(NonZeroU16::new),
        })
    }

    pub(super) fn is_v4(self) -> bool {
        self.version == Version::V4
    }

    /// IPv4's type of service, IPv6's traffic class.
    pub(super) fn traffic_class(self, bytes: &[u8]) -> u8 {
        match self.version {
            Version::V4 => bytes[1],
            Version::V6 => bytes[0] << 4 | bytes[1] >> 4,
        }
    }

    /// [`IpHeader::flow`].
    pub(super) fn flow(self, bytes: &[u8]) -> u64 {
        let ports = self.ports.map_or([0; 4], |at| taken(bytes, usize::from(at.get())));
        let (protocol, ports) = (self.protocol, u32::from_be_bytes(ports));
        let short = |at| u64::from(u32::from_be_bytes(taken(bytes, at)));
        let long = |at| u64::from_be_bytes(taken(bytes, at));
        match self.version {
            Version::V4 => flow(4, protocol, ports, [short(12), short(16)]),
            Version::V6 => flow(6, protocol, ports, [long(8), long(16), long(24), long(32)]),
        }
    }
}

/// Bytes that are there.
fn taken<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("the headers were read when the packet was made")
}
