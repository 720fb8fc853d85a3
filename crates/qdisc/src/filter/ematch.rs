//! Extended matches, by which `basic` decides: comparisons of a packet's bytes and of what is known of it,
//! joined by `and`, `or`, `not` and parentheses.
//!
//! Matches of one list are looked at one after the other: behind one that is false, `and` ends the list,
//! behind one that is true, `or` does; so neither binds closer than the other. Source: tc-ematch(8); Linux
//! 6.12 net/sched/ematch.c, em_cmp.c, em_nbyte.c, em_u32.c, em_meta.c, by behaviour. Deviations: nothing is
//! known of the link layer, so what looks there is false; `trans` swaps the bytes as it does on machines of
//! little endianness, on which `meta(protocol ..)` is the number with its two bytes swapped.

use super::u32_key::U32Key;
use super::{bytes_at, ether_type};
use crate::{IpHeader, Packet};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Where offsets begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmatchLayer {
    /// The header of the link, of which nothing is known.
    Link,
    /// The header of IP.
    Network,
    /// The header behind that.
    Transport,
}

impl EmatchLayer {
    fn begin(self, network: &[u8]) -> Option<usize> {
        match self {
            Self::Link => None,
            Self::Network => Some(0),
            Self::Transport => IpHeader::parse(network)?.payload.map(usize::from),
        }
    }
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmatchOperator {
    /// They are equal.
    Equal,
    /// The first one is greater.
    Greater,
    /// The first one is less.
    Less,
}

impl EmatchOperator {
    fn holds(self, left: u32, right: u32) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Greater => left > right,
            Self::Less => left < right,
        }
    }
}

/// `cmp`: a number of 1, 2 or 4 bytes of the packet, compared with another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmatchCompare {
    /// How many bytes: 1, 2 or 4.
    pub bytes: u8,
    /// Where they begin.
    pub at: u16,
    /// From where that is counted.
    pub layer: EmatchLayer,
    /// Which bits count; all if it is 0.
    pub mask: u32,
    /// `trans`: the bytes are swapped.
    pub swapped: bool,
    /// How it is compared.
    pub operator: EmatchOperator,
    /// With what.
    pub value: u32,
}

impl EmatchCompare {
    fn is_met(&self, network: &[u8]) -> bool {
        let at = || i64::try_from(self.layer.begin(network)? + usize::from(self.at)).ok();
        let Some(at) = at() else { return false };
        let number = match self.bytes {
            1 => bytes_at::<1>(network, at).map(|[byte]| u32::from(byte)),
            2 => bytes_at(network, at)
                .map(u16::from_be_bytes)
                .map(|half| u32::from(if self.swapped { half.swap_bytes() } else { half })),
            _ => bytes_at(network, at)
                .map(u32::from_be_bytes)
                .map(|word| if self.swapped { word.swap_bytes() } else { word }),
        };
        let masked = |number| if self.mask == 0 { number } else { number & self.mask };
        number.is_some_and(|number| self.operator.holds(masked(number), self.value))
    }
}

/// What is known of a packet besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmatchMeta {
    /// `nf_mark`: its mark.
    Mark,
    /// `priority`: as a socket's.
    Priority,
    /// `pkt_len`: bytes, those of the link header included.
    Length,
    /// `protocol`: the number of its protocol on the link, with its two bytes swapped.
    Protocol,
}

/// A side of a comparison of `meta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmatchOperand {
    /// A number.
    Value(u32),
    /// What is known of the packet: shifted down, and then masked if the mask is not 0.
    Meta {
        /// What.
        what: EmatchMeta,
        /// By how many bits.
        shift: u8,
        /// Which bits count; all if it is 0.
        mask: u32,
    },
}

impl EmatchOperand {
    fn of(self, packet: &impl Packet) -> u32 {
        let (what, shift, mask) = match self {
            Self::Value(value) => return value,
            Self::Meta { what, shift, mask } => (what, shift, mask),
        };
        let number = match what {
            EmatchMeta::Mark => packet.mark(),
            EmatchMeta::Priority => packet.priority(),
            EmatchMeta::Length => packet.len(),
            EmatchMeta::Protocol => ether_type(packet.network_bytes()).unwrap_or(0).swap_bytes().into(),
        };
        let number = number.checked_shr(shift.into()).unwrap_or(0);
        if mask == 0 { number } else { number & mask }
    }
}

/// What one match looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmatchTerm {
    /// `cmp`.
    Compare(EmatchCompare),
    /// `u32`: a word, as `u32` filters have them; no next header is known.
    Word(U32Key),
    /// `nbyte`: these bytes are there.
    Bytes {
        /// The bytes.
        pattern: Box<[u8]>,
        /// Where they begin.
        at: u16,
        /// From where that is counted.
        layer: EmatchLayer,
    },
    /// `meta`: two sides, and how they are compared.
    Meta(EmatchOperand, EmatchOperator, EmatchOperand),
    /// Parentheses.
    Group(Vec<Ematch>),
}

/// How a match is joined to the one behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmatchJoin {
    /// Both have to be true.
    And,
    /// One of them has to be.
    Or,
}

/// One match of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ematch {
    /// `not`: it has to be false.
    pub is_negated: bool,
    /// What it looks at.
    pub term: EmatchTerm,
    /// How it is joined to the next one; none of the last.
    pub join: Option<EmatchJoin>,
}

impl Ematch {
    fn is_met(&self, packet: &impl Packet) -> bool {
        let network = packet.network_bytes();
        let is_met = match &self.term {
            EmatchTerm::Compare(compare) => compare.is_met(network),
            EmatchTerm::Word(key) => key.is_met(network, 0, 0).unwrap_or(false),
            EmatchTerm::Bytes { pattern, at, layer } => {
                let begin = layer.begin(network).map(|begin| begin + usize::from(*at));
                begin.and_then(|begin| network.get(begin..)).is_some_and(|rest| rest.starts_with(pattern))
            }
            EmatchTerm::Meta(left, operator, right) => operator.holds(left.of(packet), right.of(packet)),
            EmatchTerm::Group(list) => are_met(list, packet),
        };
        is_met != self.is_negated
    }
}

/// Whether a list of matches is true of a packet; an empty one is of all.
///
/// Cost: at most each match once. Parentheses are as deep in each other as the grammar allows (8).
#[must_use]
pub fn are_met(list: &[Ematch], packet: &impl Packet) -> bool {
    let mut is_met = true;
    for ematch in list {
        is_met = ematch.is_met(packet);
        let ends = match ematch.join {
            Some(EmatchJoin::And) => !is_met,
            Some(EmatchJoin::Or) => is_met,
            None => true,
        };
        if ends {
            break;
        }
    }
    is_met
}
