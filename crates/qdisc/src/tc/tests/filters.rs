//! Commands about filters, made from types.

use super::random::Random;
use super::round_trip::{device, place, verb};
use crate::action::{ControlAction, GactChoice, GactRandom};
use crate::filter::{
    Ematch, EmatchCompare, EmatchJoin, EmatchLayer, EmatchMeta, EmatchOperand, EmatchOperator, EmatchTerm,
    FlowerAddress, FlowerField, FlowerKeys, FlowerPort, U32Address, U32Hash, U32Key, U32Length, U32Offset,
    U32Selector,
};
use crate::tc::{
    BasicOptions, BitRate, Classifier, Command, FilterAction, FilterActions, FilterCommand, FilterHandle,
    FilterOffload, FlowerOptions, FwOptions, GactOptions, MatchAllOptions, MirredDirection, MirredKind,
    MirredOptions, PoliceOptions, Protocol, TcVerb, U32Options,
};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::BoxedStrategy;

fn key() -> BoxedStrategy<U32Key> {
    // Words of which no two are at one place would become one.
    (any::<(u32, u32)>(), -4_i32..16, any::<bool>())
        .prop_map(|((value, mask), word, next_header)| U32Key {
            value: value & mask,
            mask,
            offset: 4 * word,
            next_header,
        })
        .boxed()
}

fn selector() -> BoxedStrategy<U32Selector> {
    let length = (any::<i16>(), any::<u16>(), any::<u8>()).prop_map(|(at, mask, shift)| U32Length {
        at: at & !1,
        mask,
        shift,
    });
    let offset = (any::<u16>(), option::of(length), any::<bool>()).prop_map(|(plus, read, eat)| U32Offset {
        plus,
        read,
        eat,
    });
    let hash = (any::<u32>(), -4_i32..16).prop_map(|(mask, word)| U32Hash { mask, offset: 4 * word });
    let keys = proptest::collection::vec(key(), 1..4);
    let mark = option::of(any::<(u32, u32)>().prop_map(|(value, mask)| (value & mask, mask)));
    (keys, mark, option::of(hash), option::of(offset))
        .prop_map(|(mut keys, mark, hash, offset)| {
            keys.sort_by_key(|key| (key.offset, key.next_header));
            keys.dedup_by_key(|key| (key.offset, key.next_header));
            U32Selector { keys, mark, hash, offset }
        })
        .boxed()
}

fn offload() -> BoxedStrategy<FilterOffload> {
    let all = &[FilterOffload::Any, FilterOffload::SkipHardware, FilterOffload::SkipSoftware];
    select(&all[..]).boxed()
}

fn address() -> BoxedStrategy<U32Address> {
    (1..=0xfff_u16, any::<u8>(), 0..=0xfff_u16)
        .prop_map(|(table, bucket, rule)| U32Address { table, bucket, rule })
        .boxed()
}

fn by_u32() -> BoxedStrategy<Classifier> {
    let table = address().prop_map(|address| U32Address { rule: 0, ..address });
    let link = address().prop_map(|address| U32Address { rule: 0, ..address });
    let divisor = (0..=8_u32).prop_map(|power| 1_u16 << power);
    let places = (option::of(table), option::of(link), option::of(0..=0xfff_u16));
    let parts = (option::of(selector()), option::of(Random::random()), option::of(divisor), places);
    (parts, offload(), actions())
        .prop_map(|((selector, flow, divisor, (table, link, order)), offload, actions)| {
            Classifier::U32(U32Options { selector, flow, divisor, table, link, order, offload, actions })
        })
        .boxed()
}

fn by_flower() -> BoxedStrategy<Classifier> {
    let field = || option::of(any::<(u8, u8)>().prop_map(|(value, mask)| FlowerField { value, mask }));
    let place = || {
        let told = (any::<u32>(), 1..=32_u8).prop_map(|(address, length)| FlowerAddress {
            address: Ipv4Addr::from_bits(address).into(),
            length,
        });
        option::of(told)
    };
    let masked =
        any::<(u16, u16)>().prop_map(|(value, mask)| FlowerPort::Masked(FlowerField { value, mask }));
    let range = (0..100_u16, 100..200_u16).prop_map(|(low, high)| FlowerPort::Range { low, high });
    let port = option::of(prop_oneof![masked, range]).boxed();
    let flags =
        option::of((0..0x1000_u16, 0..0x1000_u16).prop_map(|(value, mask)| FlowerField { value, mask }));
    let bytes = (field(), field(), any::<[Option<bool>; 2]>());
    let flow = (option::of(Random::random()), actions());
    (bytes, [place(), place()], port.clone(), port, flags, flow)
        .prop_map(
            |((tos, ttl, [fragment, first_fragment]), [source, destination], from, to, tcp_flags, end)| {
                let (flow, actions) = end;
                let keys = FlowerKeys {
                    ip_protocol: Some(6),
                    tos,
                    ttl,
                    destination,
                    source,
                    destination_port: to,
                    source_port: from,
                    tcp_flags,
                    fragment,
                    first_fragment,
                    ..FlowerKeys::default()
                };
                Classifier::Flower(FlowerOptions { keys, flow, offload: FilterOffload::Any, actions })
            },
        )
        .boxed()
}

fn term() -> BoxedStrategy<EmatchTerm> {
    let layer = || select(&[EmatchLayer::Link, EmatchLayer::Network, EmatchLayer::Transport][..]);
    let operator = || select(&[EmatchOperator::Equal, EmatchOperator::Greater, EmatchOperator::Less][..]);
    let compare = (select(&[1_u8, 2, 4][..]), any::<u16>(), layer(), any::<(u32, bool, u32)>(), operator());
    let compare = compare.prop_map(|(bytes, at, layer, (mask, swapped, value), operator)| {
        EmatchTerm::Compare(EmatchCompare { bytes, at, layer, mask, swapped, operator, value })
    });
    let metas = [EmatchMeta::Mark, EmatchMeta::Priority, EmatchMeta::Length, EmatchMeta::Protocol];
    let meta =
        move || {
            (select(metas.to_vec()), any::<(u8, u32)>())
                .prop_map(|(what, (shift, mask))| EmatchOperand::Meta { what, shift, mask })
        };
    let operand = prop_oneof![any::<u32>().prop_map(EmatchOperand::Value), meta()];
    let meta = (meta(), operator(), operand)
        .prop_map(|(left, operator, right)| EmatchTerm::Meta(left, operator, right));
    let bytes = ("[a-z.()]{1,3}( and )?[a-z]", any::<u16>(), layer()).prop_map(|(pattern, at, layer)| {
        EmatchTerm::Bytes { pattern: pattern.into_bytes().into(), at, layer }
    });
    let word = key().prop_map(|key| EmatchTerm::Word(U32Key { offset: key.offset.abs(), ..key }));
    prop_oneof![compare, meta, bytes, word].boxed()
}

/// Matches that are joined, but the last one.
fn matches(term: BoxedStrategy<EmatchTerm>) -> BoxedStrategy<Vec<Ematch>> {
    let joins = select(&[EmatchJoin::And, EmatchJoin::Or][..]);
    proptest::collection::vec((any::<bool>(), term, joins), 1..4)
        .prop_map(|all| {
            let last = all.len() - 1;
            let one = |(at, (is_negated, term, join))| Ematch {
                is_negated,
                term,
                join: Some(join).filter(|_| at < last),
            };
            all.into_iter().enumerate().map(one).collect()
        })
        .boxed()
}

fn by_basic() -> BoxedStrategy<Classifier> {
    let inner = matches(term()).prop_map(EmatchTerm::Group).boxed();
    let all = matches(prop_oneof![3 => term(), 1 => inner].boxed());
    (all, option::of(Random::random()), actions())
        .prop_map(|(matches, flow, actions)| Classifier::Basic(BasicOptions { matches, flow, actions }))
        .boxed()
}

fn control() -> BoxedStrategy<ControlAction> {
    use ControlAction::{Continue, Drop, Pass, Pipe, Reclassify};
    select(&[Pass, Reclassify, Drop, Continue, Pipe][..]).boxed()
}

fn police() -> BoxedStrategy<PoliceOptions> {
    // Less than a byte per second is no rate.
    let rate = <BitRate as Random>::random().prop_map(|rate| BitRate(rate.0.max(8)));
    let rated = (rate, Random::random(), option::of((Random::random(), Random::random())));
    let costs = (option::of(Random::random()), option::of(any::<u16>()), option::of(Random::random()));
    let said = option::of((control(), option::of(control())));
    (option::of(rated), costs, said, Random::random(), option::of(1..=u32::MAX))
        .prop_map(|(rated, (mpu, overhead, linklayer), said, mtu, index)| {
            let (exceed, conform) = said.map_or((None, None), |(exceed, conform)| (Some(exceed), conform));
            let (rate, burst, peak) =
                rated.map_or((None, None, None), |(rate, burst, peak)| (Some(rate), Some(burst), peak));
            let (peakrate, mtu) = match peak {
                Some((peak, mtu)) => (Some(peak), Some(mtu)),
                None => (None, Some(mtu).filter(|_| rate.is_none())),
            };
            PoliceOptions { rate, burst, mtu, peakrate, mpu, overhead, linklayer, exceed, conform, index }
        })
        .boxed()
}

fn actions() -> BoxedStrategy<FilterActions> {
    let index = || option::of(1..=u32::MAX);
    let choice = select(&[GactChoice::Random, GactChoice::Counted][..]);
    let random = (choice, control(), any::<u16>());
    let random = random.prop_map(|(choice, control, one_in)| GactRandom { choice, control, one_in });
    let gact = (control(), option::of(random), index())
        .prop_map(|(control, random, index)| FilterAction::Gact(GactOptions { control, random, index }));
    let kind = select(&[MirredKind::Redirect, MirredKind::Mirror][..]);
    let direction = select(&[MirredDirection::Egress, MirredDirection::Ingress][..]);
    let mirred = (kind, direction, device(), index()).prop_map(|(kind, direction, device, index)| {
        FilterAction::Mirred(MirredOptions { kind, direction, device, index })
    });
    let policed = police().prop_map(|options| FilterAction::Police(options.into()));
    let list = proptest::collection::vec(prop_oneof![gact, policed, mirred], 1..4);
    prop_oneof![
        4 => Just(FilterActions::None),
        3 => list.prop_map(FilterActions::List),
        1 => police().prop_map(|options| FilterActions::Police(options.into())),
    ]
    .boxed()
}

pub(super) fn filter() -> BoxedStrategy<Command> {
    let all = (option::of(Random::random()), offload(), actions()).prop_map(|(flow, offload, actions)| {
        Classifier::MatchAll(MatchAllOptions { flow, offload, actions })
    });
    let mark = (option::of(Random::random()), actions())
        .prop_map(|(flow, actions)| Classifier::Fw(FwOptions { flow, actions }));
    let classifier = prop_oneof![by_u32(), by_flower(), by_basic(), all, mark];
    let classifier = (classifier, verb(), any::<bool>());
    let protocol = prop_oneof![select(&[3_u16, 0x800, 0x86dd][..]), any::<u16>()].prop_map(Protocol);
    let handle = (address(), any::<(u32, u32)>(), any::<bool>());
    (device(), option::of(place()), option::of(protocol), option::of(any::<u16>()), (classifier, handle))
        .prop_map(|(device, place, protocol, prio, ((classifier, verb, is_named), handle))| {
            let (address, (value, mask), has_handle) = handle;
            let is_flower = matches!(classifier, Classifier::Flower(_));
            let protocol = if is_flower { Some(Protocol::IP) } else { protocol };
            let classifier = Some(classifier).filter(|_| is_named || verb != TcVerb::Delete);
            let handle = classifier.as_ref().filter(|_| has_handle).map(|classifier| match classifier {
                Classifier::U32(_) => FilterHandle::Rule(address),
                Classifier::Fw(_) => FilterHandle::Mark { value, mask },
                _ => FilterHandle::Number(value),
            });
            Command::Filter(FilterCommand { verb, device, place, protocol, prio, handle, classifier })
        })
        .boxed()
}
