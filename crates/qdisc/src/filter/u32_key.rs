//! What one rule of a `u32` looks at: words of the packet, and where the next table's words are.

use super::bytes_at;
use alloc::vec::Vec;

/// A word of 32 bits, and what it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct U32Key {
    /// What it has to be, where the mask has ones; in the order of the network.
    pub value: u32,
    /// Which bits count.
    pub mask: u32,
    /// Where it begins: bytes behind the first one of the network header, or of the next header; before it
    /// if negative, where nothing is.
    pub offset: i32,
    /// Whether `offset` counts from the next header, which a rule that links to a table has found.
    pub next_header: bool,
}

impl U32Key {
    /// Whether the word is as told; `None` if the packet ends before it does. `from` is where offsets begin,
    /// `next` how far behind that the next header is.
    #[must_use]
    pub fn is_met(&self, network: &[u8], from: u32, next: u32) -> Option<bool> {
        let next = if self.next_header { next } else { 0 };
        let at = i64::from(from) + i64::from(next) + i64::from(self.offset);
        let word = u32::from_be_bytes(bytes_at(network, at)?);
        Some((word ^ self.value) & self.mask == 0)
    }
}

/// `hashkey`: which bits of which word choose the bucket of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct U32Hash {
    /// Which bits count.
    pub mask: u32,
    /// Where the word begins: bytes behind the first one of the network header.
    pub offset: i32,
}

impl U32Hash {
    /// The bits of the mask, moved down until its lowest one is the lowest bit of all; `None` if the packet
    /// ends before the word does.
    pub(super) fn of(self, network: &[u8], from: u32) -> Option<u32> {
        let word = u32::from_be_bytes(bytes_at(network, i64::from(from) + i64::from(self.offset))?);
        Some((word & self.mask).checked_shr(self.mask.trailing_zeros()).unwrap_or(0))
    }
}

/// `offset`: where the next header is, for the table that a rule links to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct U32Offset {
    /// `plus N`: so many bytes behind the current one.
    pub plus: u16,
    /// `at N mask M shift S`: and as many as these two bytes say, masked and shifted down.
    pub read: Option<U32Length>,
    /// `eat`: offsets begin there from now on; without it only those of `nexthdr` do.
    pub eat: bool,
}

/// A length that a packet tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct U32Length {
    /// Where its two bytes begin.
    pub at: i16,
    /// Which bits count.
    pub mask: u16,
    /// By how many bits it is shifted down.
    pub shift: u8,
}

impl U32Offset {
    /// How far the next header is, in whole words, rounded up; `None` if the packet ends before the length
    /// does.
    pub(super) fn of(&self, network: &[u8], from: u32) -> Option<u32> {
        let told = match self.read {
            None => 0,
            Some(length) => {
                let two = u16::from_be_bytes(bytes_at(network, i64::from(from) + i64::from(length.at))?);
                u32::from((two & length.mask).checked_shr(u32::from(length.shift)).unwrap_or(0))
            }
        };
        Some((u32::from(self.plus) + told).next_multiple_of(4))
    }
}

/// All that a rule looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct U32Selector {
    /// Words of the packet, all of which have to be as told.
    pub keys: Vec<U32Key>,
    /// `match mark VALUE MASK`: the packet's mark.
    pub mark: Option<(u32, u32)>,
    /// Which bucket of the table that the rule links to.
    pub hash: Option<U32Hash>,
    /// Where the next header is for that table.
    pub offset: Option<U32Offset>,
}
