//! Cutting: what one read of a TUN interface gives, as the packets of the link.
//!
//! With offloads the kernel gives out what it would give a network card: a packet whose checksum is still to
//! be completed, or up to 64 KiB of a stream of TCP with one header for all. Each segment gets that header
//! with its own length, place in the stream, identification and checksum of IP; FIN and PSH are the last
//! one's, CWR is the first one's. TCP's checksum stays owed: the packet says so, and what needs it
//! completes it.
//!
//! Invariant: every byte of data comes out once, in order, and no packet is longer than its headers and
//! `gso_size`. Bytes that are no such thing are refused, whatever they are. Source: RFC 9293, RFC 3168, RFC
//! 6864, the virtio specification (5.1.6, `virtio_net_hdr`). Absent: streams of UDP, which the kernel is
//! not told to give out uncut.

use super::virtio::{GSO_ECN, GSO_NONE, GSO_TCP_V4, GSO_TCP_V6, HEADER, NEEDS_CHECKSUM, VirtioHeader};
use quietcore_qdisc::checksum::{OwedChecksum, folded, sum};
use quietcore_qdisc::{IpPacket, Packet, Segments, WHOLE_BYTES_MAX, WHOLE_PACKETS_MAX};
use std::num::NonZeroU16;

/// Where TCP's flags and its checksum are.
const TCP_FLAGS: usize = 13;
pub(super) const TCP_CHECKSUM: u16 = 16;
/// Flags that not every segment has.
const FIN_AND_PUSH: u8 = 0x09;
const CWR: u8 = 0x80;
/// Its number in IP.
const TCP: u8 = 6;
/// Longest IP packet.
const LONGEST: usize = 65_535;

/// Bytes that are no packet and no piece of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotCut;

/// Whether pieces of a stream are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pieces {
    /// Into packets of the link.
    Cut,
    /// Not those that are no longer than a discipline may be given.
    Whole,
}

/// Gives each packet of what was `read` to `each`; how many packets of the link there are.
pub(super) fn cut(read: &[u8], pieces: Pieces, each: &mut dyn FnMut(IpPacket)) -> Result<usize, NotCut> {
    let (header, packet) = read.split_first_chunk::<HEADER>().ok_or(NotCut)?;
    let header = VirtioHeader::read(header);
    if packet.is_empty() {
        return Err(NotCut);
    }
    match header.kind & !GSO_ECN {
        GSO_NONE => {
            let mut packet = IpPacket::new(packet.to_vec());
            if header.flags & NEEDS_CHECKSUM != 0 {
                let owed = OwedChecksum { start: header.checksum_start, offset: header.checksum_offset };
                packet = packet.with_owed_checksum(owed).ok_or(NotCut)?;
            }
            each(packet);
            Ok(1)
        }
        GSO_TCP_V4 | GSO_TCP_V6 => {
            let stream = Stream::of(packet, &header).ok_or(NotCut)?;
            if let Some(whole) = stream.whole(packet, header.kind).filter(|_| pieces == Pieces::Whole) {
                let count = whole.packets() as usize;
                each(whole);
                return Ok(count);
            }
            Ok(stream.segments(each))
        }
        _ => Err(NotCut),
    }
}

/// A piece of a stream: headers, and data for several segments.
struct Stream<'a> {
    headers: &'a [u8],
    data: &'a [u8],
    /// Most data of a segment.
    size: usize,
    /// Where TCP's header begins.
    tcp: usize,
    is_v4: bool,
}

impl<'a> Stream<'a> {
    fn of(packet: &'a [u8], header: &VirtioHeader) -> Option<Self> {
        let tcp = usize::from(header.checksum_start);
        let is_v4 = header.kind & !GSO_ECN == GSO_TCP_V4;
        let (version, least) = if is_v4 { (4, 20) } else { (6, 40) };
        let is_ip = packet[0] >> 4 == version && tcp >= least;
        let is_v4_whole = !is_v4 || usize::from(packet[0] & 0xf) * 4 == tcp;
        let data = tcp + usize::from(packet.get(tcp + 12)? >> 4) * 4;
        let size = usize::from(header.size);
        // With less, TCP's checksum and flags would not be there.
        let is_tcp = data >= tcp + 20 && data < packet.len() && packet.len() <= LONGEST;
        if !is_ip || !is_v4_whole || !is_tcp || size == 0 {
            return None;
        }
        let (headers, data) = packet.split_at(data);
        Some(Self { headers, data, size, tcp, is_v4 })
    }

    /// The piece as it is, if it is short enough; `packet` is all of it, with the sum of its pseudo-header.
    fn whole(&self, packet: &[u8], kind: u8) -> Option<IpPacket> {
        let count = self.data.len().div_ceil(self.size);
        // Both are below the length of a packet.
        let payload = NonZeroU16::new(self.size as u16)?;
        let segments = Segments { headers: self.headers.len() as u16, payload, kind };
        let owed = OwedChecksum { start: self.tcp as u16, offset: TCP_CHECKSUM };
        if count < 2 || count > WHOLE_PACKETS_MAX as usize {
            return None;
        }
        let whole = IpPacket::new(packet.to_vec()).with_owed_checksum(owed)?.with_segments(segments)?;
        Some(whole).filter(|whole| whole.len() <= WHOLE_BYTES_MAX)
    }

    fn segments(&self, each: &mut dyn FnMut(IpPacket)) -> usize {
        let last = self.data.len().div_ceil(self.size) - 1;
        for (number, data) in self.data.chunks(self.size).enumerate() {
            let mut packet = Vec::with_capacity(self.headers.len() + data.len());
            packet.extend_from_slice(self.headers);
            packet.extend_from_slice(data);
            // Both fit: the whole is no longer than an IP packet.
            self.write_ip(&mut packet, number as u16);
            let sequence = &mut packet[self.tcp + 4..self.tcp + 8];
            let first = u32::from_be_bytes([sequence[0], sequence[1], sequence[2], sequence[3]]);
            let own = first.wrapping_add((number * self.size) as u32);
            sequence.copy_from_slice(&own.to_be_bytes());
            let not_last = if number < last { FIN_AND_PUSH } else { 0 };
            let not_first = if number > 0 { CWR } else { 0 };
            packet[self.tcp + TCP_FLAGS] &= !(not_last | not_first);
            self.write_pseudo_header(&mut packet);
            // Its header is there, as `of` has seen.
            let owed = OwedChecksum { start: self.tcp as u16, offset: TCP_CHECKSUM };
            IpPacket::new(packet).with_owed_checksum(owed).into_iter().for_each(&mut *each);
        }
        last + 1
    }

    /// The IP header's length, identification and checksum.
    fn write_ip(&self, packet: &mut [u8], number: u16) {
        let length = packet.len() as u16;
        if !self.is_v4 {
            packet[4..6].copy_from_slice(&(length - 40).to_be_bytes());
            return;
        }
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        let identification = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(number);
        packet[4..6].copy_from_slice(&identification.to_be_bytes());
        packet[10..12].fill(0);
        let checksum = !folded(sum(&packet[..self.tcp]));
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    /// The sum that the field of TCP's checksum has until that is completed.
    fn write_pseudo_header(&self, packet: &mut [u8]) {
        let addresses = if self.is_v4 { 12..20 } else { 8..40 };
        let segment = packet.len() - self.tcp;
        let pseudo_header = sum(&packet[addresses]) + u64::from(TCP) + segment as u64;
        let field = self.tcp + usize::from(TCP_CHECKSUM);
        packet[field..field + 2].copy_from_slice(&folded(pseudo_header).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::coalesce::{Coalescer, Offload};
    use super::super::tcp_segment::{tcp_segment, with_right_checksum};
    use super::super::virtio::{GSO_ECN, HEADER, NEEDS_CHECKSUM};
    use super::{NotCut, OwedChecksum, Pieces, cut, folded, sum};
    use quietcore_qdisc::{IpPacket, Packet};

    fn owing(read: &[u8]) -> Result<Vec<IpPacket>, NotCut> {
        let mut found = Vec::new();
        let count = cut(read, Pieces::Cut, &mut |packet| found.push(packet))?;
        assert_eq!(count, found.len());
        Ok(found)
    }

    /// Their bytes, with all checksums.
    fn packets(read: &[u8]) -> Result<Vec<Vec<u8>>, NotCut> {
        Ok(owing(read)?.into_iter().map(IpPacket::into_bytes).collect())
    }

    /// Whether the sums of the IP header and of what is behind it are right; `at` is where that begins.
    fn has_right_checksums(packet: &[u8], at: usize) -> bool {
        let (addresses, protocol) =
            if at == 20 { (&packet[12..20], packet[9]) } else { (&packet[8..40], packet[6]) };
        let is_header_right = at != 20 || folded(sum(&packet[..20])) == u16::MAX;
        let pseudo_header = sum(addresses) + u64::from(protocol) + (packet.len() - at) as u64;
        is_header_right && folded(pseudo_header + sum(&packet[at..])) == u16::MAX
    }

    /// A segment of IPv4 (`at` is 20) or IPv6 (40): number `number` of those with 100 bytes each. Sequence
    /// numbers and identifications wrap.
    fn segment(at: usize, number: u16, data: &[u8]) -> Vec<u8> {
        let identification = (u16::MAX - 1).wrapping_add(number);
        let sequence = (u32::MAX - 150).wrapping_add(u32::from(number) * 100);
        tcp_segment(at, identification, sequence, 12, data)
    }

    /// Three segments, joined.
    fn joined(at: usize) -> Vec<u8> {
        let mut coalescer = Coalescer::new(Offload::On);
        let given: Vec<_> = (0..3).map(|number| IpPacket::new(segment(at, number, &[7; 100]))).collect();
        assert_eq!(coalescer.fill(&given), 3);
        coalescer.bytes().to_vec()
    }

    /// Goal: what was joined is cut into what it was. Method: four segments of each version, the last one
    /// shorter and with PSH, over the ends of sequence numbers and identifications.
    #[test]
    fn what_was_joined_is_cut_into_what_it_was() {
        for at in [20, 40] {
            let mut all: Vec<_> = (0..3).map(|number| segment(at, number, &[number as u8; 100])).collect();
            let mut last = segment(at, 3, &[9; 41]);
            last[at + 13] |= 0x08;
            all.push(with_right_checksum(last));
            let mut coalescer = Coalescer::new(Offload::On);
            let given: Vec<_> = all.iter().cloned().map(IpPacket::new).collect();
            assert_eq!(coalescer.fill(&given), 4);
            let found = packets(coalescer.bytes()).unwrap();
            assert_eq!(found, all, "IP header of {at} bytes");
            assert!(found.iter().all(|packet| has_right_checksums(packet, at)));
        }
    }

    /// Goal: what is cut owes its checksum, and has the sum of its own pseudo-header where that goes. Method:
    /// three segments, the last one shorter, of both versions.
    #[test]
    fn segments_owe_their_checksum() {
        for at in [20, 40] {
            let lengths = [100, 100, 41];
            let given = (0..3).map(|number| segment(at, number, &vec![7; lengths[usize::from(number)]]));
            let given: Vec<_> = given.map(IpPacket::new).collect();
            let mut coalescer = Coalescer::new(Offload::On);
            assert_eq!(coalescer.fill(&given), 3);
            for (packet, length) in owing(coalescer.bytes()).unwrap().iter().zip(lengths) {
                assert_eq!(packet.owed_checksum(), Some(OwedChecksum { start: at as u16, offset: 16 }));
                let addresses = if at == 20 { 12..20 } else { 8..40 };
                let pseudo = folded(sum(&packet.bytes()[addresses]) + 6 + 32 + length as u64);
                assert_eq!(packet.bytes()[at + 16..at + 18], pseudo.to_be_bytes(), "{at}, {length}");
            }
        }
    }

    /// What is read where pieces stay whole, and how many packets of the link it is.
    fn kept(read: &[u8]) -> Result<(Vec<IpPacket>, usize), NotCut> {
        let mut found = Vec::new();
        let count = cut(read, Pieces::Whole, &mut |packet| found.push(packet))?;
        Ok((found, count))
    }

    /// Goal: a piece that stays whole is written as it was read, to the byte, and counts as its packets.
    /// Method: pieces of three segments of both versions, one of a stream that marks congestion.
    #[test]
    fn what_stays_whole_is_written_as_it_was_read() {
        for (at, ecn) in [(20, 0), (40, 0), (20, GSO_ECN)] {
            let mut read = joined(at);
            read[1] |= ecn;
            let (found, count) = kept(&read).unwrap();
            assert_eq!((found.len(), count, found[0].packets()), (1, 3, 3));
            assert_eq!(found[0].len() as usize, read.len() - HEADER + 2 * (at + 32));
            let mut coalescer = Coalescer::new(Offload::On);
            let behind = IpPacket::new(segment(at, 3, &[7; 100]));
            assert_eq!(coalescer.fill([&found[0], &behind]), 1, "and nothing is joined to it");
            assert_eq!(coalescer.parts(&found[0]).concat(), read);
            assert_eq!(coalescer.fill([&behind]), 1);
            assert_eq!(coalescer.parts(&behind).concat(), coalescer.bytes(), "a packet is one part");
        }
    }

    /// Goal: a piece that is longer than disciplines may be given, or one segment, is cut. Method: 64
    /// segments and one more; a full piece of usual ones; one segment.
    #[test]
    fn what_is_too_long_or_short_is_cut() {
        let piece = |count: usize, size: u16| {
            let mut read = joined(20);
            read[4..6].copy_from_slice(&size.to_ne_bytes());
            read.resize(HEADER + 52 + count * usize::from(size), 7);
            let (found, count) = kept(&read).unwrap();
            (found.len(), count)
        };
        assert_eq!((piece(64, 100), piece(65, 100)), ((1, 64), (65, 65)));
        assert_eq!((piece(44, 1_448), piece(1, 100)), ((1, 44), (1, 1)));
        let mut read = joined(20);
        read.truncate(HEADER + 152);
        assert_eq!(kept(&read).unwrap().0[0].segments(), None, "one segment is a packet");
    }

    /// Goal: flags that not every segment has are where they belong. Method: FIN, PSH and CWR on a stream
    /// that says that it marks congestion.
    #[test]
    fn flags_are_where_they_belong() {
        let mut read = joined(20);
        read[1] |= GSO_ECN;
        read[HEADER + 20 + 13] |= 0x89;
        let flags: Vec<u8> = packets(&read).unwrap().iter().map(|packet| packet[33]).collect();
        assert_eq!(flags, [0x90, 0x10, 0x19]);
    }

    /// Goal: a checksum that is still to be completed is right, and nothing else of the packet changes.
    /// Method: UDP and TCP over IPv4.
    #[test]
    fn checksums_are_completed() {
        for (protocol, offset, filler) in [(17, 6, 0x5a), (6, 16, 0xff), (17, 6, 0)] {
            let mut packet = vec![filler; 60];
            packet[..12].copy_from_slice(&[0x45, 0, 0, 60, 0, 1, 0x40, 0, 64, protocol, 0, 0]);
            let checksum = !folded(sum(&packet[..20]));
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            let field = 20 + offset;
            let pseudo = folded(sum(&packet[12..20]) + u64::from(protocol) + 40);
            packet[field..field + 2].copy_from_slice(&pseudo.to_be_bytes());
            let mut header = [0; HEADER];
            header[0] = NEEDS_CHECKSUM;
            header[6..8].copy_from_slice(&20_u16.to_ne_bytes());
            header[8..10].copy_from_slice(&(offset as u16).to_ne_bytes());
            let read = [&header[..], &packet].concat();
            assert_eq!(owing(&read).unwrap()[0].bytes(), packet, "nothing is summed before it is asked for");
            let found = packets(&read).unwrap();
            assert_eq!(found.len(), 1);
            assert!(has_right_checksums(&found[0], 20), "{protocol}: {found:?}");
            assert_eq!(
                (&found[0][..field], &found[0][field + 2..]),
                (&packet[..field], &packet[field + 2..])
            );
        }
    }

    /// Goal: hostile bytes do no harm, and data are neither lost nor made. Method: every prefix of a piece
    /// of a stream, and every byte of its headers changed to some values; headers alone; and a stream of
    /// UDP.
    #[test]
    fn hostile_bytes_are_refused_or_cut() {
        for at in [20, 40] {
            let read = joined(at);
            for length in 0..read.len() {
                if let Ok(found) = packets(&read[..length]) {
                    let data: usize = found.iter().map(|packet| packet.len() - at - 32).sum();
                    assert_eq!(data, length - HEADER - at - 32, "{length} bytes");
                }
            }
            for place in 0..HEADER + at + 32 {
                for value in [0, 1, 0x0f, 0x45, 0x60, 0x80, 0xff] {
                    let mut damaged = read.clone();
                    damaged[place] = value;
                    if let Ok(found) = packets(&damaged) {
                        assert!(found.iter().all(|packet| packet.len() <= read.len()), "{place}: {value}");
                    }
                }
            }
        }
        let far = [&[NEEDS_CHECKSUM, 0, 0, 0, 0, 0, 0xff, 0xff, 16, 0][..], &[0x45; 90]].concat();
        assert_eq!(packets(&far), Err(NotCut), "a checksum beyond the packet");
        assert_eq!(packets(&[0; HEADER]), Err(NotCut));
        assert_eq!(packets(&[&[0; HEADER][..], &[1]].concat()), Ok(vec![vec![1]]));
        assert_eq!(packets(&[&[0, 5, 0, 0, 9, 0, 0, 0, 0, 0][..], &[0x45; 90]].concat()), Err(NotCut));
    }
}
