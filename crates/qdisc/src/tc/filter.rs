//! Filters: which packets go to which class.
//!
//! A small part of what `tc` has: `u32` with the fields of an IP header that have names, and `matchall`.
//! Absent: handles, hash tables, offsets, actions, policing. Source: tc-u32(8), tc-matchall(8).

use super::error::{TcError, TcProblem};
use super::number::{hexadecimal, integer};
use super::parent::{TcParent, write_id};
use super::scalar::{Scalar, Show, shown_as_displayed};
use super::table::Demand;
use super::value::OptionValue;
use super::words::{LineWords, OptionName};
use crate::ClassId;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Formatter};
use core::net::Ipv4Addr;

/// What is done to a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterVerb {
    /// Made.
    Add,
    /// Removed.
    Delete,
}

/// `filter add` or `del`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterCommand {
    /// What is done.
    pub verb: FilterVerb,
    /// To which device.
    pub device: String,
    /// The discipline that it belongs to.
    pub place: Option<TcParent>,
    /// What kind of packets it looks at.
    pub protocol: Option<Protocol>,
    /// The lowest is asked first.
    pub prio: Option<u16>,
    /// What it decides by; known unless something is removed.
    pub classifier: Option<Classifier>,
}

/// The number of a protocol on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol(
    /// As in a frame's header; 3 stands for all.
    pub u16,
);

const PROTOCOLS: [(&str, u16); 4] = [("all", 3), ("ip", 0x0800), ("ipv6", 0x86dd), ("arp", 0x0806)];

impl fmt::Display for Protocol {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match PROTOCOLS.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => out.write_str(name),
            None => write!(out, "{:#x}", self.0),
        }
    }
}

shown_as_displayed!(Protocol);

impl Scalar for Protocol {
    const ALLOWED: &'static [&'static str] = &["all", "ip", "ipv6", "arp", "a number"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        if let Some((_, number)) = PROTOCOLS.iter().find(|(name, _)| *name == word) {
            return Ok(Self(*number));
        }
        let number = integer(word).ok_or(TcProblem::Malformed("a protocol"))?;
        let range = |_| TcProblem::OutOfRange { low: "0".into(), high: "0xffff".into() };
        u16::try_from(number).map(Self).map_err(range)
    }
}

/// What a filter decides by.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Classifier {
    /// All of these fields are as told.
    U32 {
        /// At least one, unless something is removed.
        matches: Vec<FieldMatch>,
        /// The class that packets go to; known unless something is removed.
        flow: Option<ClassId>,
    },
    /// Every packet.
    MatchAll {
        /// The class that packets go to; known unless something is removed.
        flow: Option<ClassId>,
    },
}

/// One field of a packet, and what it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldMatch {
    /// `ip src ADDRESS[/LENGTH]`, or with a mask for the length.
    Source {
        /// What it has to be, where the mask has ones.
        address: Ipv4Addr,
        /// Which bits count.
        mask: Ipv4Addr,
    },
    /// `ip dst ADDRESS[/LENGTH]`.
    Destination {
        /// What it has to be, where the mask has ones.
        address: Ipv4Addr,
        /// Which bits count.
        mask: Ipv4Addr,
    },
    /// `ip sport VALUE MASK`.
    SourcePort {
        /// What it has to be, where the mask has ones.
        value: u16,
        /// Which bits count.
        mask: u16,
    },
    /// `ip dport VALUE MASK`.
    DestinationPort {
        /// What it has to be, where the mask has ones.
        value: u16,
        /// Which bits count.
        mask: u16,
    },
    /// `ip protocol VALUE MASK`.
    Protocol {
        /// What it has to be, where the mask has ones.
        value: u8,
        /// Which bits count.
        mask: u8,
    },
}

/// An address and the bits that count.
struct Ipv4Network(Ipv4Addr, Ipv4Addr);

impl Show for Ipv4Network {
    fn show(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let (address, mask) = (self.0, self.1.to_bits());
        match mask.leading_ones() {
            32 => write!(out, " {address}"),
            length if length == mask.count_ones() => write!(out, " {address}/{length}"),
            _ => write!(out, " {address}/{}", self.1),
        }
    }
}

impl Scalar for Ipv4Network {
    const ALLOWED: &'static [&'static str] = &["ADDRESS", "ADDRESS/LENGTH", "ADDRESS/MASK", "any"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        let form = "an IPv4 address";
        if matches!(word, "any" | "all" | "default") {
            return Ok(Self(Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED));
        }
        let (address, mask) =
            word.split_once('/').map_or((word, None), |(address, mask)| (address, Some(mask)));
        let address = address.parse().map_err(|_| TcProblem::Malformed(form))?;
        let Some(mask) = mask else { return Ok(Self(address, Ipv4Addr::BROADCAST)) };
        if let Ok(mask) = mask.parse() {
            return Ok(Self(address, mask));
        }
        let length = mask.bytes().all(|digit| digit.is_ascii_digit()).then(|| integer(mask)).flatten();
        match u32::try_from(length.ok_or(TcProblem::Malformed(form))?) {
            Ok(length @ 0..=32) => {
                let ones = u32::MAX.checked_shl(32 - length).unwrap_or(0);
                Ok(Self(address, Ipv4Addr::from_bits(ones)))
            }
            _ => Err(TcProblem::OutOfRange { low: "/0".into(), high: "/32".into() }),
        }
    }
}

/// A mask of a port, or of a protocol: hexadecimal.
struct FieldMask<T>(T);

impl<T: fmt::LowerHex> Show for FieldMask<T> {
    fn show(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {:#x}", self.0)
    }
}

impl<T: fmt::LowerHex + TryFrom<u128>> Scalar for FieldMask<T> {
    const ALLOWED: &'static [&'static str] = &["a hexadecimal mask"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        let mask = hexadecimal(word).ok_or(TcProblem::Malformed("a mask"))?;
        // All ones, of a type of this size.
        let high = alloc::format!("{:#x}", u64::MAX >> (64 - 8 * size_of::<T>()));
        T::try_from(mask).map(Self).map_err(|_| TcProblem::OutOfRange { low: "0".into(), high })
    }
}

const FIELDS: &[OptionName] =
    &[("src", "src"), ("dst", "dst"), ("sport", "sport"), ("dport", "dport"), ("protocol", "protocol")];

impl FieldMatch {
    /// Takes what stands behind `match`.
    fn take(words: &mut LineWords<'_>) -> Result<Self, TcError> {
        if words.value("match", &["ip"])? != "ip" {
            return Err(words.here(TcProblem::Unknown("header"), &["ip"]));
        }
        let names: Vec<&'static str> = FIELDS.iter().map(|(name, _)| *name).collect();
        words.value("match ip", &names)?;
        Ok(match words.full_name(FIELDS, "field of an IP header")? {
            "src" => {
                let Ipv4Network(address, mask) = words.scalar("src")?;
                Self::Source { address, mask }
            }
            "dst" => {
                let Ipv4Network(address, mask) = words.scalar("dst")?;
                Self::Destination { address, mask }
            }
            "sport" => {
                let (value, FieldMask(mask)) = (words.scalar("sport")?, words.scalar("sport")?);
                Self::SourcePort { value, mask }
            }
            "dport" => {
                let (value, FieldMask(mask)) = (words.scalar("dport")?, words.scalar("dport")?);
                Self::DestinationPort { value, mask }
            }
            _ => {
                let (value, FieldMask(mask)) = (words.scalar("protocol")?, words.scalar("protocol")?);
                Self::Protocol { value, mask }
            }
        })
    }
}

impl fmt::Display for FieldMatch {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        fn masked(name: &str, value: &impl Show, mask: &impl Show, out: &mut Formatter<'_>) -> fmt::Result {
            write!(out, "match ip {name}")?;
            value.show(out)?;
            mask.show(out)
        }
        match *self {
            Self::Source { address, mask } => masked("src", &Ipv4Network(address, mask), &None::<u8>, out),
            Self::Destination { address, mask } => {
                masked("dst", &Ipv4Network(address, mask), &None::<u8>, out)
            }
            Self::SourcePort { value, mask } => masked("sport", &value, &FieldMask(mask), out),
            Self::DestinationPort { value, mask } => masked("dport", &value, &FieldMask(mask), out),
            Self::Protocol { value, mask } => masked("protocol", &value, &FieldMask(mask), out),
        }
    }
}

/// The names of all classifiers.
pub(super) const CLASSIFIERS: &[&str] = &["u32", "matchall"];
const U32_OPTIONS: &[OptionName] = &[("match", "match"), ("flowid", "flowid"), ("classid", "flowid")];
const MATCHALL_OPTIONS: &[OptionName] = &[("flowid", "flowid"), ("classid", "flowid")];

impl Classifier {
    /// Takes what stands behind `kind`, if that is one.
    pub(super) fn take(
        kind: &str,
        words: &mut LineWords<'_>,
        demand: Demand,
    ) -> Option<Result<Self, TcError>> {
        Some(match kind {
            "u32" => Self::take_options(words, U32_OPTIONS, "option of u32").and_then(|(matches, flow)| {
                if demand == Demand::Enough && matches.is_empty() {
                    return Err(words.at_end(TcProblem::Missing { of: "u32", what: "`match`" }, &[]));
                }
                Self::U32 { matches, flow }.demanding(words, demand)
            }),
            "matchall" => Self::take_options(words, MATCHALL_OPTIONS, "option of matchall")
                .and_then(|(_, flow)| Self::MatchAll { flow }.demanding(words, demand)),
            _ => return None,
        })
    }

    fn demanding(self, words: &LineWords<'_>, demand: Demand) -> Result<Self, TcError> {
        let (Self::U32 { flow, .. } | Self::MatchAll { flow }) = &self;
        if demand == Demand::Enough && flow.is_none() {
            let of = if matches!(self, Self::U32 { .. }) { "u32" } else { "matchall" };
            return Err(words.at_end(TcProblem::Missing { of, what: "`flowid`" }, &[]));
        }
        Ok(self)
    }

    fn take_options(
        words: &mut LineWords<'_>,
        names: &[OptionName],
        role: &'static str,
    ) -> Result<(Vec<FieldMatch>, Option<ClassId>), TcError> {
        let (mut matches, mut flow) = (Vec::new(), None);
        while words.take().is_some() {
            if words.full_name(names, role)? == "match" {
                matches.push(FieldMatch::take(words)?);
            } else {
                words.first_time(flow.as_ref(), "flowid")?;
                flow = Some(ClassId::take(words, "flowid")?);
            }
        }
        Ok((matches, flow))
    }
}

impl fmt::Display for Classifier {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::U32 { matches, flow } => {
                out.write_str("u32")?;
                matches.iter().try_for_each(|field| write!(out, " {field}"))?;
                write_id("flowid", *flow, out)
            }
            Self::MatchAll { flow } => {
                out.write_str("matchall")?;
                write_id("flowid", *flow, out)
            }
        }
    }
}
