//! TCP segments as the tests of this folder need them.

use quietcore_qdisc::checksum::{folded, sum};

/// A segment of IPv4 (`at`, where TCP begins, is 20) or IPv6 (40), with right checksums. `identification` is
/// of IPv4 only; `options` bytes of options, each of which ends the list (0).
pub(super) fn tcp_segment(
    at: usize,
    identification: u16,
    sequence: u32,
    options: usize,
    data: &[u8],
) -> Vec<u8> {
    let mut packet = vec![0; at + 20 + options];
    packet.extend_from_slice(data);
    let length = packet.len() as u16;
    if at == 20 {
        packet[..2].copy_from_slice(&[0x45, 0]);
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet[4..6].copy_from_slice(&identification.to_be_bytes());
        (packet[6], packet[8], packet[9]) = (0x40, 64, 6);
        packet[12..20].copy_from_slice(&[10, 77, 0, 1, 10, 77, 0, 2]);
        let checksum = !folded(sum(&packet[..20]));
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    } else {
        (packet[0], packet[6], packet[7]) = (0x60, 6, 64);
        packet[4..6].copy_from_slice(&(length - 40).to_be_bytes());
        (packet[23], packet[39]) = (1, 2);
    }
    packet[at..at + 4].copy_from_slice(&[0x12, 0x34, 0x14, 0x51]);
    packet[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
    let header_words = (20 + options) as u8 / 4;
    (packet[at + 12], packet[at + 13], packet[at + 15]) = (header_words << 4, 0x10, 99);
    with_right_checksum(packet)
}

/// The same segment with the right checksum of TCP.
pub(super) fn with_right_checksum(mut packet: Vec<u8>) -> Vec<u8> {
    let (at, addresses) = if packet[0] >> 4 == 4 { (20, 12..20) } else { (40, 8..40) };
    packet[at + 16..at + 18].fill(0);
    let all = sum(&packet[addresses]) + 6 + (packet.len() - at) as u64 + sum(&packet[at..]);
    packet[at + 16..at + 18].copy_from_slice(&(!folded(all)).to_be_bytes());
    packet
}
