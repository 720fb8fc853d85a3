//! `flower`: its options, and how it is shown.
//!
//! Source: tc-flower(8); iproute2 6.1 by behaviour. Absent: keys of what packets here do not have
//! (addresses of the link, VLANs, tunnels, connection tracking).

use super::super::action::FilterActions;
use super::super::error::{TcError, TcProblem};
use super::super::json::TcJson;
use super::super::number::{hexadecimal, integer};
use super::super::parent::write_id;
use super::super::property::{TcProperties, TcValue};
use super::super::words::{LineWords, OptionName};
use super::flow::{take_flow, why_not};
use super::header_match::{Ipv4Network, Ipv6Network};
use super::offload::FilterOffload;
use super::protocol::Protocol;
use crate::ClassId;
use crate::filter::{FlowerAddress, FlowerField, FlowerKeys, FlowerPort};
use alloc::format;
use alloc::string::{String, ToString as _};
use core::fmt::{self, Formatter};

/// What a line says of a `flower`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowerOptions {
    /// What has to be true.
    pub keys: FlowerKeys,
    /// The class that packets go to.
    pub flow: Option<ClassId>,
    /// Who carries it out.
    pub offload: FilterOffload,
    /// What is done with them.
    pub actions: FilterActions,
}

const TCP: u8 = 6;
/// Protocols that have names, and those that have ports.
const IP_PROTOCOLS: [(&str, u8); 5] = [("tcp", TCP), ("udp", 17), ("sctp", 132), ("icmp", 1), ("icmpv6", 58)];
const WITH_PORTS: [u8; 3] = [TCP, 17, 132];

const OPTIONS: &[OptionName] = &[
    ("ip_proto", "ip_proto"),
    ("src_ip", "src_ip"),
    ("dst_ip", "dst_ip"),
    ("src_port", "src_port"),
    ("dst_port", "dst_port"),
    ("ip_tos", "ip_tos"),
    ("ip_ttl", "ip_ttl"),
    ("tcp_flags", "tcp_flags"),
    ("ip_flags", "ip_flags"),
    ("type", "type"),
    ("code", "code"),
    ("classid", "flowid"),
    ("flowid", "flowid"),
    ("skip_hw", "skip_hw"),
    ("skip_sw", "skip_sw"),
    ("action", "action"),
    ("police", "police"),
    ("indev", "indev"),
    ("dst_mac", "link"),
    ("src_mac", "link"),
    ("vlan_id", "link"),
    ("vlan_prio", "link"),
    ("vlan_ethtype", "link"),
    ("arp_sip", "link"),
    ("arp_tip", "link"),
    ("ct_state", "connection"),
    ("ct_zone", "connection"),
    ("ct_mark", "connection"),
    ("enc_key_id", "tunnel"),
    ("enc_dst_ip", "tunnel"),
    ("enc_src_ip", "tunnel"),
    ("enc_dst_port", "tunnel"),
    ("hw_tc", "hardware"),
];
const FRAGMENT_FLAGS: [&str; 4] = ["frag", "nofrag", "firstfrag", "nofirstfrag"];

/// Takes the words of one line.
struct Taker<'a, 'w> {
    words: &'a mut LineWords<'w>,
    protocol: Protocol,
    options: FlowerOptions,
}

impl FlowerOptions {
    /// Takes the options of a filter for `protocol`.
    pub(super) fn take(words: &mut LineWords<'_>, protocol: Option<Protocol>) -> Result<Self, TcError> {
        let protocol = protocol.unwrap_or(Protocol::ALL);
        let mut taker = Taker { words, protocol, options: Self::default() };
        while taker.words.take().is_some() {
            let name = taker.words.full_name(OPTIONS, "option of flower")?;
            taker.take(name)?;
        }
        Ok(taker.options)
    }
}

impl Taker<'_, '_> {
    fn malformed(&self, form: &'static str) -> TcError {
        self.words.here(TcProblem::Malformed(form), &[])
    }

    fn take(&mut self, name: &'static str) -> Result<(), TcError> {
        match name {
            "ip_proto" => self.options.keys.ip_protocol = Some(self.ip_protocol()?),
            "src_ip" => self.options.keys.source = self.address(name)?,
            "dst_ip" => self.options.keys.destination = self.address(name)?,
            "src_port" => self.options.keys.source_port = Some(self.port(name)?),
            "dst_port" => self.options.keys.destination_port = Some(self.port(name)?),
            "ip_tos" => self.options.keys.tos = Some(self.byte(name)?),
            "ip_ttl" => self.options.keys.ttl = Some(self.byte(name)?),
            "tcp_flags" => {
                let flags = self.tcp_flags()?;
                // Without TCP there are none, and the kernel looks at none.
                self.options.keys.tcp_flags = flags.filter(|_| self.options.keys.ip_protocol == Some(TCP));
            }
            "ip_flags" => self.fragment_flags()?,
            "type" => self.options.keys.icmp_type = Some(self.icmp()?),
            "code" => self.options.keys.icmp_code = Some(self.icmp()?),
            "flowid" => {
                self.words.first_time(self.options.flow.as_ref(), "flowid")?;
                self.options.flow = Some(take_flow(self.words)?);
            }
            "skip_hw" => self.options.offload = FilterOffload::SkipHardware,
            "skip_sw" => self.options.offload = FilterOffload::SkipSoftware,
            name @ ("action" | "police") => self.options.actions.take(name, self.words)?,
            option => {
                let why = why_not(option);
                return Err(self.words.here(TcProblem::NotSupported(why), &[]));
            }
        }
        Ok(())
    }

    fn ip_protocol(&mut self) -> Result<u8, TcError> {
        let names = ["tcp", "udp", "sctp", "icmp", "icmpv6", "a number"];
        let word = self.words.value("ip_proto", &names)?;
        let named = IP_PROTOCOLS.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
        let number = named.or_else(|| u8::try_from(integer(word)?).ok());
        let number = number.ok_or_else(|| self.malformed("a number that IP carries"))?;
        let fits = match word {
            "icmp" => self.protocol == Protocol::IP,
            "icmpv6" => self.protocol == Protocol::IPV6,
            _ => matches!(self.protocol, Protocol::IP | Protocol::IPV6),
        };
        let of = "of this version of IP: `protocol ip` or `protocol ipv6` has to stand before";
        if fits { Ok(number) } else { Err(self.malformed(of)) }
    }

    fn address(&mut self, name: &'static str) -> Result<Option<FlowerAddress>, TcError> {
        let told = match self.protocol {
            Protocol::IP => {
                let Ipv4Network(address, mask) = self.words.scalar(name)?;
                FlowerAddress { address: address.into(), length: mask.to_bits().leading_ones() as u8 }
            }
            Protocol::IPV6 => {
                let Ipv6Network(address, length) = self.words.scalar(name)?;
                FlowerAddress { address: address.into(), length: length as u8 }
            }
            _ => {
                self.words.value(name, &["ADDRESS", "ADDRESS/LENGTH"])?;
                return Err(self.malformed("for this protocol: `protocol ip` or `ipv6` has to stand before"));
            }
        };
        Ok(Some(told).filter(|told| told.length > 0))
    }

    fn port(&mut self, name: &'static str) -> Result<FlowerPort, TcError> {
        let word = self.words.value(name, &["PORT", "PORT/MASK", "PORT-PORT"])?;
        if !self.options.keys.ip_protocol.is_some_and(|protocol| WITH_PORTS.contains(&protocol)) {
            return Err(
                self.malformed("for this protocol: `ip_proto tcp`, `udp` or `sctp` has to stand before")
            );
        }
        let half = |text: &str| integer(text).and_then(|number| u16::try_from(number).ok());
        let port = if let Some((low, high)) = word.split_once('-') {
            let (low, high) = (half(low), half(high));
            let range = low.zip(high).filter(|(low, high)| low < high);
            range.map(|(low, high)| FlowerPort::Range { low, high })
        } else {
            let (value, mask) = word.split_once('/').unwrap_or((word, "0xffff"));
            half(value).zip(half(mask)).map(|(value, mask)| FlowerPort::Masked(FlowerField { value, mask }))
        };
        port.ok_or_else(|| {
            self.malformed("a port, a port and a mask, or a range from a lower to a higher one")
        })
    }

    fn byte(&mut self, name: &'static str) -> Result<FlowerField<u8>, TcError> {
        let word = self.words.value(name, &["VALUE", "VALUE/MASK"])?;
        let (value, mask) = word.split_once('/').unwrap_or((word, "0xff"));
        let byte = |text: &str| integer(text).and_then(|number| u8::try_from(number).ok());
        let field = byte(value).zip(byte(mask)).map(|(value, mask)| FlowerField { value, mask });
        field.ok_or_else(|| self.malformed("a byte, or a byte and a mask"))
    }

    fn tcp_flags(&mut self) -> Result<Option<FlowerField<u16>>, TcError> {
        let word = self.words.value("tcp_flags", &["VALUE", "VALUE/MASK"])?;
        let (value, mask) = word.split_once('/').unwrap_or((word, "0xfff"));
        let flags = |text: &str| hexadecimal(text).and_then(|number| u16::try_from(number).ok());
        let field = flags(value).zip(flags(mask)).filter(|(value, mask)| *value < 0x1000 && *mask < 0x1000);
        let field = field.map(|(value, mask)| FlowerField { value, mask });
        field.map(Some).ok_or_else(|| self.malformed("flags of TCP: hexadecimal, 12 bits"))
    }

    fn icmp(&mut self) -> Result<u8, TcError> {
        let of_version = match self.protocol {
            Protocol::IP => Some(1),
            Protocol::IPV6 => Some(58),
            _ => None,
        };
        let number: Option<u8> = self
            .words
            .value("type", &[])
            .map(|word| integer(word).and_then(|number| u8::try_from(number).ok()))?;
        if of_version.is_none() || self.options.keys.ip_protocol != of_version {
            return Err(self.malformed("for this protocol: `ip_proto icmp` or `icmpv6` has to stand before"));
        }
        number.ok_or_else(|| self.malformed("a byte"))
    }

    fn fragment_flags(&mut self) -> Result<(), TcError> {
        let word = self.words.value("ip_flags", &FRAGMENT_FLAGS)?;
        for flag in word.split('/') {
            match flag {
                "frag" => self.options.keys.fragment = Some(true),
                "nofrag" => self.options.keys.fragment = Some(false),
                "firstfrag" => self.options.keys.first_fragment = Some(true),
                "nofirstfrag" => self.options.keys.first_fragment = Some(false),
                _ => return Err(self.words.here(TcProblem::Unknown("flag of fragments"), &FRAGMENT_FLAGS)),
            }
        }
        Ok(())
    }
}

/// A name and its value, as both are typed and shown.
type Shown = (&'static str, String, TcJson);

fn byte(name: &'static str, field: FlowerField<u8>) -> Shown {
    let text = match field.mask {
        u8::MAX => field.value.to_string(),
        mask => format!("{}/{mask:#x}", field.value),
    };
    (name, text.clone(), TcJson::Word(text))
}

fn port(name: &'static str, port: FlowerPort) -> Shown {
    match port {
        FlowerPort::Masked(FlowerField { value, mask: u16::MAX }) => {
            (name, value.to_string(), TcJson::Unsigned(value.into()))
        }
        FlowerPort::Masked(FlowerField { value, mask }) => {
            let text = format!("{value}/{mask:#x}");
            (name, text.clone(), TcJson::Word(text))
        }
        FlowerPort::Range { low, high } => {
            let text = format!("{low}-{high}");
            (name, text.clone(), TcJson::Word(text))
        }
    }
}

fn address(name: &'static str, told: FlowerAddress) -> Shown {
    let whole = if told.address.is_ipv4() { 32 } else { 128 };
    let text = match told.length {
        length if length == whole => told.address.to_string(),
        length => format!("{}/{length}", told.address),
    };
    (name, text.clone(), TcJson::Word(text))
}

fn ip_protocol(number: u8) -> Shown {
    let named = IP_PROTOCOLS.iter().find(|(_, known)| *known == number);
    let text = named.map_or_else(|| number.to_string(), |(name, _)| (*name).to_string());
    ("ip_proto", text.clone(), TcJson::Word(text))
}

/// All that is told, in the order in which it is shown.
fn all(keys: &FlowerKeys) -> impl Iterator<Item = Shown> {
    let word = |name: &'static str, text: String| (name, text.clone(), TcJson::Word(text));
    let plain = |port: &Option<FlowerPort>| port.filter(|port| matches!(port, FlowerPort::Masked(_)));
    let range = |port: &Option<FlowerPort>| port.filter(|port| matches!(port, FlowerPort::Range { .. }));
    let flags = keys.tcp_flags.map(|FlowerField { value, mask }| format!("{value:#x}/{mask:x}"));
    let fragment = keys.fragment.map(|is| if is { "frag" } else { "nofrag" });
    let first = keys.first_fragment.map(|is| if is { "firstfrag" } else { "nofirstfrag" });
    let fragments: alloc::vec::Vec<&str> = fragment.into_iter().chain(first).collect();
    let number = |name: &'static str, number: u8| (name, number.to_string(), TcJson::Unsigned(number.into()));
    let shown = [
        keys.ip_protocol.map(ip_protocol),
        keys.tos.map(|tos| byte("ip_tos", tos)),
        keys.ttl.map(|ttl| byte("ip_ttl", ttl)),
        keys.destination.map(|told| address("dst_ip", told)),
        keys.source.map(|told| address("src_ip", told)),
        plain(&keys.destination_port).map(|told| port("dst_port", told)),
        plain(&keys.source_port).map(|told| port("src_port", told)),
        range(&keys.destination_port).map(|told| port("dst_port", told)),
        range(&keys.source_port).map(|told| port("src_port", told)),
        flags.map(|flags| word("tcp_flags", flags)),
        keys.icmp_type.map(|told| number("icmp_type", told)),
        keys.icmp_code.map(|told| number("icmp_code", told)),
        Some(fragments.join("/")).filter(|flags| !flags.is_empty()).map(|flags| word("ip_flags", flags)),
    ];
    shown.into_iter().flatten()
}

/// What `tc` shows of a `flower` for `protocol`.
#[must_use]
pub fn describe_flower(handle: u32, options: &FlowerOptions, protocol: Protocol) -> TcProperties {
    let mut shown = TcProperties::default();
    shown.add("handle", "handle {} ", TcValue::new(format!("{handle:#x}"), TcJson::Unsigned(handle.into())));
    if let Some(flow) = options.flow {
        shown.add("classid", "classid {} ", flow.to_string());
    }
    shown.object("keys", |shown| {
        let kind = match protocol {
            Protocol::ALL | Protocol(0x8100 | 0x88a8) => None,
            Protocol::IP => Some("ipv4".to_string()),
            Protocol::IPV6 => Some("ipv6".to_string()),
            Protocol::ARP => Some("arp".to_string()),
            Protocol(number) => Some(format!("{number:04x}")),
        };
        kind.into_iter().for_each(|kind| shown.add("eth_type", "\n  eth_type {}", kind));
        for (name, text, json) in all(&options.keys) {
            shown.text_only("\n  ");
            shown.text_only(name);
            shown.add(name, " {}", TcValue::new(text, json));
        }
    });
    options.offload.add_to(&mut shown, "\n  skip_hw", "\n  skip_sw");
    shown.mark("not_in_hw", "\n  not_in_hw");
    shown
}

impl fmt::Display for FlowerOptions {
    /// As it would be typed: what ports and flags need stands before them.
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("flower")?;
        for (name, text, _) in all(&self.keys) {
            let name = match name {
                "icmp_type" => "type",
                "icmp_code" => "code",
                name => name,
            };
            match self.keys.ip_protocol {
                Some(number) if name == "ip_proto" => write!(out, " ip_proto {number}")?,
                _ => write!(out, " {name} {text}")?,
            }
        }
        self.offload.put(out)?;
        write_id("flowid", self.flow, out)?;
        self.actions.fmt(out)
    }
}
