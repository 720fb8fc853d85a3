//! Extended matches: trees at random, and a model that follows their definition.

use proptest::collection::vec;
use proptest::prelude::*;
use quietcore_qdisc::filter::{
    Ematch, EmatchCompare, EmatchJoin, EmatchLayer, EmatchMeta, EmatchOperand, EmatchOperator, EmatchTerm,
    U32Key, are_met,
};
use quietcore_qdisc::{IpPacket, Packet as _};

/// A packet of IPv4 with options, of which the bytes behind the header are told.
fn bytes(options: u8, payload: &[u8]) -> Vec<u8> {
    let header_len = 20 + 4 * usize::from(options);
    let mut bytes = vec![0; header_len];
    bytes[0] = 0x45 + options;
    bytes[3] = u8::try_from(header_len + payload.len()).expect("a small packet");
    bytes[9] = 17;
    bytes.extend_from_slice(payload);
    bytes
}

fn begin(layer: EmatchLayer, network: &[u8]) -> Option<usize> {
    match layer {
        EmatchLayer::Link => None,
        EmatchLayer::Network => Some(0),
        EmatchLayer::Transport => Some(4 * usize::from(network[0] & 0xf)),
    }
}

fn holds(operator: EmatchOperator, left: u64, right: u32) -> bool {
    match operator {
        EmatchOperator::Equal => left == u64::from(right),
        EmatchOperator::Greater => left > u64::from(right),
        EmatchOperator::Less => left < u64::from(right),
    }
}

fn term_is_true(term: &EmatchTerm, packet: &IpPacket) -> bool {
    let network = packet.network_bytes();
    match term {
        EmatchTerm::Compare(compare) => {
            let Some(from) = begin(compare.layer, network).map(|begin| begin + usize::from(compare.at))
            else {
                return false;
            };
            let size = usize::from(compare.bytes);
            if from + size > network.len() {
                return false;
            }
            let mut digits = network[from..from + size].to_vec();
            if compare.swapped {
                digits.reverse();
            }
            let number = digits.iter().fold(0, |sum, byte| sum * 256 + u64::from(*byte));
            let mask = if compare.mask == 0 { u64::MAX } else { u64::from(compare.mask) };
            holds(compare.operator, number & mask, compare.value)
        }
        EmatchTerm::Word(key) => {
            let from = usize::try_from(key.offset).expect("not before the packet");
            let bits = (0..32).filter(|bit| key.mask >> (31 - bit) & 1 == 1);
            from + 4 <= network.len()
                && bits.into_iter().all(|bit| {
                    let found = network[from + bit / 8] >> (7 - bit % 8) & 1;
                    u32::from(found) == key.value >> (31 - bit) & 1
                })
        }
        EmatchTerm::Bytes { pattern, at, layer } => begin(*layer, network).is_some_and(|begin| {
            let from = begin + usize::from(*at);
            from <= network.len() && network[from..].starts_with(pattern)
        }),
        EmatchTerm::Meta(left, operator, right) => {
            holds(*operator, operand(*left, packet), u32::try_from(operand(*right, packet)).expect("32 bits"))
        }
        EmatchTerm::Group(list) => list_is_true(list, packet),
    }
}

fn operand(operand: EmatchOperand, packet: &IpPacket) -> u64 {
    let (what, shift, mask) = match operand {
        EmatchOperand::Value(value) => return value.into(),
        EmatchOperand::Meta { what, shift, mask } => (what, shift, mask),
    };
    let number = match what {
        EmatchMeta::Mark => packet.mark().into(),
        EmatchMeta::Priority => packet.priority().into(),
        EmatchMeta::Length => packet.bytes().len() as u64 + 14,
        EmatchMeta::Protocol => 0x0008,
    };
    let shifted = if shift < 32 { number >> shift } else { 0 };
    if mask == 0 { shifted } else { shifted & u64::from(mask) }
}

/// A list is its first match, joined to the list of all others.
fn list_is_true(list: &[Ematch], packet: &IpPacket) -> bool {
    let [first, rest @ ..] = list else { return true };
    let is_true = term_is_true(&first.term, packet) ^ first.is_negated;
    match first.join {
        Some(EmatchJoin::And) => is_true && list_is_true(rest, packet),
        Some(EmatchJoin::Or) => is_true || list_is_true(rest, packet),
        None => is_true,
    }
}

fn term() -> BoxedStrategy<EmatchTerm> {
    let layer = || {
        let behind = prop_oneof![Just(EmatchLayer::Network), Just(EmatchLayer::Transport)];
        prop_oneof![1 => Just(EmatchLayer::Link), 6 => behind]
    };
    let operator = || {
        prop_oneof![Just(EmatchOperator::Equal), Just(EmatchOperator::Greater), Just(EmatchOperator::Less)]
    };
    let mask = || prop_oneof![Just(0_u32), Just(0xff), any::<u32>()];
    let size = prop_oneof![Just(1_u8), Just(2), Just(4)];
    let compare = (size, 0..24_u16, layer(), mask(), any::<bool>(), operator(), 0..600_u32).prop_map(
        |(bytes, at, layer, mask, swapped, operator, value)| {
            EmatchTerm::Compare(EmatchCompare { bytes, at, layer, mask, swapped, operator, value })
        },
    );
    let word = (0..3_u32, 0_i32..9, mask()).prop_map(|(value, word, mask)| {
        EmatchTerm::Word(U32Key { value: value & mask, mask, offset: 4 * word, next_header: false })
    });
    let pattern = (vec(0..2_u8, 1..3), 0..30_u16, layer())
        .prop_map(|(pattern, at, layer)| EmatchTerm::Bytes { pattern: pattern.into(), at, layer });
    let what = || {
        prop_oneof![
            Just(EmatchMeta::Mark),
            Just(EmatchMeta::Priority),
            Just(EmatchMeta::Length),
            Just(EmatchMeta::Protocol)
        ]
    };
    let meta = move || {
        (what(), 0..34_u8, mask()).prop_map(|(what, shift, mask)| EmatchOperand::Meta { what, shift, mask })
    };
    let value = prop_oneof![2 => (0..60_u32).prop_map(EmatchOperand::Value), 1 => meta()];
    let meta = (meta(), operator(), value)
        .prop_map(|(left, operator, right)| EmatchTerm::Meta(left, operator, right));
    prop_oneof![2 => compare, 1 => word, 1 => pattern, 1 => meta].boxed()
}

fn list(term: BoxedStrategy<EmatchTerm>) -> BoxedStrategy<Vec<Ematch>> {
    let join = prop_oneof![Just(EmatchJoin::And), Just(EmatchJoin::Or)];
    vec((any::<bool>(), term, join), 0..4)
        .prop_map(|all| {
            let count = all.len();
            let one = |(at, (is_negated, term, join))| Ematch {
                is_negated,
                term,
                join: Some(join).filter(|_| at + 1 < count),
            };
            all.into_iter().enumerate().map(one).collect()
        })
        .boxed()
}

/// A term, or up to three levels of groups.
fn nested() -> BoxedStrategy<EmatchTerm> {
    term().prop_recursive(3, 12, 4, |inner| list(inner).prop_map(EmatchTerm::Group)).boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Goal: matches are true where their parts are, joined as they are. Method: lists with groups in them,
    /// small packets with options, marks.
    #[test]
    fn lists_are_true_as_their_parts_are(
        list in list(nested()),
        (options, payload, mark) in (0..3_u8, vec(0..3_u8, 0..16), 0..4_u32),
    ) {
        let packet = IpPacket::new(bytes(options, &payload)).with_link_header(14).with_mark(mark);
        prop_assert_eq!(are_met(&list, &packet), list_is_true(&list, &packet));
    }
}
