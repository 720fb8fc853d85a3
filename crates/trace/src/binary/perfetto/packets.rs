//! The packets of a Perfetto trace, one after the other, also those that are compressed together.
//!
//! A trace is a message of packets alone, so the file is read from the front, a packet at a time. Memory: one
//! packet, and those that were compressed with it.

use super::wire::{VARINT_BYTES_MAX, WireFields, varint};
use crate::binary::bytes::invalid;
#[cfg(feature = "compression")]
use crate::expansion::ExpansionExceeded;
use std::io::{self, BufRead, BufReader, Read};

/// The longest packet, and the longest sequence of packets that was compressed. Perfetto writes a packet
/// after some pages of a CPU's buffer.
const PACKET_BYTES_MAX: usize = 16 << 20;
/// `Trace.packet`, with its length before it.
const PACKET_TAG: u8 = 0x0a;
/// `TracePacket.compressed_packets`.
const COMPRESSED_PACKETS: u32 = 50;
/// So much is expanded whatever the size of what it was expanded from.
#[cfg(feature = "compression")]
const ALWAYS_EXPANDED: u64 = 16 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct PerfettoPackets<F> {
    file: BufReader<F>,
    /// Where the next packet of the file begins.
    at: u64,
    packet: Vec<u8>,
    /// Packets that were compressed, and where the next one of them begins.
    expanded: Vec<u8>,
    expanded_at: usize,
    expansion: Expansion,
}

/// How much was expanded, and of how much that may be.
#[derive(Debug)]
#[cfg_attr(not(feature = "compression"), expect(dead_code, reason = "nothing is expanded"))]
struct Expansion {
    limit: u32,
    compressed: u64,
    expanded: u64,
}

impl<F: Read> PerfettoPackets<F> {
    pub(super) fn new(file: F, expansion_max: u32) -> Self {
        Self {
            file: BufReader::new(file),
            at: 0,
            packet: Vec::new(),
            expanded: Vec::new(),
            expanded_at: 0,
            expansion: Expansion { limit: expansion_max, compressed: 0, expanded: 0 },
        }
    }

    /// Where the packet that was taken last ends in the file.
    pub(super) fn place(&self) -> u64 {
        self.at
    }

    /// The next packet, if there is one.
    pub(super) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            if self.expanded_at < self.expanded.len() {
                return self.next_expanded().map(Some);
            }
            if !self.read_packet()? {
                return Ok(None);
            }
            let mut fields = WireFields::of(&self.packet);
            let compressed = fields.find_map(|field| match field {
                Ok((COMPRESSED_PACKETS, value)) => value.bytes(),
                _ => None,
            });
            let Some(compressed) = compressed else { return Ok(Some(&self.packet)) };
            self.expanded = self.expansion.expand(compressed)?;
            self.expanded_at = 0;
        }
    }

    /// Reads a packet from the file; false at its end.
    fn read_packet(&mut self) -> io::Result<bool> {
        let begun = self.at;
        if self.file.fill_buf()?.is_empty() {
            return Ok(false);
        }
        if self.byte()? != PACKET_TAG {
            return Err(invalid(format!("no packet begins at byte {begun}, where one should")));
        }
        let mut length = Vec::with_capacity(VARINT_BYTES_MAX);
        while length.last().is_none_or(|&byte| byte >= 0x80) && length.len() < length.capacity() {
            length.push(self.byte()?);
        }
        let length = varint(&mut &*length).unwrap_or(u64::MAX);
        let length = usize::try_from(length).ok().filter(|&length| length <= PACKET_BYTES_MAX);
        let Some(length) = length else {
            return Err(invalid(format!(
                "the packet at byte {begun} has more than {PACKET_BYTES_MAX} bytes, which is not read"
            )));
        };
        self.packet.resize(length, 0);
        let cut = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => invalid(format!("it ends in the packet at byte {begun}")),
            _ => error,
        };
        self.file.read_exact(&mut self.packet).map_err(cut)?;
        self.at += length as u64;
        Ok(true)
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        let at = self.at;
        let read = self.file.read_exact(&mut byte);
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                invalid(format!("it ends at byte {at}, in the length of a packet"))
            }
            _ => error,
        })?;
        self.at += 1;
        Ok(byte[0])
    }

    fn next_expanded(&mut self) -> io::Result<&[u8]> {
        let broken = || invalid(format!("the compressed packets that end at byte {} are broken", self.at));
        let mut fields = WireFields::of(&self.expanded[self.expanded_at..]);
        let field = fields.next().and_then(Result::ok);
        let Some(packet) = field.filter(|field| field.0 == 1).and_then(|field| field.1.bytes()) else {
            return Err(broken());
        };
        self.expanded_at = self.expanded.len() - fields.left();
        Ok(packet)
    }
}

impl Expansion {
    #[cfg(feature = "compression")]
    fn expand(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let (mut expanded, most) = (Vec::new(), PACKET_BYTES_MAX as u64 + 1);
        flate2::read::ZlibDecoder::new(bytes).take(most).read_to_end(&mut expanded)?;
        if expanded.len() > PACKET_BYTES_MAX {
            return Err(invalid(format!(
                "compressed packets have more than {PACKET_BYTES_MAX} bytes, which is not read"
            )));
        }
        self.compressed += bytes.len() as u64;
        self.expanded += expanded.len() as u64;
        let allowed = self.compressed.saturating_mul(u64::from(self.limit)).max(ALWAYS_EXPANDED);
        if self.expanded > allowed {
            let exceeded = ExpansionExceeded { limit: self.limit };
            return Err(io::Error::new(io::ErrorKind::InvalidData, exceeded));
        }
        Ok(expanded)
    }

    #[cfg(not(feature = "compression"))]
    #[expect(clippy::unused_self, reason = "it is used with the feature")]
    fn expand(&mut self, _: &[u8]) -> io::Result<Vec<u8>> {
        Err(invalid(
            "its packets are compressed, which this program cannot read: traceconv decompress_packets FILE",
        ))
    }
}

/// Whether `front` and what follows in `source` can be a trace: it begins with a packet that has the fields
/// of one. No more is read than that needs; it is added to `front`.
pub(crate) fn begins_with_packet(source: &mut impl Read, front: &mut Vec<u8>) -> io::Result<bool> {
    /// The first packet says who traced, and is short, if it is not of those that are compressed.
    const PROBE_BYTES: usize = 1 << 20;
    let mut has = |front: &mut Vec<u8>, count: usize| -> io::Result<bool> {
        let missing = count.saturating_sub(front.len());
        source.take(missing as u64).read_to_end(front)?;
        Ok(front.len() >= count)
    };
    if !has(front, 1)? || front[0] != PACKET_TAG {
        return Ok(false);
    }
    let mut begun = 1;
    while begun == 1 || front[begun - 1] >= 0x80 {
        begun += 1;
        if begun > 1 + VARINT_BYTES_MAX || !has(front, begun)? {
            return Ok(false);
        }
    }
    let length = varint(&mut &front[1..begun]).and_then(|length| usize::try_from(length).ok());
    let Some(length) = length.filter(|length| (2..=PROBE_BYTES).contains(length)) else {
        return Ok(false);
    };
    let end = begun + length;
    // Text that begins with an empty line would have to end here, too, or go on with another one.
    let is_followed = !has(front, end + 1)? || front[end] == PACKET_TAG;
    let packet = front.get(begun..end);
    Ok(is_followed && packet.is_some_and(|packet| WireFields::of(packet).all(|field| field.is_ok())))
}
