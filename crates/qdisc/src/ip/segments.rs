//! A piece of a stream that one IP packet carries for several.

use core::num::NonZeroU16;

/// How a piece of a stream of TCP is to be cut into packets (`gso_size`, `gso_type` of the kernel).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Bytes of the headers of IP and TCP, which each packet will have.
    pub headers: u16,
    /// Most bytes of data of each packet.
    pub payload: NonZeroU16,
    /// What the device calls this kind of piece: given back to it.
    pub kind: u8,
}

impl Segments {
    /// How many packets so many bytes, headers included, are.
    pub(super) fn count(self, bytes: u32) -> u32 {
        bytes.saturating_sub(u32::from(self.headers)).div_ceil(u32::from(self.payload.get())).max(1)
    }
}
