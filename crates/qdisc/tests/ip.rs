//! IP packets: what their headers say, what changes them, and malformed bytes.

use proptest::prelude::*;
use quietcore_qdisc::checksum::OwedChecksum;
use quietcore_qdisc::{IpHeader, IpPacket, Packet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const UDP: u8 = 17;

/// One's complement sum over a header, written plainly: right if it is all ones.
fn sum(header: &[u8]) -> u16 {
    let total: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (total & 0xffff) + (total >> 16);
    u16::try_from((folded & 0xffff) + (folded >> 16)).expect("folded twice")
}

/// An IPv4 packet from 10.0.0.1 to 10.0.0.2 with `options` words of options and this payload.
fn v4(traffic_class: u8, options: u8, fragment: u16, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header_len = 20 + usize::from(options) * 4;
    let mut bytes = vec![1_u8; header_len];
    (bytes[0], bytes[1]) = (0x45 + options, traffic_class);
    let total = u16::try_from(header_len + payload.len()).expect("short");
    bytes[2..4].copy_from_slice(&total.to_be_bytes());
    bytes[6..8].copy_from_slice(&fragment.to_be_bytes());
    (bytes[8], bytes[9]) = (64, protocol);
    bytes[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    bytes[10..12].fill(0);
    let checksum = !sum(&bytes);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

fn v6(traffic_class: u8, next: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    (bytes[0], bytes[1]) = (0x60 | traffic_class >> 4, traffic_class << 4 | 0xf);
    let length = u16::try_from(payload.len()).expect("short");
    bytes[4..6].copy_from_slice(&length.to_be_bytes());
    (bytes[6], bytes[7], bytes[23], bytes[39]) = (next, 64, 1, 2);
    bytes.extend_from_slice(payload);
    bytes
}

/// A UDP header from port 1000 to port 53, and a byte more.
fn datagram() -> Vec<u8> {
    vec![0x03, 0xe8, 0, 53, 0, 9, 0, 0, 7]
}

fn header(bytes: Vec<u8>) -> IpHeader {
    IpPacket::new(bytes).header().expect("an IP packet")
}

/// Goal: ports are found behind options, and only where they are. Method: a table.
#[test]
fn ports_of_ipv4_are_behind_its_options_and_not_in_later_fragments() {
    let ports = Some((1000, 53));
    for (options, fragment, protocol, wanted) in [
        (0, 0, UDP, ports),
        (3, 0, 6, ports),
        (10, 0x4000, 132, ports), // as many options as there can be; "do not fragment" is no fragment
        (0, 0x2000, UDP, ports),  // the first of several
        (0, 0x2005, UDP, None),
        (0, 0x0005, UDP, None),
        (0, 0, 1, None), // ICMP
    ] {
        let header = header(v4(0, options, fragment, protocol, &datagram()));
        let case = format!("{options} words of options, fragment {fragment:#x}, protocol {protocol}");
        assert_eq!((header.ports, header.protocol), (wanted, protocol), "{case}");
        assert_eq!(header.fragment, fragment & 0x3fff != 0, "{case}");
        assert_eq!(header.source, IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), "{case}");
        assert_eq!(header.destination, IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), "{case}");
    }
    // The link's padding is not the packet's.
    let mut padded = v4(0, 0, 0, UDP, &datagram()[..2]);
    padded.extend_from_slice(&[0; 20]);
    assert_eq!(header(padded).ports, None);
}

/// Goal: the chain of IPv6's headers is followed as far as it goes, and no further than it may. Method: a
/// table of chains before one datagram.
#[test]
fn ports_of_ipv6_are_behind_its_extension_headers() {
    let options = [[UDP, 0].as_slice(), &[0; 6]].concat(); // 8 bytes
    let long = [[UDP, 1].as_slice(), &[0; 14]].concat(); // 16 bytes
    let authentication = [[UDP, 1].as_slice(), &[0; 10]].concat(); // (1 + 2) * 4 bytes
    let fragment = |offset_and_more: [u8; 2]| [[UDP, 0].as_slice(), &offset_and_more, &[0; 4]].concat();
    let chain = |count: usize| {
        let mut headers = [60, 0, 0, 0, 0, 0, 0, 0].repeat(count);
        headers[8 * (count - 1)] = UDP;
        headers
    };
    let ports = Some((1000, 53));
    for (name, first, headers, wanted, fragmented) in [
        ("nothing", UDP, vec![], (UDP, ports), false),
        ("hop by hop", 0, options.clone(), (UDP, ports), false),
        ("a long destination option", 60, long, (UDP, ports), false),
        ("authentication", 51, authentication, (UDP, ports), false),
        ("a whole fragment", 44, fragment([0, 0]), (UDP, ports), false),
        ("a first fragment", 44, fragment([0, 1]), (UDP, ports), true),
        ("a later fragment", 44, fragment([0, 8]), (UDP, None), true),
        ("seven headers", 60, chain(7), (UDP, ports), false),
        ("too many headers", 60, chain(9), (60, None), false),
        ("no next header", 59, options, (59, None), false),
    ] {
        let header = header(v6(0, first, &[headers, datagram()].concat()));
        assert_eq!(((header.protocol, header.ports), header.fragment), (wanted, fragmented), "{name}");
        assert_eq!(header.source, IpAddr::V6(Ipv6Addr::from(1)), "{name}");
    }
    // A header that says it is longer than what came.
    assert_eq!(header(v6(0, 0, &[UDP, 200, 0, 0, 0, 0, 0, 0, 3, 0xe8, 0, 53])).ports, None);
}

/// Goal: what belongs together shares a flow, what does not does not, and the number is for ever. Method:
/// pairs, and one number written down.
#[test]
fn a_flow_is_addresses_protocol_and_ports_in_one_direction() {
    let flow = |bytes| IpPacket::new(bytes).flow();
    let one = v4(0, 0, 0, UDP, &datagram());
    assert_eq!(
        flow(one.clone()),
        flow(v4(0x10, 4, 0, UDP, &datagram())),
        "options and service do not matter"
    );
    for at in [12, 16, 20, 22] {
        let mut other = one.clone();
        other[at] ^= 1;
        assert_ne!(flow(one.clone()), flow(other), "byte {at}");
    }
    assert_ne!(flow(one.clone()), flow(v4(0, 0, 0, 6, &datagram())));
    let mut back = one.clone();
    back[12..24].copy_from_slice(&[10, 0, 0, 2, 10, 0, 0, 1, 0, 53, 0x03, 0xe8]);
    assert_ne!(flow(one.clone()), flow(back), "directions are two flows");
    let (first, later) = (v4(0, 0, 0x2000, UDP, &datagram()), v4(0, 0, 5, UDP, &[1; 9]));
    assert_eq!(flow(first), flow(later), "a datagram's fragments stay together");
    assert_ne!(flow(one.clone()), flow(v6(0, UDP, &datagram())));
    assert_eq!(flow(vec![0xff; 40]), 0, "nothing is known of it");
    assert_eq!(flow(one), flow_of_10_0_0_1(), "the number that its documentation promises");
}

/// The same by the documentation, in 128-bit arithmetic.
fn flow_of_10_0_0_1() -> u64 {
    fn mix(word: u64) -> u64 {
        let times = |a: u64, b: u64| {
            u64::try_from(u128::from(a) * u128::from(b) % (1 << 64)).expect("a remainder of 64 bits")
        };
        let word = u64::try_from((u128::from(word) + 0x9e37_79b9_7f4a_7c15) % (1 << 64)).expect("same");
        let word = times(word ^ word >> 30, 0xbf58_476d_1ce4_e5b9);
        let word = times(word ^ word >> 27, 0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }
    let state = mix(4 << 40 | 17 << 32 | 1000 << 16 | 53);
    mix(mix(state ^ 0x0a00_0001) ^ 0x0a00_0002)
}

/// Goal: a mark is one that a receiver believes. Method: all four values of the bits, both versions, and the
/// checksum added up anew.
#[test]
fn a_mark_of_congestion_is_for_those_who_asked_and_keeps_the_checksum() {
    for class in 0..=255_u8 {
        for old in [v4(class, 2, 0, UDP, &datagram()), v6(class, UDP, &datagram())] {
            let mut packet = IpPacket::new(old.clone());
            let marked = packet.mark_congestion();
            assert_eq!(marked, class & 3 != 0, "class {class:#x}");
            let wanted = if marked { class | 3 } else { class };
            assert_eq!(header(packet.bytes().to_vec()).traffic_class, wanted, "class {class:#x}");
            assert_eq!(packet, IpPacket::new(packet.bytes().to_vec()), "what it remembers is what it says");
            if old[0] >> 4 == 4 {
                assert_eq!(sum(&packet.bytes()[..28]), 0xffff, "class {class:#x}");
            }
            let changed = (0..old.len()).filter(|at| old[*at] != packet.bytes()[*at]).count();
            assert!(changed <= 3, "nothing but the bits and the checksum");
        }
    }
}

/// Goal: a checksum that is less than what a mark takes off it borrows. Method: every identification, of
/// which some lead to checksums of 0 to 3, and both bits that can be added.
#[test]
fn a_checksum_near_0_borrows() {
    let mut near = 0;
    for class in [1, 2] {
        for identification in 0..=u16::MAX {
            let mut bytes = v4(class, 0, 0, UDP, &datagram());
            bytes[4..6].copy_from_slice(&identification.to_be_bytes());
            bytes[10..12].fill(0);
            let checksum = !sum(&bytes[..20]);
            if checksum > 3 {
                continue;
            }
            bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
            let mut packet = IpPacket::new(bytes);
            assert!(packet.mark_congestion());
            assert_eq!(sum(&packet.bytes()[..20]), 0xffff, "checksum {checksum}, class {class}");
            near += 1;
        }
    }
    assert_eq!(near, 8, "4 of each");
}

/// Goal: what a link puts before a packet counts where bytes are counted, and is not among its bytes; what is
/// no IP packet is of flow 0, best effort, and cannot be marked. Method: an Ethernet header; cut bytes.
#[test]
fn bytes_of_the_link_and_of_no_packet() {
    let bytes = v4(0, 0, 0, UDP, &datagram());
    let plain = IpPacket::new(bytes.clone());
    assert_eq!((plain.len(), plain.clone().with_link_header(14).len()), (29, 43));
    assert_eq!(plain.with_link_header(14).into_bytes(), bytes);
    let mut cut = IpPacket::new(bytes[..10].to_vec());
    assert_eq!((cut.len(), cut.flow(), cut.priority(), cut.mark_congestion()), (10, 0, 0, false));
}

/// Goal: filters see the bytes of a packet, and the mark that its maker gave it. Method: one of each.
#[test]
fn bytes_and_mark_for_filters() {
    let bytes = v4(0, 1, 0, UDP, &datagram());
    let packet = IpPacket::new(bytes.clone()).with_link_header(14);
    assert_eq!((packet.network_bytes(), packet.mark()), (&bytes[..], 0));
    assert_eq!(packet.with_mark(6).mark(), 6);
}

/// Goal: what is carried begins behind all headers, and not in later fragments; hops are told. Method:
/// options of IPv4, an extension header of IPv6, fragments of both.
#[test]
fn where_the_payload_begins() {
    let told = |bytes: Vec<u8>| {
        let hops = if bytes[0] >> 4 == 4 { bytes[8] } else { bytes[7] };
        let header = header(bytes);
        assert_eq!(header.hop_limit, hops);
        header.payload
    };
    assert_eq!(told(v4(0, 0, 0, UDP, &datagram())), Some(20));
    assert_eq!(told(v4(0, 2, 0, UDP, &datagram())), Some(28));
    assert_eq!(told(v4(0, 0, 0x2000, UDP, &datagram())), Some(20), "the first fragment");
    assert_eq!(told(v4(0, 0, 9, UDP, &datagram())), None, "a later one");
    assert_eq!(told(v6(0, UDP, &datagram())), Some(40));
    let behind_options = [&[UDP, 0, 0, 0, 0, 0, 0, 0], &datagram()[..]].concat();
    assert_eq!(told(v6(0, 60, &behind_options)), Some(48));
    let later = [&[UDP, 0, 0, 8, 0, 0, 0, 0], &datagram()[..]].concat();
    assert_eq!(told(v6(0, 44, &later)), None);
}

/// Goal: priorities are tc-prio(8)'s. Method: its table.
#[test]
fn priorities_are_by_type_of_service() {
    let table = [0, 0, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 4, 4, 4, 4];
    for (bits, wanted) in (0_u8..).zip(table) {
        assert_eq!(IpPacket::new(v4(bits << 1, 0, 0, UDP, &[])).priority(), wanted, "bits {bits:04b}");
        assert_eq!(IpPacket::new(v6(0xe0 | bits << 1, UDP, &[])).priority(), wanted, "bits {bits:04b}");
    }
}

proptest! {
    /// Goal: no bytes make it panic, and what it remembers of them is always theirs. Method: random bytes
    /// that begin as a packet may, changed and read again.
    #[test]
    fn hostile_bytes_are_packets_too(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
        version in proptest::option::of(prop_oneof![0x40_u8..0x50, 0x60_u8..0x70]),
        next in prop_oneof![Just(0_u8), Just(43), Just(44), Just(51), Just(60), Just(UDP)],
        flips in proptest::collection::vec(any::<(u32, u32)>(), 0..8),
    ) {
        if let (Some(version), Some(first)) = (version, bytes.first_mut()) {
            *first = version;
        }
        if let Some(at) = bytes.get_mut(6) {
            *at = next;
        }
        let mut packet = IpPacket::new(bytes.clone());
        prop_assert_eq!(packet.len() as usize, bytes.len());
        prop_assert_eq!(packet.duplicate(), Some(packet.clone()));
        for (byte, bit) in flips {
            packet.corrupt(byte, bit);
            let before = packet.bytes().len();
            let _ = packet.mark_congestion();
            prop_assert_eq!(packet.bytes().len(), before);
            prop_assert_eq!(&packet, &IpPacket::new(packet.bytes().to_vec()));
            let header = packet.header();
            let of_header = header.map_or((0, None), |header| (header.flow(), Some(header.traffic_class)));
            prop_assert_eq!((packet.flow(), packet.traffic_class()), of_header);
            let _ = (packet.priority(), packet.departure(), packet.pacing_rate());
        }
    }
}

/// Goal: a checksum that is owed is completed where the bytes are asked for or changed, once, and by nothing
/// else. Method: a datagram of UDP that owes it, copied, marked, damaged, and taken apart.
#[test]
fn an_owed_checksum_is_completed_when_it_is_needed() {
    let owed = OwedChecksum { start: 20, offset: 6 };
    let bytes = v4(1, 0, 0, UDP, &[0x5a; 20]);
    let mut complete = bytes.clone();
    owed.complete(&mut complete);
    let packet = || IpPacket::new(bytes.clone()).with_owed_checksum(owed).expect("it fits");
    let mut marked = packet().duplicate().expect("it can be");
    assert!(marked.mark_congestion());
    assert_eq!((marked.owed_checksum(), &marked.bytes()[20..]), (Some(owed), &bytes[20..]));
    assert_eq!(packet().into_bytes(), complete);
    let mut damaged = packet();
    damaged.corrupt(30, 1);
    complete[30] ^= 2;
    assert_eq!((damaged.owed_checksum(), damaged.bytes()), (None, &complete[..]));
    assert_eq!(damaged.into_bytes(), complete, "not completed again");
    for (start, offset) in [(20, 19), (0, 6)] {
        let elsewhere = OwedChecksum { start, offset };
        assert_eq!(IpPacket::new(bytes.clone()).with_owed_checksum(elsewhere), None, "{elsewhere:?}");
    }
}

/// Goal: queues do not move more than they have to. Method: its size where words have 64 bits.
#[test]
#[cfg(target_pointer_width = "64")]
fn a_packet_is_six_words() {
    assert_eq!(size_of::<IpPacket>(), 6 * size_of::<u64>());
}
