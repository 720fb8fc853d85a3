//! What must hold for any bytes as an IP packet.
//!
//! Not here: what a header says; that is in the tests of the crate.

use quietcore_qdisc::filter::{FlowerAddress, FlowerField, FlowerKeys, FlowerPort, ether_type};
use quietcore_qdisc::{IpPacket, Packet};

/// Reads `bytes`, asks everything, changes bits as the bytes themselves say, and reads again.
pub fn check_packet(bytes: &[u8]) {
    let mut packet = IpPacket::new(bytes.to_vec());
    check_reading(&packet);
    assert_eq!(packet.bytes(), bytes);
    assert_eq!(packet.len() as usize, bytes.len());
    for step in bytes.chunks_exact(3).take(8) {
        packet.corrupt(u32::from_le_bytes([step[0], step[1], 0, 0]), u32::from(step[2]));
        check_reading(&packet);
        let before = packet.clone();
        let able = packet.header().is_some_and(|header| header.traffic_class & 3 != 0);
        assert_eq!(packet.mark_congestion(), able, "{before:?}");
        let changed = (0..bytes.len()).filter(|at| packet.bytes()[*at] != before.bytes()[*at]).count();
        assert!(changed <= if able { 3 } else { 0 }, "{before:?} became {packet:?}");
        check_reading(&packet);
    }
}

/// What it remembers is what its bytes say, and no answer contradicts another.
fn check_reading(packet: &IpPacket) {
    assert_eq!(packet, &IpPacket::new(packet.bytes().to_vec()));
    assert_eq!(packet.duplicate().as_ref(), Some(packet));
    assert!(matches!(packet.priority(), 0 | 2 | 4 | 6));
    let Some(header) = packet.header() else {
        assert_eq!((packet.flow(), packet.priority()), (0, 0));
        return;
    };
    assert_eq!((packet.flow(), header.source.is_ipv4()), (header.flow(), header.destination.is_ipv4()));
    let bytes = packet.network_bytes();
    assert_eq!(ether_type(bytes), Some(if header.source.is_ipv4() { 0x0800 } else { 0x86dd }));
    let length = if header.source.is_ipv4() { 32 } else { 128 };
    let whole = |address| Some(FlowerAddress { address, length });
    let (source, destination) = header.ports.filter(|_| !header.fragment).unwrap_or_default();
    let port = |value| Some(FlowerPort::Masked(FlowerField { value, mask: 0xffff }));
    let keys = FlowerKeys {
        ip_protocol: Some(header.protocol),
        source: whole(header.source),
        destination: whole(header.destination),
        source_port: port(source),
        destination_port: port(destination),
        fragment: Some(header.fragment),
        ..FlowerKeys::default()
    };
    assert!(keys.is_met(bytes), "{header:?}");
    assert!(!FlowerKeys { fragment: Some(!header.fragment), ..keys }.is_met(bytes));
    assert!(header.payload.is_none_or(|payload| usize::from(payload) <= bytes.len()));
}

#[cfg(test)]
mod tests {
    use super::check_packet;

    /// Goal: the checks accept packets and what is left of them. Method: one of each version, with every
    /// byte at several values, and every beginning of it.
    #[test]
    fn the_checks_accept_packets_and_their_ruins() {
        let v4: &[u8] = &[
            0x46, 2, 0, 40, 0, 1, 0x20, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 0, 3, 0xe8, 0,
            53, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8,
        ];
        let mut v6 = vec![0x60, 0x20, 0, 0, 0, 28, 0, 64];
        v6.extend_from_slice(&[7; 32]);
        v6.extend_from_slice(&[44, 0, 1, 4, 0, 0, 0, 0, 17, 0, 0, 1, 0, 0, 0, 9]);
        v6.extend_from_slice(&[3, 0xe8, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4]);
        for whole in [v4, &v6] {
            for at in 0..whole.len() {
                check_packet(&whole[..at]);
                for value in [0, 1, 0x0f, 0x45, 0x60, 0x80, 0xff] {
                    let mut ruin = whole.to_vec();
                    ruin[at] = value;
                    check_packet(&ruin);
                }
            }
        }
    }
}
