//! How `u32` is shown: words of headers as hexadecimal numbers, with `-p` some of them by their names.
//!
//! With `-p` iproute2 takes rules of IPv4 and of IPv6 for such of IPv4, and shows nothing of words for
//! which it has no name. Source: iproute2 6.1 by behaviour. Deviation: in JSON it has names without values,
//! where an offset is told; here such a name is left out.

use super::super::json::TcJson;
use super::super::property::{TcProperties, TcValue};
use super::offload::FilterOffload;
use super::protocol::Protocol;
use crate::filter::{U32Hash, U32Key, U32Offset, U32Rule, U32Table};
use alloc::format;
use alloc::string::ToString as _;
use core::net::Ipv4Addr;

fn hex(word: u32) -> TcValue {
    TcValue::new(format!("{word:08x}"), TcJson::Word(format!("{word:x}")))
}

/// A key as a word of the header.
fn add_key(shown: &mut TcProperties, key: &U32Key) {
    shown.add("value", "\n  match {}", hex(key.value));
    shown.add("mask", "/{}", hex(key.mask));
    let next = if key.next_header { "nexthdr+" } else { "" };
    shown.add("offmask", " at {}", next);
    shown.add("off", "{}", key.offset);
}

fn add_network(shown: &mut TcProperties, key: &U32Key) {
    shown.add("address", "{}", Ipv4Addr::from_bits(key.value).to_string());
    shown.add("prefixlen", "/{}", key.mask.count_ones());
}

/// A key by the name of its field, if it has one: only `dport` begins no line.
fn add_named(shown: &mut TcProperties, key: &U32Key, protocol: Protocol) {
    let U32Key { value, mask, offset, .. } = *key;
    let is_prefix = mask.leading_ones() == mask.count_ones();
    match (offset, mask) {
        (0, 0x0f00_0000) => shown.add("ip_ihl", "\n  match IP ihl {}", value >> 24),
        (0, 0x00ff_0000) => {
            let field = format!("{:#x}", value >> 16);
            shown.add("ip_dsfield", "\n  match IP dsfield {}", field);
        }
        (8, 0x00ff_0000) => shown.add("ip_protocol", "\n  match IP protocol {}", value >> 16),
        (12, _) if is_prefix => {
            shown.text_only("\n  match IP src ");
            shown.object("src", |shown| add_network(shown, key));
        }
        (16, _) if is_prefix => {
            shown.text_only("\n  match IP dst ");
            shown.object("dst", |shown| add_network(shown, key));
        }
        (20, 0x0000_ffff) => shown.add("dport", "match dport {}", value),
        (20, 0xffff_0000) => shown.add("sport", "\n  match sport {}", value >> 16),
        // Of IPv6 the halves have each other's names.
        (20, 0xffff_ffff) if protocol == Protocol::IPV6 => {
            shown.add("sport", "\n  match sport {}", value & 0xffff);
            shown.add("dport", ", match dport {}", value >> 16);
        }
        (20, 0xffff_ffff) => {
            shown.add("dport", "\n  match dport {}", value & 0xffff);
            shown.add("sport", ", match sport {}", value >> 16);
        }
        _ => {}
    }
}

impl FilterOffload {
    /// What the filter skips.
    pub(super) fn add_to(self, shown: &mut TcProperties, hardware: &'static str, software: &'static str) {
        match self {
            Self::Any => {}
            Self::SkipHardware => shown.mark("skip_hw", hardware),
            Self::SkipSoftware => shown.mark("skip_sw", software),
        }
    }
}

impl<A> U32Table<A> {
    /// What `tc` shows of it.
    #[must_use]
    pub fn describe(&self) -> TcProperties {
        let mut shown = TcProperties::default();
        shown.add("fh", "fh {} ", format!("{:x}:", self.id));
        // A table has at most 256 buckets.
        shown.add("ht_divisor", "ht divisor {} ", u32::try_from(self.buckets.len()).unwrap_or(u32::MAX));
        shown
    }

    /// What `tc` shows of a rule in one of its buckets, of a filter for `protocol`; `acts` if it has actions,
    /// which stand behind that.
    #[must_use]
    pub fn describe_rule(
        &self,
        bucket: usize,
        rule: &U32Rule<A>,
        acts: bool,
        protocol: Protocol,
    ) -> TcProperties {
        let mut shown = TcProperties::default();
        let name = if bucket == 0 {
            format!("{:x}::{:x}", self.id, rule.number)
        } else {
            format!("{:x}:{bucket:x}:{:x}", self.id, rule.number)
        };
        shown.add("fh", "fh {} ", name);
        shown.add("order", "order {} ", rule.number);
        shown.add("key_ht", "key ht {} ", format!("{:x}", self.id));
        shown.add("bkt", "bkt {} ", format!("{bucket:x}"));
        match rule.flow {
            Some(flow) if flow.major() == 0 && flow.minor() == 0 => shown.text_only("terminal flowid "),
            Some(flow) => shown.add("flowid", "*flowid {} ", flow.to_string()),
            None if acts => shown.text_only("terminal flowid "),
            None => {}
        }
        if let Some(link) = rule.link {
            shown.add("link", "link {} ", format!("{link:x}:"));
        }
        rule.offload.add_to(&mut shown, "skip_hw ", "skip_sw ");
        shown.mark("not_in_hw", "not_in_hw ");
        shown.statistics(|shown| {
            shown.add("rule_hit", "(rule hit {}", rule.asked);
            shown.add("success", " success {})", rule.met);
        });
        rule.add_selector(&mut shown, protocol);
        shown
    }
}

impl<A> U32Rule<A> {
    fn add_selector(&self, shown: &mut TcProperties, protocol: Protocol) {
        if let Some((value, mask)) = self.selector.mark {
            shown.object("fwmark", |shown| {
                shown.add(
                    "value",
                    "\n  mark {}",
                    TcValue::new(format!("{value:#06x}"), TcJson::Unsigned(value.into())),
                );
                shown.add("mask", " {}", TcValue::new(format!("{mask:#06x}"), TcJson::Unsigned(mask.into())));
                shown.statistics(|shown| shown.add("success", " (success {})", self.marks_met));
            });
        }
        let has_names = protocol == Protocol::IP || protocol == Protocol::IPV6;
        for (key, met) in self.selector.keys.iter().zip(&self.keys_met) {
            shown.object("match", |shown| {
                let named = |shown: &mut TcProperties| {
                    if has_names { add_named(shown, key, protocol) } else { add_key(shown, key) }
                };
                shown.pretty(named, |shown| add_key(shown, key));
            });
            shown.statistics(|shown| shown.add("success", " (success {} ) ", *met));
        }
        if let Some(offset) = &self.selector.offset {
            add_offset(shown, offset);
        }
        if let Some(U32Hash { mask, offset }) = self.selector.hash.filter(|hash| hash.mask != 0) {
            shown.add("hash_mask", "\n    hash mask {} ", hex(mask));
            shown.add("hash_off", "at {} ", offset);
        }
    }
}

fn add_offset(shown: &mut TcProperties, offset: &U32Offset) {
    let U32Offset { plus, read, eat } = *offset;
    if plus != 0 || read.is_some() {
        shown.text_only("\n    offset ");
    }
    if let Some(length) = read {
        let mask = TcValue::new(format!("{:04x}", length.mask), TcJson::Word(format!("{:x}", length.mask)));
        shown.add("offset_mask", "{}", mask);
        shown.add("offset_shift", ">>{} ", length.shift);
        shown.add("offset_off", "at {} ", i32::from(length.at));
    }
    if plus != 0 {
        shown.add("plus", "plus {} ", plus);
    }
    if eat {
        shown.mark("eat", " eat ");
    }
}
