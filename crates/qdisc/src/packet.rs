//! What a queueing discipline asks of a packet.

use alloc::vec::Vec;
use quietcore_core::Nanos;

/// Most packets of the link that one may stand for where it is [kept whole](crate::Qdisc::keeps_whole).
pub const WHOLE_PACKETS_MAX: u32 = 64;

/// Most bytes that such a one counts, with all headers: 64 KiB, and those of [`WHOLE_PACKETS_MAX`] packets.
pub const WHOLE_BYTES_MAX: u32 = 80 << 10;

/// As many whole ones fit into a limit, at least, where they are kept so: a small queue fills packet by
/// packet.
pub(crate) const WHOLE_ONES_MIN: u32 = 4;

/// What a packet counts, in limits and in statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSize {
    /// Bytes on the link.
    pub bytes: u32,
    /// Packets of the link.
    pub packets: u32,
}

impl PacketSize {
    /// Bytes of each packet, rounded up.
    #[must_use]
    pub const fn each(self) -> u32 {
        if self.packets > 1 { self.bytes.div_ceil(self.packets) } else { self.bytes }
    }
}

/// Of one packet.
impl From<u32> for PacketSize {
    fn from(bytes: u32) -> Self {
        Self { bytes, packets: 1 }
    }
}

/// A packet, as far as a queueing discipline is concerned.
///
/// Only the length must be known. What else a packet can do decides what disciplines can do with it: one
/// that cannot be duplicated is not.
///
/// ```
/// use quietcore_qdisc::Packet;
///
/// struct Datagram(Vec<u8>);
///
/// impl Packet for Datagram {
///     fn len(&self) -> u32 {
///         self.0.len() as u32
///     }
/// }
/// assert_eq!(Datagram(vec![0; 1200]).len(), 1200);
/// ```
#[expect(clippy::len_without_is_empty, reason = "a packet without bytes is no packet")]
pub trait Packet: Sized + 'static {
    /// Bytes that it takes on the link, headers of the link layer included where they count.
    fn len(&self) -> u32;

    /// How many packets of the link it stands for, at least 1: more of a piece of a stream that is still to
    /// be cut, whose [`len`](Self::len) then has the headers of all of them.
    fn packets(&self) -> u32 {
        1
    }

    /// Both.
    fn size(&self) -> PacketSize {
        PacketSize { bytes: self.len(), packets: self.packets() }
    }

    /// Bytes on the link of each packet it stands for but the last one, which may have fewer.
    fn each(&self) -> u32 {
        self.size().each()
    }

    /// How many of its [bytes](Self::len) are headers of the link, which do not count where it comes in.
    fn link_header(&self) -> u32 {
        0
    }

    /// Which flow it belongs to: what has the same number is kept in order and shares a queue.
    fn flow(&self) -> u64 {
        0
    }

    /// The earliest moment at which it may leave, where its sender asked for one.
    fn departure(&self) -> Option<Nanos> {
        None
    }

    /// What its sender wants its flow paced to, in bytes per second.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    /// Its priority, as a socket's: which band it is of.
    fn priority(&self) -> u32 {
        0
    }

    /// Another one like it.
    fn duplicate(&self) -> Option<Self> {
        None
    }

    /// Flips one bit: of byte `byte` modulo its length, bit `bit` modulo 8.
    fn corrupt(&mut self, byte: u32, bit: u32) {
        let _ = (byte, bit);
    }

    /// The byte of its IP header that holds DSCP and ECN, if it has one.
    fn traffic_class(&self) -> Option<u8> {
        None
    }

    /// Clears its DSCP; ECN stays.
    fn clear_code_point(&mut self) {}

    /// Marks it as having met congestion (ECN); says whether it can be, and is now.
    fn mark_congestion(&mut self) -> bool {
        false
    }

    /// Its bytes for filters: from the first one of the network header on; none of which nothing is known.
    fn network_bytes(&self) -> &[u8] {
        &[]
    }

    /// Its mark, which filters can read: in the kernel, what a firewall or a socket gave it.
    fn mark(&self) -> u32 {
        0
    }
}

/// Bytes of which nothing is known.
impl Packet for Vec<u8> {
    fn len(&self) -> u32 {
        u32::try_from(self.as_slice().len()).unwrap_or(u32::MAX)
    }

    fn duplicate(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn corrupt(&mut self, byte: u32, bit: u32) {
        let count = self.as_slice().len();
        if count > 0 {
            self[byte as usize % count] ^= 1 << (bit % 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Packet;
    use alloc::vec;
    use alloc::vec::Vec;

    #[derive(Debug, PartialEq, Eq)]
    struct Plain;

    impl Packet for Plain {
        fn len(&self) -> u32 {
            7
        }
    }

    /// Goal: of a packet that tells only its length nothing else is assumed. Method: each question.
    #[test]
    fn nothing_else_is_assumed() {
        let mut packet = Plain;
        assert_eq!((packet.flow(), packet.priority()), (0, 0));
        assert_eq!((packet.link_header(), packet.packets()), (0, 1));
        assert_eq!((packet.departure(), packet.pacing_rate(), packet.duplicate()), (None, None, None));
        assert_eq!(packet.traffic_class(), None);
        assert_eq!((packet.network_bytes(), packet.mark()), (&[][..], 0));
        assert!(!packet.mark_congestion());
    }

    /// Goal: bytes are copied, and one bit of them is flipped. Method: bits and bytes that are taken modulo,
    /// of three bytes and of one; no bytes, of which no bit can be.
    #[test]
    fn bytes_of_which_nothing_is_known() {
        let mut bytes = vec![0_u8; 3];
        bytes.corrupt(7, 13);
        assert_eq!((&bytes, bytes.duplicate()), (&vec![0, 0b10_0000, 0], Some(vec![0, 0b10_0000, 0])));
        assert!(!bytes.mark_congestion() && bytes.network_bytes().is_empty());
        let mut one = vec![0_u8];
        one.corrupt(7, 3);
        assert_eq!(one, [0b1000]);
        let mut none: Vec<u8> = vec![];
        none.corrupt(7, 13);
        assert_eq!(none, [0_u8; 0]);
    }
}
