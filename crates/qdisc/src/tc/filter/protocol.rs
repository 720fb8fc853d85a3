//! The protocols that a filter can be of, by the names that iproute2 has for them.

use super::super::error::TcProblem;
use super::super::number::integer;
use super::super::scalar::{Scalar, shown_as_displayed};
use core::fmt::{self, Formatter};

/// The number of a protocol on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol(
    /// As in a frame's header; 3 stands for all.
    pub u16,
);

impl Protocol {
    /// Packets of every protocol.
    pub const ALL: Self = Self(3);
    /// IPv4.
    pub const IP: Self = Self(0x0800);
    /// ARP.
    pub const ARP: Self = Self(0x0806);
    /// IPv6.
    pub const IPV6: Self = Self(0x86dd);

    /// Whether it is that of a packet whose frame's header would say `ether_type`, if that is known.
    #[must_use]
    pub fn is_of(self, ether_type: Option<u16>) -> bool {
        self == Self::ALL || ether_type == Some(self.0)
    }
}

/// Numbers of IEEE 802 and of Linux (`if_ether.h`), in the spelling in which they are shown.
const PROTOCOLS: &[(&str, u16)] = &[
    ("all", 0x0003),
    ("ip", 0x0800),
    ("arp", 0x0806),
    ("ipv6", 0x86dd),
    ("802.1Q", 0x8100),
    ("802.1ad", 0x88a8),
    ("loop", 0x0060),
    ("pup", 0x0200),
    ("pupat", 0x0201),
    ("x25", 0x0805),
    ("bpq", 0x08ff),
    ("ieeepup", 0x0a00),
    ("ieeepupat", 0x0a01),
    ("dec", 0x6000),
    ("dna_dl", 0x6001),
    ("dna_rc", 0x6002),
    ("dna_rt", 0x6003),
    ("lat", 0x6004),
    ("diag", 0x6005),
    ("cust", 0x6006),
    ("sca", 0x6007),
    ("rarp", 0x8035),
    ("atalk", 0x809b),
    ("aarp", 0x80f3),
    ("ipx", 0x8137),
    ("ppp_disc", 0x8863),
    ("ppp_ses", 0x8864),
    ("atmmpoa", 0x884c),
    ("atmfate", 0x8884),
    ("802_3", 0x0001),
    ("ax25", 0x0002),
    ("802_2", 0x0004),
    ("snap", 0x0005),
    ("ddcmp", 0x0006),
    ("wan_ppp", 0x0007),
    ("ppp_mp", 0x0008),
    ("localtalk", 0x0009),
    ("can", 0x000c),
    ("ppptalk", 0x0010),
    ("tr_802_2", 0x0011),
    ("mobitex", 0x0015),
    ("control", 0x0016),
    ("irda", 0x0017),
    ("econet", 0x0018),
    ("tipc", 0x88ca),
    ("profinet", 0x8892),
    ("aoe", 0x88a2),
    ("ethercat", 0x88a4),
    ("LLDP", 0x88cc),
    ("mpls_uc", 0x8847),
    ("mpls_mc", 0x8848),
    ("teb", 0x6558),
];

impl fmt::Display for Protocol {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match PROTOCOLS.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => out.write_str(name),
            None => write!(out, "[{}]", self.0),
        }
    }
}

shown_as_displayed!(Protocol);

impl Scalar for Protocol {
    const ALLOWED: &'static [&'static str] = &["all", "ip", "ipv6", "arp", "802.1q", "a number"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        if let Some((_, number)) = PROTOCOLS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
            return Ok(Self(*number));
        }
        let digits = word.strip_prefix('[').and_then(|word| word.strip_suffix(']')).unwrap_or(word);
        let number = integer(digits).ok_or(TcProblem::Malformed("a protocol"))?;
        u16::try_from(number).map(Self).map_err(|_| TcProblem::Malformed("a protocol"))
    }
}
