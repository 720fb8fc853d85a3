//! netem against a model that knows no data structures, and against the formulas of its distributions.

mod model;
mod recorded;
mod statistics;

use model::Model;
use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::{
    Chance, Dequeued, Distribution, Netem, NetemDelay, NetemLoss, NetemRate, NetemSettings, NetemSlot,
    OnLoss, Packet, Probability, Qdisc, SlotSpacing,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A packet that knows what was done to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parcel {
    pub(crate) number: u64,
    pub(crate) bytes: u32,
    pub(crate) flips: Vec<(u32, u32)>,
    pub(crate) is_capable: bool,
    pub(crate) is_marked: bool,
}

impl Packet for Parcel {
    fn len(&self) -> u32 {
        self.bytes
    }

    fn duplicate(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn corrupt(&mut self, byte: u32, bit: u32) {
        self.flips.push((byte, bit));
    }

    fn mark_congestion(&mut self) -> bool {
        self.is_marked |= self.is_capable;
        self.is_capable
    }
}

/// Step of a script: time passes, then a packet comes, or one is asked for.
#[derive(Clone, Debug)]
enum Step {
    Enqueue { pass: u64, bytes: u32, is_capable: bool },
    Dequeue { pass: u64 },
    Reset,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pass = || prop_oneof![Just(0), 1..50_u64, 1..5_000_u64];
    let step = prop_oneof![
        8 => (pass(), 0..2_000_u32, any::<bool>())
            .prop_map(|(pass, bytes, is_capable)| Step::Enqueue { pass, bytes, is_capable }),
        8 => pass().prop_map(|pass| Step::Dequeue { pass }),
        1 => Just(Step::Reset),
    ];
    prop::collection::vec(step, 1..120)
}

fn probability() -> impl Strategy<Value = Probability> {
    prop_oneof![
        2 => Just(Probability::NEVER),
        1 => Just(Probability::ALWAYS),
        1 => prop::sample::select(&EDGES[..]).prop_map(Probability::from_share),
        2 => any::<u32>().prop_map(Probability::from_share),
    ]
}

fn chance() -> impl Strategy<Value = Chance> {
    let chance = (probability(), probability());
    prop_oneof![
        1 => Just(Chance::default()),
        1 => chance.prop_map(|(probability, correlation)| Chance { probability, correlation }),
    ]
}

fn delay() -> impl Strategy<Value = NetemDelay> {
    let table = prop::collection::vec(any::<i16>(), 1..9)
        .prop_map(|table| Some(Distribution::from_table(&table).expect("1 to 8 entries")));
    let span = || prop_oneof![Just(0), 0..10_u64, 0..5_000_u64];
    (span(), span(), probability(), prop_oneof![Just(None), table]).prop_map(
        |(latency, jitter, correlation, distribution)| NetemDelay {
            latency: Nanos(latency),
            jitter: Nanos(jitter),
            correlation,
            distribution,
        },
    )
}

fn loss() -> impl Strategy<Value = NetemLoss> {
    prop_oneof![
        2 => Just(NetemLoss::None),
        1 => chance().prop_map(NetemLoss::Random),
        1 => (probability(), probability(), probability(), probability(), probability())
            .prop_map(|(p13, p31, p32, p23, p14)| NetemLoss::FourStates { p13, p31, p32, p23, p14 }),
        1 => (probability(), probability(), probability(), probability())
            .prop_map(|(p, r, h, lost_in_good)| NetemLoss::GilbertElliott { p, r, h, lost_in_good }),
    ]
}

fn slot() -> impl Strategy<Value = Option<NetemSlot>> {
    let spacing = prop_oneof![
        (0..3_000_u64, 0..3_000_u64)
            .prop_map(|(min, more)| SlotSpacing::Between { min: Nanos(min), max: Nanos(min + more) }),
        delay().prop_map(SlotSpacing::Distributed),
    ];
    let slot = (spacing, 0..4_u32, prop_oneof![Just(0), 1..5_000_u64])
        .prop_map(|(spacing, packets, bytes)| Some(NetemSlot { spacing, packets, bytes }));
    prop_oneof![2 => Just(None), 1 => slot]
}

fn rate() -> impl Strategy<Value = NetemRate> {
    let rate = (1..3_000_000_000_u64, -2_000..2_000_i32, prop_oneof![Just(0), 1..500_u32], -600..600_i32);
    let rate = rate.prop_map(|(bytes_per_second, overhead, cell, cell_overhead)| NetemRate {
        bytes_per_second,
        overhead,
        cell,
        cell_overhead,
    });
    prop_oneof![1 => Just(NetemRate::default()), 1 => rate]
}

fn settings() -> impl Strategy<Value = NetemSettings> {
    let limit = prop_oneof![Just(1000), 0..6_u32];
    let marks = prop_oneof![Just(OnLoss::Drop), Just(OnLoss::Mark)];
    let whole = (limit, delay(), loss(), marks, chance(), chance(), chance(), 0..4_u32, rate(), slot());
    whole
        .prop_map(|(limit, delay, loss, on_loss, duplicate, corrupt, reorder, gap, rate, slot)| {
            NetemSettings { limit, delay, loss, on_loss, duplicate, corrupt, reorder, gap, rate, slot }
        })
        .prop_filter("settings go together", |settings| settings.check().is_ok())
}

/// Numbers that a comparison may meet exactly.
const EDGES: [u32; 4] = [0, 1 << 31, u32::MAX - 1, u32::MAX];

/// One in two numbers is one of these.
fn edgy(seed: u64) -> impl FnMut() -> u32 + Send {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    move || match random.next_u32() {
        number if number.is_multiple_of(2) => EDGES[(number >> 1) as usize % EDGES.len()],
        number => number,
    }
}

pub(crate) fn generator(seed: u64) -> impl FnMut() -> u32 + Send {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    move || random.next_u32()
}

proptest! {
    /// Goal: the same packets at the same moments as the model, with the same numbers drawn, and the same
    /// statistics. Method: any settings, any script; after each step what is asked for is compared.
    #[test]
    fn it_is_the_model(settings in settings(), steps in steps(), seed in any::<u64>()) {
        let mut netem = Netem::new(settings.clone(), edgy(seed), Nanos(0)).expect("they go together");
        let mut model = Model::new(settings, edgy(seed));
        let mut now = Nanos(0);
        for (number, step) in (0..).zip(steps) {
            match step {
                Step::Enqueue { pass, bytes, is_capable } => {
                    now.0 += pass;
                    let parcel = Parcel { number, bytes, flips: Vec::new(), is_capable, is_marked: false };
                    prop_assert_eq!(netem.enqueue(now, parcel.clone()), model.enqueue(now, parcel));
                }
                Step::Dequeue { pass } => {
                    now.0 += pass;
                    prop_assert_eq!(netem.dequeue(now), model.dequeue(now), "at {}", now);
                }
                Step::Reset => {
                    netem.reset(now);
                    model.reset(now);
                }
            }
            prop_assert_eq!(netem.statistics(), model.statistics());
        }
        prop_assert_eq!(netem.marked(), model.marked);
    }

    /// Goal: a caller that waits for the moments that it names gets everything, and never asks twice at the
    /// same moment for nothing. Method: a script of arrivals, then a watchdog.
    #[test]
    fn a_watchdog_drains_it(settings in settings(), seed in any::<u64>(), count in 1..50_u64) {
        let mut netem = Netem::new(settings, generator(seed), Nanos(0)).expect("they go together");
        for number in 0..count {
            let parcel =
                Parcel { number, bytes: 100, flips: Vec::new(), is_capable: false, is_marked: false };
            let _ = netem.enqueue(Nanos(number), parcel);
        }
        let (mut now, mut in_vain, mut rest) = (Nanos(count), 0, netem.statistics().qlen);
        while rest > 0 {
            match netem.dequeue(now) {
                Dequeued::Packet(_) => (rest, in_vain) = (rest - 1, 0),
                Dequeued::Throttled(until) => {
                    // A slot whose spacing is 0, or in the past, opens and closes at the same moment.
                    in_vain = if until > now { 0 } else { in_vain + 1 };
                    prop_assert!(in_vain < 1_000, "{} again and again", until);
                    now = now.max(until);
                }
                Dequeued::Empty => prop_assert!(false, "{} are left", rest),
            }
        }
        prop_assert_eq!((netem.dequeue(now), netem.statistics().backlog), (Dequeued::Empty, 0));
    }
}

/// Goal: a slot is over when its packets or its bytes are used up, whichever is first. Method: three packets
/// of 100 bytes at the moment at which a slot opens; the next one opens after 1000 ns.
#[test]
fn a_slot_ends_with_its_packets_or_its_bytes() {
    for (packets, bytes, first) in
        [(2, 0, 2), (0, 200, 2), (0, 150, 2), (0, 100, 1), (1, 1_000, 1), (0, 0, 3)]
    {
        let spacing = SlotSpacing::Between { min: Nanos(1_000), max: Nanos(1_000) };
        let slot = Some(NetemSlot { spacing, packets, bytes });
        let settings = NetemSettings { slot, ..NetemSettings::default() };
        let mut netem = Netem::new(settings, || 0, Nanos(0)).expect("they go together");
        for number in 0..3 {
            let parcel =
                Parcel { number, bytes: 100, flips: Vec::new(), is_capable: false, is_marked: false };
            assert!(netem.enqueue(Nanos(0), parcel).is_accepted());
        }
        let mut left = 0;
        let next = loop {
            match netem.dequeue(Nanos(0)) {
                Dequeued::Packet(_) => left += 1,
                Dequeued::Throttled(until) => break Some(until),
                Dequeued::Empty => break None,
            }
        };
        let expected = if first < 3 { Some(Nanos(1_000)) } else { None };
        assert_eq!((left, next), (first, expected), "a slot of {packets} packets and {bytes} bytes");
    }
}

/// Goal: what cannot be is refused in words, whichever setting it is. Method: 100 years and a nanosecond in
/// each of the four spans, and bounds of a slot that are exchanged; reordering without a latency, a jitter
/// and a rate, and with each.
#[test]
fn settings_that_cannot_be() {
    let (ms, longest) = (Nanos(1_000_000), Nanos(100 * 365 * 86_400 * 1_000_000_000));
    let refused = |settings: NetemSettings| settings.check().map_err(|error| error.to_string());
    let delayed = |latency, jitter| NetemDelay { latency, jitter, ..NetemDelay::default() };
    let spaced = |spacing| {
        let slot = Some(NetemSlot { spacing, packets: 0, bytes: 0 });
        refused(NetemSettings { slot, ..NetemSettings::default() })
    };
    let later = Nanos(longest.0 + 1);
    for (latency, jitter) in [(later, ms), (ms, later)] {
        let delay = delayed(latency, jitter);
        let too_long = Err(format!("{later} is longer than 100 years"));
        assert_eq!(refused(NetemSettings { delay: delay.clone(), ..NetemSettings::default() }), too_long);
        assert_eq!(spaced(SlotSpacing::Distributed(delay)), too_long);
    }
    assert_eq!(spaced(SlotSpacing::Distributed(delayed(longest, longest))), Ok(()));
    let exchanged = SlotSpacing::Between { min: Nanos(3_000_000), max: ms };
    assert_eq!(spaced(exchanged), Err("a slot of at least 3 ms and at most 1 ms".into()));
    let reordered = |delay, bytes_per_second| {
        let rate = NetemRate { bytes_per_second, ..NetemRate::default() };
        refused(NetemSettings { gap: 1, delay, rate, ..NetemSettings::default() })
    };
    let none = Nanos(0);
    assert_eq!(reordered(delayed(none, none), 0), Err("packets overtake nothing without a delay".into()));
    for (latency, jitter, rate) in [(ms, none, 0), (none, ms, 0), (none, none, 1)] {
        assert_eq!(reordered(delayed(latency, jitter), rate), Ok(()), "{latency}, {jitter}, {rate}");
    }
}
