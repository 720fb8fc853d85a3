//! `flower`: packets made of fields, and keys that are compared with those fields, not with bytes.

use proptest::prelude::*;
use quietcore_qdisc::filter::{FlowerAddress, FlowerField, FlowerKeys, FlowerPort};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a packet is made of.
#[derive(Clone, Debug)]
struct Made {
    is_v6: bool,
    addresses: [u8; 2],
    protocol: u8,
    tos: u8,
    ttl: u8,
    ports: [u16; 2],
    flags: u16,
    icmp: [u8; 2],
    /// Options of IPv4, or extension headers of IPv6.
    options: u8,
    /// First or later fragment.
    fragment: Option<bool>,
}

const PROTOCOLS: [u8; 5] = [1, 6, 17, 132, 58];

impl Made {
    fn payload(&self) -> Vec<u8> {
        match self.protocol {
            1 | 58 => vec![self.icmp[0], self.icmp[1], 0, 0],
            protocol => {
                let mut bytes = [self.ports[0].to_be_bytes(), self.ports[1].to_be_bytes()].concat();
                bytes.extend_from_slice(&[0; 8]);
                let flags = if protocol == 6 { self.flags | 0x5000 } else { 0 };
                bytes.extend_from_slice(&flags.to_be_bytes());
                bytes.extend_from_slice(&[0; 6]);
                bytes
            }
        }
    }

    fn address(&self, which: usize) -> IpAddr {
        let last = self.addresses[which];
        if self.is_v6 {
            IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into()))
        } else {
            IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
        }
    }

    fn octets(&self, which: usize) -> Vec<u8> {
        match self.address(which) {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let payload = self.payload();
        let addresses = [self.octets(0), self.octets(1)].concat();
        let offset_and_more: u16 = match self.fragment {
            None => 0,
            Some(true) => 0x2000,
            Some(false) => 5,
        };
        if !self.is_v6 {
            let options = vec![1; 4 * usize::from(self.options)];
            let length = (20 + options.len() + payload.len()) as u16;
            let mut bytes = vec![0x45 + self.options, self.tos];
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(&[0, 0]);
            bytes.extend_from_slice(&offset_and_more.to_be_bytes());
            bytes.extend_from_slice(&[self.ttl, self.protocol, 0, 0]);
            return [bytes, addresses, options, payload].concat();
        }
        let mut headers = Vec::new();
        let mut next = self.protocol;
        if self.fragment.is_some() {
            let bits: u16 = if self.fragment == Some(true) { 1 } else { 5 << 3 };
            headers = [vec![next, 0], bits.to_be_bytes().to_vec(), vec![0; 4]].concat();
            next = 44;
        }
        for _ in 0..self.options {
            headers = [vec![next, 0, 0, 0, 0, 0, 0, 0], headers].concat();
            next = 60;
        }
        let rest = [headers, payload].concat();
        let mut bytes = vec![0x60 | self.tos >> 4, self.tos << 4, 0, 0];
        bytes.extend_from_slice(&(rest.len() as u16).to_be_bytes());
        bytes.extend_from_slice(&[next, self.ttl]);
        [bytes, addresses, rest].concat()
    }

    /// What can be read in it: ports, flags, type and code.
    fn readable(&self) -> ([u16; 2], u16, [u8; 2]) {
        let is_whole = self.fragment.is_none();
        let ports = if is_whole && [6, 17, 132].contains(&self.protocol) { self.ports } else { [0, 0] };
        let flags = if is_whole && self.protocol == 6 { self.flags & 0xfff } else { 0 };
        let icmp = if is_whole && [1, 58].contains(&self.protocol) { self.icmp } else { [0, 0] };
        (ports, flags, icmp)
    }

    /// Whether all that the keys name is so.
    fn fits(&self, keys: &FlowerKeys) -> bool {
        let (ports, flags, icmp) = self.readable();
        let byte = |key: Option<FlowerField<u8>>, found: u8| {
            key.is_none_or(|key| {
                (0..8).all(|bit| key.mask >> bit & 1 == 0 || (key.value ^ found) >> bit & 1 == 0)
            })
        };
        let port = |key: Option<FlowerPort>, found: u16| match key {
            None => true,
            Some(FlowerPort::Range { low, high }) => found >= low && found <= high,
            Some(FlowerPort::Masked(key)) => key.value & key.mask == found & key.mask,
        };
        let address = |key: Option<FlowerAddress>, which: usize| {
            let Some(FlowerAddress { address, length }) = key else { return true };
            let wanted = match address {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(address) => address.octets().to_vec(),
            };
            let found = self.octets(which);
            let same = |bit: usize| (wanted[bit / 8] ^ found[bit / 8]) >> (7 - bit % 8) & 1 == 0;
            wanted.len() == found.len() && (0..usize::from(length)).all(same)
        };
        keys.ip_protocol.is_none_or(|wanted| wanted == self.protocol)
            && byte(keys.tos, self.tos)
            && byte(keys.ttl, self.ttl)
            && address(keys.source, 0)
            && address(keys.destination, 1)
            && port(keys.source_port, ports[0])
            && port(keys.destination_port, ports[1])
            && keys.tcp_flags.is_none_or(|key| (key.value ^ flags) & key.mask == 0)
            && keys.icmp_type.is_none_or(|wanted| wanted == icmp[0])
            && keys.icmp_code.is_none_or(|wanted| wanted == icmp[1])
            && keys.fragment.is_none_or(|wanted| wanted == self.fragment.is_some())
            && keys.first_fragment.is_none_or(|wanted| wanted == (self.fragment == Some(true)))
    }
}

fn made() -> impl Strategy<Value = Made> {
    let numbers = (any::<[bool; 2]>(), 0..3_u8, 0..3_u8, 0..5_usize);
    let fields = (0..4_u8, 0..4_u8, 0..4_u16, 0..4_u16, any::<u16>(), 0..3_u8, 0..3_u8);
    let fragment = prop_oneof![4 => Just(None), 1 => Just(Some(true)), 1 => Just(Some(false))];
    (numbers, fields, 0..3_u8, fragment).prop_map(|(numbers, fields, options, fragment)| {
        let ([is_v6, _], from, to, protocol) = numbers;
        let (tos, ttl, source, destination, flags, icmp_type, icmp_code) = fields;
        Made {
            is_v6,
            addresses: [from, to],
            protocol: PROTOCOLS[protocol],
            tos: tos * 0x44,
            ttl,
            ports: [source, destination],
            flags: flags & 0x0fff,
            icmp: [icmp_type, icmp_code],
            options,
            fragment,
        }
    })
}

fn keys() -> impl Strategy<Value = FlowerKeys> {
    let option =
        |strategy: BoxedStrategy<FlowerField<u8>>| prop_oneof![2 => Just(None), 1 => strategy.prop_map(Some)];
    let byte = || {
        option(
            (0..4_u8, any::<u8>())
                .prop_map(|(value, mask)| FlowerField { value: value * 0x44, mask })
                .boxed(),
        )
    };
    let low = || option((0..4_u8, 0..4_u8).prop_map(|(value, mask)| FlowerField { value, mask }).boxed());
    let port = || {
        let masked =
            (0..4_u16, 0..4_u16).prop_map(|(value, mask)| FlowerPort::Masked(FlowerField { value, mask }));
        let range = (0..2_u16, 2..4_u16).prop_map(|(low, high)| FlowerPort::Range { low, high });
        prop_oneof![3 => Just(None), 1 => masked.prop_map(Some), 1 => range.prop_map(Some)]
    };
    let address = || {
        let told = (any::<bool>(), 0..4_u8, 20..=130_u8).prop_map(|(is_v6, last, length)| {
            if is_v6 {
                let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into());
                FlowerAddress { address: address.into(), length: length.min(128) }
            } else {
                FlowerAddress { address: Ipv4Addr::new(10, 0, 0, last).into(), length: length.min(32) }
            }
        });
        prop_oneof![4 => Just(None), 1 => told.prop_map(Some)]
    };
    let rare = |most: u8| prop_oneof![4 => Just(None), 1 => (0..most).prop_map(Some)];
    let protocol = prop_oneof![1 => Just(None), 2 => (0..5_usize).prop_map(|at| Some(PROTOCOLS[at]))];
    let flags = prop_oneof![3 => Just(None), 1 => any::<(u16, u16)>().prop_map(|(value, mask)| {
        let mask = mask & 0x0fff & value.rotate_left(5);
        Some(FlowerField { value: value & mask, mask })
    })];
    let fragments = prop_oneof![3 => Just([None, None]), 1 => any::<[Option<bool>; 2]>()];
    let first = (protocol, byte(), low(), address(), address(), port(), port());
    (first, flags, rare(3), rare(3), fragments).prop_map(
        |(
            (ip_protocol, tos, ttl, destination, source, destination_port, source_port),
            tcp_flags,
            icmp_type,
            icmp_code,
            flags,
        )| {
            let [fragment, first_fragment] = flags;
            FlowerKeys {
                ip_protocol,
                tos,
                ttl,
                destination,
                source,
                destination_port,
                source_port,
                tcp_flags,
                icmp_type,
                icmp_code,
                fragment,
                first_fragment,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Goal: keys are true of the packets that have these fields. Method: fields of which packets are made,
    /// and the fields themselves asked.
    #[test]
    fn keys_are_true_of_their_packets(made in made(), keys in keys()) {
        let bytes = made.bytes();
        prop_assert_eq!(keys.is_met(&bytes), made.fits(&keys), "{:02x?}", bytes);
    }

    /// Goal: bytes that are no packet are for keys that name nothing alone. Method: any bytes of no version.
    #[test]
    fn no_packet(mut bytes in proptest::collection::vec(any::<u8>(), 0..30), keys in keys()) {
        if let Some(first) = bytes.first_mut() {
            *first &= 0x0f;
        }
        prop_assert_eq!(keys.is_met(&bytes), keys == FlowerKeys::default());
    }

    /// Goal: two filters of which neither value nor mask differ are one. Method: the same with bits changed
    /// that do not count, and with a bit that does.
    #[test]
    fn bits_that_do_not_count(value: u8, mask: u8, bit in 0..8_u8) {
        let keys = |value| FlowerKeys { tos: Some(FlowerField { value, mask }), ..FlowerKeys::default() };
        let other = keys(value ^ 1 << bit);
        prop_assert!(keys(value).looks_at_as(&other));
        prop_assert_eq!(keys(value).is_as(&other), mask >> bit & 1 == 0);
        let without = FlowerKeys { tos: None, ..keys(value) };
        prop_assert!(!without.looks_at_as(&keys(value)) && !without.is_as(&keys(value)));
    }
}

/// Goal: of addresses, ports and flags the same. Method: pairs.
#[test]
fn what_is_the_same() {
    let address =
        |text: &str, length| Some(FlowerAddress { address: text.parse().expect("an address"), length });
    let from = |source| FlowerKeys { source, ..FlowerKeys::default() };
    assert!(from(address("10.0.0.1", 24)).is_as(&from(address("10.0.0.2", 24))));
    assert!(!from(address("10.0.0.1", 24)).is_as(&from(address("10.0.1.1", 24))));
    assert!(!from(address("10.0.0.1", 24)).looks_at_as(&from(address("10.0.0.1", 25))));
    assert!(from(address("2001:db8::1", 64)).is_as(&from(address("2001:db8::2", 64))));
    assert!(!from(address("2001:db8::1", 64)).looks_at_as(&from(address("10.0.0.1", 64))));
    let to = |port| FlowerKeys { destination_port: Some(port), ..FlowerKeys::default() };
    let masked = |value, mask| FlowerPort::Masked(FlowerField { value, mask });
    assert!(to(masked(0x51, 0xfff0)).is_as(&to(masked(0x5f, 0xfff0))));
    assert!(!to(masked(0x51, 0xfff0)).is_as(&to(masked(0x61, 0xfff0))));
    let (one, two) = (FlowerPort::Range { low: 1, high: 3 }, FlowerPort::Range { low: 2, high: 3 });
    assert!(
        to(one).looks_at_as(&to(two)) && !to(one).is_as(&to(two)) && !to(one).looks_at_as(&to(masked(1, 3)))
    );
}

/// Goal: of the word of TCP that has its flags the header's length is not looked at. Method: a packet whose
/// length is not 0 there, and keys that look at all bits of it and at the flags.
#[test]
fn flags_of_tcp_alone() {
    let made = Made {
        is_v6: false,
        addresses: [1, 2],
        protocol: 6,
        tos: 0,
        ttl: 1,
        ports: [1, 2],
        flags: 0x12,
        icmp: [0, 0],
        options: 0,
        fragment: None,
    };
    let keys =
        |value, mask| FlowerKeys { tcp_flags: Some(FlowerField { value, mask }), ..FlowerKeys::default() };
    let bytes = made.bytes();
    assert_eq!(bytes[32..34], [0x50, 0x12], "a header of five words");
    assert!(keys(0x12, 0xffff).is_met(&bytes) && keys(0x10, 0x10).is_met(&bytes));
    assert!(!keys(0x5012, 0xffff).is_met(&bytes) && !keys(0x02, 0x12).is_met(&bytes));
}
