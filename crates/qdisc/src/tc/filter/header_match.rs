//! `match` of a `u32`: fields of headers by their names, and words, halves and bytes by their places, all
//! brought to words of 32 bits.
//!
//! Two that look at the same word become one, if they agree. Source: tc-u32(8); iproute2 6.1 by behaviour.

use super::super::error::{TcError, TcProblem};
use super::super::number::{hexadecimal, integer};
use super::super::scalar::{Scalar, Show};
use super::super::words::{LineWords, OptionName};
use crate::filter::{U32Key, U32Selector};
use alloc::format;
use core::fmt::{self, Formatter};
use core::net::{Ipv4Addr, Ipv6Addr};

/// Where a word, a half or a byte is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    offset: i32,
    next_header: bool,
}

const fn at(offset: i32) -> Place {
    Place { offset, next_header: false }
}

const fn behind(offset: i32) -> Place {
    Place { offset, next_header: true }
}

/// How many bits a value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Word,
    Half,
    Byte,
}

impl Width {
    const fn high(self) -> u32 {
        match self {
            Self::Word => u32::MAX,
            Self::Half => 0xffff,
            Self::Byte => 0xff,
        }
    }

    /// By how many bits a value at `offset` is shifted up in its word: `tc` takes a half at an odd place for
    /// the lower one.
    const fn shift(self, offset: i32) -> u32 {
        match self {
            Self::Word => 0,
            Self::Half => {
                if offset & 3 == 0 {
                    16
                } else {
                    0
                }
            }
            Self::Byte => 24 - 8 * (offset & 3) as u32,
        }
    }
}

/// What stands behind the name of a field.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// A value and a mask, `at` a place if none is given here.
    Masked(Width, Option<Place>),
    /// These two, and nothing is typed.
    Fixed(u16, u16),
    Ipv4(i32),
    Ipv6(i32),
    /// Bits of the first word of an IPv6 header, shifted up.
    Upper(u32, Width),
    /// An address of the link, with its first byte there.
    Link(i32),
    Mark,
}

type Field = (&'static str, Form);

const fn byte(offset: i32) -> Form {
    Form::Masked(Width::Byte, Some(at(offset)))
}

const fn half(offset: i32) -> Form {
    Form::Masked(Width::Half, Some(at(offset)))
}

const fn next_half(offset: i32) -> Form {
    Form::Masked(Width::Half, Some(behind(offset)))
}

const IP: &[Field] = &[
    ("src", Form::Ipv4(12)),
    ("dst", Form::Ipv4(16)),
    ("tos", byte(1)),
    ("dsfield", byte(1)),
    ("precedence", byte(1)),
    ("ihl", byte(0)),
    ("protocol", byte(9)),
    ("nofrag", Form::Fixed(0, 0x3fff)),
    ("firstfrag", Form::Fixed(0x2000, 0x3fff)),
    ("df", Form::Fixed(0x4000, 0x4000)),
    ("mf", Form::Fixed(0x2000, 0x2000)),
    ("sport", half(20)),
    ("dport", half(22)),
    ("icmp_type", byte(20)),
    ("icmp_code", byte(21)),
];
/// Where IPv4's flags and fragment offset are.
const FRAGMENT: i32 = 6;
const IP6: &[Field] = &[
    ("src", Form::Ipv6(8)),
    ("dst", Form::Ipv6(24)),
    ("priority", Form::Upper(20, Width::Byte)),
    ("protocol", byte(6)),
    ("flowlabel", Form::Upper(0, Width::Word)),
    ("sport", half(40)),
    ("dport", half(42)),
    ("icmp_type", byte(40)),
    // `tc` counts this one from the next header.
    ("icmp_code", Form::Masked(Width::Byte, Some(behind(41)))),
];
const TRANSPORT: &[Field] = &[("src", next_half(0)), ("dst", next_half(2))];
const ICMP: &[Field] = &[
    ("type", Form::Masked(Width::Byte, Some(behind(0)))),
    ("code", Form::Masked(Width::Byte, Some(behind(1)))),
];
const ETHER: &[Field] = &[("src", Form::Link(-8)), ("dst", Form::Link(-14))];

/// What a `match` begins with, and what may stand behind it.
const HEADERS: &[(&str, &[Field])] = &[
    ("u32", &[("", Form::Masked(Width::Word, None))]),
    ("u16", &[("", Form::Masked(Width::Half, None))]),
    ("u8", &[("", Form::Masked(Width::Byte, None))]),
    ("ip", IP),
    ("ip6", IP6),
    ("udp", TRANSPORT),
    ("tcp", TRANSPORT),
    ("icmp", ICMP),
    ("mark", &[("", Form::Mark)]),
    ("ether", ETHER),
];

/// A value, and the bits of it that count.
struct Masked {
    value: u32,
    mask: u32,
}

impl Masked {
    fn take(words: &mut LineWords<'_>, width: Width, option: &'static str) -> Result<Self, TcError> {
        let high = || TcProblem::OutOfRange { low: "0".into(), high: format!("{:#x}", width.high()) };
        let mut number = |read: fn(&str) -> Option<u128>, form| {
            let word = words.value(option, &[form])?;
            let number = read(word).ok_or_else(|| words.here(TcProblem::Malformed(form), &[]))?;
            let number = u32::try_from(number).ok().filter(|number| *number <= width.high());
            number.ok_or_else(|| words.here(high(), &[]))
        };
        let value = number(integer, "a number")?;
        Ok(Self { value, mask: number(hexadecimal, "a hexadecimal mask")? })
    }
}

/// Takes `at [nexthdr+]OFFSET`, if it is there.
fn take_place(words: &mut LineWords<'_>) -> Result<Option<Place>, TcError> {
    if !words.take_if("at") {
        return Ok(None);
    }
    let form = "an offset";
    let word = words.value("at", &["OFFSET", "nexthdr+OFFSET"])?;
    let (next_header, number) = word.strip_prefix("nexthdr+").map_or((false, word), |rest| (true, rest));
    let malformed = |_| words.here(TcProblem::Malformed(form), &["OFFSET", "nexthdr+OFFSET"]);
    let offset = i32::read(number).map_err(malformed)?;
    Ok(Some(Place { offset, next_header }))
}

/// Takes what stands behind `match`, into `selector`.
pub(super) fn take(words: &mut LineWords<'_>, selector: &mut U32Selector) -> Result<(), TcError> {
    let headers: alloc::vec::Vec<&'static str> = HEADERS.iter().map(|(name, _)| *name).collect();
    let header = words.value("match", &headers)?;
    let Some((header, fields)) = HEADERS.iter().find(|(name, _)| *name == header) else {
        return Err(words.here(TcProblem::Unknown("header"), &headers));
    };
    let (name, form) = if let [("", form)] = fields {
        (*header, *form)
    } else {
        let names: alloc::vec::Vec<OptionName> = fields.iter().map(|(name, _)| (*name, *name)).collect();
        let every: alloc::vec::Vec<&'static str> = fields.iter().map(|(name, _)| *name).collect();
        words.value(header, &every)?;
        let name = words.full_name(&names, "field of a header")?;
        *fields.iter().find(|(field, _)| *field == name).expect("its name is in the table")
    };
    let mut keys = Keys { words, selector };
    keys.take(name, form)
}

/// Words that are taken, and where they go.
struct Keys<'a, 'w> {
    words: &'a mut LineWords<'w>,
    selector: &'a mut U32Selector,
}

impl Keys<'_, '_> {
    fn take(&mut self, name: &'static str, form: Form) -> Result<(), TcError> {
        match form {
            Form::Masked(width, place) => {
                let masked = Masked::take(self.words, width, name)?;
                let place = match place {
                    Some(place) => place,
                    None => take_place(self.words)?.unwrap_or_default(),
                };
                self.pack(width, masked, place)
            }
            Form::Fixed(value, mask) => {
                self.pack(Width::Half, Masked { value: value.into(), mask: mask.into() }, at(FRAGMENT))
            }
            Form::Ipv4(offset) => {
                let Ipv4Network(address, mask) = self.words.scalar(name)?;
                let place = take_place(self.words)?.unwrap_or(at(offset));
                self.pack(Width::Word, Masked { value: address.to_bits(), mask: mask.to_bits() }, place)
            }
            Form::Ipv6(offset) => {
                let Ipv6Network(address, length) = self.words.scalar(name)?;
                let place = take_place(self.words)?.unwrap_or(at(offset));
                self.pack_address(address, length, place)
            }
            Form::Upper(shift, width) => {
                let Masked { value, mask } = Masked::take(self.words, width, name)?;
                self.pack(Width::Word, Masked { value: value << shift, mask: mask << shift }, at(0))
            }
            Form::Link(offset) => self.take_link(name, offset),
            Form::Mark => {
                let Masked { value, mask } = Masked::take(self.words, Width::Word, name)?;
                self.selector.mark = Some((value & mask, mask));
                Ok(())
            }
        }
    }

    /// The words of an IPv6 address of which bits count.
    fn pack_address(&mut self, address: Ipv6Addr, length: u32, place: Place) -> Result<(), TcError> {
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        for (index, offset) in (0..4).zip([0, 4, 8, 12]) {
            let part = |bits: u128| (bits >> (96 - 32 * index) & u128::from(u32::MAX)) as u32;
            if part(mask) != 0 {
                let place = Place { offset: place.offset + offset, ..place };
                self.pack(Width::Word, Masked { value: part(address.to_bits()), mask: part(mask) }, place)?;
            }
        }
        Ok(())
    }

    /// An address of the link, half by half.
    fn take_link(&mut self, name: &'static str, offset: i32) -> Result<(), TcError> {
        let LinkAddress(address) = self.words.scalar(name)?;
        let place = take_place(self.words)?.unwrap_or(at(offset));
        for (index, shift) in [(0, 32), (2, 16), (4, 0)] {
            let place = Place { offset: place.offset + index, ..place };
            let (value, mask) = ((address >> shift) as u32 & 0xffff, 0xffff);
            self.pack(Width::Half, Masked { value, mask }, place)?;
        }
        Ok(())
    }

    fn pack(&mut self, width: Width, masked: Masked, place: Place) -> Result<(), TcError> {
        let Place { offset, next_header } = place;
        if width == Width::Word && offset & 3 != 0 {
            return Err(self.words.here(TcProblem::Malformed("a multiple of 4, where a word begins"), &[]));
        }
        let shift = width.shift(offset);
        let (mask, value) = (masked.mask << shift, (masked.value & masked.mask) << shift);
        let offset = offset & !3;
        let like = |key: &&mut U32Key| (key.offset, key.next_header) == (offset, next_header);
        if let Some(key) = self.selector.keys.iter_mut().find(like) {
            if (key.value ^ value) & key.mask & mask != 0 {
                let of = "a value that agrees with the one before for the same bits";
                return Err(self.words.here(TcProblem::Malformed(of), &[]));
            }
            key.value |= value;
            key.mask |= mask;
            return Ok(());
        }
        self.selector.keys.push(U32Key { value, mask, offset, next_header });
        Ok(())
    }
}

/// Writes a selector's `match`es as they could be typed.
pub(super) fn put(selector: &U32Selector, out: &mut Formatter<'_>) -> fmt::Result {
    for U32Key { value, mask, offset, next_header } in &selector.keys {
        let next = if *next_header { "nexthdr+" } else { "" };
        write!(out, " match u32 {value:#x} {mask:#x} at {next}{offset}")?;
    }
    selector.mark.map_or(Ok(()), |(value, mask)| write!(out, " match mark {value:#x} {mask:#x}"))
}

/// An address and the bits that count.
pub(super) struct Ipv4Network(pub(super) Ipv4Addr, pub(super) Ipv4Addr);

impl Show for Ipv4Network {
    fn show(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {}/{}", self.0, self.1)
    }
}

/// The length of a prefix: decimal digits and nothing else.
fn prefix(text: &str, most: u32) -> Result<u32, TcProblem> {
    let form = TcProblem::Malformed("an address");
    let digits = text.bytes().all(|digit| digit.is_ascii_digit());
    let length = digits.then(|| integer(text)).flatten().ok_or(form)?;
    match u32::try_from(length) {
        Ok(length) if length <= most => Ok(length),
        _ => Err(TcProblem::OutOfRange { low: "/0".into(), high: format!("/{most}") }),
    }
}

impl Scalar for Ipv4Network {
    const ALLOWED: &'static [&'static str] = &["ADDRESS", "ADDRESS/LENGTH", "ADDRESS/MASK", "any"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        if matches!(word, "any" | "all" | "default") {
            return Ok(Self(Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED));
        }
        let form = || TcProblem::Malformed("an IPv4 address");
        let (address, mask) =
            word.split_once('/').map_or((word, None), |(address, mask)| (address, Some(mask)));
        let address = short_address(address).ok_or_else(form)?;
        let Some(mask) = mask else { return Ok(Self(address, Ipv4Addr::BROADCAST)) };
        if let Ok(mask) = mask.parse::<Ipv4Addr>() {
            let ones = mask.to_bits();
            if ones.leading_ones() != ones.count_ones() {
                return Err(form());
            }
            return Ok(Self(address, mask));
        }
        let ones = u32::MAX.checked_shl(32 - prefix(mask, 32)?).unwrap_or(0);
        Ok(Self(address, Ipv4Addr::from_bits(ones)))
    }
}

/// An IPv4 address of which the last parts may be missing, which are 0 then: `10.1` is `10.1.0.0`.
fn short_address(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for (at, octet) in octets.iter_mut().enumerate() {
        let Some(part) = parts.next() else { break };
        if part.is_empty() && at > 0 && parts.next().is_none() {
            break;
        }
        *octet = u8::try_from(integer(part)?).ok()?;
    }
    parts.next().is_none().then_some(Ipv4Addr::from(octets))
}

/// An address and how many of its bits count.
pub(super) struct Ipv6Network(pub(super) Ipv6Addr, pub(super) u32);

impl Show for Ipv6Network {
    fn show(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {}/{}", self.0, self.1)
    }
}

impl Scalar for Ipv6Network {
    const ALLOWED: &'static [&'static str] = &["ADDRESS", "ADDRESS/LENGTH", "any"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        if matches!(word, "any" | "all" | "default") {
            return Ok(Self(Ipv6Addr::UNSPECIFIED, 0));
        }
        let (address, length) =
            word.split_once('/').map_or((word, None), |(address, length)| (address, Some(length)));
        let address = address.parse().map_err(|_| TcProblem::Malformed("an IPv6 address"))?;
        Ok(Self(address, length.map_or(Ok(128), |length| prefix(length, 128))?))
    }
}

/// An address of the link; what stands behind its six bytes says nothing, as to `tc`.
struct LinkAddress(u64);

impl Show for LinkAddress {
    fn show(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {:012x}", self.0)
    }
}

impl Scalar for LinkAddress {
    const ALLOWED: &'static [&'static str] = &["01:02:03:04:05:06"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        let mut bits = 0;
        let mut parts = word.split_once('/').map_or(word, |(address, _)| address).split(':');
        for _ in 0..6 {
            let part = parts.next().and_then(hexadecimal).and_then(|part| u8::try_from(part).ok());
            bits = bits << 8 | u64::from(part.ok_or(TcProblem::Malformed("an address of the link"))?);
        }
        Ok(Self(bits))
    }
}
