//! What filters read in packets, and how they decide: the part of `tc`'s filters without names and
//! priorities.
//!
//! A filter sees the bytes of a packet from the first byte of its network header on
//! ([`Packet::network_bytes`](crate::Packet::network_bytes)), as a TUN device gives them: there is no link
//! header, so what looks at one is true of no packet. Every read is checked: bytes from a network are not to
//! be trusted. Nothing is allocated per packet.
//!
//! Source: Linux 6.12 net/sched/cls_u32.c, by behaviour; tc-u32(8).

mod ematch;
mod flower;
mod u32_key;
mod u32_tables;

pub use ematch::{
    Ematch, EmatchCompare, EmatchJoin, EmatchLayer, EmatchMeta, EmatchOperand, EmatchOperator, EmatchTerm,
    are_met,
};
pub use flower::{FlowerAddress, FlowerField, FlowerKeys, FlowerPort};
pub use u32_key::{U32Hash, U32Key, U32Length, U32Offset, U32Selector};
pub use u32_tables::{U32Address, U32Decision, U32Error, U32Rule, U32Table, U32Tables};

/// The number that a frame's header has for IPv4, and for IPv6.
const ETHER_IP: u16 = 0x0800;
const ETHER_IPV6: u16 = 0x86dd;

/// What a packet is, as the header of a frame would say: the version of an IP header tells it, as on a TUN
/// device; nothing of other bytes.
#[must_use]
pub fn ether_type(network: &[u8]) -> Option<u16> {
    match network.first()? >> 4 {
        4 => Some(ETHER_IP),
        6 => Some(ETHER_IPV6),
        _ => None,
    }
}

/// `N` bytes that begin at `at`, if the packet has them all.
fn bytes_at<const N: usize>(network: &[u8], at: i64) -> Option<[u8; N]> {
    network.get(usize::try_from(at).ok()?..)?.first_chunk().copied()
}
