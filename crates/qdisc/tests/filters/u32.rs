//! `u32`: tables of rules at random, packets at random, and a model that asks bit by bit.

use proptest::collection::vec;
use proptest::prelude::*;
use quietcore_qdisc::ClassId;
use quietcore_qdisc::filter::{
    U32Address, U32Error, U32Hash, U32Key, U32Length, U32Offset, U32Rule, U32Selector, U32Tables,
};
use std::collections::BTreeMap;

const PRIO: u16 = 5;
const ROOT: u16 = 0x800;
/// Tables besides the root, and how many buckets they have.
const TABLES: [(u16, u16); 2] = [(2, 4), (3, 1)];

/// A bit of a packet, counted from the first byte's uppermost one.
fn bit(network: &[u8], at: i64) -> Option<bool> {
    let byte = network.get(usize::try_from(at.div_euclid(8)).ok()?)?;
    Some(byte >> (7 - at.rem_euclid(8)) & 1 == 1)
}

/// So many bits as a number.
fn number(network: &[u8], byte: i64, bits: i64) -> Option<u32> {
    (0..bits).try_fold(0, |sum, at| Some(sum << 1 | u32::from(bit(network, 8 * byte + at)?)))
}

/// The rules as the model has them: by table and bucket, each with its name.
type Rules = BTreeMap<(u16, u32), Vec<U32Rule>>;

struct Model<'a> {
    rules: &'a Rules,
    network: &'a [u8],
    mark: u32,
    /// What the last offset said.
    next: i64,
    asked: BTreeMap<(u16, u32, u16), u64>,
}

/// The packet is too short, or linked too deep: no rule is for it.
struct TooShort;

impl Model<'_> {
    fn key_holds(&self, key: &U32Key, begin: i64) -> Result<bool, TooShort> {
        let from = begin + i64::from(key.offset) + if key.next_header { self.next } else { 0 };
        let mut holds = true;
        for at in 0..32 {
            let found = bit(self.network, 8 * from + at).ok_or(TooShort)?;
            let counts = key.mask >> (31 - at) & 1 == 1;
            holds &= !counts || found == (key.value >> (31 - at) & 1 == 1);
        }
        Ok(holds)
    }

    fn rule_holds(&self, rule: &U32Rule, begin: i64) -> Result<bool, TooShort> {
        if rule.selector.mark.is_some_and(|(value, mask)| self.mark & mask != value) {
            return Ok(false);
        }
        for key in &rule.selector.keys {
            if !self.key_holds(key, begin)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn bucket(
        &mut self,
        table: u16,
        bucket: u32,
        begin: i64,
        depth: usize,
    ) -> Result<Option<ClassId>, TooShort> {
        for rule in self.rules.get(&(table, bucket)).into_iter().flatten() {
            *self.asked.entry((table, bucket, rule.number)).or_default() += 1;
            if !self.rule_holds(rule, begin)? {
                continue;
            }
            if let Some(link) = rule.link {
                if depth == 8 {
                    return Err(TooShort);
                }
                if let Some(class) = self.link(rule, link, begin, depth)? {
                    return Ok(Some(class));
                }
            }
            if rule.flow.is_some() {
                return Ok(rule.flow);
            }
        }
        Ok(None)
    }

    fn link(
        &mut self,
        rule: &U32Rule,
        link: u16,
        begin: i64,
        depth: usize,
    ) -> Result<Option<ClassId>, TooShort> {
        let buckets = TABLES.iter().find(|(table, _)| *table == link).map_or(1, |(_, buckets)| *buckets);
        let mut chosen = 0;
        if buckets > 1 {
            let U32Hash { mask, offset } = rule.selector.hash.unwrap_or_default();
            let word = number(self.network, begin + i64::from(offset), 32).ok_or(TooShort)?;
            let down = if mask == 0 { 0 } else { mask.trailing_zeros() };
            chosen = ((word & mask) >> down) % u32::from(buckets);
        }
        let mut begin = begin;
        if let Some(U32Offset { plus, read, eat }) = rule.selector.offset {
            let told = match read {
                None => 0,
                Some(U32Length { at, mask, shift }) => {
                    let two = number(self.network, begin + i64::from(at), 16).ok_or(TooShort)?;
                    if shift < 16 { (two & u32::from(mask)) >> shift } else { 0 }
                }
            };
            self.next = (i64::from(plus) + i64::from(told) + 3) / 4 * 4;
            if eat {
                begin += self.next;
                self.next = 0;
            }
        }
        if begin >= i64::try_from(self.network.len()).expect("a packet") {
            return Ok(None);
        }
        self.bucket(link, chosen, begin, depth + 1)
    }
}

fn key() -> impl Strategy<Value = U32Key> {
    // Few bits count, and few bits of packets are set, so that rules are often met.
    let mask = prop_oneof![Just(0_u32), any::<u32>().prop_map(|mask| mask & 0x0101_0303), Just(0xff)];
    (0..4_u32, mask, -1_i32..5, any::<bool>()).prop_map(|(value, mask, word, next_header)| {
        let value = value.wrapping_mul(0x0101_0101) & mask;
        U32Key { value, mask, offset: 4 * word, next_header }
    })
}

fn rule() -> impl Strategy<Value = U32Rule> {
    let mark = prop_oneof![3 => Just(None), 1 => (0..2_u32).prop_map(|value| Some((value, 1)))];
    let hash = prop_oneof![
        Just(None),
        (any::<u32>(), 0_i32..3)
            .prop_map(|(mask, word)| Some(U32Hash { mask: mask & 0x0303_0300, offset: 4 * word }))
    ];
    let length = (0_i16..8, any::<u16>(), 0..18_u8).prop_map(|(half, mask, shift)| U32Length {
        at: 2 * half,
        mask: mask & 0x0303,
        shift,
    });
    let offset = (0..9_u16, proptest::option::of(length), any::<bool>())
        .prop_map(|(plus, read, eat)| U32Offset { plus, read, eat });
    let link = prop_oneof![2 => Just(None), 1 => Just(Some(2_u16)), 1 => Just(Some(3))];
    let flow = proptest::option::of((1..5_u16).prop_map(|minor| ClassId::new(1, minor)));
    (vec(key(), 0..3), mark, hash, proptest::option::of(offset), link, flow).prop_map(
        |(keys, mark, hash, offset, link, flow)| {
            U32Rule::new(U32Selector { keys, mark, hash, offset }, link, flow)
        },
    )
}

/// A rule and where it is put.
fn placed() -> impl Strategy<Value = (u16, u8, U32Rule)> {
    let place = prop_oneof![3 => Just((ROOT, 0)), 3 => (Just(2_u16), 0..4_u8), 2 => Just((3, 0))];
    (place, rule()).prop_map(|((table, bucket), rule)| (table, bucket, rule))
}

fn packet() -> impl Strategy<Value = (Vec<u8>, u32)> {
    (vec(prop_oneof![2 => 0..4_u8, 1 => any::<u8>()], 0..40), 0..3_u32)
}

proptest! {
    /// Goal: a packet goes where the first rule sends it that is for it, through tables as they are linked,
    /// and each rule counts the packets that it saw. Method: rules in three tables, links in circles
    /// among them, packets; the model goes the same way bit by bit.
    #[test]
    fn rules_decide_as_their_bits_say(rules in vec(placed(), 0..12), packets in vec(packet(), 1..8)) {
        let mut tables = U32Tables::default();
        prop_assert_eq!(tables.add_root(PRIO), Ok(ROOT));
        for (table, divisor) in TABLES {
            prop_assert_eq!(tables.add_table(Some(table), PRIO, divisor), Ok(table));
        }
        let mut model_rules = Rules::new();
        for (table, bucket, rule) in rules {
            let place = U32Address { table, bucket, rule: 0 };
            let added = tables.add_rule(PRIO, Some(place), None, rule.clone()).expect("a place and a number");
            let of = model_rules.entry((table, u32::from(bucket))).or_default();
            of.push(U32Rule { number: added.rule, ..rule });
        }
        let mut asked: BTreeMap<(u16, u32, u16), u64> = BTreeMap::new();
        for (network, mark) in packets {
            let mut model =
                Model { rules: &model_rules, network: &network, mark, next: 0, asked: BTreeMap::new() };
            let wanted = model.bucket(ROOT, 0, 0, 0).unwrap_or(None);
            for (name, count) in model.asked {
                *asked.entry(name).or_default() += count;
            }
            prop_assert_eq!(tables.search(PRIO, &network, mark), wanted, "{:?}", network);
        }
        for table in tables.of(PRIO) {
            for (bucket, rules) in (0..).zip(&table.buckets) {
                for rule in rules {
                    let wanted = asked.get(&(table.id, bucket, rule.number)).copied().unwrap_or(0);
                    prop_assert_eq!(rule.asked, wanted);
                }
            }
        }
    }
}

fn all_packets(flow: u16) -> U32Rule {
    U32Rule::new(U32Selector::default(), None, Some(ClassId::new(1, flow)))
}

fn address(table: u16, bucket: u8, rule: u16) -> U32Address {
    U32Address { table, bucket, rule }
}

/// Goal: names are given and refused as in the kernel. Method: its own answers (recorded lines), one by one.
#[test]
fn names_of_tables_and_rules() {
    let mut tables = U32Tables::default();
    assert_eq!(tables.add_root(5), Ok(0x800));
    assert_eq!(tables.add_root(6), Ok(0x801));
    assert_eq!(tables.add_table(None, 5, 16), Ok(0x802));
    assert_eq!(tables.add_table(Some(2), 5, 256), Ok(2));
    assert_eq!(tables.add_table(Some(2), 5, 16), Err(U32Error::TableInUse(2)));
    let mut add = |place, handle| tables.add_rule(5, place, handle, all_packets(1));
    assert_eq!(add(None, None), Ok(address(0x800, 0, 0x800)));
    assert_eq!(add(None, Some(address(0, 0, 1))), Ok(address(0x800, 0, 1)));
    assert_eq!(
        add(None, Some(address(0x800, 7, 1))),
        Err(U32Error::NumberInUse(1)),
        "its bucket says nothing"
    );
    assert_eq!(add(None, Some(address(2, 0, 1))), Err(U32Error::OtherTable(address(2, 0, 1))));
    assert_eq!(add(None, None), Ok(address(0x800, 0, 0x801)));
    assert_eq!(
        add(Some(address(2, 0x7b, 9)), None),
        Ok(address(2, 0x7b, 0x800)),
        "a rule in `ht` says nothing"
    );
    assert_eq!(add(Some(address(2, 1, 0)), None), Ok(address(2, 1, 0x800)), "numbers are those of a bucket");
    assert_eq!(add(Some(address(3, 0, 0)), None), Err(U32Error::UnknownTable(3)));
    assert_eq!(add(Some(address(0x802, 16, 0)), None), Err(U32Error::UnknownBucket(address(0x802, 16, 0))));
    assert_eq!(add(Some(address(0xfff, 0, 0)), None), Ok(address(0x800, 0, 0x802)), "fff: is the root");
    let numbers: Vec<u16> = tables.of(5).find(|table| table.is_root).expect("a root").buckets[0]
        .iter()
        .map(|rule| rule.number)
        .collect();
    assert_eq!(numbers, [1, 0x800, 0x801, 0x802]);
    let ids: Vec<u16> = tables.of(5).map(|table| table.id).collect();
    assert_eq!(ids, [2, 0x802, 0x800], "the newest first");
    assert!(tables.holds(5, address(0xfff, 0, 1)) && tables.holds(6, address(0x801, 0, 0)));
    assert!(!tables.holds(5, address(0x800, 1, 1)) && !tables.holds(5, address(7, 0, 0)));
}

/// Goal: a table that is linked to stays, a root goes with its priority alone, and numbers begin anew with
/// the last. Method: one of each.
#[test]
fn what_may_go() {
    let mut tables = U32Tables::default();
    assert_eq!((tables.add_root(5), tables.add_table(Some(2), 5, 1)), (Ok(0x800), Ok(2)));
    let to = |link| U32Rule::new(U32Selector::default(), Some(link), None);
    assert_eq!(tables.add_rule(5, None, None, to(0x800)), Err(U32Error::Root(0x800)));
    assert_eq!(tables.add_rule(5, None, None, to(9)), Err(U32Error::UnknownTable(9)));
    assert_eq!(tables.add_rule(5, None, None, to(2)), Ok(address(0x800, 0, 0x800)));
    assert_eq!(tables.add_rule(5, Some(address(2, 0, 0)), None, all_packets(7)), Ok(address(2, 0, 0x800)));
    assert!(tables.send_to(ClassId::new(1, 7)) && !tables.send_to(ClassId::new(1, 8)));
    assert_eq!(tables.search(5, &[0; 20], 0), Some(ClassId::new(1, 7)));
    assert_eq!(tables.search(5, &[], 0), None, "a table is for what is left of a packet");
    assert_eq!(tables.remove(5, address(2, 0, 0)), Err(U32Error::Linked(2)));
    assert_eq!(tables.remove(5, address(0x800, 0, 0)), Err(U32Error::Root(0x800)));
    let unknown = address(0x800, 0, 5);
    assert_eq!(tables.remove(5, unknown), Err(U32Error::UnknownRule(unknown)));
    assert_eq!(tables.remove(5, address(0x800, 0, 0x800)), Ok(()));
    assert!(!tables.is_useless(5), "a rule is left in table 2:");
    assert_eq!(tables.remove(5, address(2, 0, 0)), Ok(()));
    assert!(tables.is_useless(5));
    assert_eq!(tables.add_root(6), Ok(0x801));
    assert!(!tables.is_useless(5), "another priority is there");
    tables.remove_root(6);
    assert_eq!(tables.add_root(6), Ok(0x802), "numbers go round");
    tables.remove_root(6);
    tables.remove_root(5);
    assert_eq!(tables, U32Tables::default());
}

/// Goal: a change moves packets to another class, and what the rule looks at stays. Method: one rule.
#[test]
fn a_change_keeps_what_is_looked_at() {
    let mut tables = U32Tables::default();
    assert_eq!(tables.add_root(5), Ok(0x800));
    let key = U32Key { value: 1, mask: 0xff, offset: 0, next_header: false };
    let selector = U32Selector { keys: vec![key], ..U32Selector::default() };
    let rule = U32Rule::new(selector, None, Some(ClassId::new(1, 1)));
    let name = tables.add_rule(5, None, None, rule).expect("a rule");
    assert_eq!(tables.change_rule(5, name, None, Some(ClassId::new(1, 2))), Ok(()));
    let mut of = |last: u8| tables.search(5, &[0, 0, 0, last], 0);
    assert_eq!((of(1), of(2)), (Some(ClassId::new(1, 2)), None));
    assert_eq!(tables.change_rule(5, name, None, None), Ok(()), "nothing is named, nothing changes");
    assert_eq!(tables.search(5, &[0, 0, 0, 1], 0), Some(ClassId::new(1, 2)));
    assert_eq!(tables.change_rule(5, name, Some(4), None), Err(U32Error::UnknownTable(4)));
}
