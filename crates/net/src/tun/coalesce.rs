//! Coalescing: neighbouring segments of one TCP stream are written to a TUN interface in one system call.
//!
//! From a TUN interface with offloads the kernel gives out what it would give a network card: up to 64 KiB of
//! a stream, to be cut into packets. The [wire](super::wire) cuts it before a discipline sees it, so that
//! disciplines delay, lose and count packets of the link's length. Packets that leave a discipline together
//! are joined again here, as a card does on receipt (GRO).
//!
//! Invariant: only neighbours are joined, in the order in which they leave, with equal headers, and with
//! checksums that are right or still owed: what changes a packet completes its checksum first. So what a
//! discipline reordered, doubled, marked or damaged stays visible to the receiver.
//! Source: RFC 9293, the virtio specification (5.1.6, `virtio_net_hdr`).

use super::cut::TCP_CHECKSUM;
use super::virtio::{GSO_TCP_V4, GSO_TCP_V6, HEADER, NEEDS_CHECKSUM, VirtioHeader};
use quietcore_qdisc::checksum::{OwedChecksum, folded, sum};
use quietcore_qdisc::{IpPacket, Segments};

/// Longest IP packet.
const LONGEST: usize = 65_535;
/// TCP's flags: all but PSH, and what may be set in a segment that is joined.
const PUSH: u8 = 0x08;
const ACKNOWLEDGES: u8 = 0x10;

/// Where streams are cut into packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offload {
    /// In this process: one system call for up to 64 KiB of a stream.
    #[default]
    On,
    /// In the kernel: one system call to read each packet and one to write it.
    Off,
}

/// The bytes that are written to a TUN interface next: one packet, or several segments joined.
#[derive(Debug)]
pub struct Coalescer {
    offload: Offload,
    bytes: Vec<u8>,
    /// The first packet comes behind `bytes`.
    is_apart: bool,
}

impl Coalescer {
    /// One that holds nothing.
    #[must_use]
    pub fn new(offload: Offload) -> Self {
        Self { offload, bytes: Vec::with_capacity(HEADER + LONGEST), is_apart: false }
    }

    /// What is to be written, in one system call, in two parts; `first` is the first packet of the last
    /// [`fill`](Self::fill). One that is still to be cut is not copied.
    #[must_use]
    pub fn parts<'a>(&'a self, first: &'a IpPacket) -> [&'a [u8]; 2] {
        [&self.bytes, if self.is_apart { first.bytes() } else { &[] }]
    }

    /// What is to be written, in one system call; of a packet that is still to be cut, what precedes it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes the first packet and those behind it that can be joined to it. Returns how many: 0 only if there
    /// are no packets.
    pub fn fill<'a>(&mut self, packets: impl IntoIterator<Item = &'a IpPacket>) -> usize {
        let mut packets = packets.into_iter();
        self.bytes.clear();
        self.is_apart = false;
        let Some(first) = packets.next() else { return 0 };
        if self.offload == Offload::Off {
            self.bytes.extend_from_slice(first.bytes());
            first.owed_checksum().iter().for_each(|owed| owed.complete(&mut self.bytes));
            return 1;
        }
        self.bytes.extend_from_slice(&alone(first).bytes());
        if first.segments().is_some() {
            self.is_apart = true;
            return 1;
        }
        self.bytes.extend_from_slice(first.bytes());
        let Some(head) = Segment::of(first) else { return 1 };
        let (mut count, mut expected) = (1, head.next_sequence());
        for packet in packets {
            let Some(next) = Segment::of(packet) else { break };
            let fits = self.bytes.len() - HEADER + next.payload.len() <= LONGEST;
            let follows = next.sequence == expected && next.payload.len() <= head.payload.len();
            if !fits || !follows || !next.has_equal_headers(&head) {
                break;
            }
            if (count == 1 && !head.has_right_checksums()) || !next.has_right_checksums() {
                break;
            }
            self.bytes.extend_from_slice(next.payload);
            self.bytes[HEADER + head.tcp + 13] |= next.packet[next.tcp + 13] & PUSH;
            (count, expected) = (count + 1, next.next_sequence());
            if next.payload.len() < head.payload.len() || next.pushes() {
                break;
            }
        }
        if count > 1 {
            self.write_headers(&head);
        }
        count
    }

    /// Lengths and checksums of what was joined. TCP's checksum is left to the reader that cuts it again.
    fn write_headers(&mut self, head: &Segment<'_>) {
        let (header, packet) = self.bytes.split_at_mut(HEADER);
        let length = packet.len();
        if head.is_v4() {
            // At most 65,535 bytes were joined.
            packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            packet[10..12].fill(0);
            let checksum = !folded(sum(&packet[..head.tcp]));
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        } else {
            packet[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
        }
        let pseudo = folded(head.pseudo_header(length - head.tcp));
        let field = head.tcp + usize::from(TCP_CHECKSUM);
        packet[field..field + 2].copy_from_slice(&pseudo.to_be_bytes());
        let written = VirtioHeader {
            flags: NEEDS_CHECKSUM,
            kind: if head.is_v4() { GSO_TCP_V4 } else { GSO_TCP_V6 },
            // All below the length of a packet.
            headers: head.data as u16,
            size: head.payload.len() as u16,
            checksum_start: head.tcp as u16,
            checksum_offset: TCP_CHECKSUM,
        };
        header.copy_from_slice(&written.bytes());
    }
}

/// The header of a packet that is not joined.
fn alone(packet: &IpPacket) -> VirtioHeader {
    let mut header = VirtioHeader::default();
    if let Some(owed) = packet.owed_checksum() {
        header.flags = NEEDS_CHECKSUM;
        (header.checksum_start, header.checksum_offset) = (owed.start, owed.offset);
    }
    if let Some(Segments { headers, payload, kind }) = packet.segments() {
        (header.kind, header.headers, header.size) = (kind, headers, payload.get());
    }
    header
}

/// A TCP segment with data and without anything special.
#[derive(Clone, Copy, Debug)]
struct Segment<'a> {
    packet: &'a [u8],
    /// Where TCP's header begins.
    tcp: usize,
    /// Where the data begin.
    data: usize,
    payload: &'a [u8],
    sequence: u32,
    owes_checksum: bool,
}

impl<'a> Segment<'a> {
    /// Nothing if it is anything else, a fragment, several segments already, or has IP options.
    fn of(packet: &'a IpPacket) -> Option<Self> {
        if packet.segments().is_some() {
            return None;
        }
        let (packet, owed) = (packet.bytes(), packet.owed_checksum());
        let word = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
        let (length, protocol, tcp) = match packet.first()? {
            0x45 if word(6)? & 0x3fff == 0 => (usize::from(word(2)?), *packet.get(9)?, 20),
            first if first >> 4 == 6 => (usize::from(word(4)?) + 40, *packet.get(6)?, 40),
            _ => return None,
        };
        let data = tcp + usize::from(packet.get(tcp + 12)? >> 4) * 4;
        let is_plain = packet.get(tcp + 13)? & !PUSH == ACKNOWLEDGES;
        if protocol != 6 || length != packet.len() || !is_plain || data < tcp + 20 || data >= length {
            return None;
        }
        let sequence = u32::from(word(tcp + 4)?) << 16 | u32::from(word(tcp + 6)?);
        let owes_checksum = owed == Some(OwedChecksum { start: tcp as u16, offset: TCP_CHECKSUM });
        Some(Self { packet, tcp, data, payload: &packet[data..], sequence, owes_checksum })
    }

    fn next_sequence(&self) -> u32 {
        self.sequence.wrapping_add(self.payload.len() as u32)
    }

    const fn is_v4(&self) -> bool {
        self.tcp == 20
    }

    const fn pushes(&self) -> bool {
        self.packet[self.tcp + 13] & PUSH != 0
    }

    /// Whether the headers are equal in all that is not a segment's own: lengths, IPv4's identification, the
    /// place in the stream, PSH and checksums.
    fn has_equal_headers(&self, other: &Self) -> bool {
        if (self.tcp, self.data) != (other.tcp, other.data) {
            return false;
        }
        let ip: [(usize, usize); 3] =
            if self.is_v4() { [(0, 2), (6, 10), (12, 20)] } else { [(0, 4), (6, 40), (0, 0)] };
        let tcp = [(0, 4), (8, 13), (14, 16), (18, self.data - self.tcp)];
        let tcp = tcp.map(|(from, to)| (self.tcp + from, self.tcp + to));
        ip.iter().chain(&tcp).all(|&(from, to)| self.packet[from..to] == other.packet[from..to])
    }

    /// Whether its checksums are right; TCP's may be owed.
    fn has_right_checksums(&self) -> bool {
        let segment = &self.packet[self.tcp..];
        let is_header_right = !self.is_v4() || folded(sum(&self.packet[..20])) == u16::MAX;
        is_header_right
            && (self.owes_checksum || folded(self.pseudo_header(segment.len()) + sum(segment)) == u16::MAX)
    }

    /// The sum of the addresses, the protocol and the length.
    fn pseudo_header(&self, length: usize) -> u64 {
        let addresses = if self.is_v4() { &self.packet[12..20] } else { &self.packet[8..40] };
        sum(addresses) + 6 + length as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::tcp_segment::{tcp_segment, with_right_checksum};
    use super::{Coalescer, HEADER, Offload, OwedChecksum, Segment, TCP_CHECKSUM, folded, sum};
    use quietcore_qdisc::{IpPacket, Packet};

    /// A segment with right checksums: the byte `fill`, `length` times, at `sequence`.
    fn segment(version: &str, sequence: u32, length: usize, fill: u8) -> Vec<u8> {
        let at = if version == "v4" { 20 } else { 40 };
        tcp_segment(at, 0, sequence, 0, &vec![fill; length])
    }

    /// What is written, one after the other: how many packets, and the bytes.
    fn written(packets: &[Vec<u8>]) -> Vec<(usize, Vec<u8>)> {
        let packets: Vec<IpPacket> = packets.iter().cloned().map(IpPacket::new).collect();
        let (mut coalescer, mut rest, mut all) = (Coalescer::new(Offload::On), &packets[..], Vec::new());
        while !rest.is_empty() {
            let count = coalescer.fill(rest);
            all.push((count, coalescer.bytes().to_vec()));
            rest = &rest[count..];
        }
        all
    }

    fn counts(packets: &[Vec<u8>]) -> Vec<usize> {
        written(packets).into_iter().map(|(count, _)| count).collect()
    }

    /// Goal: what is joined has the data of all, their length, and tells how to cut it again. Method: three
    /// segments, the last one shorter and pushed, of both versions of IP.
    #[test]
    fn neighbours_are_joined() {
        for (version, tcp, kind) in [("v4", 20, 1), ("v6", 40, 4)] {
            let start = u32::MAX - 150;
            let mut last = segment(version, start.wrapping_add(200), 60, 3);
            last[tcp + 13] |= 0x08;
            let packets = [
                segment(version, start, 100, 1),
                segment(version, start.wrapping_add(100), 100, 2),
                with_right_checksum(last),
            ];
            let all = written(&packets);
            assert_eq!((all.len(), all[0].0), (1, 3), "{version}");
            let (header, packet) = all[0].1.split_at(HEADER);
            let field = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
            assert_eq!(header[..2], [1, kind]);
            assert_eq!([2, 4, 6, 8].map(field), [tcp as u16 + 20, 100, tcp as u16, 16]);
            let data = [[1; 100], [2; 100]].concat();
            assert_eq!(packet[tcp + 20..], [&data[..], &[3; 60]].concat());
            assert_eq!(packet[tcp + 13], 0x18, "PSH comes from the last one");
            let length = if version == "v4" { &packet[2..4] } else { &packet[4..6] };
            let expected = if version == "v4" { packet.len() } else { packet.len() - 40 };
            assert_eq!(length, (expected as u16).to_be_bytes());
            // TCP's checksum is right once the reader has completed it.
            assert!(
                Segment::of(&IpPacket::new(with_right_checksum(packet.to_vec())))
                    .unwrap()
                    .has_right_checksums()
            );
        }
    }

    /// Goal: what a discipline did to packets stays visible. Method: one thing at a time done to four.
    #[test]
    fn what_was_done_to_packets_stays() {
        let plain = || (0..4).map(|at| segment("v4", at * 100, 100, 7)).collect::<Vec<_>>();
        assert_eq!(counts(&plain()), [4]);
        let mut reordered = plain();
        reordered.swap(1, 2);
        assert_eq!(counts(&reordered), [1, 1, 1, 1]);
        let mut doubled = plain();
        doubled.insert(1, doubled[1].clone());
        assert_eq!(counts(&doubled), [2, 3]);
        let mut lost = plain();
        lost.remove(1);
        assert_eq!(counts(&lost), [1, 2]);
        for damaged in 0..4 {
            let mut packets = plain();
            let mut packet = IpPacket::new(packets[damaged].clone());
            packet.corrupt(77, 3);
            packets[damaged] = packet.into_bytes();
            let all = written(&packets);
            let alone = all.iter().find(|(_, bytes)| bytes[HEADER..] == packets[damaged]);
            assert!(
                alone.is_some_and(|(count, bytes)| *count == 1 && bytes[..HEADER] == [0; HEADER]),
                "{damaged}"
            );
        }
        let mut marked = plain();
        marked[1][1] |= 3;
        assert_eq!(counts(&marked), [1, 1, 2], "its neighbours have no mark");
    }

    /// Goal: nothing is joined that is no plain segment, and hostile bytes do no harm. Method: single
    /// changes, and every prefix of a packet.
    #[test]
    fn only_plain_segments_are_joined() {
        for (at, value) in [(0, 0x46), (6, 0x20), (9, 17), (33, 0x12), (33, 0x11), (32, 0x40), (2, 9)] {
            let mut packet = segment("v4", 0, 100, 1);
            packet[at] = value;
            assert!(Segment::of(&IpPacket::new(packet)).is_none(), "byte {at}: {value:#x}");
        }
        assert!(Segment::of(&IpPacket::new(segment("v4", 0, 1, 1)[..40].to_vec())).is_none(), "cut");
        let mut all_options = segment("v4", 0, 40, 1);
        all_options[32] = 0xf0;
        assert!(Segment::of(&IpPacket::new(all_options)).is_none(), "no data behind the options");
        for version in ["v4", "v6"] {
            let whole = segment(version, 0, 30, 1);
            for length in 0..whole.len() {
                assert_eq!(counts(&[whole[..length].to_vec(), whole.clone()]), [1, 1], "{version}, {length}");
            }
        }
        let longer = [segment("v4", 0, 100, 1), segment("v4", 100, 101, 1)];
        assert_eq!(counts(&longer), [1, 1], "only the last one may be shorter");
        let many: Vec<_> = (0..70).map(|at| segment("v4", at * 1000, 1000, 1)).collect();
        assert_eq!(counts(&many), [65, 5], "no packet is longer than 65,535 bytes");
    }

    /// A segment whose checksum is owed, with a field that is wrong until that is completed.
    fn owing(version: &str, sequence: u32) -> IpPacket {
        let (at, addresses) = if version == "v4" { (20, 12..20) } else { (40, 8..40) };
        let mut packet = segment(version, sequence, 100, 7);
        let pseudo = folded(sum(&packet[addresses]) + 6 + 120);
        packet[at + 16..at + 18].copy_from_slice(&pseudo.to_be_bytes());
        let owed = OwedChecksum { start: at as u16, offset: TCP_CHECKSUM };
        IpPacket::new(packet).with_owed_checksum(owed).expect("it fits")
    }

    /// Goal: a checksum that is owed is passed on as such, alone or joined, beside segments that owe none.
    /// Method: single ones; some that owe it and some that do not; one that owes another checksum, which is
    /// not known to be right.
    #[test]
    fn owed_checksums_are_passed_on() {
        let mut coalescer = Coalescer::new(Offload::On);
        for (version, at) in [("v4", 20), ("v6", 40)] {
            let alone = owing(version, 0);
            assert_eq!(coalescer.fill([&alone]), 1);
            let (header, bytes) = coalescer.bytes().split_at(HEADER);
            let field = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
            assert_eq!((header[..2].to_vec(), [2, 4, 6, 8].map(field)), (vec![1, 0], [0, 0, at, 16]));
            assert_eq!(bytes, alone.bytes());
            let plain = IpPacket::new(segment(version, 100, 100, 7));
            let given = [owing(version, 0), plain, owing(version, 200), owing(version, 300)];
            assert_eq!(coalescer.fill(&given), 4, "{version}");
            let whole = IpPacket::new(with_right_checksum(coalescer.bytes()[HEADER..].to_vec()));
            assert!(Segment::of(&whole).unwrap().has_right_checksums());
        }
        let another = OwedChecksum { start: 20, offset: 18 };
        let another = IpPacket::new(owing("v4", 100).bytes().to_vec()).with_owed_checksum(another);
        assert_eq!(coalescer.fill(&[owing("v4", 0), another.unwrap()]), 1);
    }

    /// Goal: damage to a packet that owes its checksum is noticed by its receiver. Method: one bit of the
    /// second of four is flipped; it leaves alone, with a checksum that is complete, and wrong.
    #[test]
    fn damage_to_a_packet_that_owes_its_checksum_stays() {
        let mut packets: Vec<_> = (0..4).map(|number| owing("v4", number * 100)).collect();
        packets[1].corrupt(77, 3);
        assert!(!Segment::of(&packets[1]).unwrap().has_right_checksums());
        let mut coalescer = Coalescer::new(Offload::On);
        assert_eq!(coalescer.fill(&packets), 1);
        assert_eq!(coalescer.fill(&packets[1..]), 1);
        assert_eq!(coalescer.bytes()[..HEADER], [0; HEADER]);
        packets[1].corrupt(77, 3);
        assert!(Segment::of(&packets[1]).unwrap().has_right_checksums(), "but for that bit");
    }

    /// Goal: a reader without offloads gets a checksum that is right. Method: a packet that owes it.
    #[test]
    fn without_offloads_checksums_are_completed() {
        let packet = owing("v4", 0);
        let mut coalescer = Coalescer::new(Offload::Off);
        assert_eq!(coalescer.fill([&packet]), 1);
        assert_eq!(coalescer.bytes(), segment("v4", 0, 100, 7));
        assert_eq!(packet.into_bytes(), coalescer.bytes());
    }

    /// Goal: without offloads bytes go out as they came.
    #[test]
    fn without_offloads_bytes_are_bytes() {
        let packets = [IpPacket::new(vec![1, 2, 3]), IpPacket::new(vec![4])];
        let mut coalescer = Coalescer::new(Offload::Off);
        assert_eq!((coalescer.fill(&packets), coalescer.bytes()), (1, &[1, 2, 3][..]));
    }
}
