//! What disciplines and filters read in the headers of an IP packet.
//!
//! One pass over at most [`EXTENSIONS_MAX`] extension headers, every read checked: bytes from a network are
//! not to be trusted. Absent: checksums of the transport, reassembly, what is inside a tunnel. Source: RFC
//! 791, 8200, 4302, 6864 by their formats.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// As many extension headers as IPv6 knows kinds: a packet with more of them is made to cost time.
const EXTENSIONS_MAX: usize = 8;
const AUTHENTICATION: u8 = 51;
const FRAGMENT: u8 = 44;

/// What the headers of a packet say, as far as the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpHeader {
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes; of the same version as `source`.
    pub destination: IpAddr,
    /// What it carries: the number of the last header that could be read (6 is TCP, 17 is UDP).
    pub protocol: u8,
    /// IPv4's type of service, IPv6's traffic class.
    pub traffic_class: u8,
    /// IPv4's time to live, IPv6's hop limit.
    pub hop_limit: u8,
    /// Where what it carries begins, behind all headers that could be read; nothing in a later fragment, or
    /// where the chain of headers is cut.
    pub payload: Option<u16>,
    /// Whether it is a fragment, the first one included.
    pub fragment: bool,
    /// Source and destination port, where the protocol has them and they are in this packet.
    pub ports: Option<(u16, u16)>,
}

impl IpHeader {
    /// Reads the headers; `None` if they are not those of IPv4 or IPv6, or are cut.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        match bytes.first()? >> 4 {
            4 => Self::parse_v4(bytes),
            6 => Self::parse_v6(bytes),
            _ => None,
        }
    }

    fn parse_v4(bytes: &[u8]) -> Option<Self> {
        let header: &[u8; 20] = bytes.first_chunk()?;
        let header_len = usize::from(header[0] & 0xf) * 4;
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if header_len < 20 || total < header_len || bytes.len() < header_len {
            return None;
        }
        // What lies behind the total length is padding of the link.
        let payload = &bytes[header_len..total.min(bytes.len())];
        let fragment = u16::from_be_bytes([header[6], header[7]]);
        let (more, offset) = (fragment & 0x2000 != 0, fragment & 0x1fff);
        let address =
            |at: usize| IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]));
        Some(Self {
            source: address(12),
            destination: address(16),
            protocol: header[9],
            traffic_class: header[1],
            hop_limit: header[8],
            payload: (offset == 0).then_some(u16::from(header[0] & 0xf) * 4),
            fragment: more || offset != 0,
            ports: if offset == 0 { ports(header[9], payload) } else { None },
        })
    }

    fn parse_v6(bytes: &[u8]) -> Option<Self> {
        let header: &[u8; 40] = bytes.first_chunk()?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        // Zero is a jumbogram's, whose length is in an option: then the bytes themselves bound it.
        let end = if length == 0 { bytes.len() } else { bytes.len().min(40 + length) };
        let address = |at: usize| {
            let octets: [u8; 16] = *header[at..].first_chunk().expect("24 + 16 is what a header has");
            IpAddr::V6(Ipv6Addr::from(octets))
        };
        let last = last_header(header[6], &bytes[40..end]);
        Some(Self {
            source: address(8),
            destination: address(24),
            protocol: last.protocol,
            traffic_class: header[0] << 4 | header[1] >> 4,
            hop_limit: header[7],
            payload: last.payload.and_then(|payload| u16::try_from(end - payload.len()).ok()),
            fragment: last.fragment,
            ports: last.payload.and_then(|payload| ports(last.protocol, payload)),
        })
    }

    /// A number for its flow: of the addresses, the protocol and the ports, in this direction.
    ///
    /// Equal on every machine and in every run: `SplitMix64`'s step over the word
    /// `version << 40 | protocol << 32 | source port << 16 | destination port`, then over its result with each
    /// address (IPv6's in two halves, the upper one first) xor-ed in. All fragments of a datagram are of one
    /// flow, so those count without ports, which only the first one has.
    #[must_use]
    pub fn flow(&self) -> u64 {
        let (source, destination) = self.ports.filter(|_| !self.fragment).unwrap_or_default();
        let ports = u32::from(source) << 16 | u32::from(destination);
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => flow(
                4,
                self.protocol,
                ports,
                [source, destination].map(|address| u64::from(address.to_bits())),
            ),
            (source, destination) => {
                let [upper, lower] = halves(source);
                let [upper_destination, lower_destination] = halves(destination);
                flow(6, self.protocol, ports, [upper, lower, upper_destination, lower_destination])
            }
        }
    }
}

/// The two halves of an IPv6 address.
fn halves(address: IpAddr) -> [u64; 2] {
    let bits = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    };
    #[expect(clippy::cast_possible_truncation, reason = "one half after the other")]
    let halves = [(bits >> 64) as u64, bits as u64];
    halves
}

/// [`IpHeader::flow`], of what is in it.
pub(super) fn flow<const N: usize>(version: u8, protocol: u8, ports: u32, addresses: [u64; N]) -> u64 {
    let first = mix(u64::from(version) << 40 | u64::from(protocol) << 32 | u64::from(ports));
    addresses.into_iter().fold(first, |flow, word| mix(flow ^ word))
}

/// A one-to-one function of 64 bits that spreads any difference over all of them (the finaliser of
/// `SplitMix64`), after a step that keeps zero from being its own image.
const fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Where the chain of IPv6's headers ends.
struct Last<'a> {
    protocol: u8,
    fragment: bool,
    /// Nothing if the chain is cut or too long, or if this is a later fragment.
    payload: Option<&'a [u8]>,
}

/// Follows the chain; `protocol` is the kind of the header that `rest` begins with.
fn last_header(mut protocol: u8, mut rest: &[u8]) -> Last<'_> {
    let mut fragment = false;
    for _ in 0..EXTENSIONS_MAX {
        // Hop-by-hop, routing, destination, mobility, HIP and Shim6 give their length in units of 8 bytes.
        let units = match protocol {
            0 | 43 | 60 | 135 | 139 | 140 => 8,
            AUTHENTICATION => 4,
            FRAGMENT => 0,
            _ => return Last { protocol, fragment, payload: Some(rest) },
        };
        let Some(&[next, length, high, low, ..]) = rest.first_chunk::<8>() else { break };
        let length = match protocol {
            AUTHENTICATION => (usize::from(length) + 2) * units,
            FRAGMENT => 8,
            _ => (usize::from(length) + 1) * units,
        };
        if protocol == FRAGMENT {
            let offset_and_more = u16::from_be_bytes([high, low]);
            // One that is whole has neither an offset nor more to come (RFC 6946).
            fragment |= offset_and_more & 0xfff9 != 0;
            if offset_and_more & 0xfff8 != 0 {
                return Last { protocol: next, fragment, payload: None };
            }
        }
        let Some(behind) = rest.get(length..) else { break };
        (protocol, rest) = (next, behind);
    }
    Last { protocol, fragment, payload: None }
}

/// The ports with which TCP, UDP, DCCP, SCTP and UDP-Lite begin.
fn ports(protocol: u8, payload: &[u8]) -> Option<(u16, u16)> {
    let &[a, b, c, d] = matches!(protocol, 6 | 17 | 33 | 132 | 136).then(|| payload.first_chunk())??;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}
