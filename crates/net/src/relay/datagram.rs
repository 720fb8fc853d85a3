//! A datagram as the IP packet that carried it, so that disciplines count and filters read what they would on
//! a link.
//!
//! The headers are made anew, from the peer's address to the relay's; what a discipline does to them (a bit
//! that `netem` flips there, a mark of congestion) goes with them and does no harm. Checksums are 0.

use quietcore_qdisc::IpPacket;
use std::net::{IpAddr, SocketAddr};

const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
const HOPS: u8 = 64;

/// Bytes of headers before a datagram that comes from there.
const fn headers(from: SocketAddr) -> usize {
    UDP_HEADER + if from.is_ipv4() { 20 } else { 40 }
}

/// The packet; both addresses are of one version.
pub(super) fn packet(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> IpPacket {
    let mut bytes = Vec::with_capacity(headers(from) + payload.len());
    let length = (UDP_HEADER + payload.len()) as u16; // a socket gives no more
    match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            bytes.extend_from_slice(&[0x45, 0]);
            bytes.extend_from_slice(&length.saturating_add(20).to_be_bytes());
            bytes.extend_from_slice(&[0, 0, 0x40, 0, HOPS, UDP, 0, 0]);
            bytes.extend_from_slice(&from.octets());
            bytes.extend_from_slice(&to.octets());
        }
        (from, to) => {
            let octets = |address: IpAddr| match address {
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                IpAddr::V6(address) => address.octets(),
            };
            bytes.extend_from_slice(&[0x60, 0, 0, 0]);
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(&[UDP, HOPS]);
            bytes.extend_from_slice(&octets(from));
            bytes.extend_from_slice(&octets(to));
        }
    }
    bytes.extend_from_slice(&from.port().to_be_bytes());
    bytes.extend_from_slice(&to.port().to_be_bytes());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&[0, 0]);
    bytes.extend_from_slice(payload);
    IpPacket::new(bytes)
}

/// What the datagram from there had in it.
pub(super) fn payload(from: SocketAddr, packet: &IpPacket) -> &[u8] {
    packet.bytes().get(headers(from)..).unwrap_or_default()
}

/// Whether a packet is of the version of IP that datagrams from there are.
pub(super) fn is_of(from: SocketAddr, packet: &IpPacket) -> bool {
    packet.bytes().first().is_some_and(|first| (first >> 4 == 4) == from.is_ipv4())
}

#[cfg(test)]
mod tests {
    use super::{packet, payload};
    use quietcore_qdisc::Packet;
    use std::net::SocketAddr;

    /// Goal: the headers are those of the datagram, for filters on any byte of them. Method: both versions,
    /// byte by byte.
    #[test]
    fn the_headers_are_made_anew() {
        let made = |from: &str, to: &str| {
            let [from, to] = [from, to].map(|address| address.parse::<SocketAddr>().expect("an address"));
            packet(from, to, b"abc").bytes().to_vec()
        };
        let four = [
            &[0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 2][..],
            &[0x03, 0xe8, 0, 53, 0, 11, 0, 0],
            b"abc",
        ];
        assert_eq!(made("127.0.0.1:1000", "127.0.0.2:53"), four.concat());
        let address = |last: u8| [&[0; 15][..], &[last]].concat();
        let six = [
            &[0x60, 0, 0, 0, 0, 11, 17, 64][..],
            &address(1),
            &address(2),
            &[0x03, 0xe8, 0, 53, 0, 11, 0, 0],
            b"abc",
        ];
        assert_eq!(made("[::1]:1000", "[::2]:53"), six.concat());
    }

    /// Goal: what is made is an IP packet with those addresses, and what was in it comes out. Method: both
    /// versions, the empty datagram and the longest.
    #[test]
    fn a_datagram_goes_in_and_comes_out() {
        for [from, to] in [["127.0.0.1:1000", "127.0.0.2:53"], ["[::1]:1000", "[::2]:53"]] {
            let [from, to] = [from, to].map(|address| address.parse::<SocketAddr>().expect("an address"));
            for length in [0, 1, 1200, 65_507] {
                let content = vec![7; length];
                let packet = packet(from, to, &content);
                assert_eq!(payload(from, &packet), content);
                let header = packet.header().expect("an IP packet");
                assert_eq!((header.source, header.destination), (from.ip(), to.ip()));
                assert_eq!((header.protocol, header.ports), (17, Some((1000, 53))));
                let headers = if from.is_ipv4() { 28 } else { 48 };
                assert_eq!(packet.len() as usize, length + headers);
            }
        }
    }
}
