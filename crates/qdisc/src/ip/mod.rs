//! IP packets, as a TUN device gives them: from the first byte of the IP header on.
//!
//! What is no IP packet, or a cut one, is still a packet: it has a length and flow 0.
//!
//! Absent: the bytes of link headers (their number can be told).

mod facts;
mod header;
mod segments;

pub use header::IpHeader;
pub use segments::Segments;

use crate::checksum::OwedChecksum;
use crate::packet::Packet;
use alloc::vec::Vec;
use core::num::NonZeroU16;
use facts::HeaderFacts;

/// The two bits of explicit congestion notification (RFC 3168).
const ECN: u8 = 0b11;

/// The bytes of an IP packet, and what disciplines ask of it again and again.
///
/// 48 bytes besides its own, as queues move it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpPacket {
    bytes: Vec<u8>,
    mark: u32,
    /// Its length on the link; of what is still to be cut, that of all packets.
    length: u32,
    /// Bytes that each packet takes on the link besides its own.
    link_header: u16,
    /// Of `bytes` as they are now.
    facts: Option<HeaderFacts>,
    /// Fits into `bytes`.
    owed: Option<Owed>,
    /// Still to be cut so; at least one byte of data in `bytes` is behind the headers.
    segments: Option<Segments>,
}

/// An [`OwedChecksum`] behind an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owed {
    start: NonZeroU16,
    offset: u16,
}

impl IpPacket {
    /// Takes the bytes and reads their headers, once. Cost: one pass over the headers, nothing allocated.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        let (length, facts) = (Packet::len(&bytes), HeaderFacts::of(&bytes));
        Self { bytes, mark: 0, length, link_header: 0, facts, owed: None, segments: None }
    }

    /// The same with the length that follows from the rest.
    fn measured(mut self) -> Self {
        let link_header = u32::from(self.link_header);
        let bytes = Packet::len(&self.bytes).saturating_add(link_header);
        self.length = self.segments.map_or(bytes, |segments| {
            let more = u32::from(segments.headers) + link_header;
            bytes.saturating_add(more.saturating_mul(self.packets() - 1))
        });
        self
    }

    /// The same packet on a link that puts so many bytes before it: they count where bytes are counted, as
    /// the 14 of Ethernet do in disciplines of the kernel on an Ethernet device.
    #[must_use]
    pub fn with_link_header(self, bytes: u16) -> Self {
        Self { link_header: bytes, ..self }.measured()
    }

    /// The same packet, whose transport's checksum is still to be completed: as a TUN interface with offloads
    /// gives it. `None` if there is no such field in it, or if it would be one of the first header.
    #[must_use]
    pub fn with_owed_checksum(self, owed: OwedChecksum) -> Option<Self> {
        let start = NonZeroU16::new(owed.start).filter(|_| owed.fits(self.bytes.len()))?;
        Some(Self { owed: Some(Owed { start, offset: owed.offset }), ..self })
    }

    /// The checksum that is still to be completed, if one is.
    #[must_use]
    pub fn owed_checksum(&self) -> Option<OwedChecksum> {
        self.owed.map(|Owed { start, offset }| OwedChecksum { start: start.get(), offset })
    }

    /// The same bytes as a piece of a stream that is still to be cut: it counts as the packets that will come
    /// of it. `None` if there are no data behind its headers.
    #[must_use]
    pub fn with_segments(self, segments: Segments) -> Option<Self> {
        let has_data = self.bytes.len() > usize::from(segments.headers);
        has_data.then(|| Self { segments: Some(segments), ..self }.measured())
    }

    /// How it is still to be cut, if it is.
    #[must_use]
    pub const fn segments(&self) -> Option<Segments> {
        self.segments
    }

    /// Completes the checksum that is owed. Cost: one pass over the packet if one is.
    pub fn complete_checksum(&mut self) {
        if let Some(owed) = self.owed_checksum() {
            self.owed = None;
            owed.complete(&mut self.bytes);
        }
    }

    /// The same packet with a mark, as a firewall or a socket gives one in the kernel. None comes through a
    /// TUN device or a socket, so who makes the packet has to know it.
    #[must_use]
    pub fn with_mark(self, mark: u32) -> Self {
        Self { mark, ..self }
    }

    /// What its headers say, if it is an IP packet. Cost: one pass over them.
    #[must_use]
    pub fn header(&self) -> Option<IpHeader> {
        IpHeader::parse(&self.bytes)
    }

    /// Its bytes, as they are: without the [checksum that is owed](Self::owed_checksum), which only a packet
    /// that was told so lacks.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its bytes, complete.
    #[must_use]
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.complete_checksum();
        self.bytes
    }
}

impl Packet for IpPacket {
    fn len(&self) -> u32 {
        self.length
    }

    fn packets(&self) -> u32 {
        self.segments.map_or(1, |segments| segments.count(Packet::len(&self.bytes)))
    }

    fn each(&self) -> u32 {
        let whole = |segments: Segments| u32::from(segments.headers) + u32::from(segments.payload.get());
        let segments = self.segments.filter(|_| self.packets() > 1);
        segments.map_or(self.length, |segments| whole(segments) + u32::from(self.link_header))
    }

    fn link_header(&self) -> u32 {
        u32::from(self.link_header).saturating_mul(self.packets())
    }

    fn flow(&self) -> u64 {
        self.facts.map_or(0, |facts| facts.flow(&self.bytes))
    }

    /// By the type of service, as Linux gives it to what it forwards (the table of tc-prio(8)).
    fn priority(&self) -> u32 {
        match self.traffic_class().map_or(0, |class| class >> 3 & 0b11) {
            0b00 => 0, // best effort
            0b01 => 2, // high throughput: bulk
            0b10 => 6, // low delay: interactive
            _ => 4,    // both: interactive bulk
        }
    }

    fn duplicate(&self) -> Option<Self> {
        Some(self.clone())
    }

    /// The checksum is completed first, so that its receiver can tell. What is still to be cut stays as it
    /// is: what cuts it would make the checksums right.
    fn corrupt(&mut self, byte: u32, bit: u32) {
        if self.segments.is_some() {
            return;
        }
        self.complete_checksum();
        self.bytes.corrupt(byte, bit);
        self.facts = HeaderFacts::of(&self.bytes);
    }

    fn traffic_class(&self) -> Option<u8> {
        self.facts.map(|facts| facts.traffic_class(&self.bytes))
    }

    fn clear_code_point(&mut self) {
        let Some(facts) = self.facts else { return };
        let class = facts.traffic_class(&self.bytes);
        if facts.is_v4() {
            self.bytes[1] = class & ECN;
            // What goes off the sum adds to the sum's complement.
            let checksum = u16::from_be_bytes([self.bytes[10], self.bytes[11]]);
            let (checksum, carry) = checksum.overflowing_add(u16::from(class & !ECN));
            self.bytes[10..12].copy_from_slice(&(checksum + u16::from(carry)).to_be_bytes());
        } else {
            self.bytes[0] &= 0xf0;
            self.bytes[1] &= ECN << 4 | 0x0f;
        }
    }

    /// Sets ECN's two bits where its sender set one of them; IPv4's checksum follows (RFC 1624), right or
    /// wrong as it was.
    fn mark_congestion(&mut self) -> bool {
        let Some(facts) = self.facts else { return false };
        let class = facts.traffic_class(&self.bytes);
        if class & ECN == 0 {
            return false; // its sender would not understand
        }
        let added = !class & ECN;
        if facts.is_v4() {
            self.bytes[1] |= ECN;
            // The bit that was clear adds to the sum, so it goes off the sum's complement.
            let checksum = u16::from_be_bytes([self.bytes[10], self.bytes[11]]);
            let (checksum, borrow) = checksum.overflowing_sub(u16::from(added));
            self.bytes[10..12].copy_from_slice(&(checksum - u16::from(borrow)).to_be_bytes());
        } else {
            self.bytes[1] |= ECN << 4;
        }
        true
    }

    fn network_bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn mark(&self) -> u32 {
        self.mark
    }
}
