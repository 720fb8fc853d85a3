//! The header that precedes a packet of a TUN interface with offloads: `struct virtio_net_hdr`, in the host's
//! byte order.

/// Its length.
pub(super) const HEADER: usize = 10;
/// A flag: the checksum is still to be completed.
pub(super) const NEEDS_CHECKSUM: u8 = 1;
/// Kinds: a packet, or a piece of a stream of TCP.
pub(super) const GSO_NONE: u8 = 0;
pub(super) const GSO_TCP_V4: u8 = 1;
pub(super) const GSO_TCP_V6: u8 = 4;
/// Added to a kind of a stream that marks congestion.
pub(super) const GSO_ECN: u8 = 0x80;

/// What the header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct VirtioHeader {
    pub(super) flags: u8,
    pub(super) kind: u8,
    /// Bytes of all headers.
    pub(super) headers: u16,
    /// Bytes of data of each segment.
    pub(super) size: u16,
    /// Where what the checksum covers begins: TCP's header, or UDP's.
    pub(super) checksum_start: u16,
    /// Where the checksum is, from there.
    pub(super) checksum_offset: u16,
}

impl VirtioHeader {
    pub(super) const fn read(bytes: &[u8; HEADER]) -> Self {
        let [flags, kind, a, b, c, d, e, f, g, h] = *bytes;
        Self {
            flags,
            kind,
            headers: u16::from_ne_bytes([a, b]),
            size: u16::from_ne_bytes([c, d]),
            checksum_start: u16::from_ne_bytes([e, f]),
            checksum_offset: u16::from_ne_bytes([g, h]),
        }
    }

    pub(super) const fn bytes(self) -> [u8; HEADER] {
        let ([a, b], [c, d]) = (self.headers.to_ne_bytes(), self.size.to_ne_bytes());
        let ([e, f], [g, h]) = (self.checksum_start.to_ne_bytes(), self.checksum_offset.to_ne_bytes());
        [self.flags, self.kind, a, b, c, d, e, f, g, h]
    }
}
